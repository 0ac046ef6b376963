"""Broken files of every format raise a one-sentence error with the place, and leave the files unchanged.

`DIR` in a message is the folder of the files, `…` what another library says. Where a case names no source, its
only file is loaded, or the folder of its files.
"""

import gzip
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from conftest import REPOSITORY
from datasets import Dataset, DatasetDict
from processes import run_python
from pyarrow import feather, parquet

from hf_xorner.corpora import DataError, load_corpus

# --- Contents of files ------------------------------------------------------------------------------------------------

GOOD = "Ann\tB-PER\nleft\tO\n"
ROWS = {"tokens": [["Ann", "left"]], "tags": [["B-PER", "O"]]}
COLUMNS_OF_ONTONOTES = "a 0 {} {} {} * - - - - {} -\n"


def in_parquet(**columns) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(ROWS | columns), sink)
    return sink.getvalue().to_pybytes()


def in_arrow(**columns) -> bytes:
    sink = pa.BufferOutputStream()
    feather.write_feather(pa.table(ROWS | columns), sink, compression="uncompressed")
    return sink.getvalue().to_pybytes()


def saved(damage: Callable[[Path], object] = lambda folder: None, **columns) -> Callable[[Path], None]:
    """Writes a folder as `save_to_disk` does, and damages its training split."""

    def write(folder: Path) -> None:
        DatasetDict({"train": Dataset.from_dict(ROWS | columns)}).save_to_disk(folder)
        damage(folder / "train")

    return write


def pipe(path: Path) -> None:
    os.mkfifo(path)


def cut_rows(split: Path) -> None:
    for path in split.glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:-100])


def ontonotes(*words: tuple[str, str]) -> str:
    """A document of CoNLL-2012 with one sentence of words and their cells of names."""
    lines = [COLUMNS_OF_ONTONOTES.format(number, word, "NN", cell) for number, (word, cell) in enumerate(words)]
    return f"#begin document (a); part 000\n{''.join(lines)}\n#end document\n"


def objects(*records: object) -> str:
    """A JSON object a line; a string stands for itself."""
    return "".join(record if isinstance(record, str) else f"{json.dumps(record)}\n" for record in records)


def words(tokens: object, tags: object, **more: object) -> dict[str, object]:
    return {"tokens": tokens, "tags": tags, **more}


def text(text: object, *spans: object, **more: object) -> dict[str, object]:
    return {"text": text, "spans": list(spans), **more}


WORDS = words(["Ann"], ["B-PER"])
TEXT = text("Ann left .", [0, 3, "PER"])
ZIPPED = gzip.compress((GOOD * 500).encode())

# --- The cases --------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A source to be refused, and the expected message."""

    files: Mapping[str, str | bytes | Callable[[Path], None]]
    message: str
    options: Mapping[str, object] = {}
    source: str | None = None


NO_UTF8 = "is not valid UTF-8"
NOT_IN_TRAIN = "has no example in the training split"

COLUMNS = {
    "too few": Case({"x.conll": "Ann\tB-PER\nleft\n"}, "DIR/x.conll:2: 1 column where the first token line has 2"),
    "too many": Case(
        {"x.conll": "Ann B-PER\n\nshe left O\n"}, "DIR/x.conll:3: 3 columns where the first token line has 2"
    ),
    "blanks among TABs": Case(
        {"x.tsv": "Ann\tB-PER\nleft O\n"}, "DIR/x.tsv:2: 1 column where the first token line has 2"
    ),
    "after documents": Case(
        {"x.conll": "-DOCSTART- -X- O\n\nAnn NNP B-PER\n-DOCSTART- -X- O\n\nleft VBD\n"},
        "DIR/x.conll:6: 2 columns where the first token line has 3",
    ),
    "after marks and ends of lines": Case(
        {"x.conll": "\ufeffAnn O\r\n\ufeff\r\n \t\r\nleft\r\n"},
        "DIR/x.conll:4: 1 column where the first token line has 2",
    ),
    "far into a file": Case(
        {"x.conll": "left O\n\n" * 100_000 + "left\n"}, "DIR/x.conll:200001: 1 column where the first token line has 2"
    ),
    "one column": Case({"x.conll": "\nAnn,B-PER\n"}, "DIR/x.conll:2: one column only"),
    "no token": Case({"x.tsv": GOOD + "\tO\n"}, "DIR/x.tsv:3: the token is empty"),
    "no tag": Case({"x.tsv": GOOD + "\nhome\t\n"}, "DIR/x.tsv:4: the tag is empty"),
    "nothing": Case({"x.conll": ""}, "DIR/x.conll:1: the file holds no sentence"),
    "blank lines": Case({"x.conll": "\r\n \t\n\ufeff\n"}, "DIR/x.conll:1: the file holds no sentence"),
    "documents only": Case(
        {"x.conll": "-DOCSTART- -X- O\n\n-DOCSTART- -X- O\n"}, "DIR/x.conll:1: the file holds no sentence"
    ),
    "comments only": Case({"x.conll": "% a\n% b\n"}, "DIR/x.conll:1: the file holds no sentence", {"comments": "%"}),
    "a comment inside a sentence": Case(
        {"x.conll": "Ann O\n%\nleft O\n"}, "DIR/x.conll:2: a comment inside a sentence", {"comments": "%"}
    ),
    "a comment that nobody announced": Case(
        {"x.conll": "Ann O\n# she did\nleft O\n"}, "DIR/x.conll:2: 3 columns where the first token line has 2"
    ),
    "Latin-1 among UTF-8": Case(
        {"x.conll": "Zoë\tB-PER\nñ\tO\n\n".encode() + b"na\xefve\tO\n"}, f"DIR/x.conll:4: byte 0xef {NO_UTF8}"
    ),
    "an alphabet of its own": Case(
        {"x.conll": "Анна\tB-PER\nушла\tO\n\n".encode("cp1251") * 9},
        f"DIR/x.conll:1: byte 0xc0 {NO_UTF8}, and the text",
    ),
    "one Chinese character a line": Case(
        {"x.conll": "安\tB-PER\n娜\tI-PER\n走\tO\n\n".encode("gbk") * 9}, f"DIR/x.conll:1: byte 0xb0 {NO_UTF8}, and the"
    ),
    "an encoding that it is not in": Case(
        {"x.conll": GOOD.encode() + b"\nna\x81ve\tO\n"},
        "DIR/x.conll:4: byte 0x81 is not valid cp1252; name another encoding",
        {"encoding": "cp1252"},
    ),
    "UTF-16 that it is not": Case(
        {"x.conll": b"Ann\tO\n"}, "DIR/x.conll: the file is not valid utf-16; name another", {"encoding": "utf-16"}
    ),
    "half a character at the end": Case(
        {"x.conll": GOOD.encode() + b"\xe2\x82"}, f"DIR/x.conll:3: byte 0xe2 {NO_UTF8}"
    ),
    "words for tags": Case(
        {"x.conll": "".join(f"a w{number}\n" for number in range(10_001))},
        "DIR/x.conll:1: more than 10,000 different tags by now",
    ),
}

GZIP = {
    "cut short": Case(
        {"x.conll.gz": ZIPPED[:-9]},
        "DIR/x.conll.gz: the gzip file is damaged (Compressed file ended before the end-of-stream marker was reached)",
    ),
    "a head and no more": Case(
        {"x.conll.gz": ZIPPED[:2]},
        "DIR/x.conll.gz: the gzip file is damaged (Compressed file ended before the end-of-stream marker was reached)",
    ),
    "changed inside": Case(
        {"x.conll.gz": ZIPPED[:15] + b"\xff\xff\xff" + ZIPPED[18:]}, "DIR/x.conll.gz: the gzip file is damaged "
    ),
    "followed by something else": Case(
        {"x.conll.gz": ZIPPED + b"else"}, "DIR/x.conll.gz: the gzip file is damaged (Not a gzipped file (b'el'))"
    ),
    "cut short in a line that is no UTF-8": Case(
        {"x.conll.gz": gzip.compress(b"a O\n\xff" + bytes(range(128, 256)) * 2000, mtime=0)[:-8]},
        "DIR/x.conll.gz: the gzip file is damaged (Compressed file ended before the end-of-stream marker was reached)",
    ),
    "nothing inside": Case({"x.conll.gz": gzip.compress(b"")}, "DIR/x.conll.gz:1: the file holds no sentence"),
    "a ragged line inside": Case(
        {"x.conll.gz": gzip.compress(b"Ann O\nleft\n")}, "DIR/x.conll.gz:2: 1 column where the first token line has 2"
    ),
    "objects cut short": Case(
        {"x.jsonl.gz": gzip.compress(objects(WORDS, '{"tokens": ["a"').encode())},
        "DIR/x.jsonl.gz:2: the line is not JSON (expecting ',' delimiter, column 16)",
    ),
}

TAGS = {
    "unknown prefix": Case({"x.conll": "Ann B-PER\nleft X-PER\n"}, "DIR/x.conll:2: unknown tag 'X-PER'"),
    "a prefix of another scheme": Case(
        {"x.conll": "Ann B-PER\nLee E-PER\n\nleft U-PER\n"}, "DIR/x.conll:4: unknown tag 'U-PER'"
    ),
    "a prefix alone": Case(
        {"x.jsonl": objects(WORDS, words(["left", "home"], ["O", "B-"]))}, "DIR/x.jsonl:2: unknown tag 'B-'"
    ),
    "zero for O": Case({"x.conll": "Ann B-PER\nleft 0\n"}, "DIR/x.conll:2: unknown tag '0'"),
    "a heading of another kind": Case({"x.tsv": f"Wort\tArt\n\n{GOOD}"}, "DIR/x.tsv:1: unknown tag 'Art'"),
    "not of the scheme that was told": Case(
        {"x.conll": "Ann B-PER\nLee I-PER\n"}, "DIR/x.conll:2: unknown tag 'I-PER'", {"scheme": "bmes"}
    ),
    "a type only in test": Case(
        {"train.conll": GOOD, "test.conll": f"{GOOD}\nin\tO\nOslo\tI-LOC\n"},
        f"DIR/test.conll:5: the tag 'I-LOC' {NOT_IN_TRAIN}",
    ),
    "a plain tag only in dev": Case(
        {"train.conll": "Ann NNP\n", "dev.jsonl": objects(words(["Ann"], ["NNP"]), words(["left"], ["VBD"]))},
        f"DIR/dev.jsonl:2: the tag 'VBD' {NOT_IN_TRAIN}",
    ),
    "entities only in test": Case(
        {"train.conll": "she O\n", "test.conll": "Ann B-PER\n"}, f"DIR/test.conll:1: the tag 'B-PER' {NOT_IN_TRAIN}"
    ),
}

STRICT = {
    "I- without its B-": Case(
        {"x.conll": "Ann B-PER\nleft O\nOslo I-LOC\n\nLee I-PER\n"},
        "DIR/x.conll:3: 2 tags that continued no entity began one",
        {"strict": True},
    ),
    "a change of type": Case(
        {"x.jsonl": objects(words(["Ann", "Lee"], ["B-PER", "I-LOC"]))},
        "DIR/x.jsonl:1: 1 tags that continued no entity began one",
        {"strict": True},
    ),
    "an entity without its end": Case(
        {"x.conll": "Ann B-PER\nLee E-PER\n\nBo B-PER\nleft O\n"},
        "DIR/x.conll:5: 1 entities without their last tag were closed",
        {"strict": True},
    ),
    "an end of a sentence inside an entity": Case(
        {"x.conll": "Ann B-PER\nLee L-PER\n\nBo B-PER\n\nleft O\n"},
        "DIR/x.conll:4: 1 entities without their last tag were closed",
        {"strict": True},
    ),
    "a span that cuts a word": Case(
        {"x.jsonl": objects(TEXT, text("Ann's home", [0, 2, "PER"]))},
        'DIR/x.jsonl:2, span [0, 2, "PER"]: 1 spans that cut a word were widened to whole words',
        {"strict": True},
    ),
    "a record that was rejected": Case(
        {"x.jsonl": objects(TEXT, text("no", answer="reject"))},
        "DIR/x.jsonl:2: 1 records that their annotator rejected or ignored were left out",
        {"strict": True},
    ),
    "in the split that comes last": Case(
        {"train.conll": GOOD, "dev.conll": GOOD, "test.conll": "she O\nLee I-PER\n"},
        "DIR/test.conll:2: 1 tags that continued no entity began one",
        {"strict": True},
    ),
}

JSON_LINES = {
    "no JSON": Case(
        {"x.jsonl": objects(WORDS, '{"tokens": ["Ann"]\n')},
        "DIR/x.jsonl:2: the line is not JSON (expecting ',' delimiter, column 19)",
    ),
    "apostrophes": Case(
        {"x.jsonl": "{'tokens': ['Ann']}\n"},
        "DIR/x.jsonl:1: the line is not JSON (expecting property name enclosed in double quotes, column 2)",
    ),
    "two objects a line": Case(
        {"x.jsonl": json.dumps(WORDS) + json.dumps(WORDS)}, "DIR/x.jsonl:1: the line is not JSON (extra data"
    ),
    "an array that ends too early": Case(
        {"train.json": f"[\n{json.dumps(WORDS)},\n{json.dumps(WORDS)}\n"},
        "DIR/train.json:4: the file is not JSON (expecting ',' or ']', column 1)",
    ),
    "an array of strings": Case({"x.json": '["Ann"]'}, "DIR/x.json, record 1: holds a string; write an object"),
    "an object over many lines, unfinished": Case(
        {"x.json": json.dumps(WORDS, indent=1)[:-2]},
        "DIR/x.json:7: the file is not JSON (expecting ',' delimiter, column 3)",
    ),
    "a list": Case({"x.jsonl": objects(WORDS, ["Ann"])}, "DIR/x.jsonl:2: the line holds a list"),
    "nothing": Case({"x.jsonl": "\n\ufeff"}, "DIR/x.jsonl:1: the file holds no sentence"),
    "no words": Case({"x.jsonl": objects({"tags": ["O"]})}, "DIR/x.jsonl:1: no words under 'tokens' or 'words'"),
    "no tags": Case(
        {"x.jsonl": objects(WORDS, {"tokens": ["left"]})},
        "DIR/x.jsonl:2: no tags under 'ner_tags' or 'tags' or 'labels'",
    ),
    "no key of that name": Case(
        {"x.jsonl": objects(WORDS)}, "DIR/x.jsonl:1: no tags under 'entity'", {"tag_column": "entity"}
    ),
    "unequal lists": Case(
        {"x.jsonl": objects(WORDS, words(["Ann", "left"], ["B-PER"]))}, "DIR/x.jsonl:2: 2 tokens but 1 tags"
    ),
    "unequal parts of speech": Case(
        {"x.jsonl": objects(WORDS | {"pos": ["NNP", "VBD"]})},
        "DIR/x.jsonl:1: 1 tokens but 2 parts of speech under 'pos'",
    ),
    "an empty word": Case(
        {"x.jsonl": objects(WORDS, words(["left", ""], ["O", "O"]))},
        "DIR/x.jsonl:2: 'tokens' holds an empty string at index 1",
    ),
    "an empty tag": Case(
        {"x.jsonl": objects(words(["left"], [""]))}, "DIR/x.jsonl:1: 'tags' holds an empty string at index 0"
    ),
    "null among words": Case(
        {"x.jsonl": objects(words(["Ann", None], ["O", "O"]))}, "DIR/x.jsonl:1: 'tokens' holds null at index 1"
    ),
    "null for words": Case({"x.jsonl": objects(words(None, ["O"]))}, "DIR/x.jsonl:1: 'tokens' holds null"),
    "one string for words": Case(
        {"x.jsonl": objects(words("Ann left", ["O", "O"]))}, "DIR/x.jsonl:1: 'tokens' holds a string"
    ),
    "numbers without names": Case(
        {"x.jsonl": objects(words(["Ann", "left"], [1, 0]))}, "DIR/x.jsonl:1: 'tags' holds numbers without names"
    ),
    "half a character": Case(
        {"x.jsonl": objects(words(["a\ud83d"], ["O"]))},
        "DIR/x.jsonl:1: 'tokens' holds a lone surrogate, U+D83D, which is not a character",
    ),
    "a document without a name": Case(
        {"x.jsonl": objects(WORDS | {"doc_id": ["a"]})}, "DIR/x.jsonl:1: 'doc_id' holds a list"
    ),
    "Latin-1": Case(
        {"x.jsonl": objects(WORDS).encode() + b'{"tokens": ["na\xefve"], "tags": ["O"]}'},
        f"DIR/x.jsonl:2: byte 0xef {NO_UTF8}",
    ),
}

SPANS = {
    "no text": Case({"x.jsonl": objects(TEXT, {"spans": []})}, "DIR/x.jsonl:2: no text under 'text'"),
    "a text of many parts": Case({"x.jsonl": objects(TEXT, text(["Ann"]))}, "DIR/x.jsonl:2: 'text' holds a list"),
    "no spans anywhere": Case(
        {"x.jsonl": objects({"text": "Ann"}, {"text": "left"})},
        "DIR/x.jsonl:1: no record has spans under 'spans' or 'entities' or 'labels' or 'label' or 'ents'",
    ),
    "nothing but rejected records": Case(
        {"x.jsonl": objects(TEXT | {"answer": "ignore"})}, "DIR/x.jsonl:1: every record is rejected, ignored or not"
    ),
    "beyond the end": Case(
        {"x.jsonl": objects(text("Ann", [0, 4, "PER"]))},
        'DIR/x.jsonl:1: the span [0, 4, "PER"] reaches outside of the text, which has 3 characters',
    ),
    "before the beginning": Case(
        {"x.jsonl": objects(text("Ann", [-3, 3, "PER"]))},
        'DIR/x.jsonl:1: the span [-3, 3, "PER"] reaches outside of the text, which has 3 characters',
    ),
    "empty": Case({"x.jsonl": objects(text("Ann", [1, 1, "PER"]))}, 'DIR/x.jsonl:1: the span [1, 1, "PER"] is empty'),
    "backwards": Case(
        {"x.jsonl": objects(text("Ann", [3, 0, "PER"]))}, 'DIR/x.jsonl:1: the span [3, 0, "PER"] ends before it starts'
    ),
    "only blanks": Case(
        {"x.jsonl": objects(text("Ann  left", [3, 5, "PER"]))}, 'DIR/x.jsonl:1: the span [3, 5, "PER"] covers no word'
    ),
    "overlapping": Case(
        {"x.jsonl": objects(TEXT, text("Ann Lee left", [0, 7, "PER"], [4, 7, "LOC"]))},
        'DIR/x.jsonl:2, span [4, 7, "LOC"]: 1 spans that overlap another were left out',
        {"strict": True},
    ),
    "in one word": Case(
        {"x.jsonl": objects(text("Annlee left", [0, 3, "PER"], [3, 6, "LOC"]))},
        'DIR/x.jsonl:1, span [0, 3, "PER"]: 1 spans that cut a word were widened',
        {"strict": True},
    ),
    "no label": Case(
        {"x.jsonl": objects(text("Ann", {"start": 0, "end": 3}))},
        'DIR/x.jsonl:1: the span {"start": 0, "end": 3} has no string for its label',
    ),
    "no numbers": Case(
        {"x.jsonl": objects(text("Ann", ["0", "3", "PER"]))},
        'DIR/x.jsonl:1: the span ["0", "3", "PER"] has no whole numbers for its start and end',
    ),
    "no span at all": Case(
        {"x.jsonl": objects(text("Ann", "PER"))},
        'DIR/x.jsonl:1: the span "PER" is neither [start, end, label] nor an object of these',
    ),
    "a word beyond the end": Case(
        {"x.jsonl": objects(text("Ann", tokens=[[0, 3], [4, 8]]))},
        "DIR/x.jsonl:1: the word [4, 8] at index 1 of 'tokens' reaches outside of the text, which has 3 characters",
    ),
    "words out of order": Case(
        {"x.jsonl": objects(text("Ann left", tokens=[[4, 8], [0, 3]]))},
        "DIR/x.jsonl:1: the word [0, 3] at index 1 of 'tokens' starts before the last one ends",
    ),
    "parts of speech without words": Case(
        {"x.jsonl": objects(TEXT | {"upos": ["X"]})},
        "DIR/x.jsonl:1: no words with offsets under 'tokens', which parts of speech need",
        {"pos_column": "upos"},
    ),
}

CONLL_2012 = {
    "no words": Case(
        {"x.gold_conll": ontonotes(("[WORD]", "(PERSON)"))},
        "DIR/x.gold_conll:2: the words have been taken out of this file",
    ),
    "too few columns": Case(
        {"x.gold_conll": ontonotes(("Ann", "(PERSON)")).replace(" * - - - - (PERSON) -", "")},
        "DIR/x.gold_conll:2: 5 columns where CoNLL-2012 has 11 or more",
    ),
    "no sentence": Case(
        {"x.gold_conll": "#begin document (a); part 000\n#end document\n"},
        "DIR/x.gold_conll:1: the file holds no sentence",
    ),
    "never closed": Case(
        {"x.gold_conll": ontonotes(("Ann", "(PERSON*"), ("left", "*"))},
        "DIR/x.gold_conll:2: the entity of type PERSON is still open at the end of its sentence",
    ),
    "never opened": Case(
        {"x.gold_conll": ontonotes(("Ann", "*"), ("left", "*)"))},
        "DIR/x.gold_conll:3: '*)' closes an entity where none is open",
    ),
    "one in another": Case(
        {"x.gold_conll": ontonotes(("Ann", "(PERSON*"), ("Lee", "(ORG*"), ("left", "*)"))},
        "DIR/x.gold_conll:3: the entity '(ORG*' begins inside another of type PERSON, open since line 2",
    ),
    "no bracket": Case({"x.gold_conll": ontonotes(("Ann", "B-PERSON"))}, "DIR/x.gold_conll:2: unknown cell 'B-PERSON'"),
    "an unknown line": Case(
        {"x.gold_conll": f"{ontonotes(('Ann', '*'))}# the end\n"}, "DIR/x.gold_conll:5: unknown line '# the end'"
    ),
    "columns by name": Case(
        {"x.gold_conll": ontonotes(("Ann", "*"))},
        "tag_column='ner' is not a number; CoNLL-2012 has columns without names, counted from 0.",
        {"tag_column": "ner"},
    ),
    "Latin-1": Case(
        {"x.gold_conll": ontonotes(("Zoë", "*")).encode() * 2 + ontonotes(("Zoë", "*")).encode("latin-1")},
        f"DIR/x.gold_conll:10: byte 0xeb {NO_UTF8}",
    ),
}

TABLES = {
    "another kind of file": Case({"x.parquet": GOOD}, "DIR/x.parquet: the file is not a valid Parquet or Arrow file "),
    "cut short": Case(
        {"x.parquet": in_parquet()[:-9]}, "DIR/x.parquet: the file is not a valid Parquet or Arrow file "
    ),
    "Arrow cut short": Case(
        {"x.arrow": in_arrow()[:-9]}, "DIR/x.arrow: the file is not a valid Parquet or Arrow file "
    ),
    "no bytes": Case({"x.arrow": b""}, "DIR/x.arrow: the file is not a valid Parquet or Arrow file "),
    "compressed": Case(
        {"x.parquet": gzip.compress(in_parquet())}, "DIR/x.parquet: the file is not a valid Parquet or Arrow file "
    ),
    "other columns": Case(
        {"x.parquet": in_parquet(ner=ROWS["tags"]).replace(b"tags", b"ents")},
        "DIR/x.parquet: expected tags in a column ner_tags or tags or labels, found the columns tokens, ents, ner",
    ),
    "no column of that name": Case(
        {"x.parquet": in_parquet()},
        "DIR/x.parquet: expected words in a column form, found the columns tokens, tags",
        {"token_column": "form"},
    ),
    "numbers without names": Case(
        {"x.parquet": in_parquet(tags=[[1, 0]])}, "DIR/x.parquet: the column tags holds numbers without names"
    ),
    "unequal lists": Case({"x.parquet": in_parquet(tags=[["B-PER"]])}, "DIR/x.parquet, row 0: 2 tokens but 1 tags"),
    "null for words": Case(
        {"x.parquet": in_parquet(tokens=pa.array([None], pa.list_(pa.string())))},
        "DIR/x.parquet, row 0: the column tokens holds nothing",
    ),
    "null among words": Case(
        {"x.arrow": in_arrow(tokens=[["Ann", None]])}, "DIR/x.arrow, row 0: the column tokens holds nothing at index 1"
    ),
    "an empty word": Case(
        {"x.arrow": in_arrow(tokens=[["", "left"]])},
        "DIR/x.arrow, row 0: the column tokens holds an empty string at index 0",
    ),
    "texts instead of words": Case(
        {"x.arrow": in_arrow(tokens=["Ann left"])}, "DIR/x.arrow: the column tokens is a Value('string')"
    ),
    "unknown prefix": Case({"x.arrow": in_arrow(tags=[["B-PER", "X-PER"]])}, "DIR/x.arrow, row 0: unknown tag 'X-PER'"),
    "a tag only in test": Case(
        {"train.parquet": in_parquet(), "test.parquet": in_parquet(tags=[["O", "B-LOC"]])},
        f"DIR/test.parquet, row 0: the tag 'B-LOC' {NOT_IN_TRAIN}",
    ),
    "a part is missing": Case(
        {f"data/train-0000{part}-of-00003.parquet": in_parquet() for part in (0, 2)},
        "DIR/data/train-*-of-00003.parquet: part 00001 is missing",
    ),
    "saved, unequal lists": Case({"saved": saved(tags=[["B-PER"]])}, "DIR/saved, train, row 0: 2 tokens but 1 tags"),
    "saved, no state": Case(
        {"saved": saved(lambda train: (train / "state.json").write_text("{}"))},
        "DIR/saved: the folder is not a valid dataset of save_to_disk (no '_data_files')",
    ),
    "saved, rows cut short": Case(
        {"saved": saved(cut_rows)}, "DIR/saved: the folder is not a valid dataset of save_to_disk "
    ),
    "saved, strict": Case(
        {"saved": saved(tags=[["O", "I-PER"]])},
        "DIR/saved, train, row 0: 1 tags that continued no entity began one",
        {"strict": True, "scheme": "iob2"},
    ),
}

SOURCES = {
    "nothing there": Case({}, "DIR/x.conll: no such file or folder", source="x.conll"),
    "a folder instead of a file": Case(
        {"x.conll/y": GOOD}, "DIR/x.conll: no file name tells its split", source="x.conll"
    ),
    "no names of splits": Case({"one.conll": GOOD, "two.conll": GOOD}, "DIR: no file name tells its split"),
    "a pipe": Case({"x.conll": pipe}, "DIR/x.conll: a pipe or device, which cannot be read twice"),
    "an empty folder": Case({}, "DIR: no file name tells its split", source=""),
    "two files for a split": Case(
        {"train.conll": GOOD, "dev.conll": GOOD, "valid.jsonl": objects(WORDS)},
        "DIR: dev.conll and valid.jsonl all look like the validation split",
    ),
    "two folders for a split": Case(
        {f"{name}/train-00000-of-00001.parquet": in_parquet() for name in ("first", "second")},
        "DIR: first/train.parquet and second/train.parquet all look like the train split",
    ),
    "two folders of documents for a split": Case(
        {f"{name}/nw/a.gold_conll": ontonotes(("Ann", "(PERSON)")) for name in ("test", "conll-2012-test")},
        "DIR: conll-2012-test and test all look like the test split",
    ),
    "a broken file of good ones": Case(
        {"train.conll": GOOD, "dev.conll": GOOD, "test.conll": "left\n"}, "DIR/test.conll:1: one column only"
    ),
    "a name that is too long": Case({}, f"DIR/{'x' * 300}: cannot be read (File name too long)", source="x" * 300),
}

OPTIONS = {
    "format": Case({"x.conll": GOOD}, "format='xml' is unknown", {"format": "xml"}),
    "scheme": Case({"x.conll": GOOD}, "scheme='BIO' is unknown", {"scheme": "BIO"}),
    "separator": Case({"x.conll": GOOD}, "separator='\\t' is unknown", {"separator": "\t"}),
    "comments": Case({"x.conll": GOOD}, "comments='' begins no line", {"comments": ""}),
    "a column that is not there": Case(
        {"x.conll": GOOD}, "DIR/x.conll:1: tag_column=2, but the line has 2 columns", {"tag_column": 2}
    ),
    "a column before the first": Case(
        {"x.conll": GOOD}, "DIR/x.conll:1: pos_column=-3, but the line has 2 columns", {"pos_column": -3}
    ),
    "a name for a column": Case(
        {"x.conll": GOOD}, "DIR/x.conll:1: token_column=word, but the line has 2 columns", {"token_column": "word"}
    ),
    "one column for two": Case(
        {"x.conll": GOOD}, "DIR/x.conll:1: column 1 is given for both tokens and tags", {"token_column": 1}
    ),
    "the wrong separator": Case(
        {"x.conll": GOOD.replace("\t", " ")}, "DIR/x.conll:1: one column only", {"separator": "tab"}
    ),
    "JSON that is none": Case(
        {"x.conll": GOOD}, "DIR/x.conll:1: the line is not JSON (expecting value, column 1)", {"format": "jsonl"}
    ),
    "CoNLL-2012 that is none": Case(
        {"x.conll": GOOD}, "DIR/x.conll:1: 2 columns where CoNLL-2012 has 11 or more", {"format": "conll2012"}
    ),
    "spans that are none": Case(
        {"x.jsonl": objects(WORDS)}, "DIR/x.jsonl:1: no text under 'text'", {"format": "spans"}
    ),
}

CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "columns": COLUMNS,
        "gzip": GZIP,
        "tags": TAGS,
        "strict": STRICT,
        "jsonl": JSON_LINES,
        "spans": SPANS,
        "conll2012": CONLL_2012,
        "tables": TABLES,
        "sources": SOURCES,
        "options": OPTIONS,
    }.items()
    for name, case in cases.items()
}

# --- Tests ------------------------------------------------------------------------------------------------------------


def write(folder: Path, files: Mapping[str, str | bytes | Callable[[Path], None]]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def source_of(case: Case, folder: Path) -> Path:
    if case.source is not None:
        return folder / case.source
    return folder / next(iter(case.files)) if len(case.files) == 1 and "/" not in next(iter(case.files)) else folder


def contents(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def cached(folder: Path) -> list[Path]:
    """The files of data sets that a cache holds, or of parts of them."""
    return [path for path in folder.rglob("hf_xorner/**/*") if path.is_file() and path.suffix != ".lock"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_broken_sources_raise_a_one_sentence_error(folder, tmp_path, case, caplog):
    write(folder, case.files)
    before = contents(folder)
    pattern = re.escape(case.message.replace("DIR", str(folder))).replace("…", ".+")
    for _ in range(2):
        with pytest.raises(DataError) as error:
            load_corpus(source_of(case, folder), **case.options)
        assert re.match(pattern, str(error.value)), str(error.value)
        assert str(error.value).endswith(".") and "\n" not in str(error.value)
    assert contents(folder) == before
    assert cached(tmp_path / "cache") == []
    assert not caplog.records


SOUND = {
    ".conll": GOOD,
    ".tsv": GOOD,
    ".jsonl": objects(words(["Ann", "left"], ["B-PER", "O"])),
    ".gold_conll": ontonotes(("Ann", "(PER)"), ("left", "*")),
    ".parquet": in_parquet(),
    ".arrow": in_arrow(),
}
CORRECTED = {
    name: case
    for name, case in CASES.items()
    if not name.startswith(("sources", "options"))
    and all(file.removesuffix(".gz").endswith(tuple(SOUND)) and "/" not in file for file in case.files)
}


def corrected(name: str) -> str | bytes:
    sound = SOUND[Path(name.removesuffix(".gz")).suffix]
    return gzip.compress(sound.encode()) if name.endswith(".gz") else sound


@pytest.mark.parametrize("case", CORRECTED.values(), ids=CORRECTED)
def test_corrected_sources_load(folder, tmp_path, case):
    write(folder, case.files)
    with pytest.raises(DataError):
        load_corpus(source_of(case, folder), **case.options)
    write(folder, {name: corrected(name) for name in case.files})
    for split in load_corpus(source_of(case, folder)).values():
        labels = split.features["ner_tags"].feature.names
        assert [split[0]["tokens"], [labels[tag] for tag in split[0]["ner_tags"]]] == [["Ann", "left"], ["B-PER", "O"]]


def test_cases_cover_every_format():
    assert len(CASES) > 100
    assert len(CORRECTED) > 70
    assert {Path(file).suffix for case in CASES.values() for file in case.files} >= {*SOUND, ".gz", ""}


def test_no_split_is_loaded_if_one_is_broken(folder, tmp_path):
    write(folder, {"train.conll": GOOD, "dev.conll": GOOD, "test.conll": "left\n"})
    with pytest.raises(DataError):
        load_corpus(folder)
    assert cached(tmp_path / "cache") == []
    (folder / "test.conll").unlink()
    assert list(load_corpus(folder)) == ["train", "validation"]
    assert len(list((tmp_path / "cache").rglob("*.arrow"))) == 2


def test_an_empty_source_raises(folder, monkeypatch):
    write(folder, {"train.conll": GOOD})
    monkeypatch.chdir(folder)
    with pytest.raises(DataError) as error:
        load_corpus("")
    assert str(error.value) == (
        "source='' names nothing; expected a path, one of the names xor, wnut17, conll2003, conll2002-es, "
        "conll2002-nl, ontonotes5, or owner/name for a data set on the Hub."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", ["x.conll", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize("hidden", ["file", "folder"])
def test_unreadable_sources_raise(folder, tmp_path, name, hidden):
    write(folder, {name: SOUND[Path(name).suffix]})
    place = folder / name if hidden == "file" else folder
    place.chmod(0)
    try:
        with pytest.raises(DataError) as error:
            load_corpus(folder / name)
    finally:
        place.chmod(0o700)
    assert str(error.value) == (
        f"{folder / name}: cannot be read (Permission denied); make it readable, or name another source."
    )


# --- Scripts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "case"),
    [
        (["data.py", "stats", "SOURCE", "--strict", "true"], CASES["strict: a span that cuts a word"]),
        (["data.py", "convert", "SOURCE", "--to", "jsonl", "--output", "out"], CASES["tables: null among words"]),
        (["train.py", "--dataset", "SOURCE"], CASES["tags: a type only in test"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_scripts_report_broken_sources_and_exit(folder, tmp_path, command, case):
    write(folder, case.files)
    script, *arguments = (str(source_of(case, folder)) if word == "SOURCE" else word for word in command)
    before = sorted(tmp_path.rglob("*"))
    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    result = run_python([REPOSITORY / "scripts" / script, *arguments], cwd=tmp_path, env=environment)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith(
        f"hf-xorner {script.removesuffix('.py')}: {case.message.replace('DIR', str(folder))}"
    )
    assert result.stderr.count("\n") == 1
    new = {path for path in tmp_path.rglob("*") if path.is_file() and "cache" not in path.parts}
    assert new <= set(before)
    assert contents(tmp_path / "cache") == {}
