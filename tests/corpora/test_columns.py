"""Files of columns, of CoNLL-2012, and the signs of a wrong column."""

import gzip

import pytest
from column_samples import SAMPLES, TOKENS, lines
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora.assemble import words_and_tags

pytest_plugins = "corpus_files"

EXPECTED = [("Ann left", "B-PER O"), ("Rain", "O")]


@pytest.mark.parametrize(
    "content",
    [
        "Ann\tB-PER\nleft\tO\n\nRain\tO\n\n",
        "Ann NNP x B-PER\nleft VBD y O\n\nRain NN z O",
        "Ann   NNP B-PER\nleft  VBD\t    O  \n\n\n\n Rain NN O\n",
        "Ann\tB-PER\r\nleft\tO\r\n\r\nRain\tO\r\n",
        "\ufeffAnn\tB-PER\nleft\tO\n\t\n\ufeffRain\tO\n",
        "\n\nAnn B-PER\nleft O\n\ufeff\nRain O\n",
        "Ann \tB-PER\n left\tO \n\nRain  \tO\n",
        "-DOCSTART- -X- O O\n\nAnn a b B-PER\nleft a b O\n-DOCSTART- -X- O O\nRain a b O\n",
        "-DOCSTART- O\n\nAnn\tB-PER\nleft\tO\n\n-DOCSTART-\nRain\tO\n",
    ],
)
def test_variants_of_a_file_read_the_same(read, content):
    assert read(content) == EXPECTED


@given(
    rows=st.lists(
        st.tuples(st.text(st.sampled_from("wé\u00a0\u2028\u0085\x0b\x1c#"), min_size=1), st.sampled_from("nb"))
    ),
    ends=st.sampled_from(["\n", "\r\n"]),
    blank=st.sampled_from(["", "\t", " "]),
)
def test_words_may_hold_any_other_blanks_and_line_breaks(tmp_path_factory, rows, ends, blank):
    """Lines are compared with a reader that splits at ``\\n`` and TABs."""
    path = tmp_path_factory.mktemp("columns") / "x.tsv"
    text = ends.join(["first\tB-X", *(f"{word}\tO{ends + blank if end == 'b' else ''}" for word, end in rows)])
    path.write_bytes(text.encode())
    expected, inside = [], []
    for line in text.split("\n"):
        if line.strip("\r\t "):
            inside.append(line.split("\t")[0])
        elif inside:
            expected.append(inside)
            inside = []
    assert list(load_corpus(path)["train"]["tokens"]) == [*expected, *([inside] if inside else [])]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("New York\tB-LOC\nis fine\tO\n", {}, [("New York is fine", "B-LOC O")]),
        ("-DOCSTART-ed O\n", {}, [("-DOCSTART-ed", "O")]),
        ("1 a DT O\n2 b NN B-X\n", {"token_column": 1}, [("a b", "O B-X")]),
        ("a DT O\nb NN B-X\n", {"tag_column": 1}, [("a b", "DT NN")]),
        ("a O x\nb B-X y\n", {"tag_column": "-2"}, [("a b", "O B-X")]),
        ("a b\tO\n", {"separator": "blank"}, [("a", "O")]),
        ("a O\tB-X\n", {"separator": "tab"}, [("a O", "B-X")]),
        ("a ? f f\nb B-X f f\nc O f f\n", {}, [("a b c", "? B-X O")]),
        ("# id = 1\n# text = a b\na O\nb O\n\n# id = 2\nc O\n", {}, [("a b", "O O"), ("c", "O")]),
        ("# O\na O\n", {}, [("# a", "O O")]),
        ("#a O\nb O\n", {}, [("#a b", "O O")]),
        ("# c\na O\n# d e\nb O\n", {"comments": "# "}, [("a b", "O O")]),
        ("% c O\na O\n\n%% O\nb O\n", {"comments": "%"}, [("a", "O"), ("b", "O")]),
        ("% c O\n# d O\na O\n", {"comments": "%|#"}, [("a", "O")]),
        ("# O\na O\n", {"comments": "none"}, [("# a", "O O")]),
    ],
)
def test_columns_and_comments_are_configurable(read, content, options, expected):
    assert read(content, **options) == expected


@pytest.mark.parametrize(
    ("content", "options", "pos"),
    [
        ("a DT O\nb NN O\n", {}, ["DT", "NN"]),
        ("a DT B-NP O\nb NN O O\n", {}, ["DT", "NN"]),
        ("a O\n", {}, None),
        ("a x DT B-NP O\n", {}, None),
        ("a x DT B-NP O\n", {"pos_column": 2}, ["DT"]),
        ("a DT O\nb NN O\n", {"pos_column": "none"}, None),
        # Values that do not look like parts of speech.
        ("a _ O\nb _ O\n", {}, None),
        ("".join(f"a lemma{number} O\n" for number in range(129)), {}, None),
    ],
)
def test_the_second_of_three_or_four_columns_is_the_part_of_speech(load, content, options, pos):
    split = load(content, **options)
    assert (split["pos_tags"][0] if "pos_tags" in split.column_names else None) == pos


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        ("-DOCSTART- -X- O\n\na O\n\nb O\n\n-DOCSTART- O\n\nc O\n", ["0", "0", "1"]),
        ("-DOCSTART- (x/y 1)\n\na O\n-DOCSTART-\nb O\n", ["x/y 1", "1"]),
        ('<doc id="x">\na O\n</doc>\n<DOC>\n<doc O\n</DOC>', ["x", "1"]),
    ],
)
def test_sentences_have_documents(load, content, documents):
    assert list(load(content)["doc_id"]) == documents


# --- CoNLL-2012 -------------------------------------------------------------------------------------------------------

BEGIN, END = "#begin document (nw/some/00/some_0001); part 000\n", "#end document\n"


def line(word, entity="*", separator="   ", arguments=1):
    cells = ["nw/some/00/some_0001", "0", "0", word, "NN", "(TOP*)", "-", "-", "-", "-", entity]
    return separator.join([*cells, *["(V*)"] * arguments, "-"]) + "\n"


FIRST = "".join(map(line, ("Ann", "Lee", "left", "Oslo"), ("(PERSON*", "*)", "*", "(GPE)")))
SECOND = line("Rain", arguments=3) + line("/.", arguments=3)
DOCUMENT = f"{BEGIN}{FIRST}\n{SECOND}\n{END}"


@pytest.mark.parametrize(
    "content",
    [
        DOCUMENT,
        f"{FIRST}\n \t\n\n{SECOND}",
        "\ufeff" + DOCUMENT.replace("\n", "\r\n"),
        DOCUMENT.replace("(GPE)", "(GPE*)"),
        gzip.compress(DOCUMENT.encode()),
    ],
)
def test_variants_of_conll2012_read_the_same(read, content):
    expected = [("Ann Lee left Oslo", "B-PERSON I-PERSON O B-GPE"), ("Rain /.", "O O")]
    assert read(content, "x.v4_gold_conll") == expected


def test_conll2012_has_documents_and_parts_of_speech(load):
    content = (
        f"{DOCUMENT}#begin document (nw/some/00/some_0001); part 001\n{FIRST}\n{END}{SECOND}\n"
        f"#begin document (a (b)); part 012\n{SECOND}\n{END}#begin document (c)\n{SECOND}"
    )
    split, name = load(content, "x.txt"), "nw/some/00/some_0001"
    assert list(split["doc_id"]) == [name, name, f"{name}#1", None, "a (b)#12", "c"]
    assert split["pos_tags"][0] == ["NN"] * 4


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\ufeff"), min_size=1).filter(
    lambda word: not word.endswith("\r") and word != "[WORD]"
)
CHUNKS = st.tuples(st.sampled_from(["", "PERSON", "WORK_OF_ART"]), st.lists(WORDS, min_size=1, max_size=3))


@given(
    sentences=st.lists(st.lists(CHUNKS, min_size=1), min_size=1), separator=st.sampled_from([" ", "   ", "\t", " \t"])
)
def test_any_words_and_entities_of_conll2012_are_read(tmp_path_factory, sentences, separator):
    path = tmp_path_factory.mktemp("conll2012") / "x.gold_conll"
    words, tags, content = [], [], BEGIN
    for chunks in sentences:
        words.append([])
        tags.append([])
        for label, tokens in chunks:
            for index, word in enumerate(tokens):
                first, last = index == 0, index == len(tokens) - 1
                opening = f"({label}" if first and label else ""
                cell = f"({label})" if first and last and label else f"{opening}*{')' if last and label else ''}"
                content += line(word, cell, separator=separator)
                words[-1].append(word)
                tags[-1].append(f"{'B' if first else 'I'}-{label}" if label else "O")
        content += "\n"
    path.write_bytes((content + END).encode())
    assert words_and_tags(load_corpus(path, token_column=3, tag_column=10)["train"]) == (words, tags)


# --- Words and tags from a wrong column -------------------------------------------------------------------------------


def rows(row):
    """A file of 40 words in sentences of 8."""
    return "".join("\t".join(row(n, f"w{'abcdefgh'[n % 8]}")) + "\n" + "\n" * (n % 8 == 7) for n in range(40))


REFUSED = {
    "numbers": (rows(lambda n, word: (str(n * 7 % 100), word, "O" if n % 2 else "B-X")), "token_column"),
    "an annotator": (rows(lambda n, word: (word, "-", "stephen")), "tag_column"),
    "features": (rows(lambda n, word: (word, "NN", f"Number={n}")), "tag_column"),
    "many tags": ("".join(f"word{n % 400}\tT{n % 101}\n" for n in range(2000)), "tag_column"),
    "one like a tag": (rows(lambda n, word: (word, "B-52" if n == 3 else f"text{n}")), "tag_column"),
    "BRAT": (rows(lambda n, word: (f"T{n}", f"Person {n} {n + 3}", f"Ann {n}")), "tag_column"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words_and_tags_from_a_wrong_column_are_refused(load, name):
    content, option = REFUSED[name]
    with pytest.raises(DataError, match=option):
        load(content)
    if name != "one like a tag":
        assert len(load(content, **{option: -1 if option == "tag_column" else 0})) > 0


def test_plain_tags_are_noted(load, caplog):
    text = "".join(f"{n % 500}word\tT{n % 100}\n\n" for n in range(1000))
    assert len(load(text).features["ner_tags"].feature.names) == 100
    assert "100 different ones, such as 'T0'" in caplog.text and "each word has a separate label" in caplog.text


def test_types_without_prefixes_are_noted(load, caplog):
    load(rows(lambda n, word: (word, "PER" if n % 3 else "O")))
    assert "the tags (2 different ones, such as 'PER') have no prefixes" in caplog.text


@pytest.mark.parametrize(
    ("form", "strip"), [("en:{}", "^en:"), ("zh-classical:{}", "^zh-classical:"), ("{}0", "[0-9]$")]
)
def test_prefixes_and_digits_are_noted_and_can_be_removed(load, caplog, form, strip):
    text = lines(lambda n, word, tag, pos: (form.format("x" if word == "2" else word), tag))
    words = [["x" if word == "2" else word for word in sentence] for sentence in TOKENS]
    assert list(load(text)["tokens"]) == [[form.format(word) for word in row] for row in words]
    (message,) = caplog.messages
    assert f"strip='{strip}'" in message
    caplog.clear()
    assert list(load(text, strip=strip)["tokens"]) == words
    assert not caplog.records


def test_a_word_that_strip_empties_is_refused(load):
    text = "en:a O\nen: O\n\nen: O\n"
    with pytest.raises(DataError, match=r":2: nothing is left of the word 'en:'"):
        load(text, strip="^en:")
    assert list(load(text, strip="^en:", skip_bad_lines=True)["tokens"]) == [["a"]]


# --- Bad lines --------------------------------------------------------------------------------------------------------

BAD = {
    "columns by TAB": ("\t", "1 columns"),
    "columns by blanks": (" ", "1 columns"),
    "CoNLL-U of Stanza": ("\t", "1 columns"),
    "CSV without a header": (",", "the tag is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_left_out_and_listed_on_request(load, caplog, tmp_path, name):
    file, content = SAMPLES[name]
    separator, fault = BAD[name]
    lines, words = content.decode().split("\n"), ("gestern", "heißt", "kaufte")
    numbers = [number for number, line in enumerate(lines) if any(word in line for word in words)]
    for number in numbers:
        lines[number] = lines[number].split(separator)[0]
    with pytest.raises(DataError, match=rf":{numbers[0] + 1}: {fault}.*, or pass skip_bad_lines\.$"):
        load("\n".join(lines), file)
    caplog.clear()
    dataset = load("\n".join(lines), file, skip_bad_lines=True)
    assert list(dataset["tokens"]) == [[word for word in row if word not in words] for row in TOKENS]
    first, *listed = caplog.messages[-1].split("\n  ")
    assert "3 bad lines or records were left out" in first
    for line, number in zip(listed, numbers, strict=True):
        assert line.startswith(f"{tmp_path / file}:{number + 1}: {fault}")


def test_words_with_tags_of_no_scheme_are_left_out_as_well(read, caplog):
    text = "Ann B-PER\nleft 0\nOslo LOC\n\nx y z\n\nBo B-PER\nLee I-PER\n"
    assert read(text, skip_bad_lines=True) == [("Ann", "B-PER"), ("Bo Lee", "B-PER I-PER")]
    assert [line.split(": ")[0][-2:] for line in caplog.messages[-1].split("\n")[1:]] == [":5", ":2", ":3"]


def test_many_bad_lines_are_listed_in_part(read, caplog):
    read("Ann B-PER\nleft O\n\n" + "bad\n" * 1234 + "\nwell O\n", skip_bad_lines=True)
    assert caplog.messages[-1].endswith("and 1,224 more")


def test_skipped_lines_do_not_change_the_columns(read, caplog):
    text = "Ann B-PER x%1\nLee I-PER y%2\nleft O z%3\n" * 4
    bad = text + "\nBo B-PER\nbad\nworse\nAda X-PER v%9\n"
    assert read(bad, skip_bad_lines=True) == [*read(text), ("Bo", "B-PER")]
    assert "3 bad lines or records were left out, 1 of them with tags of entities" in caplog.text


def test_strict_refuses_lines_that_would_be_skipped(read):
    with pytest.raises(DataError, match=r"x\.conll:2: 1 columns"):
        read("Ann B-PER\nbad\nBo B-PER\n", skip_bad_lines=True, strict=True)
