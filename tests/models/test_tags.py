"""Conversions between public labels and inner tags match the references."""

import helpers
import numpy as np
import pytest
import references as ref
import torch

from hf_xorner.models.tags import IGNORED, TagSpace

LABEL_SETS = {
    "two types": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
    "a type of one word": ["O", "B-PER", "I-PER", "B-GOD"],
    "any order": ["I-a-b", "B-x", "O", "I-x", "B-a-b", "B-O"],
    "plain": ["NOUN", "VERB", "DET", "O"],
}
SEQUENCES, WIDTH = 3000, 7


@pytest.fixture(params=LABEL_SETS)
def labels(request):
    return LABEL_SETS[request.param]


def random_tags(count):
    """Random tags (SEQUENCES, WIDTH), the lengths of the sentences and where they have words."""
    generator = torch.Generator().manual_seed(0)
    tags = torch.randint(0, count, (SEQUENCES, WIDTH), generator=generator)
    lengths = torch.randint(0, WIDTH + 1, (SEQUENCES,), generator=generator)
    return tags, lengths.tolist(), torch.arange(WIDTH) < lengths.unsqueeze(1)


def test_inner_tags_are_bioes(labels):
    assert TagSpace(labels).inner_tags == ref.inner_tags(labels)
    assert TagSpace(labels).num_inner == len(ref.inner_tags(labels))


def test_gold_labels_are_converted_to_inner_tags(labels):
    space = TagSpace(labels)
    public, lengths, mask = random_tags(len(labels))
    inner = space.to_inner(public.masked_fill(~mask, IGNORED))
    assert (inner[~mask] == IGNORED).all()
    for row, expected, length in zip(inner.tolist(), public.tolist(), lengths, strict=True):
        names = [space.inner_tags[tag] for tag in row[:length]]
        expected = ref.to_inner([labels[label] for label in expected[:length]])
        assert names == expected


@pytest.mark.parametrize("repair", [False, True])
def test_inner_paths_are_converted_to_well_formed_public_spans(labels, repair):
    space = TagSpace(labels)
    inner, lengths, mask = random_tags(space.num_inner)
    public = space.to_public_path(inner, mask, repair=repair)
    spans_of = ref.spans_conlleval if repair else ref.spans_strict
    for row, tags, length in zip(public.tolist(), inner.tolist(), lengths, strict=True):
        names = [space.inner_tags[tag] for tag in tags[:length]]
        expected = ref.public_tags(spans_of(names), length) if ref.is_chunked(labels) else names
        assert [labels[label] for label in row[:length]] == expected


def test_public_probabilities_are_sums_of_inner_ones(labels):
    space = TagSpace(labels)
    log_probs = torch.randn(6, 5, space.num_inner, dtype=torch.float64).log_softmax(-1)
    public = space.to_public_log_probs(log_probs)
    helpers.close(public.exp().sum(-1), np.ones((6, 5)), 1e-12)
    behind = {"S-": "B-", "E-": "I-"} if ref.is_chunked(labels) else {}
    names = [behind.get(tag[:2], tag[:2]) + tag[2:] for tag in ref.inner_tags(labels)]
    for index, label in enumerate(labels):
        members = [tag for tag, name in enumerate(names) if name == label]
        helpers.close(public[..., index].exp(), log_probs[..., members].exp().sum(-1), 1e-12)


def test_log_probabilities_stay_finite_when_one_tag_is_certain():
    space = TagSpace(LABEL_SETS["a type of one word"])
    log_probs = torch.full((1, 1, space.num_inner), -1e4)
    log_probs[..., 0] = 0.0
    assert space.to_public_log_probs(log_probs).isfinite().all()


def test_unlabelled_words_split_entities():
    space = TagSpace(LABEL_SETS["two types"])
    inner = space.to_inner(torch.tensor([[1, 2, IGNORED, 2, 1, IGNORED]]))
    names = ["-" if tag == IGNORED else space.inner_tags[tag] for tag in inner[0].tolist()]
    assert names == ["B-PER", "E-PER", "-", "S-PER", "S-PER", "-"]


def test_allowed_transitions_are_those_of_well_formed_sentences(labels):
    """A sequence is well formed if and only if all its transitions are allowed."""
    space = TagSpace(labels)
    tables = space.on(torch.device("cpu"))
    barred = (tables.barred_transitions, tables.barred_start, tables.barred_end)
    follow, first, last = (~table.numpy() for table in barred)
    inner, lengths, _ = random_tags(space.num_inner)
    for tags, length in zip(inner.tolist(), lengths, strict=True):
        tags = tags[: min(length, 4)]
        names = [space.inner_tags[tag] for tag in tags]
        covered = sum(end - start for _, start, end in ref.spans_strict(names))
        well_formed = covered == sum(name != "O" for name in names) or not ref.is_chunked(labels)
        joined = not tags or (first[tags[0]] and last[tags[-1]] and follow[tags[:-1], tags[1:]].all())
        assert bool(joined) == well_formed


def test_inner_tags_may_be_iob2():
    labels = LABEL_SETS["a type of one word"]
    space = TagSpace(labels, "iob2")
    tables = space.on(torch.device("cpu"))
    assert space.inner_tags == labels and not tables.barred_end.any()
    inner, lengths, mask = random_tags(len(labels))
    gold, strict, repaired = space.to_inner(inner), *(space.to_public_path(inner, mask, how) for how in (False, True))
    for row, length in enumerate(lengths):
        names = [labels[tag] for tag in inner[row].tolist()]
        spans, allowed = ref.spans_conlleval(names[:length]), ref.spans_conlleval(names)
        begun = [span for span in spans if names[span[1]].startswith("B")]
        for path, kept in ((strict, begun), (repaired, spans)):
            assert [labels[label] for label in path[row, :length]] == ref.public_tags(kept, length)
        well_formed = ref.public_tags(allowed, WIDTH) == names
        assert [labels[tag] for tag in gold[row]] == ref.public_tags(allowed, WIDTH)
        barred = tables.barred_start[inner[row, 0]] | tables.barred_transitions[inner[row, :-1], inner[row, 1:]].any()
        assert bool(barred) != well_formed


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["B-PER", "I-PER"], "have B- and I- prefixes but no O; add O to id2label"),
        (["O", "I-PER"], "The label 'I-PER' has no partner 'B-PER'; IOB2 starts every entity with B-"),
        (["O", "B-PER", "I-LOC"], "The label 'I-LOC' has no partner 'B-LOC'"),
        (["O", "B-PER", "E-PER"], "The label 'E-PER' is neither O nor begins with B- or I-"),
        (["O", "B-PER", "NOUN"], "give id2label in IOB2"),
        (["O", "B-PER", "BAR"], "The label 'BAR' is neither O"),
    ],
)
def test_labels_that_are_not_iob2_are_refused(labels, sentence):
    with pytest.raises(ValueError) as error:
        TagSpace(labels)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
