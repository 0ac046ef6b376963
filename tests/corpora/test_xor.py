"""The generated corpus, in which two names together show the type of a phrase, and neither does alone."""

from collections import Counter, defaultdict

import pytest

from hf_xorner.corpora import xor_corpus

PHRASES = {"B-I-E": ["B-WORK", "I-WORK", "I-WORK"], "O-S-O": ["O", "B-LINK", "O"]}


@pytest.fixture(scope="module")
def corpus():
    return xor_corpus()


def rows(dataset):
    names = dataset.features["ner_tags"].feature.names
    for row in dataset:
        yield {**row, "labels": [names[tag] for tag in row["ner_tags"]]}


def phrases(dataset):
    """Yield kind, left name, right name, and whether the phrase holds an entity."""
    for row in rows(dataset):
        if row["kind"] != "alone":
            middle = row["middle"]
            yield row["kind"], row["tokens"][middle - 1], row["tokens"][middle + 1], row["labels"][middle] != "O"


def test_sizes_and_sentence_form(corpus):
    assert {split: len(dataset) for split, dataset in corpus.items()} == {"train": 2560, "validation": 320, "test": 640}
    labels = ["O", "B-LINK", "I-LINK", "B-PER", "I-PER", "B-WORK", "I-WORK"]
    for dataset in corpus.values():
        assert dataset.column_names == ["tokens", "ner_tags", "kind", "middle"]
        assert dataset.features["ner_tags"].feature.names == labels
    assert 7 < sum(map(len, corpus["train"]["tokens"])) / 2560 < 10


def test_the_corpus_is_determined_by_its_seed(corpus):
    again, other = xor_corpus(), xor_corpus(seed=14)
    for split, dataset in corpus.items():
        assert dataset.to_list() == again[split].to_list()
        assert dataset.to_list() != other[split].to_list()


def test_phrases_are_of_the_two_kinds_of_the_paper(corpus):
    for dataset in corpus.values():
        for row in rows(dataset):
            if row["kind"] == "alone":
                continue
            start = row["middle"] - 1
            phrase = row["labels"][start : start + 3]
            assert row["tokens"][row["middle"]] == {"B-I-E": "and", "O-S-O": "with"}[row["kind"]]
            assert phrase in (PHRASES[row["kind"]], ["O", "O", "O"])
            assert set(row["labels"][:start] + row["labels"][start + 3 :]) == {"O"}
            assert start > 0
            assert start + 3 < len(row["labels"])


def test_neither_neighbour_alone_is_informative(corpus):
    for dataset in corpus.values():
        for side in (1, 2):
            entities = defaultdict(Counter)
            for phrase in phrases(dataset):
                entities[phrase[0], phrase[side]][phrase[3]] += 1
            assert all(count[True] == count[False] for count in entities.values())


def test_words_around_the_phrase_are_not_informative(corpus):
    for dataset in corpus.values():
        around = {True: Counter(), False: Counter()}
        for row in rows(dataset):
            if row["kind"] != "alone":
                middle = row["middle"]
                words = (tuple(row["tokens"][: middle - 1]), tuple(row["tokens"][middle + 2 :]))
                around[row["labels"][middle] != "O"][words] += 1
        assert around[True] == around[False]


def test_the_two_neighbours_together_determine_the_label(corpus):
    """Two classes on either side, found from the training phrases by propagation, explain every test phrase."""
    agreement = defaultdict(list)
    for _, left, right, entity in phrases(corpus["train"]):
        agreement["left", left].append((("right", right), entity))
        agreement["right", right].append((("left", left), entity))
    start = next(iter(agreement))
    classes, queue = {start: True}, [start]
    while queue:
        name = queue.pop()
        for partner, agree in agreement[name]:
            if partner not in classes:
                classes[partner] = classes[name] == agree
                queue.append(partner)
    assert len(classes) == 160
    for dataset in corpus.values():
        for _, left, right, entity in phrases(dataset):
            assert (classes["left", left] == classes["right", right]) == entity


def test_pairs_of_names_do_not_recur_across_splits(corpus):
    pairs = {split: [phrase[1:3] for phrase in phrases(dataset)] for split, dataset in corpus.items()}
    every = [pair for split in pairs.values() for pair in split]
    assert len(every) == len(set(every))


def test_names_alone_occur_in_training_only(corpus):
    alone = [row for row in rows(corpus["train"]) if row["kind"] == "alone"]
    assert Counter(row["labels"][row["middle"]] for row in alone) == {"B-PER": 320, "O": 320}
    assert {kind for split in ("validation", "test") for kind in corpus[split]["kind"]} == {"B-I-E", "O-S-O"}
    assert set(xor_corpus(alone=0)["train"]["kind"]) == {"B-I-E", "O-S-O"}


@pytest.mark.parametrize("sizes", [{"train": 20}, {"test": -8}, {"train": 64, "validation": 0, "test": 8, "names": 4}])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="give"):
        xor_corpus(**sizes)
