"""Training sentences of further corpora, copies in another case, and words without label."""

import json

import numpy as np
import pytest
import runs
from datasets import Dataset
from helpers import IGNORED, write_towns

from hf_xorner import evaluate
from hf_xorner.corpora import load_corpus
from hf_xorner.corpora.assemble import corpus_fingerprint, split_fingerprint, words_and_tags
from hf_xorner.training.batches import TEACHER_PAIRS
from hf_xorner.training.data import with_more_data, with_recased
from hf_xorner.training.facts import read_facts

SMALL = {"hidden_size": 6, "word_dim": 6, "char_dim": 3, "num_train_epochs": 2, "per_device_train_batch_size": 4}
SMALL |= {"model_type": "lstm-crf", "learning_rate": 0.02, "casing": "keep"}
FURTHER = "Zeta B-place\nsaw O\nAnn B-person\nLee I-person\n\nOmegaville B-place\nsank O\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of towns, and a file of a further corpus."""
    write_towns(tmp_path / "towns")
    (tmp_path / "further.conll").write_text(FURTHER)
    return tmp_path


def ready(folder, out="model", **options):
    options = {"types": ["place=LOC", "person=?"], "more_data": [folder / "further.conll"], **SMALL, **options}
    return runs.ready(folder / "towns", folder / out, **options)


def test_further_training_sentences_are_appended(folder):
    run = ready(folder)
    towns = words_and_tags(load_corpus(folder / "towns")["train"])
    tokens, tags = words_and_tags(run.corpus["train"])
    assert tokens == [*towns[0], ["Zeta", "saw", "Ann", "Lee"], ["Omegaville", "sank"]]
    assert tags == [*towns[1], ["B-LOC", "O", "?", "?"], ["B-LOC", "O"]]
    assert len(run.trainer.train_dataset) == 44
    assert "Omegaville" in run.trainer.processing_class.get_vocab()
    batch = run.trainer.data_collator([run.trainer.train_dataset[42]])
    assert batch["labels"].tolist() == [[1, 0, IGNORED, IGNORED]]


def test_the_validation_split_is_trained_on_if_asked_for(folder):
    corpus = load_corpus(folder / "towns")
    run = runs.ready(folder / "towns", folder / "model", train_on_validation=True, **SMALL)
    assert run.corpus["train"][:]["tokens"] == corpus["train"][:]["tokens"] + corpus["validation"][:]["tokens"]
    assert run.corpus["validation"][:]["tokens"] == corpus["validation"][:]["tokens"]
    assert run.facts["data"]["fingerprint"] == corpus_fingerprint(corpus)


def test_labels_are_renumbered_and_other_splits_left_out(tmp_path):
    (tmp_path / "a.conll").write_text("x B-LOC\ny B-PER\nz O\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "train.conll").write_text("u B-PER\nv I-PER\nw B-AAA\nx ?\n")
    (tmp_path / "b" / "test.conll").write_text("v B-PER\n")
    corpus = load_corpus(tmp_path / "a.conll")
    combined, (more,) = with_more_data(corpus, [str(tmp_path / "b")], None, {"types": "AAA=?"})
    assert list(combined) == ["train"]
    assert words_and_tags(combined["train"])[1] == [["B-LOC", "B-PER", "O"], ["B-PER", "I-PER", "?", "?"]]
    assert words_and_tags(more)[1] == [["B-PER", "I-PER", "?", "?"]]
    assert with_more_data(corpus, [], None, {}) == (corpus, [])


def test_errors_name_the_option(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "test_only").mkdir()
    (folder / "test_only" / "test.conll").write_text("x O\ny B-place\n")
    for options, message in (
        (
            {"types": "place=LOC"},
            r"more_data='.*further.conll': the label 'B-person' is not among .* O, B-LOC, I-LOC; ",
        ),
        ({"more_data": "nowhere.conll"}, "nowhere.conll"),
        ({"more_data": "test_only"}, "more_data='test_only' has no training split; it has test"),
    ):
        with pytest.raises(ValueError, match=message):
            ready(folder, **options)


def test_facts_name_every_corpus(folder):
    run = ready(folder)
    run.train()
    facts = read_facts(folder / "model")
    data, further = facts["data"], run.corpus["train"].select([42, 43])
    assert (data["source"], data["fingerprint"]) == ("towns", corpus_fingerprint(load_corpus(folder / "towns")))
    fingerprint = split_fingerprint(further, "train")
    assert data["more_data"] == [{"source": "further.conll", "fingerprint": fingerprint, "sentences": 2}]
    assert data["splits"]["train"]["sentences"] == 44
    assert "--more_data further.conll" in facts["command"] and "--types" in facts["command"]
    assert str(folder) not in (folder / "model" / "facts.json").read_text()


def test_copies_differ_in_case_alone():
    words = ["McDonald", "ÉTÉ", "straße", "a1B"]
    forms = ["mcdonald été straße a1b", "MCDONALD ÉTÉ STRASSE A1B", "Mcdonald Été Straße A1b"]
    train = Dataset.from_dict({"tokens": [words] * 400, "ner_tags": [[row] * 4 for row in range(400)]})
    recased = with_recased(train, 0.5, 3)
    assert recased[:400] == train[:]
    copies = recased[400:]
    assert 150 < len(copies["tokens"]) < 250
    rows = [tags[0] for tags in copies["ner_tags"]]
    assert rows == sorted(set(rows))
    assert all(tags == [row] * 4 for row, tags in zip(rows, copies["ner_tags"], strict=True))
    assert {" ".join(row) for row in copies["tokens"]} == set(forms)


def test_copies_have_the_teachers_posterior_of_the_sentence(folder):
    ready(folder, "teacher").train()
    (folder / "text.txt").write_text("Omegaville burns\n")
    run = ready(folder, "student", teacher=folder / "teacher", teacher_text=folder / "text.txt", recased=1)
    data = run.trainer.train_dataset
    assert len(data) == 2 * 45
    assert data[TEACHER_PAIRS][:45] == data[TEACHER_PAIRS][45:]
    assert data["ner_tags"][:45] == data["ner_tags"][45:]
    assert data[42]["tokens"] != data[42 + 45]["tokens"]
    assert np.isfinite(run.trainer.evaluate()["eval_loss"])
    assert len(run.corpus["train"]) == 44


@pytest.fixture
def partial(tmp_path):
    """Towns, of which every third word of the dev and training data has no label."""
    write_towns(tmp_path / "towns")
    for split in ("train", "dev"):
        path = tmp_path / "towns" / f"{split}.txt"
        lines = path.read_text().split("\n")
        path.write_text(
            "\n".join(f"{line.split()[0]} ?" if line and n % 3 == 0 else line for n, line in enumerate(lines))
        )
    return tmp_path


@pytest.mark.parametrize(("model_type", "side"), [("stack-lstm", "right"), ("bilstm-cnn", "left")])
def test_scores_in_training_are_those_of_the_evaluation(partial, model_type, side):
    run = runs.ready(partial / "towns", partial / "model", **{**SMALL, "model_type": model_type})
    run.trainer.processing_class.padding_side = side
    scores = run.train()["validation"]
    assert "?" in {tag for row in words_and_tags(run.corpus["validation"])[1] for tag in row}
    logged = [entry for entry in run.trainer.state.log_history if "eval_f1" in entry]
    assert max(entry["eval_f1"] for entry in logged) == pytest.approx(scores["f1"])
    evaluated = evaluate(partial / "model", partial / "towns", split="validation", resamples=0)
    for name in ("precision", "recall", "f1", "accuracy", "support"):
        assert evaluated[name] == pytest.approx(scores[name]), name
    counts = json.loads((partial / "model" / "sentence_counts.json").read_text())["validation"]
    correct, predicted, gold = (sum(column) for column in zip(*counts, strict=True))
    assert 100 * correct == pytest.approx(scores["precision"] * predicted)
    assert 100 * correct == pytest.approx(scores["recall"] * gold)
    facts = read_facts(partial / "model")["scores"]["validation"]
    assert facts["surface"] == pytest.approx(evaluated["surface"], abs=1e-3)
    for part in ("seen", "unseen"):
        assert facts["seen"][part] == pytest.approx(evaluated["seen"][part], abs=1e-3)
    assert facts["confusion"] == evaluated["confusion"]
    for row, expected in zip(facts["calibration"]["bins"], evaluated["calibration"]["bins"], strict=True):
        assert row == pytest.approx(expected, abs=1e-3)
