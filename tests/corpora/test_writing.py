"""Writing corpora: formats, errors and round trips."""

import json

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value, disable_progress_bars, load_from_disk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_xorner.corpora import DataError, load_corpus, xor_corpus
from hf_xorner.corpora import write as writing_module
from hf_xorner.corpora.write import write_corpus

LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
TEXTS = ("columns", "conllu", "conll2012", "csv", "jsonl", "spans")
FORMATS = (*TEXTS, "parquet", "arrow")

disable_progress_bars()


def split_of(sentences, labels=LABELS, pos=None, docs=None):
    """A split from sentences of (token, tag)."""
    columns = {
        "tokens": [[token for token, _ in sentence] for sentence in sentences],
        "ner_tags": [[labels.index(tag) for _, tag in sentence] for sentence in sentences],
    }
    features = {"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=labels))}
    if pos is not None:
        columns["pos_tags"], features["pos_tags"] = pos, List(Value("string"))
    if docs is not None:
        columns["doc_id"], features["doc_id"] = docs, Value("string")
    return Dataset.from_dict(columns, features=Features(features))


def rows_of(corpus):
    """The content of a corpus, independent of how its labels are numbered."""
    found = {}
    for name, split in corpus.items():
        labels = split.features["ner_tags"].feature.names
        found[name] = [
            (row["tokens"], [labels[tag] for tag in row["ner_tags"]], row.get("pos_tags"), row.get("doc_id"))
            for row in split
        ]
    return found


SENTENCES = [
    [("Ann", "B-PER"), ("Lee", "I-PER"), ("Bo", "B-PER"), ("left", "O")],
    [("Rain", "O")],
    [("New", "B-LOC"), ("York", "I-LOC"), ("City", "I-LOC")],
]
POS = [["NNP", "NNP", "NNP", "VBD"], ["NN"], ["NNP", "NNP", "NNP"]]


def train_of(sentences=SENTENCES, **columns):
    return DatasetDict(train=split_of(sentences, **columns))


def written(corpus, folder, *arguments, **options):
    """The text of the only file written."""
    (path,) = write_corpus(corpus, folder, *arguments, **options)
    return path.read_bytes().decode()


# --- Formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("iob1", "I-PER I-PER B-PER O | O | I-LOC I-LOC I-LOC"),
        ("iob2", "B-PER I-PER B-PER O | O | B-LOC I-LOC I-LOC"),
        ("bioes", "B-PER E-PER S-PER O | O | B-LOC I-LOC E-LOC"),
        ("bilou", "B-PER L-PER U-PER O | O | B-LOC I-LOC L-LOC"),
        ("bmes", "B-PER E-PER S-PER O | O | B-LOC M-LOC E-LOC"),
    ],
)
@pytest.mark.parametrize(("separator", "between"), [("tab", "\t"), ("blank", " ")])
def test_columns_in_every_scheme(tmp_path, scheme, tags, separator, between):
    text = written(train_of(), tmp_path, "columns", scheme, separator)
    expected = "".join(
        "".join(f"{token}{between}{tag}\n" for (token, _), tag in zip(sentence, row.split(), strict=True)) + "\n"
        for sentence, row in zip(SENTENCES, tags.split("|"), strict=True)
    )
    assert text == expected


def test_exact_text_of_columns(tmp_path):
    assert written(train_of(), tmp_path, "columns") == (
        "Ann\tB-PER\nLee\tI-PER\nBo\tB-PER\nleft\tO\n\nRain\tO\n\nNew\tB-LOC\nYork\tI-LOC\nCity\tI-LOC\n\n"
    )


@pytest.mark.parametrize(
    ("docs", "text"),
    [
        (["0", "0", "1"], "-DOCSTART- O\n\nAnn B-PER\n\nBo O\n\n-DOCSTART- O\n\nOslo B-LOC\n\n"),
        ([None, "0", "1"], "Ann B-PER\n\n-DOCSTART- O\n\nBo O\n\n-DOCSTART- O\n\nOslo B-LOC\n\n"),
        (["1", "1", "2"], "-DOCSTART- (1)\n\nAnn B-PER\n\nBo O\n\n-DOCSTART- (2)\n\nOslo B-LOC\n\n"),
        (["a b", "0", "0"], "-DOCSTART- (a b)\n\nAnn B-PER\n\n-DOCSTART- (0)\n\nBo O\n\nOslo B-LOC\n\n"),
        ([None, None, None], "Ann B-PER\n\nBo O\n\nOslo B-LOC\n\n"),
    ],
)
def test_columns_with_documents(tmp_path, docs, text):
    corpus = train_of([[("Ann", "B-PER")], [("Bo", "O")], [("Oslo", "B-LOC")]], docs=docs)
    assert written(corpus, tmp_path / "blank", "columns", separator="blank") == text
    by_tab = text.replace(" (a b)", "\t(a_b)").replace(" ", "\t").replace("_", " ")
    assert written(corpus, tmp_path / "tab", "columns") == by_tab


def test_columns_with_parts_of_speech(tmp_path):
    corpus = train_of(pos=POS, docs=["0", "0", "1"])
    assert written(corpus, tmp_path, "columns", separator="blank") == (
        "-DOCSTART- -X- O\n\nAnn NNP B-PER\nLee NNP I-PER\nBo NNP B-PER\nleft VBD O\n\nRain NN O\n\n"
        "-DOCSTART- -X- O\n\nNew NNP B-LOC\nYork NNP I-LOC\nCity NNP I-LOC\n\n"
    )


def test_plain_tags_are_written_unchanged(tmp_path):
    corpus = train_of([[("a", "B-x"), ("b", "NN")]], labels=["B-x", "NN"])
    assert written(corpus, tmp_path, "columns", "bioes") == "a\tB-x\nb\tNN\n\n"


def test_conll2012(tmp_path):
    corpus = train_of(pos=POS, docs=["bc/a_01", "bc/a_01#2", "bc/b"])
    assert written(corpus, tmp_path, "conll2012") == (
        "#begin document (bc/a_01); part 000\n"
        "bc/a_01 0 0 Ann NNP * - - - - (PER* -\n"
        "bc/a_01 0 1 Lee NNP * - - - - *) -\n"
        "bc/a_01 0 2 Bo NNP * - - - - (PER) -\n"
        "bc/a_01 0 3 left VBD * - - - - * -\n"
        "\n"
        "#end document\n"
        "#begin document (bc/a_01); part 002\n"
        "bc/a_01 2 0 Rain NN * - - - - * -\n"
        "\n"
        "#end document\n"
        "#begin document (bc/b); part 000\n"
        "bc/b 0 0 New NNP * - - - - (LOC* -\n"
        "bc/b 0 1 York NNP * - - - - * -\n"
        "bc/b 0 2 City NNP * - - - - *) -\n"
        "\n"
        "#end document\n"
    )


def test_conll2012_without_documents(tmp_path):
    sentences = [[("Ann", "B-PER")], [("Bo", "O")]]
    assert written(train_of(sentences), tmp_path / "none", "conll2012") == (
        "#begin document (-); part 000\n#end document\n\n- 0 0 Ann - * - - - - (PER) -\n\n- 0 0 Bo - * - - - - * -\n\n"
    )
    assert written(train_of(sentences, docs=["a", None]), tmp_path / "some", "conll2012") == (
        "#begin document (a); part 000\na 0 0 Ann - * - - - - (PER) -\n\n#end document\n- 0 0 Bo - * - - - - * -\n\n"
    )


def test_jsonl(tmp_path):
    corpus = train_of(
        [[("Ané", "B-PER"), ('"', "I-PER")], [("\u2028", "O")]], pos=[["A", "B"], ["C"]], docs=["d", None]
    )
    assert written(corpus, tmp_path, "jsonl", "bioes") == (
        '{"tokens": ["Ané", "\\""], "ner_tags": ["B-PER", "E-PER"], "pos_tags": ["A", "B"], "doc_id": "d"}\n'
        '{"tokens": ["\u2028"], "ner_tags": ["O"], "pos_tags": ["C"]}\n'
    )
    assert written(train_of([[("a", "O")], []]), tmp_path / "bare", "jsonl") == (
        '{"tokens": ["a"], "ner_tags": ["O"]}\n{"tokens": [], "ner_tags": []}\n'
    )


def test_spans(tmp_path):
    corpus = train_of(
        [[("Ann", "B-PER"), ("👩🏽‍🚀", "I-PER"), ("Bo", "B-PER"), ("!", "O")], [], [("New York", "B-LOC")]],
        docs=["d", "d", None],
    )
    assert written(corpus, tmp_path, "spans") == (
        '{"text": "Ann 👩🏽‍🚀 Bo !", "spans": [[0, 8, "PER"], [9, 11, "PER"]], '
        '"tokens": [[0, 3], [4, 8], [9, 11], [12, 13]], "doc_id": "d"}\n'
        '{"text": "", "spans": [], "tokens": [], "doc_id": "d"}\n'
        '{"text": "New York", "spans": [[0, 8, "LOC"]], "tokens": [[0, 8]]}\n'
    )


def test_each_line_is_json(tmp_path):
    corpus = train_of([[('\x00\t"\\\n', "B-PER"), ("\u2028\x85", "O")]], pos=[["\x1f", "'"]], docs=["\\"])
    (line,) = written(corpus, tmp_path, "jsonl").removesuffix("\n").split("\n")
    assert json.loads(line) == {
        "tokens": ['\x00\t"\\\n', "\u2028\x85"],
        "ner_tags": ["B-PER", "O"],
        "pos_tags": ["\x1f", "'"],
        "doc_id": "\\",
    }


def test_tables_keep_every_column(tmp_path):
    corpus = xor_corpus(train=16, validation=8, test=8, names=4, alone=1)
    paths = write_corpus(corpus, tmp_path / "p", "parquet")
    for path, split in zip(paths, corpus.values(), strict=True):
        again = Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
        assert again.features == split.features
        assert again.to_list() == split.to_list()
    write_corpus(corpus, tmp_path / "a", "arrow")
    again = load_from_disk(tmp_path / "a")
    assert list(again) == list(corpus)
    assert {name: split.to_list() for name, split in again.items()} == {
        name: split.to_list() for name, split in corpus.items()
    }


@pytest.mark.parametrize(
    ("format", "names"),
    [
        ("columns", ["train.conll", "dev.conll", "test.conll"]),
        ("conllu", ["train.conllu", "dev.conllu", "test.conllu"]),
        ("csv", ["train.csv", "dev.csv", "test.csv"]),
        ("conll2012", ["train.gold_conll", "dev.gold_conll", "test.gold_conll"]),
        ("jsonl", ["train.jsonl", "dev.jsonl", "test.jsonl"]),
        ("spans", ["train.jsonl", "dev.jsonl", "test.jsonl"]),
        ("parquet", ["train.parquet", "validation.parquet", "test.parquet"]),
        ("arrow", ["train", "validation", "test"]),
    ],
)
def test_files_get_the_names_that_load_corpus_expects(tmp_path, format, names):
    corpus = DatasetDict({name: split_of(SENTENCES) for name in ("train", "validation", "test")})
    folder = tmp_path / "deep" / "below"
    assert write_corpus(corpus, folder, format) == [folder / name for name in names]
    assert {path.name for path in folder.iterdir()} == {*names, *(["dataset_dict.json"] if format == "arrow" else [])}


@pytest.mark.parametrize("format", TEXTS)
def test_selected_and_shuffled_rows_are_written_in_their_order(tmp_path, format):
    sentences = [[(f"w{number}", "B-PER"), ("x", "I-PER" if number % 2 else "O")] for number in range(5000)]
    docs = [str(number // 7) for number in range(5000)]
    split = split_of(sentences, docs=docs).shuffle(seed=3).select(range(100, 4300))
    order = [int(row["tokens"][0][1:]) for row in split]
    straight = split_of([sentences[number] for number in order], docs=[docs[number] for number in order])
    assert written(DatasetDict(train=split), tmp_path / "a", format) == written(
        DatasetDict(train=straight), tmp_path / "b", format
    )


# --- Errors -----------------------------------------------------------------------------------------------------------


def refusal(corpus, folder, *arguments, **options):
    with pytest.raises(DataError) as error:
        write_corpus(corpus, folder, *arguments, **options)
    assert not folder.exists() or not list(folder.iterdir()), "something was left behind"
    return str(error.value)


COLUMNS, BLANKS = ("columns",), ("columns", "iob2", "blank")


@pytest.mark.parametrize(
    ("arguments", "token", "fault"),
    [
        (COLUMNS, "a\tb", r"the token 'a\tb' holds a TAB"),
        (COLUMNS, "a\n", r"the token 'a\n' holds a line break"),
        (COLUMNS, "\ra", r"the token '\ra' holds a line break"),
        (COLUMNS, "\ufeffa", r"the token '\ufeffa' holds a byte-order mark"),
        (COLUMNS, "", "the token '' is empty"),
        (COLUMNS, "-DOCSTART-", "the token '-DOCSTART-' would be read as the beginning of a document"),
        (BLANKS, "a b", "the token 'a b' holds a blank"),
        (("conll2012",), "a b", "the token 'a b' holds a blank"),
        (("conll2012",), "a\tb", r"the token 'a\tb' holds a TAB"),
        (("conll2012",), "", "the token '' is empty"),
        (("conll2012",), "[WORD]", "the token '[WORD]' would be read as a word that was taken out"),
        (("conllu",), "a\tb", r"the token 'a\tb' holds a TAB"),
        (("conllu",), "", "the token '' is empty"),
        (("csv",), "", "the token '' is empty"),
        (("csv",), "a\x00", r"the token 'a\x00' holds a NUL"),
        (("jsonl",), "", "the token '' is empty"),
        (("jsonl",), "a\ufeff", r"the token 'a\ufeff' holds a byte-order mark"),
        (("spans",), "", "the token '' is empty"),
        (("spans",), "\ufeff", r"the token '\ufeff' holds a byte-order mark"),
    ],
)
def test_tokens_that_would_not_round_trip_are_refused(tmp_path, arguments, token, fault):
    # Past the first batch, so that rows are counted through batches.
    sentences = [[("a", "O")]] * 2500 + [[("b", "O"), (token, "O")]] + [[("\t", "O")]]
    message = refusal(train_of(sentences), tmp_path / "out", *arguments)
    assert message.startswith(f"train, row 2500: {fault}, which {arguments[0]}")


@pytest.mark.parametrize(
    ("arguments", "corpus", "message"),
    [
        (COLUMNS, train_of([[("a", "O")], []]), "train, row 1: the sentence is empty"),
        (("conll2012",), train_of([[], []]), "train, row 0: the sentence is empty"),
        *(((name,), train_of([]), "train: the split is empty") for name in TEXTS),
        (BLANKS, train_of([[("a", "O")]], pos=[["N N"]]), "train, row 0: the part of speech 'N N' holds a blank"),
        (("jsonl",), train_of([[("a", "O")]], pos=[[""]]), "train, row 0: the part of speech '' is empty"),
        (BLANKS, train_of([[("a", "O")]], labels=["O", "B-a b", "I-a b"]), "train: the type 'a b' holds a blank"),
        (COLUMNS, train_of([[("a", "N\tN")]], labels=["N\tN"]), r"train: the tag 'N\tN' holds a TAB"),
        (
            ("conll2012",),
            train_of([[("a", "O")]], labels=["O", "B-(x", "I-(x"]),
            "train: the type '(x' holds a bracket or a star",
        ),
        (
            ("spans",),
            train_of([[("a", "O")]], labels=["O", "B- ", "I- "]),
            "train: the type ' ' holds nothing but blanks",
        ),
        (
            COLUMNS,
            train_of([[("a", "O")]] * 3, docs=[None, "a", None]),
            "train, row 2: the sentence belongs to no document after one that does",
        ),
        (
            COLUMNS,
            train_of([[("a", "O")]] * 2001, docs=["a"] * 2000 + [None]),
            "train, row 2000: the sentence belongs to no document after one that does",
        ),
        (COLUMNS, train_of([[("a", "O")]], docs=["a\nb"]), r"train, row 0: the document 'a\nb' holds a line break"),
        (BLANKS, train_of([[("a", "O")]], docs=["  "]), "train, row 0: the document '  ' holds two blanks in a row"),
        (
            ("conll2012",),
            train_of([[("a", "O")]], docs=["#1"]),
            "train, row 0: the document '#1' would be read as a comment",
        ),
        (("conllu",), train_of([[("a", "O")]], docs=["a "]), "train, row 0: the document 'a ' begins or ends with a"),
        (("conllu",), train_of([[("a", "N")]], labels=["N"], pos=[["X"]]), "train: parts of speech beside plain tags"),
        (("conllu",), train_of([[("a", "N=N")]], labels=["N=N"]), "train: the tag 'N=N' holds one of | and ="),
        (("conllu",), train_of([[("a", "O")]], pos=[["_"]]), "train, row 0: the part of speech '_' would be read as"),
        (("csv",), train_of([[("a", "O")], []]), "train, row 1: the sentence is empty"),
        (("csv",), train_of([[("a", "N N")]], labels=["N N"]), "train: the tag 'N N' holds a blank"),
        (("conll2012",), train_of([[("a", "O")]], docs=[""]), "train, row 0: the document '' is empty"),
    ],
)
def test_corpora_that_would_not_round_trip_are_refused(tmp_path, arguments, corpus, message):
    found = refusal(corpus, tmp_path / "out", *arguments)
    assert found.startswith(message) and f", which {arguments[0]}" in found


@pytest.mark.parametrize("format", ["conll2012", "spans"])
def test_entity_formats_refuse_plain_tags(tmp_path, format):
    corpus = train_of([[("a", "NN")]], labels=["NN", "O"])
    assert refusal(corpus, tmp_path / "out", format) == (
        f"train: plain tags such as 'NN', but {format} holds entities only; write jsonl."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"format": "xml"},
            "format='xml' cannot be written; choose one of columns, conllu, conll2012, csv, jsonl, spans, parquet, "
            "arrow.",
        ),
        (
            {"format": "columns", "scheme": "iobes"},
            "scheme='iobes' cannot be written; choose one of iob1, iob2, bioes, bilou, bmes.",
        ),
        ({"format": "columns", "separator": ","}, "separator=',' cannot be written; choose one of tab, blank."),
        (
            {"format": "parquet", "scheme": "bioes"},
            "scheme='bioes': parquet has but one form; only columns, csv, jsonl take a scheme.",
        ),
        (
            {"format": "jsonl", "separator": "blank"},
            "separator='blank': jsonl has but one form; only columns take a separator.",
        ),
    ],
)
def test_invalid_options_are_refused(tmp_path, options, message):
    assert refusal(train_of(), tmp_path / "out", **options) == message


def test_malformed_corpora_are_refused(tmp_path):
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=["O"]))})

    def of(tokens, tags, **more):
        columns = {"tokens": tokens, "ner_tags": tags, **more}
        split = Dataset.from_dict(columns, Features({**features, **{name: List(Value("string")) for name in more}}))
        return DatasetDict(train=split)

    out = tmp_path / "out"
    assert refusal(of([["a"], ["a", "b"]], [[0], [0]]), out, "jsonl") == "train, row 1: 2 tokens but 1 ner_tags."
    assert refusal(of([["a"]], [[0]], pos_tags=[None]), out, "jsonl") == "train, row 0: 1 tokens but 0 pos_tags."
    assert refusal(of([["a"], None], [[0], []]), out, "jsonl") == "train, row 1: the tokens are missing."
    assert refusal(of([["a", None]], [[0, 0]]), out, "jsonl") == (
        "train, row 0: a null among the tokens; give every token a string."
    )
    assert refusal(of([["a"], ["a", "b"]], [[0], [0, -2]]), out, "jsonl") == (
        "train, row 1: the label -2 has no name; give every token a label."
    )
    strings = DatasetDict(train=Dataset.from_dict({"tokens": [["a"]], "tags": [["O"]]}))
    for format in FORMATS:
        assert refusal(strings, out, format) == (
            "train: expected the columns tokens: List(string) and ner_tags: List(ClassLabel), found tokens, tags; "
            "load the corpus with load_corpus."
        )
    named = DatasetDict({"../x": split_of(SENTENCES)})
    assert refusal(named, out, "jsonl") == "expected splits among train, validation, test, found ../x."
    assert refusal(DatasetDict(), out, "jsonl") == "expected splits among train, validation, test, found none."


# --- Existing files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_files_are_overwritten_only_on_request(tmp_path, format):
    old, new = train_of(), train_of([[("other", "B-PER"), ("words", "B-LOC")]])
    (path,) = write_corpus(old, tmp_path, format)
    with pytest.raises(DataError) as error:
        write_corpus(new, tmp_path, format)
    assert str(error.value) == f"{path}: exists already; choose another folder to write into, or set overwrite."
    assert rows_of(load_corpus(tmp_path, pos_column="none")) == rows_of(old)
    assert write_corpus(new, tmp_path, format, overwrite=True) == [path]
    assert rows_of(load_corpus(tmp_path, pos_column="none")) == rows_of(new)


def test_folders_with_other_files_are_never_replaced(tmp_path):
    mine = tmp_path / "train" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("kept")
    with pytest.raises(DataError) as error:
        write_corpus(train_of(), tmp_path, "arrow", overwrite=True)
    assert str(error.value) == (
        f"{tmp_path}/train: is a folder, which is not overwritten; choose another folder to write into."
    )
    assert mine.read_text() == "kept"


def test_a_file_in_place_of_the_folder_raises(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError) as error:
        write_corpus(train_of(), tmp_path / "file", "columns")
    assert str(error.value) == f"{tmp_path}/file: is a file; name a folder to write into."


def test_a_corpus_can_overwrite_its_own_files(tmp_path):
    write_corpus(train_of(), tmp_path, "arrow")
    write_corpus(load_from_disk(tmp_path), tmp_path, "arrow", overwrite=True)
    assert rows_of(load_from_disk(tmp_path)) == rows_of(train_of())


@pytest.mark.parametrize("format", FORMATS)
def test_a_failed_write_leaves_no_partial_files(tmp_path, monkeypatch, format):
    corpus = DatasetDict({name: split_of(SENTENCES) for name in ("train", "validation")})
    write_corpus(corpus, tmp_path, format)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    whole = writing_module._write

    def break_off(*arguments):
        whole(*arguments)
        raise OSError("no space left on device")

    monkeypatch.setattr(writing_module, "_write", break_off)
    with pytest.raises(OSError, match="no space left"):
        write_corpus(train_of([[("other", "O")]]), tmp_path, format, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


# --- Round trips ------------------------------------------------------------------------------------------------------

ODD = ["\u00a0", "\u2028", "\u0085", "\u3000", "\x0b", "\x1c", "\x00", "e\u0301", "\u200b", "👩🏽‍🚀", '"', "\\", "'", "#", "*", "(x)", "-", "O", "B-PER", "-DOCSTART-ed", "#begin", "{}", "東"]  # noqa: E501  # fmt: skip
TYPES = ["PER", "art-work", "É", "O", "B-x", "{}"]


def texts(also=""):
    """Random strings; `also` adds characters that only some formats support."""
    letters = st.characters(exclude_categories=["Cs"], exclude_characters=set("\ufeff\t\r\n ") - set(also))
    pieces = st.one_of(st.sampled_from([*ODD, *also]), st.text(letters, min_size=1, max_size=3))
    return st.lists(pieces, min_size=1, max_size=3).map("".join)


@st.composite
def corpora_of(draw, also="", empty=False, unknown_documents="first", doc_ids=None):
    """Corpora of IOB2, with or without parts of speech, documents and other splits than train."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    labels = ["O", *(f"{prefix}-{name}" for name in sorted(types) for prefix in "BI")]
    word, document = texts(also), texts(also) if doc_ids is None else doc_ids
    splits = draw(st.sampled_from([["train"], ["train", "test"], ["train", "validation", "test"]]))
    with_pos, documents = draw(st.booleans()), draw(st.sampled_from(["none", "numbers", "names"]))
    found = {}
    for split in splits:
        sentences, pos, docs = [], [], []
        for _ in range(draw(st.integers(1, 4))):
            names = draw(st.lists(st.sampled_from([None, *types]), min_size=0 if empty else 1, max_size=5))
            tags = []
            for before, name in zip([None, *names], names, strict=False):
                inside = name is not None and name == before and draw(st.booleans())
                tags.append("O" if name is None else f"{'I' if inside else 'B'}-{name}")
            sentences.append([(draw(word), tag) for tag in tags])
            pos.append([draw(word) for _ in tags])
            docs.append(draw(document))
        if split == "train":
            # Reading refuses a type without an example in training.
            sentences.append([(draw(word), f"B-{name}") for name in types])
            pos.append([draw(word) for _ in types])
            docs.append(draw(document))
        if documents == "numbers":
            docs = [str(index // 2) for index in range(len(docs))]
        if documents != "none":
            size = draw(st.integers(0, len(docs)))
            docs[:size] = [None] * size
            if unknown_documents == "anywhere" and draw(st.booleans()):
                docs[-1] = None
            if documents == "numbers":
                docs[size:] = [str(index // 2) for index in range(len(docs) - size)]
        found[split] = split_of(sentences, labels, pos if with_pos else None, docs if documents != "none" else None)
    return DatasetDict(found)


def round_trip(corpus, folder, *arguments, **options):
    write_corpus(corpus, folder, *arguments, **options)
    # With few sentences, or thousands of parts of speech, the column must be named.
    has_pos = "pos_tags" in corpus["train"].column_names
    column = (
        {"columns": "1", "conllu": "upos", "conll2012": "4", "csv": "pos"}.get(arguments[0], "pos_tags")
        if has_pos
        else "none"
    )
    return load_corpus(folder, pos_column=column)


@pytest.fixture
def new_folder(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("written")


often = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "bioes", "bilou", "bmes"])
@given(corpus=corpora_of(also=" ").filter(lambda corpus: not opens_document(corpus)))
@often
def test_tab_separated_columns_round_trip(new_folder, scheme, corpus):
    assert rows_of(round_trip(corpus, new_folder(), "columns", scheme)) == rows_of(corpus)


@given(corpus=corpora_of().filter(lambda corpus: not opens_document(corpus)), scheme=st.sampled_from(["iob1", "bioes"]))
@often
def test_space_separated_columns_round_trip(new_folder, corpus, scheme):
    assert rows_of(round_trip(corpus, new_folder(), "columns", scheme, "blank")) == rows_of(corpus)


@given(corpus=corpora_of(also=" ", doc_ids=texts().filter(lambda name: name == name.strip())))
@often
def test_conllu_round_trips(new_folder, corpus):
    assert rows_of(round_trip(corpus, new_folder(), "conllu")) == rows_of(corpus)


@given(
    corpus=corpora_of(also=" \t\n\r", unknown_documents="anywhere").filter(lambda corpus: not holds(corpus, "\0")),
    scheme=st.sampled_from(["iob1", "bioes"]),
)
@often
def test_csv_round_trips(new_folder, corpus, scheme):
    assert rows_of(round_trip(corpus, new_folder(), "csv", scheme)) == rows_of(corpus)


@given(corpus=corpora_of(doc_ids=texts().filter(lambda name: name[0] != "#"), unknown_documents="anywhere"))
@often
def test_conll2012_round_trips(new_folder, corpus):
    assert rows_of(round_trip(corpus, new_folder(), "conll2012")) == rows_of(corpus)


@pytest.mark.parametrize(
    "doc_id", ["a#0", "a#1", "a#10", "a#01", "a#x", "a#1#2", "a#\u0661", "-", "a)", "(a); part 001"]
)
def test_document_ids_round_trip(new_folder, doc_id):
    corpus = train_of(pos=POS, docs=[doc_id, "b", doc_id])
    for format in ("columns", "conll2012", "jsonl", "spans"):
        if " " not in doc_id or format != "conll2012":
            assert rows_of(round_trip(corpus, new_folder(), format)) == rows_of(corpus)


@given(
    corpus=corpora_of(also=" \t\n\r", empty=True, unknown_documents="anywhere"),
    scheme=st.sampled_from(["iob1", "bmes"]),
)
@often
def test_jsonl_round_trips(new_folder, corpus, scheme):
    assert rows_of(round_trip(corpus, new_folder(), "jsonl", scheme)) == rows_of(corpus)


@pytest.mark.parametrize("format", ["spans", "parquet", "arrow"])
@given(corpus=corpora_of(also=" \t\n\r", empty=True, unknown_documents="anywhere"))
@often
def test_spans_and_tables_round_trip(new_folder, format, corpus):
    assert rows_of(round_trip(corpus, new_folder(), format)) == rows_of(corpus)


@pytest.mark.parametrize("format", ["columns", "conllu", "csv", "jsonl", "parquet", "arrow"])
def test_plain_tags_round_trip(new_folder, format):
    labels = ["NN", "VB", "-LRB-"]
    corpus = train_of([[("a", "NN"), ("(", "-LRB-")], [("go", "VB")]], labels=labels)
    assert rows_of(round_trip(corpus, new_folder(), format)) == rows_of(corpus)


def holds(corpus, character):
    """Whether a word, a part of speech or the name of a document holds a character."""
    rows = [row for split in corpus.values() for row in split]
    texts = [[*row["tokens"], *row.get("pos_tags", []), row.get("doc_id") or ""] for row in rows]
    return any(character in text for row in texts for text in row)


def opens_document(corpus):
    """Whether a token would be taken for a document line."""
    return any(
        token == "-DOCSTART-" or token.startswith("-DOCSTART- ")
        for split in corpus.values()
        for row in split["tokens"]
        for token in row
    )


@pytest.mark.parametrize("name", ["wnut17", "conll2003"])
@pytest.mark.parametrize("format", FORMATS)
def test_real_corpora_round_trip(corpora, new_folder, tmp_path_factory, name, format):
    cache = tmp_path_factory.getbasetemp() / "real"
    corpus = load_corpus(name, corpora, cache)
    again = round_trip(corpus, new_folder(), format)
    for split, dataset in corpus.items():
        assert again[split].features == dataset.features
        table, expected = (found.with_format("arrow")[:] for found in (again[split], dataset))
        assert table.equals(expected)
