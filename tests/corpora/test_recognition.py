"""Files of columns and rows as other programs write them are read without options, or refused with the reason."""

import json
import os
from collections import Counter

import pytest
from column_samples import POS, SAMPLES, SENTENCES, TAGS, TOKENS, conllu, germeval, lines, stanza, uner, with_ranges

from hf_xorner.corpora import DataError, corpus_statistics, load_corpus

CORPORA = os.environ.get("HF_XORNER_CORPORA")
WORDS = [word for sentence in TOKENS for word in sentence]


@pytest.fixture
def load(tmp_path):
    def load(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_corpus(path, **options)["train"]

    return load


@pytest.fixture
def refusal(load, tmp_path):
    def refusal(name, content, **options):
        with pytest.raises(DataError) as error:
            load(name, content, **options)
        message = str(error.value)
        assert message.startswith(str(tmp_path / name))
        assert message.endswith(".") and "\n" not in message
        return message.removeprefix(str(tmp_path / name))

    return refusal


def tags_of(dataset):
    names = dataset.features["ner_tags"].feature.names
    return [[names[tag] for tag in row] for row in dataset["ner_tags"]]


# --- Formats ----------------------------------------------------------------------------------------------------------

NOTED = {
    "Latin-1": "read as Latin-1",
    "Windows-1252": "read as Windows-1252",
    "UTF-16": "read as UTF-16",
    "tags first": "words are read from column 1 and tags from column 0",
    "features after the tag": "words are read from column 0 and tags from column 1",
    "UNER": "words are read from column 1 and tags from column 2",
    "UNER as it was": "words are read from column 1 and tags from column 2",
    "GermEval": "tags from column 2, counted from 0, though column 3 holds tags of entities, too",
    "CoNLL-U of Stanza": "the tags are those of MISC (ner=)",
    "CoNLL-U Plus": "the tags are those of EXTRA:NER",
    "Kaggle": "read as Latin-1",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_files_are_recognised(load, name, caplog):
    file, content = SAMPLES[name]
    dataset = load(file, content)
    assert list(dataset["tokens"]) == TOKENS
    assert tags_of(dataset) == TAGS
    notes = [record.getMessage() for record in caplog.records if "repaired" not in record.getMessage()]
    assert len(notes) == (name in NOTED)
    assert NOTED.get(name, "") in "".join(notes)


@pytest.mark.parametrize("name", SAMPLES)
def test_recognised_files_have_the_known_counts(tmp_path, name):
    file, content = SAMPLES[name]
    (tmp_path / file).write_bytes(content)
    found = corpus_statistics(load_corpus(tmp_path / file))["train"]
    counts = Counter(tag[2:] for sentence in TAGS for tag in sentence if tag.startswith("B-"))
    assert (found["sentences"], found["tokens"], found["entities"]) == (5, len(WORDS), sum(counts.values()))


@pytest.mark.parametrize("name", ["UNER", "UNER as it was", "CoNLL-U of Stanza"])
def test_errors_name_the_line_of_the_word(refusal, name):
    file, content = SAMPLES[name]
    text = content.decode().replace("\tB-ORG", "\tX-ORG").replace("ner=B-ORG", "ner=X-ORG")
    line = next(at for at, line in enumerate(text.split("\n"), start=1) if "Nokia" in line)
    assert refusal(file, text, scheme="iob2").startswith(f":{line}: unknown tag 'X-ORG'")


def test_parts_of_speech_are_read_beside_entities(load):
    for name in ("columns by blanks", "CoNLL-U of Stanza", "CoNLL-U Plus", "Kaggle"):
        assert list(load(*SAMPLES[name])["pos_tags"]) == POS, name
    unknown = [["_" if n % 3 == 0 else pos for n, pos in enumerate(row, start=1)] for row in POS]
    assert list(load(*SAMPLES["lines without features"])["pos_tags"]) == unknown


def test_b_o_of_universal_ner_is_outside_of_entities(load, caplog):
    assert "B-O" not in {tag for row in tags_of(load(*SAMPLES["UNER as it was"])) for tag in row}
    assert "3 tags B-O became O (first:" in caplog.text
    # Elsewhere, O may be the name of a type.
    assert tags_of(load("y.conll", "a B-O\nb B-PER\n")) == [["B-O", "B-PER"]]


def test_inner_entities_of_germeval_are_an_option_away(load, caplog):
    dataset = load("x.tsv", lines(germeval), tag_column=3)
    assert tags_of(dataset)[0] == ["O", "B-LOCpart", "O", "O", "O", "O"]
    assert list(dataset["tokens"]) == TOKENS


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, POS),
        ({"tag_column": "upos"}, POS),
        ({"tag_column": "XPOS"}, [[f"X{pos}" for pos in row] for row in POS]),
        ({"tag_column": 4}, [[f"X{pos}" for pos in row] for row in POS]),
        ({"tag_column": -7}, POS),
        ({"tag_column": "misc"}, [["SpaceAfter=No" for _ in row] for row in POS]),
        ({"tag_column": "SpaceAfter"}, [["No" for _ in row] for row in POS]),
    ],
)
def test_conllu_has_parts_of_speech_or_any_other_column(load, options, expected):
    dataset = load("x.conllu", with_ranges(lines(conllu)), **options)
    assert list(dataset["tokens"]) == TOKENS
    assert tags_of(dataset) == expected


def test_conllu_is_recognised_whatever_its_suffix(load, caplog):
    assert tags_of(load("x.txt", lines(conllu))) == POS
    assert "the tags are those of UPOS; name others as tag_column (upos, xpos, misc)" in caplog.text


def test_entities_of_conllu_may_be_in_some_words_only(load):
    text = lines(lambda n, word, tag, pos: conllu(n, word, tag, pos, "_" if tag == "O" else f"NER={tag}|SpaceAfter=No"))
    assert tags_of(load("x.conllu", text)) == TAGS


def test_conllu_has_documents(load):
    text = lines(stanza, before="# newdoc id = d {}\n# sent_id = 1\n")
    assert list(load("x.conllu", text)["doc_id"]) == [f"d {n}" for n in range(1, 6)]
    assert list(load("y.conllu", f"# newdoc\n{lines(stanza)}")["doc_id"]) == ["0"] * 5


def test_no_such_column_of_conllu_raises(refusal):
    assert refusal("x.conllu", lines(conllu), tag_column="ner").startswith(
        ":1: no column tag_column=ner; give a number"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"tag_column": "POS"}, POS), ({"token_column": "word", "tag_column": 3}, TAGS), ({"tag_column": -1}, TAGS)],
)
def test_columns_of_csv_have_names_and_numbers(load, options, expected):
    assert tags_of(load(*SAMPLES["Kaggle"], **options)) == expected


def test_quotation_marks_are_read_as_the_file_writes_them(load):
    text = 'sentence_id,word,tag\n1,"""",O\n1,"a,b",B-X\n1,"c\nd",I-X\n2,e,O\n'
    assert list(load("x.csv", text)["tokens"]) == [['"', "a,b", "c\nd"], ["e"]]
    assert list(load("x.tsv", 'word\ttag\n"\tO\n"a\tB-X\n\nb\tO\n')["tokens"]) == [['"', '"a'], ["b"]]
    assert list(load("y.tsv", 'word\ttag\n""""\tO\n"a"\tB-X\n\nb\tO\n')["tokens"]) == [['"', "a"], ["b"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\nx,O\n", ":1: no column of words named token or tokens, but a, b; name it as token_column"),
        ("word,pos\nx,NN\n", ":1: no column of tags named ner_tag or ner_tags, but word, pos; name it as tag_column"),
        ("word,tag\nx,O\n,B-X\n", ":3: the token is empty"),
        ("word,tag\nx,O\ny\n", ":3: the tag is empty"),
        ('word,tag\nx,O\n"y,O\nz,O\n', ":3: the quotation marks of the row do not match"),
        ("text,tags\nx y,O\n", None),
        ("text,tags\nx y,O O\nx y,O B-X I-X\n", ":3: 2 tokens but 3 tags"),
        ("text,label\n" + "I liked it,good\n" * 20, ":1: column 0 holds texts and column 1 one tag for each"),
        ("word,tag\n" + "a,O\nb,B-X\n" * 600, ":1002: 1,000 words, and no sentence has ended"),
        ("\n\n", ":1: the file holds no sentence"),
        ("word,tag\n", ":1: the file holds no sentence"),
    ],
)
def test_faulty_tables_raise_with_file_and_line(load, refusal, content, message):
    if message is None:
        assert list(load("x.csv", content)["tokens"]) == [["x y"]]
    else:
        assert refusal("x.csv", content).startswith(message)


# --- Encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp1251", "utf-16", "utf-8"])
def test_the_encoding_is_an_option(load, encoding, caplog):
    text = "Анна\tB-PER\nушла\tO\n" if encoding == "cp1251" else "Zoë\tB-PER\nging\tO\n"
    (tokens,) = load("x.conll", text.encode(encoding), encoding=encoding)["tokens"]
    assert tokens == [line.split("\t")[0] for line in text.splitlines()]
    assert not caplog.records


@pytest.mark.parametrize("encoding", ["latin-99", "hex", ""])
def test_unknown_encodings_raise(encoding):
    with pytest.raises(DataError, match=r"encoding='.*' is unknown; give utf-8, latin-1"):
        load_corpus("x.conll", encoding=encoding)


def test_a_bracket_at_the_start_of_columns_in_latin_1_is_a_word(load):
    assert list(load("x.conll", "[ O\nZoë B-PER\n] O\n".encode("latin-1"))["tokens"]) == [["[", "Zoë", "]"]]


def test_bytes_that_windows_1252_lacks_are_read_as_latin_1(load, caplog):
    assert list(load("x.conll", b"Belgi\x81\tB-LOC\n\x93a\tO\n")["tokens"]) == [["Belgi\x81", "\x93a"]]
    assert "read as Latin-1" in caplog.text


def test_files_of_one_encoding_share_a_line_of_the_log(tmp_path, caplog):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conll").write_bytes("Zoë B-PER\nging O\n".encode("latin-1"))
    load_corpus(tmp_path)
    (record,) = caplog.records
    assert record.getMessage().startswith(
        f"{tmp_path / 'train.conll'} and 2 other files: not UTF-8, so read as Latin-1"
    )


# --- Words and tags from a wrong column -------------------------------------------------------------------------------


def rows(row, separator="\t"):
    """A file of 40 words in sentences of 8."""
    return "".join(separator.join(row(n)) + "\n" + "\n" * (n % 8 == 7) for n in range(40))


def word(n):
    return f"w{'abcdefgh'[n % 8]}"


def by_brat(n):
    return f"T{n}", f"Person {n} {n + 3}", f"Ann {n}"


REFUSED = {
    "numbers": (
        rows(lambda n: (str(n * 7 % 100), word(n), "O" if n % 2 else "B-X")),
        ": 100% of the words in column 0 are numbers, such as '0', '7', '14'; name the column of the words",
    ),
    "an annotator": (
        rows(lambda n: (word(n), "-", "stephen")),
        ": all words have the same tag in column 2, such as 'stephen'; name the column of the tags",
    ),
    "features": (
        rows(lambda n: (word(n), "NN", f"Number={n}")),
        ": 40 different tags for 8 different words in column 2, such as 'Number=0', 'Number=1'",
    ),
    "mentions": (
        rows(lambda n: (word(n), f"mention {n}")),
        ": 40 different tags for 8 different words in column 1, such as 'mention 0'",
    ),
    "more than a tag set has": (
        "".join(f"word{n % 400}\tT{n % 101}\n" for n in range(2000)),
        ": 101 different tags that are neither O nor begin with B- or I- in column 1, such as 'T0'",
    ),
    "words with one that looks like a tag": (
        rows(lambda n: (word(n), "B-52" if n == 3 else f"text{n}")),
        ": 39 different tags for 8 different words in column 1, such as 'text0'",
    ),
    "annotations of BRAT": (rows(by_brat), ":1: annotations of BRAT, which are spans of the text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words_and_tags_from_a_wrong_column_are_refused(refusal, name):
    content, message = REFUSED[name]
    assert refusal("x.conll", content).startswith(message)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("numbers", {"token_column": 0}),
        ("an annotator", {"tag_column": 2}),
        ("an annotator", {"scheme": "plain"}),
        ("features", {"tag_column": -1}),
        ("more than a tag set has", {"scheme": "plain"}),
    ],
)
def test_a_column_that_was_named_is_read_all_the_same(load, name, options):
    assert len(load("x.conll", REFUSED[name][0], **options)) > 0


def test_words_and_tags_of_json_are_checked_too(refusal):
    record = '{"tokens": ["1", "2", "3", "4", "5"], "tags": ["O", "B-X", "O", "O", "O"]}\n'
    assert refusal("x.jsonl", record * 10).startswith(": 100% of the words are numbers, such as '1'")


def test_the_tags_of_uner_are_an_option_away(load, refusal):
    text = lines(uner)
    annotators = {tag for row in tags_of(load("x.iob2", text, tag_column=4)) for tag in row}
    assert annotators == {"-", "stephen"}
    assert tags_of(load("x.iob2", text, token_column=1, tag_column=2)) == TAGS


@pytest.mark.parametrize("count", [17, 100])
def test_plain_tags_are_noted(load, caplog, count):
    text = "".join(f"{n % 500}word\tT{n % count}\n" for n in range(1000))
    assert len(load("x.conll", text).features["ner_tags"].feature.names) == count
    (record,) = caplog.records
    assert f"parts of speech or the like ({count} different ones, such as 'T0'," in record.getMessage()
    assert "each word has a label of its own" in record.getMessage()


def test_tags_without_prefixes_beside_o_are_noted(load, caplog):
    load("x.conll", rows(lambda n: (word(n), "PER" if n % 3 else "O")))
    assert "the tags (2 different ones, such as 'PER') have no prefixes" in caplog.text


def test_entities_are_not_noted(load, caplog):
    load(*SAMPLES["columns by TAB"])
    assert not caplog.records


# --- Parts of words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "strip", "note"),
    [
        ("en:{}", "^en:", "every word begins with 'en:'; pass strip='^en:'"),
        ("zh-classical:{}", "^zh-classical:", "every word begins with 'zh-classical:'"),
        ("{}0", "[0-9]$", "every word ends in a digit ('Renée0', 'Müller0', 'besuchte0'); pass strip='[0-9]$'"),
    ],
)
def test_prefixes_and_digits_are_noted_and_can_be_removed(load, caplog, form, strip, note):
    text = lines(lambda n, word, tag, pos: (form.format("x" if word == "2" else word), tag))
    words = [["x" if word == "2" else word for word in sentence] for sentence in TOKENS]
    assert list(load("x.conll", text)["tokens"]) == [[form.format(word) for word in row] for row in words]
    (record,) = caplog.records
    assert note in record.getMessage()
    caplog.clear()
    assert list(load("x.conll", text, strip=strip)["tokens"]) == words
    assert not caplog.records


def test_a_word_of_which_nothing_is_left_raises(load, refusal):
    text = "en:a O\nen: O\n\nen: O\n"
    assert refusal("x.conll", text, strip="^en:").startswith(":2: nothing is left of the word 'en:'")
    assert list(load("x.conll", text, strip="^en:", skip_bad_lines=True)["tokens"]) == [["a"]]


def test_a_faulty_pattern_raises():
    with pytest.raises(DataError, match=r"strip='\[' is not a regular expression"):
        load_corpus("x.conll", strip="[")


# --- Bad lines --------------------------------------------------------------------------------------------------------


def damaged(text, separator):
    """A file with three bad lines, and the words without them."""
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if any(word in line for word in ("gestern", "heißt", "kaufte"))]
    for at in places:
        lines[at] = lines[at].split(separator)[0]
    words = [[word for word in row if word not in ("gestern", "heißt", "kaufte")] for row in TOKENS]
    return "\n".join(lines), [at + 1 for at in places], words


BAD = {
    "columns by TAB": ("\t", "1 column where the first token line has 2"),
    "columns by blanks": (" ", "1 column where the first token line has 3"),
    "CoNLL-U of Stanza": ("\t", "1 column where 10 are expected, separated by TABs"),
    "CSV without a header": (",", "the tag is empty"),
    "TSV with a header": ("\t", "the tag is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_left_out_and_listed_on_request(load, refusal, caplog, tmp_path, name):
    file, content = SAMPLES[name]
    separator, fault = BAD[name]
    text, places, words = damaged(content.decode(), separator)
    assert refusal(file, text).startswith(f":{places[0]}: {fault}; ")
    caplog.clear()
    dataset = load(file, text, skip_bad_lines=True)
    assert list(dataset["tokens"]) == words
    listed = "".join(f"\n  {tmp_path / file}:{line}: {fault}" for line in places)
    assert caplog.records[-1].getMessage() == f"{tmp_path / file}: 3 bad lines or records were left out:{listed}"


def test_words_with_tags_of_no_scheme_are_left_out_as_well(load, caplog, tmp_path):
    text = "Ann B-PER\nleft 0\nOslo LOC\n\nx y z\n\nBo B-PER\nLee I-PER\n"
    dataset = load("x.conll", text, skip_bad_lines=True)
    assert (list(dataset["tokens"]), tags_of(dataset)) == ([["Ann"], ["Bo", "Lee"]], [["B-PER"], ["B-PER", "I-PER"]])
    # The tags are known after the lines have been read.
    assert caplog.records[-1].getMessage().split("\n")[1:] == [
        f"  {tmp_path / 'x.conll'}:5: 3 columns where the first token line has 2",
        f"  {tmp_path / 'x.conll'}:2: unknown tag '0'",
        f"  {tmp_path / 'x.conll'}:3: unknown tag 'LOC'",
    ]


def test_only_the_first_ten_bad_lines_are_listed(load, caplog):
    load("x.conll", "Ann B-PER\nleft O\n\n" + "bad\n" * 1234 + "\nwell O\n", skip_bad_lines=True)
    first, *listed = caplog.records[-1].getMessage().split("\n")
    assert "1,234 bad lines or records were left out" in first
    assert len(listed) == 11
    assert listed[-1] == "  and 1,224 more"


def test_places_after_a_bad_line_are_right(refusal):
    text = "Ann B-PER\nbad\nBo B-PER\nLee X-PER\n"
    assert refusal("x.conll", text, skip_bad_lines=True, strict=True, scheme="bmes").startswith(":3: 2 entities")


def test_a_file_with_nothing_but_bad_lines_raises(refusal):
    assert "one column only" in refusal("x.conll", "a\nb\n", skip_bad_lines=True)
    message = refusal("x.jsonl", '{"tokens": ["a"], "tags": []}\n{"tokens": []}\n', skip_bad_lines=True)
    assert "the split holds no sentence" in message
    assert "x.jsonl:1: 1 tokens but 0 tags" in message


def words_of(*sentences):
    return [{"tokens": tokens.split(), "tags": ["B-PER", *["O"] * (len(tokens.split()) - 1)]} for tokens in sentences]


def spans_of(*sentences):
    return [{"text": text, "spans": [[0, 3, "PER"]]} for text in sentences]


ANN, BO = "Ann left .", "Boy and Lee met"
#: The name of a file, its content with two good records and bad ones among them, and the places and faults of these.
BAD_RECORDS = {
    "words": (
        "x.jsonl",
        [words_of(ANN)[0], {"tokens": ["a"], "tags": []}, words_of(BO)[0], {"tokens": [""], "tags": ["O"]}],
        {":2": "1 tokens but 0 tags", ":4": "'tokens' holds an empty string at index 0"},
    ),
    "a first line that is not JSON": (
        "x.jsonl",
        ["{oops", *spans_of(ANN, BO), 7],
        {":1": "the line is not JSON", ":4": "the line holds a number"},
    ),
    "spans": (
        "x.jsonl",
        [*spans_of(ANN), {"text": "a", "spans": [[0, 9, "PER"]]}, *spans_of(BO), {"text": 3, "spans": []}],
        {":2": 'the span [0, 9, "PER"] reaches outside', ":4": "'text' holds a number"},
    ),
    "an array of spans": (
        "x.json",
        [[7, *spans_of(ANN), {"text": "a", "spans": [[0, 1, ""]]}, *spans_of(BO)]],
        {", record 1": "holds a number", ", record 3": 'the span [0, 1, ""] has no string for its label'},
    ),
    "spaCy 2": (
        "x.json",
        [
            [
                {"paragraphs": [{"sentences": [{"tokens": [{"orth": word, "ner": tag} for word, tag in row]}]}]}
                for row in (
                    [("Ann", "U-PER"), ("left", "O"), (".", "O")],
                    [(3, "O")],
                    [("Boy", "U-PER"), ("and", "O"), ("Lee", "O"), ("met", "O")],
                )
            ]
        ],
        {", record 2": ""},
    ),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_records_are_left_out_and_listed_on_request(load, refusal, caplog, tmp_path, name):
    file, records, faults = BAD_RECORDS[name]
    text = "".join(f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records)
    assert refusal(file, text).endswith("or pass skip_bad_lines.") or not isinstance(records[0], dict)
    caplog.clear()
    dataset = load(file, text, skip_bad_lines=True)
    assert list(dataset["tokens"]) == [ANN.split(), BO.split()]
    assert tags_of(dataset) == [["B-PER", "O", "O"], ["B-PER", "O", "O", "O"]]
    first, *listed = caplog.records[-1].getMessage().split("\n  ")
    assert f"{len(faults)} bad line" in first
    assert len(listed) == len(faults)
    for line, (place, fault) in zip(listed, faults.items(), strict=True):
        assert line.startswith(f"{tmp_path / file}{place}: {fault}")


def test_bad_sentences_of_conll_2012_are_left_out_and_listed_on_request(load, refusal, caplog, tmp_path):
    rows = "a 0 {} {} NN * - - - - {} -\n"
    good = rows.format(0, "Ann", "(PERSON)") + rows.format(1, "left", "*")
    text = f"#begin document (a); part 000\n{good}\n{rows.format(0, 'Bo', '(PERSON*')}\na 0 0 Lee\n\n#end\n{good}\n"
    assert refusal("x.gold_conll", text).startswith(":5: the entity of type PERSON is still open")
    caplog.clear()
    dataset = load("x.gold_conll", text, skip_bad_lines=True)
    assert list(dataset["tokens"]) == [["Ann", "left"]] * 2
    assert list(dataset["doc_id"]) == ["a", None]
    first, *listed = caplog.records[-1].getMessage().split("\n  ")
    assert "3 bad lines or records were left out" in first
    for line, fault in zip(listed, (":5: the entity", ":7: 4 columns", ":9: unknown line '#end'"), strict=True):
        assert line.startswith(f"{tmp_path / 'x.gold_conll'}{fault}")


def test_strict_refuses_repairs_although_bad_records_are_left_out(refusal):
    text = json.dumps({"text": "Anna left", "spans": [[0, 3, "PER"]]})
    assert "spans that cut a word" in refusal("x.jsonl", text, skip_bad_lines=True, strict=True)


# --- Real corpora -----------------------------------------------------------------------------------------------------

REAL = {
    "conll2002/esp.train": (8323, 264715, 18797 + 1),
    "conll2002/esp.testa": (1915, 52923, 4351 + 1),
    "conll2002/esp.testb": (1517, 51533, 3558 + 1),
    "conll2002/ned.train": (15806, 202644, 13344),
    "conll2002/ned.testa": (2895, 37687, 2616),
    "conll2002/ned.testb": (5195, 68875, 3941),
    "wikiann-en/train": (20000, 160394, 27931),
    "wikiann-en/dev": (10000, 80536, 14146),
    "wikiann-en/test": (10000, 80326, 13958),
}


@pytest.mark.skipif(not CORPORA, reason="HF_XORNER_CORPORA names no folder of corpora")
@pytest.mark.parametrize("name", REAL)
def test_counts_of_real_files(name, tmp_path, caplog):
    # The published counts are of B- tags; one I- of each Spanish file continues no entity.
    path = os.path.join(CORPORA, name)
    strip = "^en:" if "wikiann" in name else None
    dataset = load_corpus(path, strip=strip)["train"]
    tags = [tag for row in tags_of(dataset) for tag in row]
    assert (len(dataset), len(tags), sum(tag.startswith("B-") for tag in tags)) == REAL[name]
    assert ("read as Latin-1" in caplog.text) == ("conll2002" in name)
    assert len(SENTENCES) == 5
