"""Corpus statistics, compared with plain loops and with published counts."""

import random
import statistics as standard
from collections import Counter
from math import ceil

import pytest
from corpus_files import split_of
from datasets import DatasetDict

from hf_xorner.corpora.statistics import corpus_statistics

LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def random_split(seed, size, words, docs=False):
    chooser = random.Random(seed)
    sentences, tags = [], []
    for _ in range(size):
        length = chooser.choice([0, 1, 2, 5, 9, 20])
        sentences.append([f"w{chooser.randrange(words)}" for _ in range(length)])
        row = []
        for _ in range(length):
            free = ["O", "B-LOC", "B-PER"]
            row.append(chooser.choice(free if not row or row[-1] == "O" else [*free, f"I-{row[-1][2:]}"]))
        tags.append(row)
    return split_of(sentences, tags, LABELS, docs=[str(number // 9) for number in range(size)] if docs else None)


def naive(split, train=None):
    labels = split.features["ner_tags"].feature.names
    entities = []
    for row in split:
        for token, tag in zip(row["tokens"], (labels[tag] for tag in row["ner_tags"]), strict=True):
            if tag.startswith("B-"):
                entities.append((tag[2:], [token]))
            elif tag.startswith("I-"):
                entities[-1][1].append(token)
    lengths = [len(row["tokens"]) for row in split]
    words = [token for row in split for token in row["tokens"]]
    forms = [" ".join(entity) for _, entity in entities]
    report = {"sentences": len(lengths), "tokens": len(words)}
    if "doc_id" in split.column_names:
        documents = len(set(split["doc_id"]))
        report["documents"] = documents
        report["with_document_lines"] = {"sentences": len(lengths) + documents, "tokens": len(words) + documents}
    sizes = Counter(str(len(entity)) if len(entity) <= 3 else "4 or more" for _, entity in entities)
    report |= {
        "distinct_words": len(set(words)),
        "sentence_lengths": {
            "min": min(lengths),
            "mean": pytest.approx(standard.mean(lengths)),
            "median": standard.median(lengths),
            "p95": sorted(lengths)[ceil(0.95 * len(lengths)) - 1],
            "max": max(lengths),
        },
        "entities": len(entities),
        "per_type": {name: sum(kind == name for kind, _ in entities) for name in ("LOC", "PER")},
        "entity_lengths": {key: sizes[key] for key in ("1", "2", "3", "4 or more")},
    }
    if train is not None:
        known_words, known_forms = train

        def share(values, known):
            return pytest.approx(100 * sum(value not in known for value in values) / len(values))

        report["unseen"] = {
            "tokens": share(words, known_words),
            "words": share(set(words), known_words),
            "entity_mentions": share(forms, known_forms),
            "entity_forms": share(set(forms), known_forms),
        }
    return report, (set(words), set(forms))


@pytest.mark.parametrize("docs", [False, True])
def test_counts_match_plain_loops(docs):
    corpus = DatasetDict(
        train=random_split(0, 300, 100, docs), validation=random_split(1, 40, 150), test=random_split(2, 160, 200, docs)
    )
    train, known = naive(corpus["train"])
    expected = {"train": train, **{name: naive(corpus[name], known)[0] for name in ("validation", "test")}}
    assert corpus_statistics(corpus) == expected


def test_shuffled_rows_are_counted():
    split = random_split(0, 90, 30, docs=True).shuffle(seed=5).select(range(41))
    expected, _ = naive(split)
    assert corpus_statistics(DatasetDict(train=split)) == {"train": expected}


def test_plain_tags_are_counted_by_tag():
    labels = ["-LRB-", "NN", "VB", "XX"]
    corpus = DatasetDict(
        train=split_of([["a", "b"], ["("]], [["NN", "VB"], ["-LRB-"]], labels),
        test=split_of([["a", "c"]], [["NN"] * 2], labels),
    )
    statistics = corpus_statistics(corpus)
    assert statistics["train"]["per_tag"] == {"-LRB-": 1, "NN": 1, "VB": 1, "XX": 0}
    assert statistics["test"]["per_tag"] == {"-LRB-": 0, "NN": 2, "VB": 0, "XX": 0}
    assert statistics["test"]["unseen"] == {"tokens": 50.0, "words": 50.0}
    assert not {"entities", "per_type", "entity_lengths"} & statistics["test"].keys()


def test_sentences_without_document_count_as_one_document():
    sentences, tags = [["a"]] * 3, [["O"]] * 3
    corpus = DatasetDict(
        train=split_of(sentences, tags, LABELS, docs=[None, "0", "1"]),
        test=split_of(sentences, tags, LABELS, docs=[None] * 3),
    )
    statistics = corpus_statistics(corpus)
    assert statistics["train"]["documents"] == 3
    assert statistics["train"]["with_document_lines"] == {"sentences": 6, "tokens": 6}
    assert "documents" not in statistics["test"]


def test_shares_of_nothing_are_none():
    corpus = DatasetDict(
        train=split_of([["a"]], [["B-PER"]], LABELS),
        validation=split_of([["a"]], [["O"]], LABELS),
        test=split_of([], [], LABELS),
    )
    statistics = corpus_statistics(corpus)
    assert statistics["validation"]["unseen"]["entity_mentions"] is None
    assert statistics["test"]["unseen"]["tokens"] is None
    assert statistics["test"]["sentence_lengths"] == dict.fromkeys(("min", "mean", "median", "p95", "max"))
    assert "unseen" not in statistics["train"]
    assert "unseen" not in corpus_statistics(DatasetDict(test=corpus["test"]))["test"]
