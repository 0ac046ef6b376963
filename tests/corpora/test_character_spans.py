"""JSON of texts with spans, compared with a reference that looks at every character."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_texts import PIECES

from hf_xorner import WordCharTokenizer
from hf_xorner.corpora import DataError
from hf_xorner.corpora.formats.spans import read_json
from hf_xorner.corpora.source import Input, ReadingLog, ReadingOptions

pytest_plugins = "corpus_files"

WIDENED = "spans that cut a word were widened to whole words"
OVERLAP = "spans that overlap a longer one were left out"
MARK = "\ufeff"


def spans_of(record, repairs=None, **options):
    """The words and tags of one record."""
    reading = ReadingOptions(**options)
    source = Input(Path("x.jsonl"), repairs or ReadingLog(reading), text=json.dumps(record))
    ((tokens, tags, *_),) = read_json(source)
    return tokens, tags


def tagged(text, spans, **more):
    return list(zip(*spans_of({"text": text, "spans": spans, **more}, strict=True), strict=True))


TEXT = "Ann Lee doesn't live in Oslo."
WORDS = ["Ann", "Lee", "does", "n't", "live", "in", "Oslo", "."]
TAGS = ["B-PER", "I-PER", "O", "O", "O", "O", "B-LOC", "O"]


def test_spans_may_be_objects_beside_words():
    ents = [{"start": 0, "end": 7, "label": "PER"}, {"start": 24, "end": 28, "label": "LOC"}]
    words = [[0, 3], [4, 7], [8, 12], [12, 15], [16, 20], [21, 23], [24, 28], [28, 29]]
    assert spans_of({"text": TEXT, "ents": ents, "tokens": words}) == (WORDS, TAGS)


def test_the_keys_of_text_and_spans_can_be_named():
    record = {"text": "no", "spans": [], "body": "Ann", "marks": [[0, 3, "PER"]]}
    assert spans_of(record, token_column="body", tag_column="marks") == (["Ann"], ["B-PER"])


def test_texts_may_have_no_spans(read):
    records = [{"text": "It rains"}, {"text": "a", "spans": None}, {"text": "Ann", "spans": [[0, 3, "PER"]]}]
    content = "".join(json.dumps(record) + "\n" for record in records)
    assert read(content, "x.jsonl") == [("It rains", "O O"), ("a", "O"), ("Ann", "B-PER")]


@pytest.mark.parametrize("text", ["", " \n\t\u3000", MARK])
def test_texts_may_have_no_words(text):
    assert tagged(text, []) == tagged(text, [], tokens=[]) == []


@pytest.mark.parametrize("span", [[3, 8, "X"], [2, 8, "X"], [3, 9, "X"], [2, 9, " X "]])
def test_blanks_at_the_ends_of_spans_are_ignored(span):
    assert tagged("a \u00a0Ann B\n c", [span]) == [("a", "O"), ("Ann", "B-X"), ("B", "I-X"), ("c", "O")]


@pytest.mark.parametrize(("anna", "max_"), [(6, 17), (11, 22)], ids=["characters", "units"])
def test_offsets_in_utf_16_units_are_recognised_by_the_texts_of_all_spans(anna, max_):
    text = "🎉🎉🎉🎉🎉 Anna Anna! Max"  # the second Anna is at character 11
    spans = [
        {"start": anna, "end": anna + 4, "text": "Anna", "labels": ["X"]},
        {"start": max_, "end": max_ + 3, "text": "Max", "labels": ["X"]},
    ]
    assert [tag for word, tag in tagged(text, spans) if word.isalpha()] == ["B-X", "O", "B-X"]


def test_byte_order_marks_count_in_offsets_but_are_removed_from_tokens():
    assert tagged(f"{MARK}Ann {MARK}", [[1, 6, f"P{MARK}ER"]]) == [("Ann", "B-PER")]
    text = f"{MARK}An{MARK}n {MARK}"
    assert tagged(text, [[0, 5, "PER"]], tokens=[[0, 3], [3, 5]]) == [("An", "B-PER"), ("n", "I-PER")]


def test_spans_that_cut_a_word_are_widened_and_counted(read, caplog):
    content = json.dumps({"text": "Ann-E Lee ", "spans": [[1, 8, "PER"]]})
    assert read(content, "x.jsonl") == [("Ann-E Lee", "B-PER I-PER")]
    assert f"1 {WIDENED} (first: " in caplog.text


# --- Reference implementation -----------------------------------------------------------------------------------------

RULE = WordCharTokenizer.from_corpus([])
SPANS = st.tuples(st.integers(0, 40), st.integers(1, 12), st.sampled_from("ABC"))


def words_of(text):
    return RULE(text, return_offsets_mapping=True)["offset_mapping"]


def character_by_character(spans, words):
    """The tags, how many spans cut a word and how many overlap a longer one, or None if a span covers no word."""
    touched = [
        [
            index
            for index, (start, end) in enumerate(words)
            if any(span[0] <= position < span[1] for position in range(start, end))
        ]
        for span in spans
    ]
    if not all(touched):
        return None
    tags, left_out = ["O"] * len(words), 0
    for number in sorted(range(len(spans)), key=lambda number: (-len(touched[number]), touched[number][0], number)):
        if {"O"} != {tags[index] for index in touched[number]}:
            left_out += 1
            continue
        for index in touched[number]:
            tags[index] = f"{'B' if index == touched[number][0] else 'I'}-{spans[number][2]}"
    cuts = sum(
        words[words_in_span[0]][0] < span[0] or words[words_in_span[-1]][1] > span[1]
        for span, words_in_span in zip(spans, touched, strict=True)
    )
    return tags, cuts, left_out


class Counts(ReadingLog):
    """Repairs by kind."""

    def __init__(self):
        super().__init__(ReadingOptions())
        self.counts = {WIDENED: 0, OVERLAP: 0}

    def add(self, kind, location, count=1):
        self.counts[kind] += count


def outcome(record):
    repairs = Counts()
    try:
        tokens, tags = spans_of(record, repairs)
    except DataError as error:
        assert str(error).startswith("x.jsonl:1: the span")
        return None, None
    return tokens, (tags, *repairs.counts.values())


@example(text="Ann Lee Bo", spans=[(0, 3, "A"), (0, 7, "B"), (4, 6, "C")])
@given(text=st.lists(PIECES, max_size=25).map("".join), spans=st.lists(SPANS, max_size=4))
def test_spans_match_a_character_by_character_reference(text, spans):
    text = text.replace(MARK, "")
    spans = [[start, min(start + size, len(text)), label] for start, size, label in spans if start < len(text)]
    words = words_of(text)
    tokens, tags = outcome({"text": text, "spans": spans})
    assert tags == character_by_character(spans, words)
    assert tokens is None or tokens == [text[start:end] for start, end in words]


@given(
    text=st.text(st.sampled_from("ab"), min_size=1, max_size=30),
    cuts=st.sets(st.integers(0, 30), max_size=12),
    spans=st.lists(SPANS, max_size=4),
)
def test_words_with_offsets_match_a_character_by_character_reference(text, cuts, spans):
    ends = sorted(cut for cut in cuts if cut <= len(text))
    words = [list(pair) for pair in zip(ends[::2], ends[1::2], strict=False)]
    spans = [[start, min(start + size, len(text)), label] for start, size, label in spans if start < len(text)]
    tokens, tags = outcome({"text": text, "tokens": words, "spans": spans})
    assert tags == character_by_character(spans, words)
    assert tokens is None or tokens == [text[start:end] for start, end in words]
