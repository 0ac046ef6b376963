import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xorner.corpora import DataError
from hf_xorner.corpora.formats.conll2012 import read_conll2012
from hf_xorner.corpora.source import Reading

BEGIN, END = "#begin document (nw/some/00/some_0001); part 000\n", "#end document\n"


def line(word, entity="*", number=0, pos="NN", arguments=1, separator="   "):
    cells = ["nw/some/00/some_0001", "0", str(number), word, pos, "(TOP*)", "-", "-", "-", "-", entity]
    return separator.join([*cells, *["(V*)"] * arguments, "-"]) + "\n"


def lines(*pairs, **options):
    return "".join(line(word, entity, number, **options) for number, (word, entity) in enumerate(pairs))


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def write(tmp_path):
    return lambda content: written(tmp_path / "some.v4_gold_conll", content)


def read(path, **options):
    return [(sentence.tokens, sentence.tags) for sentence in read_conll2012(path, Reading(**options))]


FIRST = lines(("Ann", "(PERSON*"), ("Lee", "*)"), ("left", "*"), ("Oslo", "(GPE)"))
SECOND = lines(("Rain", "*"), ("/.", "*"), arguments=3)
EXPECTED = [(["Ann", "Lee", "left", "Oslo"], ["B-PERSON", "I-PERSON", "O", "B-GPE"]), (["Rain", "/."], ["O", "O"])]


@pytest.mark.parametrize(
    "content",
    [
        f"{BEGIN}{FIRST}\n{SECOND}\n{END}",
        f"{BEGIN}{FIRST}{END}{BEGIN}{SECOND}",
        f"{FIRST}\n \t\n\n{SECOND}",
        f"{BEGIN}{FIRST}\n{SECOND}\n{END}".replace("   ", "\t"),
        f"{BEGIN}{FIRST}\n{SECOND}\n{END}".replace("   ", " \t  ").replace("\nnw", "\n  nw"),
        f"{BEGIN}{FIRST}\n{SECOND}\n{END}".replace("\n", "\r\n"),
        f"\ufeff{BEGIN}{FIRST}\n\ufeff{SECOND}\n\ufeff{END}",
        f"{BEGIN}{FIRST}\n{SECOND}\n{END}".replace("(GPE)", "(GPE*)"),
        gzip.compress(f"{BEGIN}{FIRST}\n{SECOND}\n{END}".encode()),
    ],
    ids=["usual", "no blank line", "no document", "tabs", "aligned", "crlf", "marks", "starred", "gzip"],
)
def test_variants_of_a_file_read_the_same(write, content):
    assert read(write(content)) == EXPECTED


def test_the_final_line_break_is_optional(write):
    assert read(write(BEGIN + FIRST.rstrip("\n"))) == EXPECTED[:1]


def test_sentences_have_lines_parts_of_speech_and_documents(write):
    path = write(
        f"{BEGIN}{FIRST}\n{SECOND}\n{END}"
        f"#begin document (nw/some/00/some_0001); part 001\n{FIRST}\n{END}{SECOND}\n"
        f"#begin document (a (b)); part 012\n{SECOND}\n{END}#begin document (c)\n{SECOND}"
    )
    sentences = list(read_conll2012(path, Reading()))
    name = "nw/some/00/some_0001"
    assert [sentence.doc_id for sentence in sentences] == [name, name, f"{name}#1", None, "a (b)#12", "c"]
    assert [sentence.line for sentence in sentences] == [2, 7, 12, 18, 22, 27]
    assert sentences[1].place(1) == f"{path}:8"
    assert sentences[0].pos_tags == ["NN"] * 4
    assert [sentence.pos_tags for sentence in read_conll2012(path, Reading(pos_column="none"))] == [None] * 6


def test_columns_are_configurable(write):
    content = "0 Ann NNP - (PERSON) x\n0 left VBD - * x y\n"
    path = write(content)
    (sentence,) = read_conll2012(path, Reading(token_column=1, pos_column="2", tag_column="4"))
    assert sentence[:2] == (["Ann", "left"], ["B-PERSON", "O"])
    assert sentence.pos_tags == ["NNP", "VBD"]


def test_negative_columns_count_from_the_end(write):
    path = write("Ann a b (PERSON) NNP\nleft a * VBD\n".replace(" ", "   "))
    (sentence,) = read_conll2012(path, Reading(token_column=0, pos_column=-1, tag_column=-2))
    assert sentence[:2] == (["Ann", "left"], ["B-PERSON", "O"])
    assert sentence.pos_tags == ["NNP", "VBD"]


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_words_may_contain_other_whitespace_and_line_breaks(write, blank):
    assert read(write(line(f"1{blank}000") + line("km"))) == [([f"1{blank}000", "km"], ["O", "O"])]


def test_words_may_contain_every_other_unicode_whitespace(write):
    blanks = [character for character in map(chr, range(0x110000)) if character.isspace() and character not in " \t\n"]
    for blank in blanks:
        assert read(write(line(f"a{blank}b"))) == [([f"a{blank}b"], ["O"])]


def test_adjacent_entities_of_one_type_stay_separate(write):
    cells = ["(A)", "(A*", "*", "*)", "(A)", "*", "(B*", "*)", "(A*)"]
    ((_, tags),) = read(write(lines(*(("w", cell) for cell in cells))))
    assert tags == ["B-A", "B-A", "I-A", "I-A", "B-A", "O", "B-B", "I-B", "B-A"]


def test_sentences_are_read_lazily(write):
    sentences = read_conll2012(write(f"{FIRST}\nbroken\n\n"), Reading())
    assert next(sentences).tokens == EXPECTED[0][0]
    with pytest.raises(DataError):
        next(sentences)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("conll2012") / "some.gold_conll"


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\ufeff"), min_size=1).filter(
    lambda word: not word.endswith("\r") and word != "[WORD]"
)
CHUNKS = st.tuples(st.sampled_from(["", "PERSON", "WORK_OF_ART"]), st.lists(WORDS, min_size=1, max_size=3))


@given(
    sentences=st.lists(st.lists(CHUNKS, min_size=1), min_size=1), separator=st.sampled_from([" ", "   ", "\t", " \t"])
)
def test_any_words_and_entities_round_trip(path, sentences, separator):
    expected, content = [], BEGIN
    for chunks in sentences:
        tokens, tags = [], []
        for label, words in chunks:
            for index, word in enumerate(words):
                cell = (
                    "(" * (index == 0) + label * (index == 0) + "*" + ")" * (index == len(words) - 1) if label else "*"
                )
                content += line(word, "(" + label + ")" if label and len(words) == 1 else cell, separator=separator)
                tokens.append(word)
                tags.append(f"{'I' if index else 'B'}-{label}" if label else "O")
        content += "\n"
        expected.append((tokens, tags))
    assert read(written(path, content + END)) == expected


OPEN = lines(("Ann", "(PERSON*"), ("left", "*"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: the file holds no sentence"),
        (BEGIN + "\n" + END, ":1: the file holds no sentence"),
        (f"{FIRST}Ann O\n", ":5: 2 columns where CoNLL-2012 has 11 or more"),
        ("Ann\n", ":1: 1 column where CoNLL-2012 has 11 or more"),
        (f"{FIRST}{line('a', '*)')}", ":5: '*)' closes an entity where none is open"),
        (
            f"{OPEN}{line('Bo', '(ORG*')}",
            ":3: the entity '(ORG*' begins inside another of type PERSON, open since line 1",
        ),
        (
            f"\n{OPEN}{line('Bo', '(ORG)')}",
            ":4: the entity '(ORG)' begins inside another of type PERSON, open since line 2",
        ),
        (f"{FIRST}\n{OPEN}\n{SECOND}", ":6: the entity of type PERSON is still open at the end of its sentence"),
        (f"{OPEN}", ":1: the entity of type PERSON is still open at the end of its sentence"),
        *(
            (
                f"{FIRST}{line('a', cell)}",
                f":5: unknown cell {cell!r}",
            )
            for cell in ("-", "O", "B-PER", "(PERSON", "PERSON)", ")", "(*", "()", "**", "(A(B*", "(A*))", "*))")
        ),
        (f"{BEGIN}{line('Ann')}{line('[WORD]')}", ":3: the words have been taken out of this file"),
        (f"#begin\n{FIRST}", ":1: unknown line '#begin'"),
        (f"{FIRST}# a comment\n", ":5: unknown line '# a comment'"),
        ("#begin document (a); part x\n", ":1: unknown line '#begin document (a)"),
        (FIRST.replace("Oslo", "Tromsø").encode() + b"\xe9\n", ":5: byte 0xe9 is not valid UTF-8"),
    ],
)
def test_invalid_files_raise_with_file_and_line(write, content, message):
    path = write(content)
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_column_names_that_are_not_numbers_raise(write):
    with pytest.raises(DataError) as error:
        read(write(FIRST), tag_column="ner")
    assert str(error.value).startswith("tag_column='ner' is not a number")
