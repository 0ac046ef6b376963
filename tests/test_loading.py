"""Loading a saved model runs no code of its folder, reads no pickle, and refuses broken files in one sentence."""

import io
import json
import os

import pytest
import tiny_encoders as tiny
import torch
from conftest import REPOSITORY, SENTENCES, build_model
from processes import run_python
from safetensors.torch import load_file, save_file

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.models.word_ids import WordPieces
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
    build_model("cross-bilstm-cnn", tokenizer).save_pretrained(path)
    tokenizer.save_pretrained(path)
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


def test_tagging_standard_input_runs_no_code_of_the_model(foreign, tmp_path):
    path, mark = foreign
    command = [REPOSITORY / "scripts" / "tag.py", "-", "--model", path]
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")}
    done = run_python(command, cwd=tmp_path, env=environment, given="y\n" * 20)
    assert not mark.exists()
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert str(path) in done.stderr.strip().splitlines()[-1]


COMMANDS = {
    "evaluate.py": ["evaluate.py", "--dataset", "xor", "--model", "{model}"],
    "train.py from a model": ["train.py", "--model_name_or_path", "{model}"],
    "train.py with an encoder": ["train.py", "--context", "{model}"],
    "vectors.py": ["vectors.py", "distill", "--encoder", "{model}", "--vocab", "words.txt", "--output", "vectors"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_code_of_a_model(command, foreign, script, monkeypatch, tmp_path):
    path, mark = foreign
    (tmp_path / "words.txt").write_text("Oslo\n")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 20))
    code, _, errors = script(*(word.format(model=path) for word in COMMANDS[command]))
    assert not mark.exists()
    assert code == 1 and str(path) in errors.strip().splitlines()[-1]


def test_code_runs_with_trust_remote_code(foreign, monkeypatch, tmp_path):
    path, mark = foreign
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    with pytest.raises(ValueError):
        Tagger.from_pretrained(str(path))
    assert not mark.exists()
    with pytest.raises(ValueError, match="character ids"):
        Tagger.from_pretrained(str(path), trust_remote_code=True)
    assert mark.exists()


def test_trusted_published_code_matches_the_package(tokenizer, tmp_path):
    build_model("grn", tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    program = (
        "import sys; from transformers import AutoConfig\n"
        "from hf_xorner import Tagger\n"
        "taggers = [Tagger.from_pretrained(sys.argv[1], trust_remote_code=trust) for trust in (False, True)]\n"
        "print([type(one.model).__module__.split('.')[0] for one in taggers])\n"
        "print(len({str(one('Ann Smith met Zeus in New York .')) for one in taggers}))"
    )
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")}
    done = run_python(["-c", program, tmp_path / "model"], env=environment)
    assert done.stdout.split("\n")[-2] == "1", done.stderr


def test_weights_in_a_pickle_are_not_read(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"model: the weights .*safetensors"):
        Tagger.from_pretrained(str(folder))


@pytest.mark.parametrize("change", ["renamed", "left out", "added"])
def test_weights_that_do_not_match_the_config_are_refused(folder, change):
    weights = load_file(folder / "model.safetensors")
    name = "classifier.bias"
    if change != "added":
        weights["another"] = weights.pop(name)
    if change != "renamed":
        weights.pop("another", None)
    if change == "added":
        weights["classifier.scale"] = torch.ones(1)
        name = "classifier.scale"
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=rf"model: the weights .*{'another' if change == 'renamed' else name}"):
        Tagger.from_pretrained(str(folder))


@pytest.mark.parametrize("size", [10**9, 10**18])
@pytest.mark.parametrize(
    "padding", [{"strategy": {"Fixed": "size"}}, {"strategy": "BatchLongest", "pad_to_multiple_of": "size"}]
)
def test_padding_and_truncation_of_a_tokenizer_file_are_ignored(folder, padding, size):
    expected = Tagger.from_pretrained(str(folder))("Ann Smith met Zeus in New York .")
    rest = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    padding = json.loads(json.dumps({**rest, **padding}).replace('"size"', str(size)))
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    edit(folder / "tokenizer.json", padding=padding, truncation=truncation)
    assert Tagger.from_pretrained(str(folder))("Ann Smith met Zeus in New York .") == expected


def test_a_piece_with_a_huge_id_is_refused(tmp_path):
    parts = json.loads(tiny.bert_tokenizer().backend_tokenizer.to_str())
    WordCharTokenizer.from_corpus(SENTENCES, pieces=WordPieces(json.dumps(parts))).save_pretrained(tmp_path)
    parts["model"]["vocab"]["zz"] = 4_000_000_000
    (tmp_path / "piece_tokenizer.json").write_text(json.dumps(parts))
    with pytest.raises(ValueError, match=r"piece_tokenizer\.json .*numbered"):
        WordCharTokenizer.from_pretrained(tmp_path)


def edit(path, **changes):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **changes}))


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("config.json", {"hidden_size": 1 << 29}),
        ("config.json", {"num_hidden_layers": 1_000_000}),
        ("config.json", {"char_widths": [1] * 100_000}),
        ("config.json", {"id2label": {str(index): f"L{index}" for index in range(5000)}}),
        ("config.json", {"attn_implementation": "kernels-community/flash-attn"}),
        ("config.json", {"_attn_implementation_internal": "owner/kernel"}),
        ("config.json", {"quantization_config": {"quant_method": "bitsandbytes"}}),
        ("config.json", {"context_encoder": {"model_type": "bert", "attn_implementation": "owner/kernel"}}),
        ("config.json", {"context_encoder": {"model_type": "bert", "quantization_config": {}}}),
        ("tokenizer_config.json", {"max_word_chars": 1 << 29}),
        ("tokenizer_config.json", {"max_word_pieces": 1 << 20}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_a_real_model_never_has_is_refused(folder, file, changes):
    edit(folder / file, **changes)
    (name,) = changes
    with pytest.raises(ValueError) as error:
        Tagger.from_pretrained(str(folder))
    named = {"context_encoder", *changes["context_encoder"]} if name == "context_encoder" else {name}
    assert any(each in str(error.value) for each in named) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "encoder",
    [
        {"model_type": "detr", "backbone": "owner/backbone", "use_pretrained_backbone": True},
        {"model_type": "foreign", "auto_map": {"AutoConfig": "code.ForeignConfig", "AutoModel": "code.ForeignModel"}},
        {"model_type": "bert", "num_hidden_layers": 1_000_000},
    ],
    ids=lambda encoder: encoder["model_type"],
)
def test_only_encoders_of_known_types_are_built(folder, encoder, monkeypatch):
    def no_request(*arguments, **options):
        raise AssertionError("a request was made")

    edit(folder / "config.json", context_encoder=encoder, context_layers=[0], max_word_pieces=4)
    monkeypatch.setattr("socket.socket.connect", no_request)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 20))
    with pytest.raises(ValueError, match="context_encoder"):
        Tagger.from_pretrained(str(folder))


def test_names_of_code_and_of_repositories_are_not_kept_of_an_encoder():
    settings = {**tiny.bert().config.to_dict(), "auto_map": {"AutoModel": "code.Model"}, "_name_or_path": "me/model"}
    config = CONFIGS["bilstm-cnn"](context_encoder=settings, context_layers=[1], max_word_pieces=5)
    assert config.context_encoder["hidden_size"] == 8
    assert not {"auto_map", "_name_or_path"} & set(config.context_encoder)


DEEP = "[" * 100_000
#: What each file of a model may hold instead of what belongs there.
BROKEN_FILES = [
    (file, text)
    for file in ("config.json", "tokenizer_config.json", "tokenizer.json")
    for text in ("", "null", "[]", "{}", "3", '"text"', DEEP, '{"a":' * 100_000, "\0", "{", '{"model_type": ["grn"]}')
]


@pytest.mark.parametrize(("file", "text"), BROKEN_FILES, ids=lambda value: value[:20] or "empty")
def test_a_broken_file_gives_a_one_line_error(folder, file, text):
    (folder / file).write_text(text)
    assert_loads_or_is_refused(folder, loads=False)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_a_missing_file_gives_a_one_line_error(folder, file):
    (folder / file).unlink()
    assert_loads_or_is_refused(folder, loads=False)


@pytest.mark.parametrize("damage", ["cut", "empty", "no safetensors", "long head"])
def test_damaged_weights_give_a_one_line_error(folder, damage):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    damaged = {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "no safetensors": b"\x80\x02}q\x00." * 100,
        "long head": (10**15).to_bytes(8, "little") + content[8:],
    }
    path.write_bytes(damaged[damage])
    assert_loads_or_is_refused(folder, loads=False)


def assert_loads_or_is_refused(folder, loads=True, changes=None):
    try:
        tagger = Tagger.from_pretrained(str(folder))
        list(tagger.tag(["Ann Smith met Zeus in New York .", ""]))
        list(tagger.tag([["Ann", "[PAD]"]]))
    except ValueError as error:
        assert type(error).__name__ in ("ValueError", "DataError"), changes
        assert "\n" not in str(error) and len(str(error)) < 1000, changes
    except Exception as error:
        pytest.fail(f"{changes}: {type(error).__name__}: {error}")
    else:
        assert loads, changes
