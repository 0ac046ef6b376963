"""Files with one token a line or row, as other programs and corpora write them, made from the same sentences.

Each sample is a file name and its bytes. Nothing here is shared with the readers of the library.
"""

import csv
import io
import json

#: Words, their tags in IOB2 and parts of speech; each line of the text is a sentence.
_TEXT = """\
Renée/PER/PROPN Müller/+PER/PROPN besuchte/O/VERB gestern/O/ADV Curaçao/LOC/PROPN ././PUNCT
Der/O/DET Café-Betreiber/O/NOUN heißt/O/VERB Übü/PER/PROPN ././PUNCT
In/O/ADP São/LOC/PROPN Paulo/+LOC/PROPN und/O/CCONJ Zürich/LOC/PROPN regnet/O/VERB es/O/PRON ././PUNCT
Nokia/ORG/PROPN kaufte/O/VERB 2/O/NUM Firmen/O/NOUN aus/O/ADP Malmö/LOC/PROPN ././PUNCT
Es/O/PRON regnet/O/VERB nicht/O/PART ././PUNCT
"""


def _sentences() -> list[list[tuple[str, str, str]]]:
    sentences = []
    for line in _TEXT.splitlines():
        words = []
        for cell in line.split():
            word, tag, pos = (".", ".", "PUNCT") if cell.startswith("./") else tuple(cell.split("/"))
            tag = "O" if tag in (".", "O") else f"I-{tag[1:]}" if tag[0] == "+" else f"B-{tag}"
            words.append((word, tag, pos))
        sentences.append(words)
    return sentences


SENTENCES = _sentences()
TOKENS = [[word for word, _, _ in sentence] for sentence in SENTENCES]
TAGS = [[tag for _, tag, _ in sentence] for sentence in SENTENCES]
POS = [[pos for _, _, pos in sentence] for sentence in SENTENCES]


def lines(row, separator="\t", before="") -> str:
    """A file with a line for each word, `row(number, word, tag, pos)`, and comments before each sentence."""
    text = ""
    for index, sentence in enumerate(SENTENCES):
        text += before.format(index + 1)
        for number, (word, tag, pos) in enumerate(sentence, start=1):
            text += separator.join(row(number, word, tag, pos)) + "\n"
        text += "\n"
    return text


def in_bmes() -> str:
    """The columns of words and of tags in BMES."""
    text = lines(lambda n, word, tag, pos: (word, tag.replace("B-", "S-").replace("I-", "E-")), " ")
    return text.replace("S-PER\nMüller", "B-PER\nMüller").replace("S-LOC\nPaulo", "B-LOC\nPaulo")


def uner(number, word, tag, pos):
    """Universal NER as it is now: the annotator of entities in the last column."""
    return str(number), word, tag, "-", "-" if tag == "O" else "stephen"


def old_uner(number, word, tag, pos):
    """Universal NER as it was: words outside of entities have three columns, and documents begin with B-O."""
    if tag == "O":
        return str(number), word, *(("B-O", "-", "stephen") if number == 2 else ("O",))
    return str(number), word, tag, "-", "stephen"


def germeval(number, word, tag, pos):
    """GermEval 2014: outer and inner entities."""
    return str(number), word, tag, "B-LOCpart" if word == "Müller" else tag if word == "Nokia" else "O"


def conllu(number, word, tag, pos, misc="SpaceAfter=No"):
    return str(number), word, word.lower(), pos, f"X{pos}", "_", "0", "dep", "_", misc


def stanza(number, word, tag, pos):
    """CoNLL-U as Stanza writes it, with entities in MISC."""
    return conllu(number, word, tag, pos, f"start_char=0|end_char=1|ner={tag}")


def norne(number, word, tag, pos):
    return conllu(number, word, tag, pos, f"SpaceAfter=No|name={tag}")


def hipe() -> str:
    """HIPE: a header, comments within a document, and sentences that end by a mark."""
    text = "TOKEN\tNE-COARSE-LIT\tNE-COARSE-METO\tNE-FINE-LIT\tNEL-LIT\tMISC\n# x:document_id = a\n# x:date = 1900\n\n"
    for sentence in SENTENCES:
        for word, tag, _ in sentence:
            mark = "NoSpaceAfter|EndOfSentence" if word == "." else "_"
            text += f"{word}\t{tag}\tB-loc\t{tag}.x\tQ1\t{mark}\n"
        text += "# x:segment = 1\n"
    return text


def with_ranges(text: str) -> str:
    """CoNLL-U with a range of words and a word that is not in the text."""
    first, second, rest = text.split("\n", 2)
    empty = "\t_" * (first.count("\t") - 1)
    return f"1-2\tRenéemüller{empty}\n{first}\n1.1\tleft{empty}\n{second}\n{rest}"


def kaggle(delimiter=",", everywhere=False) -> str:
    """A table in which a sentence has its name in its first row, or in all of its rows."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(["Sentence #", "Word", "POS", "Tag"])
    for index, sentence in enumerate(SENTENCES, start=1):
        for at, (word, tag, pos) in enumerate(sentence):
            writer.writerow([f"Sentence: {index}" if everywhere or not at else "", word, pos, tag])
    return file.getvalue()


SAMPLES: dict[str, tuple[str, bytes]] = {
    "columns by TAB": ("x.conll", lines(lambda n, word, tag, pos: (word, tag)).encode()),
    "columns by blanks": ("x.txt", lines(lambda n, word, tag, pos: (word, pos, tag), " ").encode()),
    "columns that end in a TAB": ("x.tsv", lines(lambda n, word, tag, pos: (word, tag, "")).encode()),
    "Latin-1": ("x.conll", lines(lambda n, word, tag, pos: (word, tag)).encode("latin-1")),
    "Windows-1252": (
        "x.conll",
        lines(lambda n, word, tag, pos: (word, tag), before="# “{}” – text\n").encode("cp1252"),
    ),
    "BMES": ("x.bmes", in_bmes().encode()),
    "types alone": ("x.crf", lines(lambda n, word, tag, pos: (word, tag[2:] or "O"), " ").encode()),
    "tags first": ("x.bio", lines(lambda n, word, tag, pos: (tag, word)).encode()),
    "features after the tag": ("x.conll", lines(lambda n, word, tag, pos: (word, tag, pos.lower())).encode()),
    "lines without features": (
        "x.conll",
        lines(lambda n, word, tag, pos: (word, pos, "f", tag) if n % 3 else (word, tag), " ").encode(),
    ),
    "more columns by TAB": ("x.conll", lines(lambda n, word, tag, pos: (word, pos, *["f"] * (n % 3), tag)).encode()),
    "comments after the tag": ("x.conll", lines(lambda n, word, tag, pos: (word, tag, *["why"] * (n == 4))).encode()),
    "UNER": ("x.iob2", lines(uner, before="# newdoc id = {0}\n# sent_id = {0}\n# text = a b c\n").encode()),
    "UNER as it was": ("x.iob2", lines(old_uner, before="# sent_id = {0}\n").encode()),
    "GermEval": ("x.tsv", lines(germeval, before="#\thttp://example.org/{} [2014-01-01]\n").encode()),
    "GermEval in two columns": (
        "x.tsv",
        lines(lambda n, word, tag, pos: (word, tag), before="#\thttp://example.org/{} [2014-01-01]\n").encode(),
    ),
    "KLUE": (
        "x.tsv",
        ("## separator\n" + lines(lambda n, word, tag, pos: (word, tag), before="## x-{}\t<Ann:PS> left\n")).encode(),
    ),
    "HIPE": ("x.tsv", hipe().encode()),
    "CoNLL-U of NorNE": ("x.conllu", lines(norne).encode()),
    "CoNLL-U of Stanza": ("x.conllu", with_ranges(lines(stanza)).encode()),
    "CoNLL-U Plus": (
        "x.conllup",
        (
            "# global.columns = ID FORM UPOS EXTRA:NER\n" + lines(lambda n, word, tag, pos: (str(n), word, pos, tag))
        ).encode(),
    ),
    "Kaggle": ("x.csv", kaggle().encode("cp1252")),
    "CSV with a number in every row": ("x.csv", kaggle(";", everywhere=True).encode()),
    "TSV with a header": ("x.tsv", f"Token\tNER-Tag\n{lines(lambda n, word, tag, pos: (word, tag))}".encode()),
    "CSV without a header": ("x.csv", lines(lambda n, word, tag, pos: (word, tag), ",").encode()),
    "JSON Lines": (
        "x.jsonl",
        "".join(json.dumps({"tokens": a, "tags": b}) + "\n" for a, b in zip(TOKENS, TAGS, strict=True)).encode(),
    ),
}
