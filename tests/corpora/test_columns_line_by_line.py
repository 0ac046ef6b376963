"""The reader of columns, compared with one that goes line by line, on files with common irregularities."""

import gzip
import random
import re

import pytest

from hf_xorner.corpora import DataError, Reading
from hf_xorner.corpora.formats import columns
from hf_xorner.corpora.formats.columns import read_columns

FILES = 5000


class Fault(Exception):
    """An error of the reference reader."""


class LineByLine:
    """A reference reader: one line at a time, sharing no code with the tested one."""

    def __init__(self, path, reading):
        self.path, self.reading = path, reading
        text = path.read_bytes().decode().replace("\ufeff", "")
        lines = text.removesuffix("\n").split("\n") if text else []
        self.lines = [(number, line.rstrip("\r")) for number, line in enumerate(lines, start=1)]
        number, line = self.first_line_of_tokens()
        self.by_tab = "\t" in line if reading.separator == "auto" else reading.separator == "tab"
        self.width = self.width_of(line)
        if self.width < 2:
            self.fault(number, "one column only; expected a token and its tag, separated by a TAB or blanks.")
        self.token, self.tag = self.column(reading.token_column, 0), self.column(reading.tag_column, -1)
        if self.token == self.tag:
            where = f"column {self.tag} is given for both tokens and tags"
            self.fault(number, f"{where}; give token_column and tag_column.")
        self.pos = None
        if reading.pos_column not in (None, "none"):
            self.pos = self.column(reading.pos_column, None)
        elif reading.pos_column is None and self.width in (3, 4) and 1 not in (self.token, self.tag):
            self.pos = 1

    def width_of(self, line):
        """Empty columns at the end count if any line has something there."""
        prefix = {"auto": "#", "none": None}.get(self.reading.comments, self.reading.comments)
        rows = [
            self.fields(text)
            for _, text in self.lines
            if text.strip(" \t")
            and not re.match(r"-DOCSTART-([ \t]|$)", text)
            and (prefix is None or not text.startswith(prefix))
        ] or [self.fields(line)]
        width = len(self.fields(line))
        while width > 1 and all(row[width - 1] == "" for row in rows if len(row) >= width):
            width -= 1
        return width

    def fault(self, number, what):
        raise Fault(f"{self.path}:{number}: {what}")

    def fields(self, line):
        if self.by_tab:
            return line.split("\t")
        return [field for field in line.replace("\t", " ").split(" ") if field]

    def column(self, told, usual):
        return int(usual if told is None else told) % self.width

    def first_line_of_tokens(self):
        comments = {"auto": "#", "none": None}.get(self.reading.comments, self.reading.comments)
        doubtful = []
        for number, line in self.lines:
            if line.strip(" \t") and not re.match(r"-DOCSTART-([ \t]|$)", line):
                if comments is None or not line.startswith(comments):
                    return number, line
                doubtful.append((number, line))
        if doubtful and self.reading.comments == "auto":
            return doubtful[0]
        return self.fault(1, "the file holds no sentence; expected lines of a token and its tag.")

    def is_comment(self, line, inside, number):
        if self.reading.comments == "none":
            return False
        if self.reading.comments == "auto":
            return line.startswith(("# ", "#\t")) and not inside and len(self.fields(line)) != self.width
        if line.startswith(self.reading.comments) and inside:
            self.fault(number, "a comment inside a sentence; move it before the sentence.")
        return line.startswith(self.reading.comments)

    def sentences(self):
        document, documents, inside = None, 0, []
        for number, line in [*self.lines, (0, "")]:
            shown = line if self.by_tab else " ".join(self.fields(line))
            opens = re.match(r"-DOCSTART-(?:[ \t]+\((.*)\)[ \t]*$|[ \t]|$)", shown)
            if opens or not line.strip(" \t"):
                if inside:
                    yield self.sentence(inside, document)
                inside = []
                if opens:
                    document = str(documents) if opens[1] is None else opens[1]
                    documents += 1
            elif not self.is_comment(shown, inside, number):
                inside.append((number, self.fields(line)))

    def sentence(self, rows, document):
        named = None not in (self.reading.token_column, self.reading.tag_column)
        pairs = []
        for number, fields in rows:
            while len(fields) > self.width and fields[-1] == "":
                fields.pop()
            token, tag = self.token, self.tag
            if len(fields) != self.width:
                token, tag = int(self.reading.token_column or 0), int(self.reading.tag_column or 0)
                if (
                    not named
                    or self.absent(token, fields)
                    or self.absent(tag, fields)
                    or fields[token:] == fields[tag:]
                ):
                    count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
                    self.fault(number, f"{count} where the first token line has {self.width}")
            for place, what in ((token, "token"), (tag, "tag")):
                if not fields[place]:
                    self.fault(number, f"the {what} is empty; give every line both.")
            pairs.append((fields[token], fields[tag]))
        pos_tags = None
        if self.pos is not None:
            pos_tags = [fields[self.pos] if len(fields) == self.width else "_" for _, fields in rows]
        places = [f"{self.path}:{number}" for number, _ in rows]
        return [token for token, _ in pairs], [tag for _, tag in pairs], pos_tags, document, places

    def absent(self, place, fields):
        return not -len(fields) <= place < len(fields)


WORDS = ["a", "Bo", "é", "\u00a0x", "x\u2028y", "#x", "x#", "-DOCSTART-ed", "\x0b", "\x85", "q\rq", "(", "''", "\u3000"]
BLANK = ["", "", "", " ", "\t", " \t ", "\ufeff", "\ufeff \r"]
DOCUMENTS = ["-DOCSTART- -X- O O", "-DOCSTART-", "-DOCSTART-\tO", "-DOCSTART- (a b)", "  -DOCSTART- O", "-DOCSTART- (x"]
COMMENTS = ["# c", "# c d", "# id = 1", "#", "#x", "% c", "%", "# a b c d e f", "  # c", "# c\td"]


def a_line(rng, width, faults, separators):
    fields = [rng.choice(WORDS) for _ in range(max(1, width + (rng.random() < faults) * rng.choice([-1, 1])))]
    if rng.random() < faults:
        fields[rng.randrange(len(fields))] = ""
    line = fields[0] + "".join(rng.choice(separators) + field for field in fields[1:])
    if separators != ["\t"]:
        line = rng.choice(["", "", "", " ", "\t"]) + line + rng.choice(["", "", "", " "])
    if rng.random() < 0.05:
        place = rng.randint(0, len(line))
        line = f"{line[:place]}\ufeff{line[place:]}"
    return line


def a_file(rng):
    separators = rng.choice([["\t"], [" "], [" ", " ", "  ", "\t", " \t"]])
    width, faults, ends = rng.choice([2, 2, 3, 4, 5]), rng.choice([0, 0, 0.03]), rng.choice([["\n"], ["\n", "\r\n"]])
    lines = []
    for _ in range(rng.randint(0, 25)):
        kind = rng.random()
        if kind < 0.25:
            lines.append(rng.choice(BLANK))
        elif kind < 0.3:
            lines.append(rng.choice(DOCUMENTS))
        elif kind < 0.35 and (faults or not lines or not lines[-1].strip()):
            lines.append(rng.choice(COMMENTS))
        else:
            lines.append(a_line(rng, width, faults, separators))
    text = "".join(line + rng.choice(ends) for line in lines)
    return (text.rstrip("\r\n") if rng.random() < 0.4 else text).encode()


OPTIONS = {
    "comments": ["none", "#", "%", "# "],
    "separator": ["tab", "blank"],
    "token_column": [0, 1, -2],
    "tag_column": [1, -1, -2],
    "pos_column": ["none", 0, 1, -1],
}


def outcome(sentences, fault):
    """The sentences before an error, and the error."""
    found = []
    try:
        found.extend(sentences())
    except fault as error:
        return found, str(error)
    return found, None


@pytest.mark.parametrize("seed", range(5))
def test_both_readers_agree(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    path = tmp_path / "some.conll"
    whole = faulty = 0
    for _ in range(FILES // 5):
        path.write_bytes(a_file(rng))
        reading = Reading(**{name: rng.choice(values) for name, values in OPTIONS.items() if rng.random() < 0.15})
        monkeypatch.setattr(columns, "_CHUNK", rng.choice([1, 2, 3, 7, 20, 50, 1 << 18]))
        found = outcome(
            lambda reading=reading: (
                (*sentence[:2], *sentence[5:7], [sentence.place(index) for index in range(len(sentence.tokens))])
                for sentence in read_columns(path, reading)
            ),
            DataError,
        )
        expected = outcome(lambda reading=reading: LineByLine(path, reading).sentences(), Fault)
        assert found[0] == expected[0], (path.read_bytes(), reading)
        # The remedy at the end is longer where a line could be left out.
        assert str(found[1]).startswith(str(expected[1]).removesuffix(".")), (path.read_bytes(), reading)
        whole, faulty = whole + (expected[1] is None), faulty + (expected[1] is not None)
    assert min(whole, faulty) > FILES // 5 // 5


def test_invalid_utf8_raises_at_any_position(tmp_path, monkeypatch):
    rng = random.Random(0)
    path = tmp_path / "some.conll"
    lines = [b"", b"word\tO", "é\u2028x\tO".encode(), "\ufeffw\tB-X".encode()]
    for _ in range(200):
        # Many characters of UTF-8 show that the file is not in an encoding with one byte a character.
        content = ["first éééé\tO".encode(), *rng.choices(lines, k=rng.randint(1, 3000))]
        place, broken = rng.randrange(len(content)), rng.choice([b"\xff", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\x80"])
        content[place] += broken
        path.write_bytes(rng.choice([bytes, gzip.compress])(b"\n".join(content)))
        monkeypatch.setattr(columns, "_CHUNK", rng.choice([1, 100, 1 << 18]))
        _, message = outcome(lambda: read_columns(path), DataError)
        assert message == f"{path}:{place + 1}: byte 0x{broken[0]:02x} is not valid UTF-8; save the file as UTF-8."
