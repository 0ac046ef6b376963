"""Broken files of every format: one sentence with the location, and the option that remedies it, if there is one."""

import gzip
import json

import pyarrow as pa
import pytest
from datasets import Dataset, DatasetDict
from pyarrow import feather, parquet

from hf_xorner.corpora import DataError, ReadingOptions, load_corpus

pytest_plugins = "corpus_files"

GOOD = "Ann\tB-PER\nleft\tO\n"
ROWS = {"tokens": [["Ann", "left"]], "tags": [["B-PER", "O"]]}
ZIPPED = gzip.compress((GOOD * 500).encode())


def in_parquet(**columns):
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(ROWS | columns), sink)
    return sink.getvalue().to_pybytes()


def in_arrow(**columns):
    sink = pa.BufferOutputStream()
    feather.write_feather(pa.table(ROWS | columns), sink, compression="uncompressed")
    return sink.getvalue().to_pybytes()


def ontonotes(*words):
    """A document of CoNLL-2012 with a sentence of words and their cells of names; begins in line 2."""
    lines = [f"a 0 {number} {word} NN * - - - - {cell} -\n" for number, (word, cell) in enumerate(words)]
    return f"#begin document (a); part 000\n{''.join(lines)}\n#end document\n"


def objects(*records):
    return "".join(record if isinstance(record, str) else f"{json.dumps(record)}\n" for record in records)


def spans(*spans, text="Ann  Lee.", **more):
    return objects({"text": "Ann", "spans": [[0, 3, "PER"]]}, {"text": text, "spans": list(spans), **more})


WORDS = {"tokens": ["Ann"], "tags": ["B-PER"]}

#: By format: the name of the file, and the faults: its content, the location after its name, a part of the message, and
#: options.
FAULTS = {
    "columns": (
        "x.conll",
        [
            ("Ann\tB-PER\nleft\n", ":2", "1 columns"),
            ("Ann B-PER\n\nshe left O\n", ":3", "3 columns"),
            ("\ufeffAnn O\r\n\ufeff\r\n \t\r\nleft\r\n", ":4", "1 columns"),
            ("\nAnn,left\n", ":2", "one column"),
            (f"{GOOD}\tO\n", ":3", "token is empty"),
            (f"{GOOD}\nhome\t\n", ":4", "tag is empty"),
            ("", ":1", "no sentence"),
            ("% a\n% b\n", ":1", "no sentence", {"comments": "%"}),
            (GOOD, ":1", "tag_column=2", {"tag_column": 2}),
            (GOOD, ":1", "no column of words named word", {"token_column": "word"}),
            (GOOD.replace("\t", " "), ":1", "one column", {"separator": "tab"}),
            (GOOD, ":1", "too few columns", {"format": "conll2012"}),
        ],
    ),
    "encodings": (
        "x.conll",
        [
            ("Zoë\tB-PER\nñ\tO\n\n".encode() + b"na\xefve\tO\n", ":4", "utf-8"),
            (GOOD.encode("utf-16"), ":1", "encoding"),
            (GOOD.encode() + b"\nna\x81ve\tO\n", ":4", "cp1252", {"encoding": "cp1252"}),
        ],
    ),
    "gzip": (
        "x.conll.gz",
        [(ZIPPED[:-9], "", "damaged"), (ZIPPED[:15] + b"\xff\xff\xff" + ZIPPED[18:], "", "damaged")],
    ),
    "tags": (
        "x.conll",
        [
            ("Ann B-PER\nleft X-PER\n", ":2", "'X-PER'"),
            ("Ann B-PER\nleft 0\nnow O\n", ":2", "'0'"),
            ("Ann B-PER\nLee I-PER\n", ":2", "'I-PER'", {"scheme": "bmes"}),
            ("Ann\tB-PER\nleft\t \u00a0\n", ":2", "blanks"),
            ("Ann B-PER\nleft O\nOslo I-LOC\n\nLee I-PER\n", ":3", "strict", {"strict": True}),
        ],
    ),
    "CoNLL-U": (
        "x.conllu",
        [
            ("1\tAnn\t_\tN\t_\t_\t_\t_\t_\t_\n" * 20 + "2\tleft\n", ":21", "2 columns"),
            ("1\tAnn\t_\tN\t_\t_\t_\t_\t_\t_\n" * 20 + "x" + "\t_" * 9 + "\n", ":21", "number"),
            ("1\tAnn\t_\tN\t_\t_\t_\t_\t_\t_\n", ":1", "tag_column=ner", {"tag_column": "ner"}),
        ],
    ),
    "CSV": (
        "x.csv",
        [
            ("a,b\nx,O\n", ":1", "token_column", {"tag_column": "b"}),
            ("word,pos\nx,NN\n", ":1", "tag_column"),
            ("word,tag\nx,O\n,B-X\n", ":3", "token is empty"),
            ("word,tag\nx,O\ny\n", ":3", "tag is empty"),
            ('word,tag\n",O\nHello,B-X\n",O\nx,O\n', ":2", "quotation marks are not doubled"),
            ('word,tag\nx,O\n"y,O\nz,O\n', ":3", "quotation marks"),
            ("text,label\n" + "I liked it,good\n" * 20, ":1", "texts"),
            ("word,tag\n" + "a,O\nb,B-X\n" * 600, ":1002", "sentence_id"),
            ("tokens,ner_tags\n['a'],['O']\n\"['a', 'b']\",\"['O', x]\"\n", ":3", "'ner_tags' holds ['O', x]"),
            ("sentence_id,word,tag\n1,Ann,B-PER\n2,left,O\n1,Lee,I-PER\n", ":4", "the sentence 1 begins again"),
        ],
    ),
    "JSON of words": (
        "x.jsonl",
        [
            (objects(WORDS, '{"tokens": ["Ann"]\n'), ":2", "JSON"),
            (objects(WORDS, ["Ann"]), ":2", "list"),
            ("[]", "", "no sentence"),
            (f"[{json.dumps(WORDS)}, 3]", ", record 2", "int"),
            ("[" * 100_000, "", "JSON"),
            (objects(WORDS, '{"id": ' + "9" * 10_000 + "}"), ":2", "JSON"),
            (objects({"tags": ["O"]}), ":1", "no words"),
            (objects(WORDS, {"tokens": ["left"]}), ":2", "no tags"),
            (objects(WORDS, {"tokens": ["a", "b"], "tags": ["O"]}), ":2", "2 tokens but 1 tags"),
            (objects(WORDS | {"pos": ["NNP", "VBD"]}), ":1", "2 parts of speech"),
            (objects({"tokens": ["a", ""], "tags": ["O", "O"]}), ":1", "index 1"),
            (objects({"tokens": "Ann left", "tags": ["O"]}), ":1", "Ann left"),
            (objects({"tokens": ["a"], "tags": [0]}), ":1", "tag_names"),
            (objects({"tokens": ["a\ud83d"], "tags": ["O"]}), ":1", "surrogate"),
        ],
    ),
    "JSON of spans": (
        "x.jsonl",
        [
            (objects({"text": "Ann", "spans": []}, {"spans": []}), ":2", "no text"),
            (spans(text=["Ann"]), ":2", "['Ann']"),
            (spans(text="Ann").replace("[]", "7"), ":2", "7"),
            (objects({"text": "Ann"}, {"text": "left"}), ":1", "tag_column"),
            (objects({"text": "Ann", "spans": [], "answer": "ignore"}), "", "no sentence"),
            *((spans(span), ":2", str(span)[:40]) for span in ([0, 10, "X"], [-1, 3, "X"], [3, 3, "X"], [3, 0, "X"])),
            *((spans(span), ":2", "span") for span in ([0, 3], "Ann", None, {"start": 0, "label": "X"}, ["0", 3, "X"])),
            *((spans([0, 3, label]), ":2", "label") for label in ("", " \ufeff", 7, ["X"])),
            (spans([3, 5, "X"]), ":2", "covers no word"),
            *((spans(tokens=words), ":2", "word") for words in ("Ann", [[0, 3], [4]], [[0, "3"]], [[0, 3], [4, 12]])),
            *((spans(tokens=words), ":2", "word") for words in ([[3, 3]], [[4, 7], [0, 3]], [[0, 4], [3, 7]])),
            (spans(tokens=[[0, 3]], pos=[]), ":2", "0 parts of speech"),
            (spans([1, 2, "X"]), ":2", "widened", {"strict": True}),
            (spans([0, 3, "X"], [0, 8, "Y"]), ":2", "overlap", {"strict": True}),
            (spans(answer="reject"), ":2", "rejected", {"strict": True}),
        ],
    ),
    "Label Studio": (
        "x.json",
        [
            (json.dumps([{"data": {"text": "Ann"}, "annotations": [7]}]), "", "no words"),
            (json.dumps([{"data": {"text": "Ann"}, "annotations": []}]), "", "no sentence"),
            (
                json.dumps([{"text": "Ann", "label": [{"start": 1, "end": 3, "text": "Ann", "labels": ["PER"]}]}]),
                ", record 1",
                "'nn' in the text",
            ),
        ],
    ),
    "CoNLL-2012": (
        "x.gold_conll",
        [
            (ontonotes(("[WORD]", "(PERSON)")), ":2", "removed"),
            (ontonotes(("Ann", "(PERSON)")).replace(" * - - - - (PERSON) -", ""), ":2", "too few columns"),
            (ontonotes(("Ann", "(PERSON*"), ("left", "*")), ":2", "open"),
            (ontonotes(("Ann", "*"), ("left", "*)")), ":3", "closes"),
            (ontonotes(("Ann", "(PERSON*"), ("Lee", "(ORG*"), ("left", "*)")), ":3", "inside another"),
            *(
                (ontonotes(("a", cell)), ":2", "unknown cell")
                for cell in ("-", "B-X", "(X", "X)", "(*", "(A(B*", "*))")
            ),
        ],
    ),
    "BRAT": (
        "x.ann",
        [
            ("T1 PER 0 3\tAnn\n", ":1", "not a span"),
            ("T1\tPER 0 30\n", ":1", "9 characters"),
            ("T1\tPER 3 4\n", "", "covers no word"),
            ("T1\tPER 0 3\tBob\n", ":1", "'Ann' in the text"),
            *((f"T1\tPER 0 {end}\tAda\n", ":1", "span") for end in ("9" * 5000, "-1", "1.5", "\u0663")),
        ],
    ),
    "Parquet": (
        "x.parquet",
        [
            (GOOD, "", "not a valid Parquet"),
            (in_parquet(ner=ROWS["tags"]).replace(b"tags", b"ents"), "", "tag_column"),
            (in_parquet(), "", "token_column", {"token_column": "form"}),
            (in_parquet(tags=[[1, 0]]), ", row 0", "tag_names"),
            (in_parquet(tags=[["B-PER"]]), ", row 0", "2 tokens but 1 tags"),
            (in_parquet(tokens=pa.array([None], pa.list_(pa.string()))), ", row 0", "tokens"),
        ],
    ),
    "Arrow": (
        "x.arrow",
        [
            (in_arrow()[:-9], "", "not a valid"),
            (in_arrow(tokens=[["Ann", None]]), ", row 0", "tokens"),
            (in_arrow(tokens=[["", "left"]]), ", row 0", "tokens"),
            (in_arrow(tags=[["B-PER", "X-PER"]]), ", row 0", "'X-PER'"),
        ],
    ),
    "spaCy": ("x.spacy", [(b"Ann\tB-PER\n", "", "DocBin")]),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_are_reported_with_their_place(write, kind):
    name, faults = FAULTS[kind]
    if kind == "spaCy":
        pytest.importorskip("spacy")
    write("Ann left.", "x.txt")  # the text of BRAT's annotation
    for content, location, fact, *options in faults:
        path = write(content, name)
        with pytest.raises(DataError) as error:
            load_corpus(path, **(options[0] if options else {}))
        message = str(error.value)
        assert message.startswith(f"{path}{location}") and fact in message.removeprefix(str(path)), message
        assert message.endswith(".") and "\n" not in message


PREDICTED = '{"data": {"text": "Ann"}, "predictions": [{"result": []}]}'
TWO = {"train.conll": GOOD, "dev.conll": GOOD}
#: Files, the location below their folder, and a part of the message.
FOLDERS = [
    ({}, "", "no labelled data"),
    ({"config.json": "{}", "model.safetensors": ""}, "", "is a model"),
    ({"train.xml": "<a/>"}, "", "format not supported (train.xml)"),
    ({"train.txt": '<?xml version="1.0"?>\n<s>Ann</s>\n'}, "/train.txt", "XML"),
    ({"train.txt": "Yesterday <PER>Ann</PER> left .\n"}, "/train.txt", "XML"),
    ({"train.json": '{"rasa_nlu_data": {}}'}, "/train.json", "Rasa"),
    ({"train.json": '{"AddTo": [{"data": [{"text": "Add"}]}]}'}, "/train.json", "Snips"),
    ({"train.json": '{"source": "x", "documents": []}'}, "/train.json", "BioC"),
    ({"train.txt": b"PK\x03\x04"}, "/train.txt", "zip"),
    ({"train.txt": "12|t|Ann\n12|a|She left.\n12\t0\t3\tAnn\tPER\tD1\n"}, "/train.txt", "PubTator"),
    ({"train.tsv": "#FORMAT=WebAnno TSV 3.3\n\n\n#Text=Ann\n"}, "/train.tsv", "WebAnno"),
    ({"train_dev/a.conll": GOOD}, "", "train_dev/a.conll show several splits"),
    ({"a.json": f"[{PREDICTED}]"}, "/a.json", "only have predictions"),
    (
        {f"{name}/train-00000-of-00001.parquet": in_parquet() for name in "ab"},
        "",
        "a/train.parquet and b/train.parquet",
    ),
    ({f"data/train-0000{part}-of-00003.parquet": in_parquet() for part in (0, 2)}, "/data/train-*", "part 00001"),
    ({"train_1.conll": GOOD, "train_2.conll": GOOD}, "", "train_1.conll and train_2.conll"),
    (TWO | {"test.conll": "left\n"}, "/test.conll:1", "one column"),
    ({"train.conll": GOOD, "test.conll": "a\t?\n"}, "/test.conll", "unknown tag ?"),
    *(
        ({"train.json": '{"tokens": ["a"], "tags": [0]}\n', "label.json": content}, "/label.json", "tag_names")
        for content in ("[0, 5]", '"O"', "1", '{"O": [0]}', '{"O": 1}')
    ),
]


def test_faults_of_folders_are_reported(write, tmp_path):
    for number, (files, location, fact) in enumerate(FOLDERS):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files.items():
            write(content, f"{number}/{name}")
        with pytest.raises(DataError) as error:
            load_corpus(folder)
        assert str(error.value).startswith(f"{folder}{location}") and fact in str(error.value), error.value


def test_damaged_saved_datasets_are_refused(tmp_path):
    for number, damage in enumerate(
        (
            lambda split: (split / "state.json").write_text("{}"),
            lambda split: next(split.glob("*.arrow")).unlink(),
            lambda split: [path.write_bytes(path.read_bytes()[:200]) for path in split.glob("*.arrow")],
        )
    ):
        folder = tmp_path / str(number)
        DatasetDict({"train": Dataset.from_dict(ROWS)}).save_to_disk(folder)
        damage(folder / "train")
        with pytest.raises(DataError, match="not a valid"):
            load_corpus(folder)


def test_brat_needs_text_and_annotation(write):
    path = write("", "a.ann")
    with pytest.raises(DataError, match=r"a\.txt: cannot be read"):
        load_corpus(path)


def test_options_are_checked_before_anything_is_read():
    for name, value in {
        "format": "xml",
        "scheme": "BIO",
        "separator": "\t",
        "encoding": "latin-99",
        "strip": "[",
    }.items():
        with pytest.raises(ValueError, match=name):
            ReadingOptions(**{name: value})
    for types in ("A", "A=", "=A", "A=B=C", "A=B,", "A=B, A=C"):
        with pytest.raises(DataError, match="types="):
            ReadingOptions(types=types)


@pytest.mark.parametrize("source", ["", "x.conll", "x" * 300])
def test_sources_that_do_not_exist_are_refused(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError):
        load_corpus(source)
