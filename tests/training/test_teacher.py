"""A student learns from teachers: what they find, its cache, its place in the facts, and errors."""

import helpers
import pytest
import runs
import torch

from hf_xorner import Tagger
from hf_xorner.training.batches import TEACHER_PAIRS
from hf_xorner.training.data import read_texts
from hf_xorner.training.teachers import OwnTeacher

CPU = torch.device("cpu")
SMALL = {"hidden_size": 8, "word_dim": 6, "char_dim": 4, "num_train_epochs": 2, "per_device_train_batch_size": 4}
TEXT = "Zeus lives in Annaville .\n\nnothing here\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus, a text, and two teachers, one with a CRF, which take over 2 s once."""
    folder = tmp_path_factory.mktemp("distillation")
    helpers.write_towns(folder / "towns")
    (folder / "text.txt").write_text(TEXT)
    for seed, kind in ((1, "cnn-lstm-crf"), (2, "bilstm-cnn")):
        longer = {**SMALL, "num_train_epochs": 4, "learning_rate": 0.02}
        run = runs.ready(folder / "towns", folder / f"teacher-{seed}", model_type=kind, seed=seed, **longer)
        run.train()
    return folder


def student(folder, out, *words, **options):
    options = {"model_type": "lstm-crf", "teacher": [folder / "teacher-1", folder / "teacher-2"], **SMALL, **options}
    return runs.ready(folder / "towns", out, *words, **{"teacher_text": folder / "text.txt", **options})


def test_training_data_have_the_mean_posterior_of_the_teachers(folder, tmp_path):
    run = student(folder, tmp_path / "student")
    data, corpus = run.trainer.train_dataset, run.corpus["train"]
    assert len(data) == len(corpus) + 2
    assert data[len(corpus)]["tokens"] == ["Zeus", "lives", "in", "Annaville", "."]
    assert data[-1]["ner_tags"] == []
    tags = run.trainer.model.tags.inner_tags
    batch = run.trainer.data_collator([data[0], data[len(corpus)]])
    for row, example in enumerate([data[0], data[len(corpus)]]):
        words = example["tokens"]
        expected = [OwnTeacher(str(folder / f"teacher-{n}"), CPU).pairs([words], tags)[0] for n in (1, 2)]
        helpers.close(batch[TEACHER_PAIRS][row, : len(words)], torch.stack(expected).mean(0), 1e-3)
        # The marginals are those of the models' logits.
        for n, pairs in zip((1, 2), expected, strict=True):
            tagger = Tagger.from_pretrained(str(folder / f"teacher-{n}"))
            public = tagger.model.tags.to_public_log_probs(pairs.sum(1).clamp(min=1e-30).log()).exp()
            inputs = tagger.tokenizer([words], is_split_into_words=True, return_tensors="pt")
            with torch.no_grad():
                logits = tagger.model(**inputs).logits[0]
            decoded = logits.argmax(-1, keepdim=True)
            helpers.close(public.gather(1, decoded), logits.exp().gather(1, decoded), 1e-4)
    assert batch["labels"][1].eq(helpers.IGNORED).all()
    assert batch["labels"][0].tolist()[: len(data[0]["tokens"])] == data[0]["ner_tags"]


def test_tags_are_put_in_the_order_of_the_student(folder):
    teacher = OwnTeacher(str(folder / "teacher-1"), CPU)
    teacher_tags = teacher.model.tags.inner_tags
    order = torch.tensor(list(reversed(range(len(teacher_tags)))))
    words = [["Zeus", "lives", "in", "Annaville"]]
    pairs, reversed_pairs = teacher.pairs(words, teacher_tags), teacher.pairs(words, teacher_tags[::-1])
    helpers.close(reversed_pairs[:, 1:], pairs[:, 1:, order][..., order], 1e-7)
    helpers.close(reversed_pairs[:, 0, 0], pairs[:, 0, 0][:, order], 1e-7)
    helpers.close(pairs.sum((2, 3)), torch.ones(1, 4), 1e-5)


def test_a_student_comes_near_to_its_teacher(folder, tmp_path):
    """Of text alone: the labels have no part in the loss."""
    options = {"teacher": folder / "teacher-1", "teacher_weight": 0.9999, "learning_rate": 0.02, "num_train_epochs": 12}
    run = student(folder, tmp_path / "student", **options)
    before = run.trainer.evaluate(run.trainer.train_dataset)["eval_loss"]
    run.trainer.train()
    after = run.trainer.evaluate(run.trainer.train_dataset)["eval_loss"]
    assert after < before / 2


def test_what_teachers_find_is_cached(folder, tmp_path, monkeypatch):
    student(folder, tmp_path / "first")
    monkeypatch.setattr(OwnTeacher, "pairs", None)
    student(folder, tmp_path / "second")
    with pytest.raises(TypeError):
        student(folder, tmp_path / "third", teacher=folder / "teacher-2")


def test_the_loss_counts_all_words_of_texts(folder, tmp_path):
    trainer = student(folder, tmp_path / "student").trainer
    batch = trainer.data_collator([trainer.train_dataset[-1], trainer.train_dataset[0]])
    assert int(trainer._get_num_items_in_batch([batch], CPU)) == int(batch["attention_mask"].sum())


def test_a_batch_without_words_has_no_loss(folder, tmp_path):
    for kind in ("lstm-crf", "bilstm-cnn"):
        trainer = student(folder, tmp_path / kind, model_type=kind).trainer
        empty = {"tokens": [], "ner_tags": [], TEACHER_PAIRS: b""}
        assert trainer.model(**trainer.data_collator([empty]), teacher_weight=0.5).loss == 0


def test_faults_give_one_sentence(folder, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\n \n")
    with pytest.raises(ValueError, match="has no words"):
        student(folder, tmp_path / "student", teacher_text=tmp_path / "text.txt")
    with pytest.raises(ValueError, match="A Stack-LSTM cannot learn from a teacher"):
        student(folder, tmp_path / "student", model_type="stack-lstm")
    with pytest.raises(ValueError, match="teacher_text needs a model that labels it"):
        runs.ready(folder / "towns", tmp_path / "student", teacher_text=folder / "text.txt")


def test_a_teacher_of_other_types_is_refused(folder, tmp_path):
    (tmp_path / "train.txt").write_text("Ann B-PERSON\nsleeps O\n")
    with pytest.raises(ValueError, match=r"has the labels .*, without B-PERSON of the student; name a teacher with"):
        runs.ready(tmp_path, tmp_path / "student", teacher=folder / "teacher-1", hold_out=0, **SMALL)


def test_texts_may_be_in_any_format_that_tag_reads(tmp_path):
    for name, content in (
        ("x.txt", "Ann left .\nBob stays\n"),
        ("x.jsonl", '{"text": "Ann left ."}\n{"text": "Bob stays"}\n'),
        ("x.csv", "id,text\n1,Ann left .\n2,Bob stays\n"),
        ("x.conll", "Ann B-PER\nleft O\n. O\n\nBob B-PER\nstays O\n"),
    ):
        (tmp_path / name).write_text(content)
        assert read_texts([str(tmp_path / name)], str.split) == [["Ann", "left", "."], ["Bob", "stays"]]
    assert read_texts([str(tmp_path)], str.split) == [["Ann", "left", "."], ["Bob", "stays"]] * 4  # a folder
    (tmp_path / "long.txt").write_text("a b c . " * 30)
    assert read_texts([str(tmp_path / "long.txt")], str.split) == [["a", "b", "c", "."]] * 30
