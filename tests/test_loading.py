"""Loading a saved model runs no code of its folder, reads no pickle, and refuses broken files in one sentence."""

import io
import json

import pytest
import tiny_encoders as tiny
import torch
from conftest import build_model
from safetensors.torch import load_file, save_file

from hf_xorner import Tagger
from hf_xorner.export.runtime import read_lookup
from hf_xorner.registration import CONFIGS

FOREIGN_CODE = """
open({mark!r}, "w").close()
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
class ForeignConfig(PreTrainedConfig):
    model_type = "foreign"
class ForeignModel(PreTrainedModel):
    config_class = ForeignConfig
class ForeignTokenizer(PreTrainedTokenizerFast):
    pass
"""


@pytest.fixture
def folder(tokenizer, tmp_path):
    """A saved model, without code beside it."""
    path = tmp_path / "model"
    Tagger(build_model("cross-bilstm-cnn", tokenizer), tokenizer).save_pretrained(path)
    for code in path.glob("*.py"):
        code.unlink()
    return path


@pytest.fixture
def foreign(tmp_path):
    """A folder of a foreign model whose code leaves a mark when it runs: the folder and the mark."""
    path, mark = tmp_path / "foreign", tmp_path / "code_was_run"
    path.mkdir()
    (path / "code.py").write_text(FOREIGN_CODE.format(mark=str(mark)))
    classes = {name: f"code.Foreign{name[4:]}" for name in ("AutoConfig", "AutoModel")}
    classes["AutoModelForTokenClassification"] = "code.ForeignModel"
    config = {"model_type": "foreign", "auto_map": classes}
    (path / "config.json").write_text(json.dumps(config))
    settings = {"tokenizer_class": "ForeignTokenizer", "auto_map": {"AutoTokenizer": [None, "code.ForeignTokenizer"]}}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "tokenizer.json").write_text(tiny.bert_tokenizer().backend_tokenizer.to_str())
    return path, mark


@pytest.mark.parametrize(
    "command",
    [
        "tag - --model",
        "evaluate --dataset xor --model",
        "train --model_name_or_path",
        "train --context",
        "vectors distill --vocab words.txt --output vectors --encoder",
    ],
)
def test_no_command_runs_code_of_a_model(command, foreign, script, monkeypatch, tmp_path):
    path, mark = foreign
    (tmp_path / "words.txt").write_text("Oslo\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 20))
    code, _, errors = script(*command.split(), path)
    assert not mark.exists()
    assert code == 1 and str(path) in errors.strip().splitlines()[-1]


def test_code_runs_with_trust_remote_code(foreign):
    path, mark = foreign
    with pytest.raises(ValueError):
        Tagger.from_pretrained(str(path))
    assert not mark.exists()
    with pytest.raises(ValueError, match="character ids"):
        Tagger.from_pretrained(str(path), trust_remote_code=True)
    assert mark.exists()


def test_trusted_published_code_matches_the_package(tokenizer, tmp_path):
    Tagger(build_model("grn", tokenizer), tokenizer).save_pretrained(tmp_path / "model")
    taggers = [Tagger.from_pretrained(tmp_path / "model", trust_remote_code=trust) for trust in (False, True)]
    assert len({str(tagger("Ann Smith met Zeus in New York .")) for tagger in taggers}) == 1


def test_weights_in_a_pickle_are_not_read(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"model: the weights .*safetensors"):
        Tagger.from_pretrained(str(folder))


def test_weights_that_do_not_match_the_config_are_refused(folder):
    weights = load_file(folder / "model.safetensors")
    without = {name: values for name, values in weights.items() if name != "classifier.bias"}
    for name, changed in (
        ("classifier.bias", without),
        ("another", {**without, "another": weights["classifier.bias"]}),
        ("classifier.scale", {**weights, "classifier.scale": torch.ones(1)}),
    ):
        save_file(changed, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(ValueError, match=rf"model: the weights .*{name}"):
            Tagger.from_pretrained(str(folder))


def test_padding_and_truncation_of_a_tokenizer_file_are_ignored(folder):
    expected = Tagger.from_pretrained(str(folder))("Ann Smith met Zeus in New York .")
    rest = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    for size in (10**9, 10**18):
        for padding in ({"strategy": {"Fixed": size}}, {"strategy": "BatchLongest", "pad_to_multiple_of": size}):
            edit(folder / "tokenizer.json", padding={**rest, **padding}, truncation=truncation)
            assert Tagger.from_pretrained(str(folder))("Ann Smith met Zeus in New York .") == expected


def test_a_regular_expression_that_takes_too_long_for_a_text_gives_a_one_line_error(folder):
    """The tokenizers library panics, which is no Exception."""
    rule = {"type": "Split", "pattern": {"Regex": "(a|aa)+$x"}, "behavior": "Removed", "invert": True}
    edit(folder / "tokenizer.json", pre_tokenizer=rule)
    tagger = Tagger.from_pretrained(str(folder))
    for tag in (lambda texts, _: tagger(texts), read_lookup(folder).words_of, lambda texts, _: tagger.tokenizer(texts)):
        with pytest.raises(ValueError, match="the tokenizer fails"):
            tag(["a" * 40], False)


def edit(path, **changes):
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


def refused(folder):
    """Return the one-line error of a folder that cannot be loaded."""
    with pytest.raises(ValueError) as error:
        Tagger.from_pretrained(str(folder))
    assert type(error.value).__name__ in ("ValueError", "DataError")
    assert "\n" not in str(error.value) and len(str(error.value)) < 1000
    return str(error.value)


def test_settings_that_no_model_has_are_refused(folder):
    for file, changes in (
        ("config.json", {"hidden_size": 1 << 29}),
        ("config.json", {"num_hidden_layers": 1_000_000}),
        ("config.json", {"char_widths": [1] * 100_000}),
        ("config.json", {"id2label": {str(index): f"L{index}" for index in range(5000)}}),
        ("tokenizer_config.json", {"max_word_chars": 1 << 29}),
        ("tokenizer_config.json", {"max_word_pieces": 1 << 20}),
        ("tokenizer_config.json", {"casing": None}),
    ):
        before = (folder / file).read_text()
        edit(folder / file, **changes)
        message = refused(folder)
        assert any(name in message for name in changes), changes
        (folder / file).write_text(before)


def test_names_of_code_and_of_repositories_are_not_kept_of_an_encoder():
    settings = {**tiny.bert().config.to_dict(), "auto_map": {"AutoModel": "code.Model"}, "_name_or_path": "me/model"}
    config = CONFIGS["bilstm-cnn"](context_encoder=settings, context_layers=[1], max_word_pieces=5)
    assert config.context_encoder["hidden_size"] == 8
    assert not {"auto_map", "_name_or_path"} & set(config.context_encoder)


DEEP = "[" * 100_000
FILES = ("config.json", "tokenizer_config.json", "tokenizer.json")
TEXTS = ("", "null", "[]", "{}", "3", '"text"', DEEP, '{"a":' * 100_000, "\0", "{", '{"model_type": ["grn"]}')


@pytest.mark.parametrize("file", [*FILES, "model.safetensors"])
def test_a_broken_or_missing_file_gives_a_one_line_error(folder, file):
    path = folder / file
    content = path.read_bytes()
    broken = [text.encode() for text in TEXTS]
    if file == "model.safetensors":
        long_head = (10**15).to_bytes(8, "little") + content[8:]
        broken = [content[: len(content) // 2], b"", b"\x80\x02}q\x00." * 100, long_head]
    for changed in broken:
        path.write_bytes(changed)
        refused(folder)
    path.unlink()
    refused(folder)
