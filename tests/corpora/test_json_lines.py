import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.corpora import DataError
from hf_xorner.corpora.formats.json_lines import read_json_lines, records, sniff_json
from hf_xorner.corpora.source import Reading


@pytest.fixture
def write(tmp_path):
    def write(content, name="some.jsonl"):
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = "".join(
                line if isinstance(line, str) else json.dumps(line) + "\n"
                for line in ([content] if isinstance(content, str) else content)
            ).encode()
        path.write_bytes(content)
        return path

    return write


def read(path, **told):
    return [(sentence.tokens, sentence.tags) for sentence in read_json_lines(path, Reading(**told))]


EXPECTED = [(["Ann", "left"], ["B-PER", "O"]), (["Rain"], ["O"])]


@pytest.mark.parametrize("tags", ["ner_tags", "tags", "labels"])
@pytest.mark.parametrize("words", ["tokens", "words"])
def test_words_and_tags_are_read_from_their_usual_keys(write, words, tags):
    assert read(write([{words: tokens, tags: labels} for tokens, labels in EXPECTED])) == EXPECTED


def test_the_first_of_the_usual_keys_is_used(write):
    record = {"labels": ["L"], "tags": ["T"], "ner_tags": ["O"], "words": ["w"], "tokens": ["t"]}
    assert read(write([record])) == [(["t"], ["O"])]


def test_keys_are_configurable(write):
    record = {
        "tokens": ["no"],
        "form": ["Ann"],
        "ner_tags": ["no"],
        "entity": ["B-PER"],
        "pos_tags": ["no"],
        "x": ["N"],
    }
    (sentence,) = read_json_lines(write([record]), Reading(token_column="form", tag_column="entity", pos_column="x"))
    assert sentence[:2] == (["Ann"], ["B-PER"])
    assert sentence.pos_tags == ["N"]


@pytest.mark.parametrize("key", ["pos_tags", "pos"])
def test_parts_of_speech_are_read_unless_disabled(write, key):
    path = write([{"tokens": ["Ann"], "tags": ["O"], key: ["NNP"]}, {"tokens": ["x"], "tags": ["O"], key: None}])
    assert [sentence.pos_tags for sentence in read_json_lines(path, Reading())] == [["NNP"], None]
    assert [sentence.pos_tags for sentence in read_json_lines(path, Reading(pos_column="none"))] == [None, None]


def test_document_ids_are_strings_or_integers(write):
    path = write([{"tokens": [], "tags": []} | more for more in ({"doc_id": "a"}, {"doc_id": 7}, {"doc_id": None}, {})])
    assert [sentence.doc_id for sentence in read_json_lines(path, Reading())] == ["a", "7", None, None]


def test_sentences_have_line_numbers(write):
    path = write(["\n \t\n", {"tokens": ["a", "b"], "tags": ["O", "O"]}, "\r\n", {"tokens": ["c"], "tags": ["O"]}])
    sentences = list(read_json_lines(path, Reading()))
    assert [sentence.line for sentence in sentences] == [3, 5]
    assert sentences[0].place(1) == f"{path}:3"


def test_rows_may_be_empty(write):
    assert read(write([{"tokens": [], "tags": []}])) == [([], [])]


LINE = '{"tokens": ["Ann", "left"], "tags": ["B-PER", "O"]}'
NEXT = '{"tokens": ["Rain"], "tags": ["O"]}'


@pytest.mark.parametrize(
    "content",
    [
        f"{LINE}\n{NEXT}\n",
        f"{LINE}\r\n\r\n{NEXT}",
        f"\ufeff{LINE}\n\ufeff{NEXT}\n\ufeff\n",
        f" {LINE} \n\t{NEXT}\n",
        f"{LINE}\n{NEXT}\n".replace("Ann", "\ufeffAnn").replace("B-PER", "B-PER\ufeff"),
        f"{LINE}\n{NEXT}\n".replace("Rain", "Ra\\ufeffin"),
        gzip.compress(f"{LINE}\n{NEXT}\n".encode()),
    ],
    ids=["plain", "crlf", "marks", "indented", "marks inside", "escaped mark", "gzip"],
)
def test_variants_of_a_file_read_the_same(write, content):
    assert read(write(content)) == EXPECTED


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u2028", "\u0085", "\x0b", "\x1c", "\n", " "])
def test_tokens_may_contain_any_whitespace(write, blank):
    token = f"1{blank}000"
    assert read(write([{"tokens": [token], "tags": ["O"]}])) == [([token], ["O"])]
    if blank.isprintable() or blank > "\x7f":
        assert read(write(f'{{"tokens": ["{token}"], "tags": ["O"]}}\n')) == [([token], ["O"])]


def test_sentences_are_read_lazily(write):
    sentences = read_json_lines(write([{"tokens": ["a"], "tags": ["O"]}, "{"]), Reading())
    assert next(sentences).tokens == ["a"]
    with pytest.raises(DataError):
        next(sentences)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), min_size=1)


@given(
    sentences=st.lists(st.lists(st.tuples(TEXTS, TEXTS)), min_size=1),
    escaped=st.booleans(),
    marks=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_json_lines_round_trip(tmp_path_factory, sentences, escaped, marks, newline):
    rows = [{"tokens": [t for t, _ in pairs], "ner_tags": [t for _, t in pairs]} for pairs in sentences]
    lines = [json.dumps(row, ensure_ascii=escaped) for row in rows]
    path = tmp_path_factory.mktemp("round") / "trip.jsonl"
    path.write_bytes(newline.join(("\ufeff" if marks else "") + line for line in lines).encode())
    assert read(path) == [(row["tokens"], row["ner_tags"]) for row in rows]


GOOD = {"tokens": ["Ann"], "tags": ["O"]}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", ":1: the file holds no sentence"),
        ("\n\ufeff\n", ":1: the file holds no sentence"),
        ([GOOD, '{"tokens": ["a"]\n'], ":2: the line is not JSON (expecting ',' delimiter, column 17)"),
        ("a O\n", ":1: the line is not JSON (expecting value, column 1)"),
        ('{ \n "tokens": [}\n', ":2: the file is not JSON (expecting value, column 13)"),
        ('{"tokens":\n []}\n', ":1: the line is not JSON (expecting value, column 11)"),
        ([json.dumps(GOOD) + json.dumps(GOOD)], ":1: the line is not JSON (extra data, column 35)"),
        ("[" * 100_000 + "\n", ":1: the file is not JSON (nested too deep)"),
        ('{"a": ' + "[" * 100_000 + "\n", ":1: the line is not JSON (nested too deep)"),
        ("[]\n", ":1: the file holds no sentence"),
        (f"[{json.dumps(GOOD)},\n", ":2: the file is not JSON (expecting value, column 1)"),
        (f"\n[{json.dumps(GOOD)}\n{json.dumps(GOOD)}]", ":3: the file is not JSON (expecting ',' or ']', column 1)"),
        (f"[{json.dumps(GOOD)}\n]]", ":2: the file is not JSON (extra data, column 2)"),
        (f"[\n{json.dumps(GOOD)},\n 3]", ", record 2: holds a number"),
        (f"[\n{json.dumps(GOOD)},\n {{}}]", ", record 2: no words under 'tokens' or 'words'"),
        ([GOOD, ["Ann"]], ":2: the line holds a list"),
        ([GOOD, "3\n"], ":2: the line holds a number"),
        (["null\n"], ":1: the line holds null"),
        (['"a"\n'], ":1: the line holds a string"),
        ([{"tags": []}], ":1: no words under 'tokens' or 'words'"),
        ([GOOD, {"tokens": ["a"]}], ":2: no tags under 'ner_tags' or 'tags' or 'labels'"),
        ([{"tokens": "Ann", "tags": ["O"]}], ":1: 'tokens' holds a string"),
        ([{"tokens": None, "tags": ["O"]}], ":1: 'tokens' holds null"),
        ([{"tokens": {}, "tags": ["O"]}], ":1: 'tokens' holds an object"),
        ([{"tokens": ["a", 1], "tags": []}], ":1: 'tokens' holds a number at index 1"),
        ([{"tokens": [[0, 3]], "tags": []}], ":1: 'tokens' holds a list at index 0"),
        ([{"tokens": ["a"], "tags": [0]}], ":1: 'tags' holds numbers without names"),
        ([{"tokens": ["a"], "tags": [True]}], ":1: 'tags' holds true or false at index 0"),
        ([{"tokens": ["a", "b"], "tags": ["O", 1]}], ":1: 'tags' holds a number at index 1"),
        ([{"tokens": ["a", "b"], "tags": ["O"]}], ":1: 2 tokens but 1 tags"),
        ([{"tokens": ["a", ""], "tags": []}], ":1: 'tokens' holds an empty string at index 1"),
        ([{"tokens": ["\ufeff"], "tags": []}], ":1: 'tokens' holds an empty string at index 0"),
        ([{"tokens": ["a"], "tags": [""]}], ":1: 'tags' holds an empty string at index 0"),
        (
            ['{"tokens": ["\\ud83d"], "tags": ["O"]}\n'],
            ":1: 'tokens' holds a lone surrogate, U+D83D, which is not a character",
        ),
        ([GOOD | {"pos": ["N", "N"]}], ":1: 1 tokens but 2 parts of speech under 'pos'"),
        ([GOOD | {"pos_tags": [3]}], ":1: 'pos_tags' holds numbers without names"),
        ([GOOD | {"doc_id": 1.5}], ":1: 'doc_id' holds a number"),
        ([GOOD | {"doc_id": True}], ":1: 'doc_id' holds true or false"),
        (b'{"tokens": ["na\xefve"]}', ":1: byte 0xef is not valid UTF-8"),
    ],
)
def test_invalid_files_raise_with_file_and_line(write, lines, message):
    path = write(lines)
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"token_column": "x"}, ":1: no words under 'x'"),
        ({"tag_column": "0"}, ":1: no tags under '0'"),
        ({"pos_column": "x"}, ":1: no parts of speech under 'x'"),
    ],
)
def test_a_missing_named_key_raises(write, told, message):
    path = write([GOOD])
    with pytest.raises(DataError) as error:
        read(path, **told)
    assert str(error.value).startswith(f"{path}{message}")


def test_overlong_numbers_raise_a_data_error(write):
    path = write('{"id": ' + "9" * 10_000 + "}\n")
    with pytest.raises(DataError, match=r"some\.jsonl:1: the line is not JSON \(exceeds the limit"):
        read(path)


def test_records_are_returned_with_line_numbers(write, tmp_path):
    assert list(records(write(["\n", {"a": 1}, "\n", {"b": [2]}]))) == [
        (f"{tmp_path}/some.jsonl:", 2, {"a": 1}),
        (f"{tmp_path}/some.jsonl:", 4, {"b": [2]}),
    ]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("around", ["{}", " \n{}\n\n", f"{chr(0xFEFF)}{{}}"])
def test_arrays_are_read_as_their_objects(write, tmp_path, indent, around):
    objects = [{"tokens": tokens, "tags": tags, "x": "],[}"} for tokens, tags in EXPECTED]
    path = write(around.format(json.dumps(objects, indent=indent)))
    assert read(path) == EXPECTED
    assert [(found.source, found.number) for found in records(path)] == [
        (f"{path}, record ", 1),
        (f"{path}, record ", 2),
    ]


def test_objects_may_have_several_lines(write):
    objects = [{"tokens": tokens, "tags": tags} for tokens, tags in EXPECTED]
    assert read(write("\n".join(json.dumps(found, indent=1) for found in objects))) == EXPECTED


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"tokens": ["Ann"], "ner_tags": ["O"]}', "jsonl"),
        ('\ufeff {"words": [], "tags": []}\r\n', "jsonl"),
        ('{"text": "Ann", "tokens": ["Ann"], "labels": ["O"]}', "jsonl"),
        ('{"text": "", "tokens": [], "tags": []}', "jsonl"),
        ('{"text": ["Ann"]}', "jsonl"),
        ("{}", "jsonl"),
        ('{"text": "Ann", "label": [[0, 3, "PER"]]}', "spans"),
        ('{"text": "Ann", "spans": [], "tokens": [{"text": "Ann", "start": 0, "end": 3}]}', "spans"),
        ('{"text": "Ann", "spans": [], "tokens": [[0, 3]]}', "spans"),
        ('{"text": "", "spans": [], "tokens": []}', "spans"),
        ('{"text": "Ann"}', "spans"),
        ("{ O", None),
        ("{", None),
        ("{}\tO", None),
        ("Ann B-PER", None),
        ('["Ann"]', None),
        ("3", None),
        ('{"a":' * 100_000, None),
        ("", None),
    ],
)
def test_the_kind_of_records_is_recognised_from_the_first_line(line, kind):
    assert sniff_json(line) == kind


def test_the_kind_of_records_is_recognised_from_a_named_key():
    told = Reading(token_column="body")
    assert sniff_json('{"body": "Ann", "ents": []}', told) == "spans"
    assert sniff_json('{"body": ["Ann"], "text": "Ann"}', told) == "jsonl"
    assert sniff_json('{"text": "Ann"}', told) == "spans"
