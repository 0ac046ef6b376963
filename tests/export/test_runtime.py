"""OnnxTagger finds the entities of Tagger, from files that need neither PyTorch nor transformers."""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import tiny_encoders as tiny
from conftest import ARCHITECTURES, REPOSITORY, SENTENCES
from random_texts import DECODERS, GIVEN, TEXTS, lively_model
from tokenizer_oracle import GIVEN as ODD_GIVEN
from tokenizer_oracle import TEXTS as ODD_TEXTS

from hf_xorner import Tagger, WordCharTokenizer, __version__
from hf_xorner.cli import main
from hf_xorner.export.onnx import export_onnx
from hf_xorner.export.runtime import OnnxTagger, read_lookup

ITEMS = [*TEXTS, *GIVEN, "", [], " ", ("Ann",), *ODD_TEXTS[:8]]
random.Random(0).shuffle(ITEMS)
OPTIONS = {
    "lower": {"casing": "lower", "max_word_chars": 5},
    "zero": {"digits": "zero", "fallback": ["lower"], "max_word_chars": 3},
    "wordpiece": {"pieces": tiny.pieces_of(tiny.bert_tokenizer()), "max_word_pieces": 3},
    "byte-level": {"pieces": tiny.pieces_of(tiny.roberta_tokenizer()), "max_word_pieces": 12},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_saved_tokenizer_gives_the_same_words_without_transformers(name, tmp_path):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS[name])
    tokenizer.save_pretrained(tmp_path)
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    edit(tmp_path / "tokenizer.json", truncation=truncation)
    lookup = read_lookup(tmp_path)
    for items, given_words in ((ODD_TEXTS, False), (ODD_GIVEN, True), ([tiny.ODD_WORDS], True), ([], False)):
        expected, columns = tokenizer.words_of(items, given_words), lookup.words_of(items, given_words)
        for column, other in zip(columns, expected, strict=True):
            assert np.array_equal(column, other)


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


# --- Entities --------------------------------------------------------------------------------------------------------


def exported(folder, tokenizer, kind="cross-bilstm-cnn", decoder="crf", **fields):
    """Return the Tagger of a model and the folder of its export."""
    tagger = Tagger(lively_model(kind, tokenizer, decoder, **fields), tokenizer)
    tagger.save_pretrained(folder)
    export_onnx(folder, folder)
    return tagger, folder


def assert_same_entities(actual, expected):
    for entities, others in zip(actual, expected, strict=True):
        assert entities.text == others.text
        assert [entity | {"score": 0} for entity in entities] == [entity | {"score": 0} for entity in others]
        assert [entity.score for entity in entities] == pytest.approx([entity.score for entity in others], abs=1e-4)


def test_the_command_uses_an_export_and_the_installed_package_of_the_english_model(
    tokenizer, tmp_path, monkeypatch, capsys
):
    tagger, folder = exported(tmp_path / "english_ner", tokenizer)
    (folder / "model.safetensors").unlink()
    (folder / "__init__.py").touch()
    metadata = tmp_path / f"english_ner-{__version__}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Name: english_ner\nVersion: {__version__}\n")
    text = "Ann Smith met Zeus in New York."
    main("tag", [text, "--model", str(folder)])
    output = capsys.readouterr().out
    entities = [(entity["label"], entity["start"], entity["end"]) for entity in json.loads(output)["entities"]]
    assert entities == [(entity.label, entity.start, entity.end) for entity in tagger(text)] != []
    without_torch = f"""
import sys
sys.modules["torch"] = None
sys.argv = ["hf-xorner", "tag", {text!r}]
from hf_xorner.cli import main
main()
"""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tmp_path, REPOSITORY))))
    done = subprocess.run([sys.executable, "-c", without_torch], capture_output=True, text=True, timeout=60)
    assert done.stdout == output, done.stderr


@pytest.mark.parametrize(("kind", "decoder"), list(zip(ARCHITECTURES, cycle(DECODERS))), ids=str)
def test_entities_and_labels_match_those_of_tagger(kind, decoder, tokenizer, tmp_path):
    reference, folder = exported(tmp_path, tokenizer, kind, decoder)
    tagger, expected = OnnxTagger.from_pretrained(folder, threads=1), reference(ITEMS)
    assert sum(map(len, expected)) > 20
    for batch_size in (1, 128):
        assert_same_entities(tagger(ITEMS, batch_size=batch_size), expected)
    for annotation, other in zip(tagger.annotate(TEXTS, 5), reference.annotate(TEXTS, 5), strict=True):
        assert np.array_equal(annotation.offsets, other.offsets) and annotation.labels == other.labels
        assert np.exp(annotation.log_probs) == pytest.approx(np.exp(other.log_probs), abs=1e-4)


@pytest.mark.parametrize("fields", [{"composed_dim": 6}, {}], ids=["composed", "unread"])
def test_pieces_are_fed_to_models_that_read_them(tmp_path, fields):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS["byte-level"])
    reference, folder = exported(tmp_path, tokenizer, **fields)
    assert_same_entities(OnnxTagger.from_pretrained(folder)(ITEMS), reference(ITEMS))


@pytest.fixture(scope="module")
def both(tokenizer, tmp_path_factory):
    """A tagger and the folder of its export, which no test changes."""
    return exported(tmp_path_factory.mktemp("both"), tokenizer)


def test_results_do_not_depend_on_the_number_of_threads(both):
    alone, several = (OnnxTagger.from_pretrained(both[1], threads=threads) for threads in (1, 3))
    assert several(ITEMS, batch_size=4) == alone(ITEMS, batch_size=4)


@pytest.mark.parametrize("least", [0.6, {"PER": 0.9, "LOC": 0.3}], ids=str)
def test_a_least_score_leaves_out_the_entities_that_tagger_leaves_out(both, least):
    reference, folder = both
    expected = reference(TEXTS, min_score=least)
    assert 0 < sum(map(len, expected)) < sum(map(len, reference(TEXTS)))
    tagger = OnnxTagger.from_pretrained(folder, min_score=least)
    assert_same_entities(tagger(TEXTS), expected)
    assert_same_entities(pickle.loads(pickle.dumps(tagger))(TEXTS), expected)
    assert_same_entities(OnnxTagger.from_pretrained(folder)(TEXTS, min_score=least), expected)


def test_the_least_score_of_the_config_applies_and_is_logged(folder, caplog):
    edit(folder / "config.json", min_score=0.9)
    assert OnnxTagger.from_pretrained(folder, min_score=0).min_score == 0
    assert not caplog.records
    assert OnnxTagger.from_pretrained(folder).min_score == 0.9
    assert "score below 0.9" in caplog.text


def test_the_graph_may_have_another_name(folder):
    expected = OnnxTagger.from_pretrained(folder)(TEXTS)
    (folder / "model.onnx").rename(folder / "small.onnx")
    assert OnnxTagger.from_pretrained(folder, "small.onnx")(TEXTS) == expected


# --- Faults ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_pieces(tmp_path_factory):
    """The export of a model that reads pieces."""
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS["wordpiece"])
    return exported(tmp_path_factory.mktemp("pieces"), tokenizer, composed_dim=6)[1]


@pytest.fixture
def folder(with_pieces, tmp_path):
    """A copy of it, to be spoilt."""
    return Path(shutil.copytree(with_pieces, tmp_path / "export"))


@pytest.mark.parametrize(
    "name", ["model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "piece_tokenizer.json"]
)
def test_missing_and_broken_files_are_named(folder, name):
    for broken in (None, b"", b"null"):
        (folder / name).unlink() if broken is None else (folder / name).write_bytes(broken)
        with pytest.raises(ValueError, match=rf"^{folder / name} cannot be loaded .*; copy the whole folder"):
            OnnxTagger.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("config.json", {"id2label": {"1": "O"}}, "does not number labels from 0"),
        ("config.json", {"id2label": []}, "does not number labels"),
        ("config.json", {"char_types": "..UldpU"}, "char_types="),
        ("config.json", {"max_word_pieces": 4}, "max_word_pieces="),
        ("tokenizer_config.json", {"characters": "abca"}, "characters must be a text"),
        ("tokenizer_config.json", {"casing": "upper"}, "casing='upper' is unknown"),
        ("tokenizer_config.json", {"fallback": 5}, "tokenizer_config"),
        ("tokenizer_config.json", {"max_word_chars": 1 << 29}, "max_word_chars=.* must be a whole number"),
    ],
)
def test_settings_that_do_not_match_are_refused(folder, name, changes, reason):
    edit(folder / name, **changes)
    with pytest.raises(ValueError, match=reason):
        OnnxTagger.from_pretrained(folder)


# --- Alone -----------------------------------------------------------------------------------------------------------


#: Lets a new process import the folder of its first argument, and nothing else that is not needed.
REFUSED = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {"numpy", "onnxruntime", "tokenizers", "onnx_tagger"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
folder = sys.argv.pop(1)
sys.path.insert(0, folder)
"""
ALONE = f"""{REFUSED}
from onnx_tagger import OnnxTagger

print(OnnxTagger.from_pretrained(folder)(sys.argv[1]))
"""


def test_an_export_runs_where_nothing_else_is_installed(folder):
    text = " ".join(GIVEN[0])
    command = [sys.executable, "-c", ALONE, folder, text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    expected = OnnxTagger.from_pretrained(folder)(text)
    assert expected
    assert done.stdout == f"{expected}\n"


MANY = f"""{REFUSED}
from pathlib import Path
from random import Random
from onnx_tagger import OnnxTagger

def texts(count):
    chooser = Random(0)
    for _ in range(count):
        words = ("".join(chooser.choices("aeinrst", k=chooser.randint(1, 9))) for _ in range(chooser.randint(1, 40)))
        yield " ".join(words).capitalize()

for _ in OnnxTagger.from_pretrained(folder, threads=2).pipe(texts(10_000)):
    pass
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory of a process from /proc")
def test_the_shipped_model_tags_any_number_of_texts_in_150_mb(tmp_path):
    export_onnx(str(REPOSITORY / "model_cards" / "english-ner-small"), tmp_path)
    done = subprocess.run([sys.executable, "-c", MANY, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert int(done.stdout) < 150 * 1024
