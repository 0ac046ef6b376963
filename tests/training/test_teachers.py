"""Teachers of other kinds: stock models of transformers, spans, and a student that learns from text alone."""

from itertools import product

import helpers
import numpy as np
import pytest
import torch
from tiny_encoders import SIZES, bert_tokenizer
from transformers import BertConfig, BertForTokenClassification, BertModel

from hf_xorner import Tagger, train
from hf_xorner.models.tags import TagSpace
from hf_xorner.training.arguments import parse
from hf_xorner.training.facts import read_facts
from hf_xorner.training.teachers import (
    SpanTeacher,
    StockTeacher,
    best_labels,
    common_labels,
    mean_probabilities,
    pairs_of,
    teachers_of,
)

CPU = torch.device("cpu")
LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
TEXT = "".join(f"ann met zeus {number} in oslo .\n" for number in range(30))
SMALL = {"hidden_size": 8, "char_dim": 4, "char_filters": 4}
SMALL |= {"num_train_epochs": 1, "use_cpu": True, "disable_tqdm": True}


def stock(folder, labels=LABELS, positions=64, kind=BertForTokenClassification):
    """Save a random model of transformers, and return its folder."""
    torch.manual_seed(0)
    tokenizer = bert_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=2,
        max_position_embeddings=positions,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        initializer_range=0.5,
        **SIZES,
    )
    tokenizer.model_max_length = positions
    kind(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_stock_model_gives_the_softmax_of_the_first_piece_of_each_word(tmp_path):
    teacher = StockTeacher(stock(tmp_path), CPU)
    sentences = [["ann", "rains", "oslo"], ["zeus"], []]
    found = teacher.probabilities(sentences)
    for words, rows in zip(sentences, found, strict=True):
        encoded = teacher.tokenizer(words, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            logits = teacher.model(**encoded).logits[0]
        for index in range(len(words)):
            expected = logits[encoded.word_ids().index(index)].softmax(-1)
            # B- and I- together, since an entity begins where no other of its type goes before.
            for b, i in ((1, 2), (3, 4)):
                assert float(rows[index, b] + rows[index, i]) == pytest.approx(
                    float(expected[b] + expected[i]), abs=1e-5
                )


def test_weights_in_bfloat16_are_run_in_it(tmp_path):
    exact = StockTeacher(stock(tmp_path), CPU)
    expected = exact.probabilities([["ann", "rains", "oslo"]])
    exact.model.bfloat16().save_pretrained(tmp_path)
    teacher = StockTeacher(str(tmp_path), CPU)
    assert teacher.model.dtype == torch.bfloat16
    found = teacher.probabilities([["ann", "rains", "oslo"]])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0)
    exact.model.half().save_pretrained(tmp_path)
    assert StockTeacher(str(tmp_path), CPU).model.dtype == torch.float32


def test_long_sentences_are_read_in_windows(tmp_path):
    teacher = StockTeacher(stock(tmp_path, positions=24), CPU)
    found = teacher.probabilities([["ann", "met", "zeus"] * 40])
    helpers.close(found.sum(-1), torch.ones(1, 120), 1e-5)
    assert found.max() < 1  # words without pieces are certainly outside


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["O", "B-X", "I-X", "L-X", "U-X"], ["O", "B-X", "I-X"]),
        (["O", "X"], ["O", "B-X", "I-X"]),
        (["O", "I-X", "B-X"], ["O", "B-X", "I-X"]),
        (["NN", "VB"], ["NN", "VB"]),
    ],
)
def test_labels_of_other_schemes_become_iob2(tmp_path, labels, expected):
    teacher = StockTeacher(stock(tmp_path, labels), CPU)
    assert teacher.labels == expected
    helpers.close(teacher.probabilities([["ann", "met", "zeus"]]).sum(-1), torch.ones(1, 3), 1e-5)


def test_the_posterior_of_pairs_is_that_of_all_sequences_of_whole_entities():
    labels = ["O", "B-X", "I-X"]
    probabilities = torch.tensor(np.random.default_rng(0).dirichlet(np.ones(3), 3), dtype=torch.float32)
    tags = TagSpace(labels)
    pairs = pairs_of(probabilities[None], torch.tensor([3]), tags)[0]
    expected, names = torch.zeros(2, len(tags.inner_tags), len(tags.inner_tags)), tags.inner_tags
    total = 0.0
    for sequence in product(range(3), repeat=3):
        if any(label == 2 and before == 0 for before, label in zip((0, *sequence), sequence, strict=False)):
            continue
        weight = float(np.prod([probabilities[word, label] for word, label in enumerate(sequence)]))
        inner = []
        for word, label in enumerate(sequence):
            goes_on = word < 2 and sequence[word + 1] == 2
            inner.append("O" if label == 0 else ("SB"[goes_on] if label == 1 else "EI"[goes_on]) + "-X")
        for word in (1, 2):
            expected[word - 1, names.index(inner[word - 1]), names.index(inner[word])] += weight
        total += weight
    helpers.close(pairs[1:], expected / total, 1e-5)


def test_a_model_of_the_package_is_a_teacher_by_its_short_name():
    (teacher,) = teachers_of(["english-open"], CPU)
    assert teacher.labels[0] == "O" and "B-PER" in teacher.labels


class Spans(SpanTeacher):
    """Finds words with capitals: with a high score if they are longer than two letters."""

    identity = "capitals"

    def spans(self, texts):
        found = []
        for text in texts:
            starts = [start for start in range(len(text)) if text[start].isupper()]
            ends = [(text + " ").index(" ", start) for start in starts]
            found.append([(s, e, "job title", 0.9 if e - s > 2 else 0.2) for s, e in zip(starts, ends, strict=True)])
        return found


def test_spans_below_the_minimum_score_have_unknown_words():
    teacher = Spans("capitals", ["job title"], 0.5)
    assert teacher.labels == ["O", "B-job_title", "I-job_title"]
    found = mean_probabilities([teacher], [["a", "King", "or", "Mr"], ["x"]], teacher.labels, {})
    assert best_labels(found[0].numpy(), teacher.labels) == ["O", "B-job_title", "O", "?"]
    assert best_labels(found[1, :1].numpy(), teacher.labels) == ["O"]


def test_teachers_are_averaged_over_the_types_that_they_share(tmp_path):
    first, second = StockTeacher(stock(tmp_path / "a"), CPU), StockTeacher(stock(tmp_path / "b", ["O", "PER"]), CPU)
    labels = common_labels([first, second], {})
    assert labels == ["O", "B-PER", "I-PER"]
    words = [["ann", "met"]]
    a, b = first.probabilities(words)[0], second.probabilities(words)[0]
    mean = mean_probabilities([first, second], words, labels, {})[0]
    helpers.close(mean[:, 0], (a[:, :3].sum(1) + b[:, 0]) / 2, 1e-3)
    assert common_labels([first], {"LOC": "O", "PER": "person"}) == ["O", "B-person", "I-person"]


def test_a_student_learns_from_text_alone(tmp_path, script):
    folder = stock(tmp_path / "teacher")
    (tmp_path / "text.txt").write_text(TEXT)
    words = [str(word) for name, value in SMALL.items() for word in (f"--{name}", value)]
    words = ["--teacher", folder, "--teacher_text", tmp_path / "text.txt", *words, "--output_dir", tmp_path / "student"]
    printed = helpers.ok(script("train", *words))
    assert "agreement with the teacher" in printed
    facts = read_facts(tmp_path / "student")
    assert {entry["name"] for entry in facts["inputs"].values()} >= {"teacher", "text.txt"}
    assert facts["data"]["source"] == "text.txt" and facts["data"]["splits"]["train"]["sentences"] == 27
    assert facts["options"]["teacher_weight"] == 1 and facts["options"]["quantize"] == "int8"
    assert "--teacher teacher" in facts["command"] and "--dataset" not in facts["command"]
    tagger = Tagger.from_pretrained(str(tmp_path / "student"))
    assert set(tagger.model.config.labels) <= set(LABELS) and tagger.model.features.composed is not None


def test_faults_of_teachers_are_one_sentence(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    unnamed = [f"LABEL_{number}" for number in range(3)]
    torch.save({}, tmp_path / "pytorch_model.bin")
    pickled = stock(tmp_path / "pickled")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "pickled" / "pytorch_model.bin")
    for source, sentence in (
        (str(tmp_path / "nothing"), "cannot be loaded"),
        (stock(tmp_path / "base", kind=BertModel), "is not trained to label words"),
        (stock(tmp_path / "unnamed", unnamed), "has no names of labels"),
        (pickled, "model.safetensors.*; save_pretrained of its model writes it"),
        ("gliner:a/b", "needs types"),
    ):
        with pytest.raises(ValueError, match=sentence):
            teachers_of([source], CPU)
    good = stock(tmp_path / "good")
    for options, sentence in (
        ({"types": {"person": "PER"}}, "no teacher has the type 'person'"),
        ({"types": {"PER": "?"}}, "needs teachers of spans"),
        ({"output_dir": good}, "is an input"),
        ({"teacher_types": ["person"]}, "teacher_types are for teachers gliner:NAME"),
    ):
        with pytest.raises(ValueError, match=sentence):
            options = {"output_dir": tmp_path / "out", **options}
            train(teacher=[good], teacher_text=[str(text)], **SMALL, **options)
    with pytest.raises(ValueError, match="teacher needs sentences to label"):
        parse(["--teacher", good], "xor/cross")
    text.write_text("東京 大阪 京都\n" * 5)
    for teacher in (good, "english"):
        with pytest.raises(ValueError, match="are unknown to its tokenizer"):
            train(teacher=[teacher], teacher_text=[str(text)], output_dir=tmp_path / "out", **SMALL)


def test_a_pipeline_of_spacy_is_a_teacher(tmp_path):
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("ner").add_label("GPE")
    pipeline.initialize()
    pipeline.add_pipe("entity_ruler", before="ner").add_patterns([{"label": "GPE", "pattern": "New York"}])
    pipeline.to_disk(tmp_path)
    (teacher,) = teachers_of([f"spacy:{tmp_path}"], CPU)
    words = [["in", "New", "York", "now"]]
    found = best_labels(mean_probabilities([teacher], words, teacher.labels, {})[0].numpy(), teacher.labels)
    assert found[1:3] == ["B-GPE", "I-GPE"]


def test_a_gliner_is_a_teacher(tmp_path):
    """A tiny random model of the package: its spans are those that the package itself returns."""
    gliner = pytest.importorskip("gliner")
    torch.manual_seed(0)
    stock(tmp_path / "encoder", kind=BertModel)
    config = gliner.GLiNERConfig(model_name=str(tmp_path / "encoder"), hidden_size=8, max_len=64)
    gliner.GLiNER.from_config(config, backbone_from_pretrained=True).save_pretrained(
        tmp_path / "gliner", safe_serialization=True
    )
    types, words = ["person", "job title"], ["ann", "met", "zeus", "in", "oslo", "."]
    (teacher,) = teachers_of([f"gliner:{tmp_path / 'gliner'}"], CPU, types)
    (expected,) = teacher.model.inference([" ".join(words)], types, threshold=0.1)
    tags = ["O"] * len(words)
    for span in expected:
        inside = range(" ".join(words)[: span["start"]].count(" "), " ".join(words)[: span["end"]].count(" ") + 1)
        for number, word in enumerate(inside):
            tags[word] = "?" if span["score"] < 0.5 else ("I-" if number else "B-") + span["label"].replace(" ", "_")
    found = best_labels(mean_probabilities([teacher], [words], teacher.labels, {})[0].numpy(), teacher.labels)
    assert found == tags and expected
