"""Writing corpora: formats, refusals and round trips."""

import pytest
from corpus_files import split_of
from datasets import Dataset, DatasetDict, disable_progress_bars, load_from_disk
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.corpora import DataError, load_corpus, xor_corpus
from hf_xorner.corpora.assemble import corpus_fingerprint
from hf_xorner.corpora.schemes import WRITTEN_SCHEMES
from hf_xorner.corpora.source import WRITTEN_FORMATS
from hf_xorner.corpora.write import write_corpus

LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]

disable_progress_bars()


def split_of_pairs(sentences, labels=LABELS, **columns):
    """A split from sentences of (token, tag)."""
    tokens = [[token for token, _ in sentence] for sentence in sentences]
    tags = [[tag for _, tag in sentence] for sentence in sentences]
    return split_of(tokens, tags, labels, **columns)


def rows_of(corpus):
    """The content of a corpus, independent of how its labels are numbered."""
    rows = {}
    for name, split in corpus.items():
        labels = [*split.features["ner_tags"].feature.names, "?"]
        rows[name] = [
            (row["tokens"], [labels[tag] for tag in row["ner_tags"]], row.get("pos_tags"), row.get("doc_id"))
            for row in split
        ]
    return rows


SENTENCES = [
    [("Ann", "B-PER"), ("Lee", "I-PER"), ("Bo", "B-PER"), ("left", "O")],
    [("Rain", "O")],
    [("New", "B-LOC"), ("York", "I-LOC"), ("City", "I-LOC")],
]
POS = [["NNP", "NNP", "NNP", "VBD"], ["NN"], ["NNP", "NNP", "NNP"]]


def train_of(sentences=SENTENCES, **columns):
    return DatasetDict(train=split_of_pairs(sentences, **columns))


def written(corpus, folder, *arguments, **options):
    """The text of the only file written."""
    (path,) = write_corpus(corpus, folder, *arguments, **options)
    return path.read_bytes().decode()


def test_the_fingerprint_is_that_of_splits_labels_words_and_tags(tmp_path):
    # Fixed, as facts.json of older versions has it.
    expected = "7b0f4c481e636e5ef66e4923604b11e855e925809d0f1d1aea863b107f0699e9"
    assert corpus_fingerprint(train_of(pos=POS)) == expected
    for format in WRITTEN_FORMATS:
        write_corpus(train_of(), tmp_path / format, format)
        assert corpus_fingerprint(load_corpus(tmp_path / format, pos_column="none")) == expected


# --- Formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("docs", "text"),
    [
        (["0", "0", "1"], "-DOCSTART-\t-X-\tO\n\nAnn\tB-PER\n\nBo\tO\n\n-DOCSTART-\t-X-\tO\n\nOslo\tB-LOC\n\n"),
        ([None, "0", "1"], "Ann\tB-PER\n\n-DOCSTART-\t-X-\tO\n\nBo\tO\n\n-DOCSTART-\t-X-\tO\n\nOslo\tB-LOC\n\n"),
        (["a b", "a b", "1"], "-DOCSTART-\t(a b)\n\nAnn\tB-PER\n\nBo\tO\n\n-DOCSTART-\t-X-\tO\n\nOslo\tB-LOC\n\n"),
    ],
)
def test_documents_of_columns_begin_with_a_line(tmp_path, docs, text):
    corpus = train_of([[("Ann", "B-PER")], [("Bo", "O")], [("Oslo", "B-LOC")]], docs=docs)
    assert written(corpus, tmp_path, "conll") == text
    assert rows_of(load_corpus(tmp_path)) == rows_of(corpus)


def test_parts_of_speech_are_the_second_column(tmp_path):
    assert written(train_of(pos=POS), tmp_path, "conll").startswith("Ann\tNNP\tB-PER\n")


def test_json_has_all_columns(tmp_path):
    sentences = [[("Ané", "B-PER"), ('"', "I-PER")], [("\u2028", "O")]]
    corpus = train_of(sentences, pos=[["A", "B"], ["C"]], docs=["d", None])
    assert written(corpus, tmp_path, "jsonl", "bioes") == (
        '{"tokens": ["Ané", "\\""], "ner_tags": ["B-PER", "E-PER"], "pos_tags": ["A", "B"], "doc_id": "d"}\n'
        '{"tokens": ["\u2028"], "ner_tags": ["O"], "pos_tags": ["C"]}\n'
    )


def test_spans_count_characters(tmp_path):
    corpus = train_of([[("Ann", "B-PER"), ("👩🏽‍🚀", "I-PER"), ("Bo", "B-PER"), ("!", "O")], []])
    assert written(corpus, tmp_path, "spans") == (
        '{"text": "Ann 👩🏽‍🚀 Bo !", "spans": [[0, 8, "PER"], [9, 11, "PER"]], '
        '"tokens": [[0, 3], [4, 8], [9, 11], [12, 13]]}\n{"text": "", "spans": [], "tokens": []}\n'
    )


def test_tables_keep_every_column(tmp_path):
    corpus = xor_corpus(train=16, validation=8, test=8, names=4, alone=1)
    for path, split in zip(write_corpus(corpus, tmp_path / "p", "parquet"), corpus.values(), strict=True):
        again = Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
        assert (again.features, again.to_list()) == (split.features, split.to_list())
    write_corpus(corpus, tmp_path / "a", "arrow")
    again = load_from_disk(tmp_path / "a")
    assert {name: split.to_list() for name, split in again.items()} == {
        name: split.to_list() for name, split in corpus.items()
    }


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "corpus", "message"),
    [
        (("conll",), train_of([[("a", "O"), ("a\tb", "O")]]), "row 0"),
        (("conll",), train_of([[("a", "O"), ("", "O")]]), "row 0"),
        (("conll",), train_of([[("a", "O"), ("-DOCSTART-", "O")]]), "row 0"),
        (("conll",), train_of([[("a", "O")]], pos=[["N\tN"]]), r"'N\\tN'"),
        (("conll",), train_of([[("a", "B-x\ty")]], labels=["O", "B-x\ty", "I-x\ty"]), r"'B-x\\ty'"),
        (("spans",), train_of([[("a", "NN")]], labels=["NN", "O"]), "only hold entities"),
        (("spans",), train_of([[("a", "O"), ("b", "?")]]), "only hold entities, not '\\?'"),
        (
            ("conll",),
            DatasetDict(train=split_of_pairs(SENTENCES[:2]).add_column("doc_id", ["x", None])),
            "row 1: has no document",
        ),
        (("xml",), train_of(), "format='xml'"),
        (("conll", "iobes"), train_of(), "scheme='iobes'"),
        (("parquet", "bioes"), train_of(), "scheme='bioes'"),
        (("jsonl",), DatasetDict({"../x": split_of_pairs(SENTENCES)}), "found ../x"),
        (("jsonl",), DatasetDict(train=Dataset.from_dict({"tokens": [["a"]], "tags": [["O"]]})), "load_corpus"),
    ],
)
def test_corpora_that_a_format_cannot_hold_are_refused(tmp_path, arguments, corpus, message):
    with pytest.raises(DataError, match=message):
        write_corpus(corpus, tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("format", WRITTEN_FORMATS)
def test_files_are_overwritten_only_on_request(tmp_path, format):
    old, new = train_of(), train_of([[("other", "B-PER"), ("words", "B-LOC")]])
    (path,) = write_corpus(old, tmp_path, format)
    with pytest.raises(DataError, match="exists already"):
        write_corpus(new, tmp_path, format)
    assert rows_of(load_corpus(tmp_path, pos_column="none")) == rows_of(old)
    assert write_corpus(new, tmp_path, format, overwrite=True) == [path]
    assert rows_of(load_corpus(tmp_path, pos_column="none")) == rows_of(new)


# --- Round trips ------------------------------------------------------------------------------------------------------

ODD = ["\u00a0", "\u2028", "\u0085", "\u3000", "\x0b", "\x1c", "e\u0301", "👩🏽‍🚀", '"', "\\", "#", "*", "(x)", "-", "O", "B-PER", "{}", "東"]  # noqa: E501  # fmt: skip
TYPES = ["PER", "art-work", "É", "O", "B-x", "{}"]


def texts(also=""):
    letters = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff ")
    pieces = st.one_of(st.sampled_from([*ODD, *also]), st.text(letters, min_size=1, max_size=3))
    return st.lists(pieces, min_size=1, max_size=3).map("".join)


@st.composite
def corpora_of(draw, also="", unknown=False):
    """Corpora of IOB2, with or without parts of speech, documents and a test split."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    labels = ["O", *(f"{prefix}-{name}" for name in sorted(types) for prefix in "BI")]
    word = texts(also).map(lambda text: text.strip(" ") or text)  # reading removes blanks around words
    with_pos, with_docs, splits = draw(st.booleans()), draw(st.booleans()), {}
    for split in draw(st.sampled_from([["train"], ["train", "test"]])):
        # Reading refuses a type without an example in training.
        sentences = [[(draw(word), f"B-{name}") for name in types]]
        for _ in range(draw(st.integers(1, 4))):
            names = draw(st.lists(st.sampled_from([None, *types, *(["?"] if unknown else [])]), min_size=1, max_size=5))
            tags = []
            for before, name in zip([None, *names], names, strict=False):
                inside = name is not None and name == before and draw(st.booleans())
                tags.append("O" if name is None else name if name == "?" else f"{'I' if inside else 'B'}-{name}")
            sentences.append([(draw(word), tag) for tag in tags])
        pos = [[draw(st.sampled_from(["NN", "VB"])) for _ in sentence] for sentence in sentences]
        docs = [draw(texts().filter(lambda name: name == name.strip())) for _ in sentences]
        columns = {"pos": pos if with_pos else None, "docs": docs if with_docs else None}
        splits[split] = split_of_pairs(sentences, labels, **columns)
    return DatasetDict(splits)


@pytest.mark.parametrize("format", WRITTEN_FORMATS)
@given(data=st.data())
def test_every_format_round_trips(tmp_path_factory, format, data):
    # The reader of CSV takes a word with lines and commas for quotation marks that are not doubled.
    also = {"conll": " ", "csv": " \t"}.get(format, " \t\n\r")
    corpus = data.draw(corpora_of(also, unknown=format != "spans"))
    scheme = data.draw(st.sampled_from(WRITTEN_SCHEMES)) if format in ("conll", "csv", "jsonl") else "iob2"
    folder = tmp_path_factory.mktemp("written")
    write_corpus(corpus, folder, format, scheme)
    has_pos = "pos_tags" in corpus["train"].column_names
    column = {"conll": "1", "csv": "pos"}.get(format, "pos_tags") if has_pos else "none"
    # With so few tags, the columns of one that looks like another must be named.
    columns = {"token_column": 0, "tag_column": -1} if format == "conll" else {}
    again = load_corpus(folder, scheme=scheme, pos_column=column, comments="none", **columns)
    assert rows_of(again) == rows_of(corpus)


@pytest.mark.parametrize("format", ["conll", "csv", "jsonl", "parquet", "arrow"])
def test_plain_tags_round_trip(tmp_path, format):
    corpus = train_of([[("a", "NN"), ("(", "-LRB-")], [("go", "VB")]], labels=["NN", "VB", "-LRB-"])
    write_corpus(corpus, tmp_path, format)
    assert rows_of(load_corpus(tmp_path, pos_column="none")) == rows_of(corpus)
