"""Spans and their scores by plain loops, written from the definitions, and random tags to test with."""

import numpy as np
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

TYPES = ["X", "Y", "art-work"]
# The letters of each scheme for begin, inside, end and single.
LETTERS = {"iob1": "BIIB", "iob2": "BIIB", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}
SCHEMES = list(LETTERS)
POLICIES = ["strict", "conlleval"]


def all_tags(scheme):
    return ["O", *(f"{letter}-{name}" for letter in sorted(set(LETTERS[scheme])) for name in TYPES)]


def in_bioes(tags):
    """The tags with the letters of BIOES, as seqeval's default mode knows them."""
    letters = {"M": "I", "L": "E", "U": "S"}
    return [letters.get(tag[0], tag[0]) + tag[1:] for tag in tags]


def spans_by_loop(tags, scheme, policy):
    """The spans (start, end, type) of one sentence."""
    if policy == "conlleval" or scheme == "iob1":
        return [(start, last + 1, name) for name, start, last in get_entities(in_bioes(tags))]
    begin, inside, end, single = LETTERS[scheme]
    spans = []
    for start in range(len(tags)):
        name = tags[start][2:]
        for stop in range(start + 1, len(tags) + 1):
            window, after = tags[start:stop], tags[stop : stop + 1]
            if scheme == "iob2":
                right = window == [f"B-{name}"] + [f"I-{name}"] * (len(window) - 1) and after != [f"I-{name}"]
            elif len(window) == 1:
                right = window == [f"{single}-{name}"]
            else:
                right = window == [f"{begin}-{name}", *[f"{inside}-{name}"] * (len(window) - 2), f"{end}-{name}"]
            if right:
                spans.append((start, stop, name))
    return spans


def corpus_spans(sentences, scheme, policy):
    """The spans (sentence, start, end, type) of all sentences."""
    return [
        (index, *span) for index, tags in enumerate(sentences) for span in spans_by_loop(list(tags), scheme, policy)
    ]


def tuples_of(spans, comparison):
    """The spans (sentence, start, end, type) of one side of a comparison."""
    first = np.cumsum(comparison.lengths) - comparison.lengths
    sentence = np.repeat(np.arange(len(first)), comparison.lengths)[spans.start]
    columns = (sentence, spans.start - first[sentence], spans.end - first[sentence], spans.type)
    types = comparison.tag_set.types
    return [(*row, types[index]) for *row, index in zip(*(column.tolist() for column in columns), strict=True)]


def tags_of_spans(spans, length, scheme):
    """The well-formed tags of one sentence's spans (start, end, type)."""
    begin, inside, end, single = LETTERS[scheme]
    tags = ["O"] * length
    before = (0, 0, None)
    for start, stop, name in spans:
        letters = single if stop - start == 1 else begin + inside * (stop - start - 2) + end
        if scheme == "iob1":
            # B- only where the entity would otherwise run on.
            first = "B" if before[1:] == (start, name) else "I"
            letters = first + "I" * (stop - start - 1)
        tags[start:stop] = [f"{letter}-{name}" for letter in letters]
        before = (start, stop, name)
    return tags


def ratios_by_loop(gold, predicted):
    """Precision, recall, F1 and support of two collections of spans."""
    gold, predicted = set(gold), set(predicted)
    correct = len(gold & predicted)
    precision, recall = correct / len(predicted) if predicted else 0, correct / len(gold) if gold else 0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0
    return {"precision": 100 * precision, "recall": 100 * recall, "f1": 100 * f1, "support": len(gold)}


@st.composite
def chunked_sentence(draw, scheme):
    """Well-formed tags of one sentence, spans of up to five words often side by side."""
    spans, position = [], 0
    for gap, size, name in draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.sampled_from([1, 1, 2, 2, 3, 4, 5]), st.sampled_from(TYPES)), max_size=4
        )
    ):
        spans.append((position + gap, position + gap + size, name))
        position += gap + size
    return tags_of_spans(spans, position + draw(st.integers(0, 2)), scheme)


@st.composite
def pairs(draw, scheme, well_formed=False):
    """Gold and predicted sentences: well-formed, wild, or gold with a few tags changed."""
    tag = st.sampled_from(all_tags(scheme))
    gold = draw(st.lists(chunked_sentence(scheme), max_size=4))
    if not well_formed and draw(st.booleans()):
        gold += draw(st.lists(st.lists(tag, max_size=8), max_size=2))
    predicted = []
    for tags in gold:
        kind = draw(st.sampled_from(["shifted", "well-formed"] if well_formed else ["wild", "changed", "changed"]))
        if kind == "wild":
            predicted.append(draw(st.lists(tag, min_size=len(tags), max_size=len(tags))))
        elif kind == "changed":
            changes = draw(st.dictionaries(st.integers(0, max(len(tags) - 1, 0)), tag, max_size=2))
            predicted.append([changes.get(index, old) for index, old in enumerate(tags)])
        else:
            other = draw(chunked_sentence(scheme)) if kind == "well-formed" else tags
            spans = [span for span in spans_by_loop(other, scheme, "conlleval") if span[1] <= len(tags)]
            kept = [span for span in spans if draw(st.integers(0, 3))]
            predicted.append(tags_of_spans(kept, len(tags), scheme))
    return gold, predicted
