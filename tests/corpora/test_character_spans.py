import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_texts import PIECES

from hf_xorner import WordCharTokenizer
from hf_xorner.corpora import DataError
from hf_xorner.corpora.formats.spans import read_spans
from hf_xorner.corpora.source import Reading, Repairs

#: Ends the message about a bad record.
REMEDY = ", or pass skip_bad_lines."
WIDENED = "spans that cut a word were widened to whole words"
OVERLAP = "spans that overlap another were left out, the longest kept"
MARK = "\ufeff"


def written(path, content):
    if not isinstance(content, (str, bytes)):
        content = "".join(json.dumps(record) + "\n" for record in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def write(tmp_path):
    return lambda content: written(tmp_path / "some.jsonl", content)


def read(path, repairs=None, **options):
    sentences = read_spans(path, Reading(**options), repairs or Repairs(strict=True))
    return [(sentence.tokens, sentence.tags) for sentence in sentences]


def tagged(write, text, spans, **more):
    ((tokens, tags),) = read(write([{"text": text, "spans": spans, **more}]))
    return list(zip(tokens, tags, strict=True))


TEXT = "Ann Lee doesn't live in Oslo."
WORDS = ["Ann", "Lee", "does", "n't", "live", "in", "Oslo", "."]
TAGS = ["B-PER", "I-PER", "O", "O", "O", "O", "B-LOC", "O"]


# --- Forms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["spans", "entities", "labels", "label", "ents"])
def test_spans_are_read_from_the_keys_of_each_tool(write, key):
    assert read(write([{"text": TEXT, key: [[0, 7, "PER"], [24, 28, "LOC"]]}])) == [(WORDS, TAGS)]


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "text": TEXT, "label": [[24, 28, "LOC"], [0, 7, "PER"]], "Comments": []},
        {
            "id": 1,
            "text": TEXT,
            "entities": [
                {"id": 2, "label": "PER", "start_offset": 0, "end_offset": 7},
                {"id": 3, "label": "LOC", "start_offset": 24, "end_offset": 28},
            ],
            "relations": [],
        },
        {
            "text": TEXT,
            "spans": [
                {"start": 0, "end": 7, "label": "PER", "token_start": 0, "token_end": 1},
                {"start": 24, "end": 28, "label": "LOC", "token_start": 6, "token_end": 6},
            ],
            "tokens": [
                {"text": word, "start": start, "end": start + len(word), "id": number, "ws": True}
                for number, (word, start) in enumerate(zip(WORDS, [0, 4, 8, 12, 16, 21, 24, 28], strict=True))
            ],
            "_input_hash": -5,
            "answer": "accept",
        },
        {
            "text": TEXT,
            "ents": [{"start": 0, "end": 7, "label": "PER"}, {"start": 24, "end": 28, "label": "LOC"}],
            "tokens": [[0, 3], [4, 7], [8, 12], [12, 15], [16, 20], [21, 23], [24, 28], [28, 29]],
        },
    ],
    ids=["doccano", "doccano with relations", "prodigy", "spacy"],
)
def test_formats_of_all_tools_read_the_same(write, record):
    assert read(write([record])) == [(WORDS, TAGS)]


def test_keys_are_configurable(write):
    path = write([{"text": "no", "spans": [], "body": "Ann", "marks": [[0, 3, "PER"]]}])
    assert read(path, token_column="body", tag_column="marks") == [(["Ann"], ["B-PER"])]


@pytest.mark.parametrize("nothing", [{}, {"spans": []}, {"spans": None}])
def test_texts_without_spans_have_no_entities(write, nothing):
    record = {"text": "Ann", "spans": [[0, 3, "PER"]]}
    assert read(write([{"text": "It rains"} | nothing, record])) == [
        (["It", "rains"], ["O", "O"]),
        (["Ann"], ["B-PER"]),
    ]


@pytest.mark.parametrize("text", ["", " \n\t\u3000", MARK])
def test_texts_without_words_give_empty_sentences(write, text):
    assert tagged(write, text, []) == []
    assert tagged(write, text, [], tokens=[]) == []


def test_sentences_have_line_numbers_and_document_ids(write):
    path = write('\n{"text": "a b", "spans": [], "doc_id": 3}\n\n{"text": "c"}')
    sentences = list(read_spans(path, Reading(), Repairs()))
    assert [(sentence.line, sentence.doc_id) for sentence in sentences] == [(2, "3"), (4, None)]
    assert sentences[0].place(1) == f"{path}:2"


def test_parts_of_speech_require_words_with_offsets(write):
    record = {"text": "It rains", "spans": [], "pos_tags": ["PRP", "VBZ"]}
    path = write([record | {"tokens": [[0, 2], [3, 8]]}, record])
    assert [sentence.pos_tags for sentence in read_spans(path, Reading(), Repairs())] == [["PRP", "VBZ"], None]
    assert [sentence.pos_tags for sentence in read_spans(path, Reading(pos_column="none"), Repairs())] == [None, None]


def test_rejected_and_ignored_records_are_skipped_and_counted(write):
    records = [{"text": text, "spans": [], "answer": text} for text in ("reject", "accept", "ignore", "ignore")]
    repairs = Repairs()
    path = write(records)
    assert read(path, repairs) == [(["accept"], ["O"])]
    assert str(repairs) == f"3 records that their annotator rejected or ignored were left out (first: {path}:1)"


def test_gzip_and_byte_order_marks_are_supported(write):
    line = json.dumps({"text": TEXT, "spans": [[0, 7, "PER"], [24, 28, "LOC"]]})
    for content in (gzip.compress(line.encode()), f"{MARK}{line}\n{MARK}\n", f"{line}\r\n\r\n"):
        assert read(write(content)) == [(WORDS, TAGS)]


def test_sentences_are_read_lazily(write):
    sentences = read_spans(write('{"text": "a", "spans": []}\n{\n'), Reading(), Repairs())
    assert next(sentences).tokens == ["a"]
    with pytest.raises(DataError):
        next(sentences)


# --- Words and spans --------------------------------------------------------------------------------------------------


def test_adjacent_entities_of_one_type_stay_separate(write):
    assert tagged(write, "Ann Bo", [[4, 6, "PER"], [0, 3, "PER"]]) == [("Ann", "B-PER"), ("Bo", "B-PER")]
    assert tagged(write, "Ann's", [[0, 3, "A"], [3, 5, "B"]]) == [("Ann", "B-A"), ("'s", "B-B")]


def test_offsets_count_characters_not_code_units(write):
    assert tagged(write, "👩🏽‍🚀 Ann", [[5, 8, "PER"]]) == [("👩🏽‍🚀", "O"), ("Ann", "B-PER")]


@pytest.mark.parametrize("span", [[3, 8, "X"], [2, 8, "X"], [3, 9, "X"], [2, 9, "X"]])
def test_whitespace_at_span_ends_is_ignored(write, span):
    assert tagged(write, "a \u00a0Ann B\n c", [span]) == [
        ("a", "O"),
        ("Ann", "B-X"),
        ("B", "I-X"),
        ("c", "O"),
    ]


def test_spans_may_overlap_in_whitespace(write):
    assert tagged(write, "Ann Bo", [[0, 4, "A"], [3, 6, "B"]]) == [("Ann", "B-A"), ("Bo", "B-B")]


@pytest.mark.parametrize("span", [[1, 8, "PER"], [0, 4, "PER"], [2, 6, "PER"]])
def test_spans_that_cut_a_word_are_widened_and_counted(write, span):
    path = write([{"text": "Annie Lee", "spans": []}, {"text": "Ann-E Lee ", "spans": [span]}])
    repairs = Repairs()
    after = 1 if span[1] <= 6 else 2
    assert read(path, repairs)[1] == (["Ann-E", "Lee"], ["B-PER", "I-PER"][:after] + ["O"] * (2 - after))
    assert str(repairs) == f"1 {WIDENED} (first: {path}:2, span {json.dumps(span)})"
    with pytest.raises(DataError) as error:
        read(path, Repairs(strict=True))
    assert str(error.value).startswith(f"{path}:2, span {json.dumps(span)}: 1 {WIDENED};")


def test_words_with_offsets_are_used_unchanged(write):
    words = [[0, 2], [2, 3], [3, 4], [4, 12], [12, 14]]
    spans = [[2, 4, "A"], [4, 12, "B"], [12, 14, "C"]]
    assert tagged(write, "can't New Yo  x", spans, tokens=words) == [
        ("ca", "O"),
        ("n", "B-A"),
        ("'", "I-A"),
        ("t New Yo", "B-B"),
        ("  ", "B-C"),
    ]


def test_whitespace_at_span_ends_does_not_include_cut_whitespace_words(write):
    words = [[0, 3], [3, 5], [5, 7]]
    assert tagged(write, "Ann  Bo", [[0, 4, "X"]], tokens=words) == [("Ann", "B-X"), ("  ", "O"), ("Bo", "O")]


def test_byte_order_marks_count_in_offsets_but_are_removed_from_tokens(write):
    text = f"{MARK}An{MARK}n {MARK}"
    assert tagged(write, text, [[1, 5, f"P{MARK}ER"]]) == [("Ann", "B-PER")]
    assert tagged(write, text, [[0, 5, "PER"]], tokens=[[0, 3], [3, 5]]) == [("An", "B-PER"), ("n", "I-PER")]


# --- Reference implementation -----------------------------------------------------------------------------------------

RULE = WordCharTokenizer.from_corpus([])
SPANS = st.tuples(st.integers(0, 40), st.integers(1, 12), st.sampled_from("ABC"))


def words_of(text):
    return RULE(text, return_offsets_mapping=True)["offset_mapping"]


def character_by_character(text, spans, words):
    """The tags, how many spans cut a word and how many overlap a longer one, or None if a span covers no word."""
    touched = [
        [
            index
            for index, (start, end) in enumerate(words)
            if any(span[0] <= place < span[1] for place in range(start, end))
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
        words[found[0]][0] < span[0] or words[found[-1]][1] > span[1]
        for span, found in zip(spans, touched, strict=True)
    )
    return tags, cuts, left_out


def outcome(path, record):
    repairs = Repairs()
    try:
        ((tokens, tags),) = read(written(path, [record]), repairs)
    except DataError as error:
        assert str(error).startswith(f"{path}:1: the span")
        return None, None
    counts = dict(reversed(part.split(" ", 1)) for part in str(repairs).split("; ") if part)
    return tokens, (tags, *(sum(int(n) for kind, n in counts.items() if name in kind) for name in (WIDENED, OVERLAP)))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("spans") / "some.jsonl"


@given(
    text=st.lists(PIECES, max_size=25).map("".join),
    spans=st.lists(SPANS, max_size=4),
    marks=st.sets(st.integers(0, 60)),
)
@settings(deadline=None)
def test_spans_match_a_character_by_character_reference(path, text, spans, marks):
    text = text.replace(MARK, "")
    spans = [[start, min(start + size, len(text)), label] for start, size, label in spans if start < len(text)]
    words = words_of(text)
    tokens, found = outcome(path, {"text": text, "spans": spans})
    assert found == character_by_character(text, spans, words)
    assert tokens is None or tokens == [text[start:end] for start, end in words]

    # Byte-order marks only shift the offsets.
    marked = "".join(MARK + character if place in marks else character for place, character in enumerate(text))
    move = [place + sum(mark <= place for mark in marks) for place in range(len(text) + 1)]
    moved = [[move[start], move[end - 1] + 1, label] for start, end, label in spans]
    assert outcome(path, {"text": marked, "spans": moved}) == (tokens, found)


@given(
    text=st.text(st.sampled_from("ab"), min_size=1, max_size=30),
    cuts=st.sets(st.integers(0, 30), max_size=12),
    spans=st.lists(SPANS, max_size=4),
)
def test_words_with_offsets_match_a_character_by_character_reference(path, text, cuts, spans):
    ends = sorted(cut for cut in cuts if cut <= len(text))
    words = [list(pair) for pair in zip(ends[::2], ends[1::2], strict=False)]
    spans = [[start, min(start + size, len(text)), label] for start, size, label in spans if start < len(text)]
    tokens, found = outcome(path, {"text": text, "tokens": words, "spans": spans})
    assert found == character_by_character(text, spans, words)
    assert tokens is None or tokens == [text[start:end] for start, end in words]


TOKENS = st.one_of(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=MARK), min_size=1), st.just(" "))


@given(
    chunks=st.lists(st.tuples(st.lists(TOKENS, min_size=1, max_size=3), st.sampled_from(["", "PER", "LOC"]))),
    blanks=st.lists(st.sampled_from(["", " ", "\n"]), min_size=1),
    as_objects=st.booleans(),
)
def test_any_words_and_entities_round_trip_through_spans(path, chunks, blanks, as_objects):
    text, words, spans, tokens, tags = "", [], [], [], []
    for chunk, label in chunks:
        first = len(words)
        for index, token in enumerate(chunk):
            text += blanks[len(words) % len(blanks)]
            words.append([len(text), len(text) + len(token)])
            text += token
            tags.append(f"{'I' if index else 'B'}-{label}" if label else "O")
        if label:
            spans.append([words[first][0], words[-1][1], label])
        tokens += chunk
    if as_objects:
        words = [{"start": start, "end": end, "text": text[start:end]} for start, end in words]
        spans = [{"start": start, "end": end, "label": label} for start, end, label in spans]
    assert read(written(path, [{"text": text, "tokens": words, "spans": spans}])) == [(tokens, tags)]


# --- Faults -----------------------------------------------------------------------------------------------------------

PAIRS = "correct it, or leave 'tokens' out."


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"spans": []}, "no text under 'text' or 'data'; name the key as token_column (its keys: 'spans'), or add it."),
        ({"text": ["Ann"]}, "'text' holds a list; write the text as a string."),
        ({"text": None}, "'text' holds null; write the text as a string."),
        ({"spans": {}}, "'spans' holds an object; write a list of [start, end, label]."),
        ({"label": "PER"}, "'label' holds a string; write a list of [start, end, label]."),
        (
            {"text": "\ud83d"},
            "'text' holds a lone surrogate, U+D83D, which is not a character; write both its halves, or remove it.",
        ),
    ],
)
def test_invalid_records_raise(write, record, message):
    record = record if "text" in record or record == {"spans": []} else {"text": "Ann"} | record
    path = write([{"text": "a", "spans": []}, record])
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value) == f"{path}:2: {message[:-1]}{REMEDY}"


@pytest.mark.parametrize(
    ("span", "fault"),
    [
        ([0, 3], "is neither [start, end, label] nor an object of these"),
        ([0, 3, "X", 1], "is neither [start, end, label] nor an object of these"),
        ("Ann", "is neither [start, end, label] nor an object of these"),
        (None, "is neither [start, end, label] nor an object of these"),
        ({"start": 0, "label": "X"}, "is neither [start, end, label] nor an object of these"),
        ({"start_offset": 0, "end": 3, "label": "X"}, "is neither [start, end, label] nor an object of these"),
        ([0, 3.0, "X"], "has no whole numbers for its start and end"),
        (["0", 3, "X"], "has no whole numbers for its start and end"),
        ([False, 3, "X"], "has no whole numbers for its start and end"),
        ([0, None, "X"], "has no whole numbers for its start and end"),
        ([0, 3, ""], "has no string for its label"),
        ([0, 3, " \ufeff"], "has no string for its label"),
        ([0, 3, 7], "has no string for its label"),
        ([0, 3, ["X"]], "has no string for its label"),
        ({"start": 0, "end": 3}, "has no string for its label"),
        ([-1, 3, "X"], "reaches outside of the text, which has 9 characters"),
        ([4, 10, "X"], "reaches outside of the text, which has 9 characters"),
        ([12, 10, "X"], "reaches outside of the text, which has 9 characters"),
        ([3, 3, "X"], "is empty"),
        ([9, 9, "X"], "is empty"),
        ([3, 0, "X"], "ends before it starts"),
        ([3, 4, "X"], "covers no word"),
        ([3, 5, "X"], "covers no word"),
    ],
)
def test_invalid_spans_raise_with_file_and_line(write, span, fault):
    path = write([{"text": "Ann  Lee.", "spans": [[5, 8, "PER"], span]}])
    with pytest.raises(DataError) as error:
        read(path)
    shown = json.dumps(span, ensure_ascii=False)
    assert str(error.value) == f"{path}:1: the span {shown} {fault}; correct or remove it{REMEDY}"


def test_lone_surrogates_in_labels_raise(write):
    path = write('{"text": "Ann", "spans": [[0, 3, "\\udc00"]]}')
    with pytest.raises(DataError, match=r"some\.jsonl:1: 'label' holds a lone surrogate, U\+DC00"):
        read(path)


def test_long_spans_are_abbreviated_in_messages(write):
    path = write([{"text": "Ann", "spans": [{"start": 9, "end": 10, "label": "X", "note": "n" * 1000}]}])
    with pytest.raises(DataError) as error:
        read(path)
    assert len(str(error.value)) < len(str(path)) + 250


@pytest.mark.parametrize(
    ("kept", "left_out"),
    [
        ([0, 7, "A"], [[4, 7, "B"]]),
        ([0, 7, "A"], [[0, 7, "A"]]),
        ([0, 7, "A"], [[4, 11, "B"]]),
        ([0, 11, "A"], [[4, 7, "B"], [0, 3, "C"], [4, 11, "D"]]),
        ([0, 5, "A"], [[5, 7, "B"]]),
    ],
    ids=["nested", "twice", "overlapping", "several", "in one word"],
)
def test_the_longest_of_overlapping_spans_is_kept_and_the_others_are_counted(write, kept, left_out):
    path = write([{"text": "Ann Lee Ray", "spans": [kept, *left_out]}])
    repairs = Repairs()
    words = 3 if kept[1] == 11 else 2
    assert read(path, repairs) == [(["Ann", "Lee", "Ray"], [*["B-A", "I-A", "I-A"][:words], "O"][:3])]
    assert f"{len(left_out)} {OVERLAP} (first: {path}:1, span " in str(repairs)
    with pytest.raises(DataError) as error:
        read(path, Repairs(strict=True))
    assert str(error.value).startswith(f"{path}:1, span [")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("Ann", "'tokens' holds a string; write a list of [start, end]."),
        (
            ["Ann", "Lee"],
            f"the word \"Ann\" at index 0 of 'tokens' is neither [start, end] nor an object of these; {PAIRS}",
        ),
        ([[0, 3], [4]], f"the word [4] at index 1 of 'tokens' is neither [start, end] nor an object of these; {PAIRS}"),
        (
            [{"start": 0}],
            f"the word {{\"start\": 0}} at index 0 of 'tokens' is neither [start, end] nor an object of these; {PAIRS}",
        ),
        (
            [[0, 3], [4, True]],
            f"the word [4, true] at index 1 of 'tokens' has no whole numbers for its start and end; {PAIRS}",
        ),
        ([[0, "3"]], f"the word [0, \"3\"] at index 0 of 'tokens' has no whole numbers for its start and end; {PAIRS}"),
        (
            [[0, 3], [4, 8]],
            f"the word [4, 8] at index 1 of 'tokens' reaches outside of the text, which has 7 characters; {PAIRS}",
        ),
        (
            [[-1, 3]],
            f"the word [-1, 3] at index 0 of 'tokens' reaches outside of the text, which has 7 characters; {PAIRS}",
        ),
        ([[0, 3], [3, 3]], f"the word [3, 3] at index 1 of 'tokens' is empty; {PAIRS}"),
        ([[3, 0]], f"the word [3, 0] at index 0 of 'tokens' ends before it starts; {PAIRS}"),
        ([[4, 7], [0, 3]], f"the word [0, 3] at index 1 of 'tokens' starts before the last one ends; {PAIRS}"),
        ([[0, 4], [3, 7]], f"the word [3, 7] at index 1 of 'tokens' starts before the last one ends; {PAIRS}"),
    ],
)
def test_invalid_words_raise(write, tokens, message):
    path = write([{"text": "Ann Lee", "spans": [], "tokens": tokens}])
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value) == f"{path}:1: {message[:-1]}{REMEDY}"


def test_words_of_only_a_byte_order_mark_raise(write):
    path = write([{"text": f"a{MARK}", "spans": [], "tokens": [[0, 1], [1, 2]]}])
    with pytest.raises(DataError) as error:
        read(path)
    fault = "the word at index 1 of 'tokens' is only a byte-order mark; remove it"
    assert str(error.value) == f"{path}:1: {fault}{REMEDY}"


def test_wrong_number_of_parts_of_speech_raises(write):
    path = write([{"text": "Ann", "spans": [], "tokens": [[0, 3]], "pos": []}])
    with pytest.raises(DataError) as error:
        read(path)
    fault = "1 tokens but 0 parts of speech under 'pos'; give every token one, or none"
    assert str(error.value) == f"{path}:1: {fault}{REMEDY}"
    path = write([{"text": "Ann", "spans": [], "pos": ["N"]}])
    with pytest.raises(DataError) as error:
        read(path, pos_column="pos")
    assert str(error.value) == (
        f"{path}:1: no words with offsets under 'tokens', which parts of speech need; "
        f"add them, or give 'none' as pos_column{REMEDY}"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n", "the file holds no sentence; expected one JSON object a line, or an array of objects."),
        (
            '{"text": "Ann"}\n{"text": "Bo"}\n',
            "no record has spans under 'spans' or 'entities' or 'labels' or 'label' or 'ents' or 'annotations'; "
            "name their key as tag_column.",
        ),
        (
            '{"text": "Ann", "spans": [], "answer": "reject"}\n',
            "every record is rejected, ignored or not annotated; accept some of them.",
        ),
    ],
)
def test_empty_files_raise(write, content, message):
    path = write(content)
    with pytest.raises(DataError) as error:
        read(path, Repairs())
    assert str(error.value) == f"{path}:1: {message}"
