"""`hf-xorner analyze`: its figures against loops in float64, its files, and its refusals."""

import json
import sys

import helpers
import numpy as np
import pytest
from conftest import SENTENCES, build_model

from hf_xorner import Tagger
from hf_xorner.cli import main
from hf_xorner.papers.chunk_tags import _parts
from hf_xorner.papers.word_pairs import word_pairs


@pytest.fixture(scope="module")
def taggers(tokenizer):
    return {name: Tagger(build_model(name, tokenizer), tokenizer) for name in ("att-bilstm-cnn", "grn", "bilstm-cnn")}


@pytest.fixture(scope="module")
def saved(taggers, tmp_path_factory):
    """The folders of the models."""
    folders = {}
    for name, tagger in taggers.items():
        folders[name] = tmp_path_factory.mktemp(name)
        tagger.save_pretrained(folders[name])
    return folders


@pytest.fixture
def analyze(tmp_path, monkeypatch, capsys):
    """Run `hf-xorner analyze` in an empty folder; returns the exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = 0
        try:
            main("analyze", list(map(str, words)))
        except SystemExit as stop:
            code = stop.code
        out, errors = capsys.readouterr()
        return code, out, errors

    return run


def test_maps_of_attention_are_those_of_the_model(taggers):
    tagger = taggers["att-bilstm-cnn"]
    pairs = word_pairs(tagger, SENTENCES[0])
    inputs = tagger.tokenizer([SENTENCES[0]], is_split_into_words=True, return_tensors="pt")
    helpers.close(pairs.maps, tagger.model(**inputs, output_attentions=True).attentions[0][0].detach(), 1e-6)
    assert pairs.words == SENTENCES[0] and len(pairs.tags) == len(SENTENCES[0])


def test_relations_are_norms_scaled_to_the_range_of_the_sentence(taggers):
    tagger = taggers["grn"]
    text = " ".join(SENTENCES[0])
    pairs = word_pairs(tagger, text)
    inputs = tagger.tokenizer([text], return_tensors="pt")
    norms = tagger.model(**inputs, output_attentions=True).attentions[0][0, 0].detach()
    helpers.close(pairs.maps[0], (norms - norms.min()) / (norms.max() - norms.min()), 1e-6)
    assert pairs.maps.min() == 0 and pairs.maps.max() == 1
    assert pairs.names == ["relation"]


def test_models_without_maps_are_refused(taggers):
    with pytest.raises(ValueError, match="bilstm-cnn has neither attention nor relations"):
        word_pairs(taggers["bilstm-cnn"], ["Ann"])


def test_parts_of_the_classifiers_input_are_heads_after_states(taggers):
    model = taggers["att-bilstm-cnn"].model  # two heads of size 3
    states = model.encoder.output_size - 6
    parts = {name: mask.nonzero().flatten().tolist() for name, mask in _parts(model).items()}
    assert parts["H"] == [*range(states)] and parts["C"] == parts["C1"] + parts["C2"]
    assert parts["C1"] == [*range(states, states + 3)] and parts["all"] == parts["H"] + parts["C"]


def test_proofs_are_printed_and_written(analyze, tmp_path):
    code, out, _ = analyze("xor-proof", "--output", "proofs")
    assert code == 0
    heads = [line for line in out.splitlines() if "against" in line]
    assert [line.split(", ", 1)[1].split(":")[0] for line in heads] == ["softmax", "crf"] * 2
    proofs = json.loads((tmp_path / "proofs" / "xor-proof.json").read_text())["proofs"]
    assert [proof["feasible"] for proof in proofs] == [False, True, False, False]
    assert out.count("sum: 0 > 0") == 3
    for proof in proofs:
        assert bool(proof["solution"]) == proof["feasible"] != bool(proof["multipliers"])


@pytest.mark.parametrize("model", ["att-bilstm-cnn", "grn"])
def test_maps_are_written_as_pictures_and_figures(analyze, saved, tmp_path, model):
    pytest.importorskip("matplotlib")
    code, out, errors = analyze("word-pairs", saved[model], "--text", "Ann saw Bob", "Paris", "--output", "maps")
    assert (code, errors) == (0, "")
    names = {"word-pairs-1.png", "word-pairs-2.png", "word-pairs.json"}
    assert {path.name for path in (tmp_path / "maps").iterdir()} == names
    assert out.count("written: ") == 3
    first, second = json.loads((tmp_path / "maps" / "word-pairs.json").read_text())["sentences"]
    assert first["words"] == ["Ann", "saw", "Bob"] and len(second["words"]) == 1
    assert all(np.array(rows).shape == (3, 3) for rows in first["maps"].values())
    assert (tmp_path / "maps" / "word-pairs-1.png").read_bytes().startswith(b"\x89PNG")


def test_an_ablation_prints_changes_against_all_vectors(analyze, saved, tmp_path):
    lines = ["".join(f"{word} {tag}\n" for word, tag in (("Ann", "B-PER"), ("saw", "O"), ("Paris", "B-LOC"))), "\n"]
    for split in ("train", "dev", "test"):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        (tmp_path / "corpus" / f"{split}.txt").write_text("".join(lines * (3 if split == "dev" else 5)))
    code, out, errors = analyze("ablate", saved["att-bilstm-cnn"], "--dataset", tmp_path / "corpus", "--output", "out")
    assert (code, errors) == (0, ""), errors
    recalls = json.loads((tmp_path / "out" / "ablate.json").read_text())
    assert set(recalls) == set("OSBIE") and recalls["S"]["support"] == 6 and recalls["O"]["support"] == 3
    heads = out.splitlines()[0].split()
    for line in out.splitlines()[1:6]:
        tag, support, whole, *changes = line.split()
        row = recalls[tag]
        assert (int(support), float(whole)) == (row["support"], pytest.approx(row["all"], abs=0.006))
        for name, change in zip(heads[2:], changes, strict=True):
            assert float(change) == pytest.approx(row[name] - row["all"], abs=0.006)


def test_wrong_uses_are_refused(analyze, saved):
    for words, reason in (
        (("word-pairs", saved["grn"]), "--output"),
        (("word-pairs", saved["grn"], "--output", "maps", "--text", ""), "the text '' has no words"),
        (("ablate", saved["att-bilstm-cnn"], "--dataset", "xor", "--split", "dev"), "has no split 'dev'"),
        (("xor-proof", "--pattern", "B", "I", "X"), "not a pattern of three tags"),
    ):
        code, _, errors = analyze(*words)
        assert code in (1, 2) and reason in errors and len(errors.splitlines()) == 1


def test_proofs_without_scipy_name_the_extra(analyze, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    _, _, errors = analyze("xor-proof")
    assert errors.endswith("; run: pip install 'hf_xorner[papers]'\n")
