"""Write the diagrams of the architectures, docs/pictures/*.svg (`make pictures`)."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
#: Centres of the three words of a picture, and its width.
COLUMNS, WIDTH = (105, 280, 455), 560
PHRASE, TAGS = ("Key", "and", "Peele"), ("B", "I", "E")
FILLS = {"word": "#ffffff", "features": "#e3e8f4", "layer": "#d9ead9", "decoder": "#fbe6cf"}
INK, SIGNAL, SHEET = "#37414d", "#c2410c", "#fafafa"


class Box(NamedTuple):
    """A box by its centre and size."""

    x: float
    y: float
    width: float
    height: float


class Picture:
    """A drawing of boxes, lines and texts on a light sheet, which suits light and dark pages."""

    def __init__(self, title: str, height: int) -> None:
        self.title, self.height = title, height
        self.lines: list[str] = []
        self.boxes: list[str] = []

    def text(self, x: float, y: float, text: str, size: int = 15, colour: str = INK, halo: bool = False) -> None:
        """Write a line of text, centred; with a halo, over lines."""
        around = f' stroke="{SHEET}" stroke-width="6" paint-order="stroke"' if halo else ""
        self.boxes.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{around}>{escape(text)}</text>')

    def box(self, x: float, y: float, text: str, kind: str, width: float = 64, height: float = 28) -> Box:
        """Draw a box with a line of text."""
        self.boxes.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}" rx="5" '
            f'fill="{FILLS[kind]}" stroke="{INK}"/>'
        )
        self.text(x, y + 5, text)
        return Box(x, y, width, height)

    def line(self, start: Box, end: Box, signal: bool = False, arrow: bool = True) -> None:
        """Draw a line between the borders of two boxes."""
        (x, y), (to_x, to_y) = border(start, end), border(end, start)
        colour, marker = (SIGNAL, "signal") if signal else (INK, "plain")
        end_mark = f' marker-end="url(#{marker})"' if arrow else ""
        self.lines.append(f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" stroke="{colour}"{end_mark}/>')

    def up(self, start: Box, end: Box) -> None:
        """Draw a vertical arrow from a box to one above it."""
        x = start.x if abs(start.x - end.x) < end.width / 2 else end.x
        self.line(start._replace(x=x), end._replace(x=x))

    def svg(self) -> str:
        """Return the file."""
        markers = "".join(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
            for name, colour in (("plain", INK), ("signal", SIGNAL))
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img" '
                'font-family="sans-serif" text-anchor="middle" fill="none" stroke-width="1.3">',
                f"<title>{escape(self.title)}</title>",
                f"<defs>{markers}</defs>",
                f'<rect width="{WIDTH}" height="{self.height}" rx="8" fill="{SHEET}"/>',
                *self.lines,
                *self.boxes,
                "</svg>\n",
            ]
        )

    def words(self, features: str) -> list[Box]:
        """Draw the words at the bottom and their features above, which are returned."""
        words = [self.box(x, self.height - 26, word, "word", 80) for x, word in zip(COLUMNS, PHRASE, strict=True)]
        above = [self.box(x, self.height - 80, features, "features", 160) for x in COLUMNS]
        for word, box in zip(words, above, strict=True):
            self.up(word, box)
        return above

    def directions(self, y: float, below: list[Box], name: str) -> list[tuple[Box, Box]]:
        """Draw a recurrent layer: of each word the states to the right and, higher, to the left."""
        states = [
            (self.box(x - 36, y, f"{name} →", "layer"), self.box(x + 36, y - 36, f"{name} ←", "layer")) for x in COLUMNS
        ]
        for (right, left), (next_right, next_left) in pairwise(states):
            self.line(right, next_right)
            self.line(next_left, left)
        for box, pair in zip(below, states, strict=False):
            for state in pair:
                self.up(box, state)
        return states

    def row(self, y: float, texts: tuple[str, ...], kind: str, width: float = 90) -> list[Box]:
        """Draw a box for each word."""
        return [self.box(x, y, text, kind, width) for x, text in zip(COLUMNS, texts, strict=True)]


def border(box: Box, other: Box) -> tuple[float, float]:
    """Return the point on the border of a box towards the centre of another."""
    dx, dy = other.x - box.x, other.y - box.y
    share = min(box.width / 2 / abs(dx) if dx else 9e9, box.height / 2 / abs(dy) if dy else 9e9)
    return box.x + share * dx, box.y + share * dy


def bilstm(title: str, cross: bool) -> Picture:
    """Baseline and Cross differ in what the second layer reads."""
    picture = Picture(title, 392)
    first = picture.directions(252, picture.words("word ; casing ; chars"), "L1")
    second = picture.directions(134, [], "L2")
    tags = picture.row(36, tuple(f"softmax: {tag}" for tag in TAGS), "decoder", 140)
    for (right, left), (up_right, up_left), tag in zip(first, second, tags, strict=True):
        picture.up(right, up_right)
        picture.up(left, up_left)
        if cross:
            picture.line(right, up_left, signal=True)
            picture.line(left, up_right, signal=True)
        picture.up(up_right, tag)
        picture.up(up_left, tag)
    return picture


def bilstm_cnn() -> Picture:
    """Baseline-BiLSTM-CNN."""
    return bilstm("Baseline-BiLSTM-CNN: two layers in each direction, which meet at the softmax only.", cross=False)


def cross_bilstm_cnn() -> Picture:
    """Cross-BiLSTM-CNN."""
    return bilstm("Cross-BiLSTM-CNN: both directions of layer 2 read both directions of layer 1.", cross=True)


def att_bilstm_cnn() -> Picture:
    """Att-BiLSTM-CNN."""
    picture = Picture("Att-BiLSTM-CNN: the softmax reads a word's state H and the context C it attends to.", 392)
    features = picture.words("word ; casing ; chars")
    encoder = picture.box(280, 250, "two layers of the Baseline", "layer", 510)
    states = [picture.box(x + 38, 196, f"H{number}", "layer") for x, number in zip(COLUMNS, "₁₂₃", strict=True)]
    contexts = [picture.box(x - 38, 116, f"C{number}", "layer") for x, number in zip(COLUMNS, "₁₂₃", strict=True)]
    tags = picture.row(36, tuple(f"softmax: {tag}" for tag in TAGS), "decoder", 140)
    for box, state, context, tag in zip(features, states, contexts, tags, strict=True):
        picture.line(box, Box(box.x, encoder.y, encoder.width, encoder.height))
        picture.up(Box(state.x, encoder.y, encoder.width, encoder.height), state)
        picture.up(state, tag)
        picture.up(context, tag)
        picture.line(state, contexts[1], signal=True)
    picture.text(280, 156, "weights of 5 heads; drawn for C₂", 14, SIGNAL, halo=True)
    return picture


def chain(picture: Picture, y: float, tags: tuple[str, ...] = TAGS) -> list[Box]:
    """Draw the tags of a CRF whose transitions are numbers."""
    boxes = picture.row(y, tags, "decoder")
    for left, right in pairwise(boxes):
        picture.line(left, right, arrow=False)
        picture.text((left.x + right.x) / 2, y - 7, "A", 14)
    return boxes


def lstm_crf() -> Picture:
    """LSTM-CRF."""
    picture = Picture("LSTM-CRF: one layer of LSTMs with coupled gates, a tanh layer, and a CRF.", 350)
    states = picture.directions(214, picture.words("word ; char LSTM"), "h")
    hidden = picture.row(104, ("tanh",) * 3, "layer", 140)
    for pair, box, tag in zip(states, hidden, chain(picture, 36), strict=True):
        for state in pair:
            picture.up(state, box)
        picture.up(box, tag)
    return picture


def cnn_lstm_crf() -> Picture:
    """BLSTM-CNNs-CRF."""
    picture = Picture("BLSTM-CNNs-CRF: the score of each pair of neighbouring tags depends on the later word.", 370)
    states = picture.directions(234, picture.words("word ; char CNN"), "h")
    hidden = picture.row(124, ("h₁", "h₂", "h₃"), "layer", 140)
    tags = [picture.box(x + 30, 36, tag, "decoder", 50) for x, tag in zip(COLUMNS, TAGS, strict=True)]
    before = picture.box(24, 36, "y₀", "decoder", 34)
    for pair, box, tag, number in zip(states, hidden, tags, "₁₂₃", strict=True):
        for state in pair:
            picture.up(state, box)
        factor = picture.box(
            (before.x + before.width / 2 + tag.x - tag.width / 2) / 2, 36, f"ψ{number}", "word", 34, 24
        )
        picture.line(before, factor, arrow=False)
        picture.line(factor, tag, arrow=False)
        picture.line(box, factor, signal=True)
        before = tag
    return picture


def grn() -> Picture:
    """GRN."""
    picture = Picture("GRN: convolutions of widths 1, 3 and 5, gated relations between all words, and a CRF.", 390)
    features = picture.words("word ; char CNN")
    contexts = picture.row(226, ("x₁", "x₂", "x₃"), "layer", 90)
    relations = picture.row(114, ("r₁", "r₂", "r₃"), "layer", 90)
    for number, (context, tag) in enumerate(zip(contexts, chain(picture, 36), strict=True)):
        for box in features:
            picture.line(box, context)
        picture.line(context, relations[1], signal=True)
        picture.up(relations[number], tag)
    picture.text(280, 263, "three convolutions, tanh, maximum", 14, halo=True)
    picture.text(280, 174, "mean of σ(r₂ⱼ) ⊙ xⱼ over all words j; drawn for r₂", 14, SIGNAL, halo=True)
    return picture


def id_cnn() -> Picture:
    """ID-CNN."""
    picture = Picture("ID-CNN: a block of convolutions with dilations 1, 2 and 1, applied three times.", 330)
    columns, rows = range(11), ((262, "i"), (198, "1"), (134, "2"), (70, "1"))
    dots = {
        (row, column): picture.box(34 + 40 * column, y, "", "layer", 16, 16)
        for row, (y, _) in enumerate(rows)
        for column in columns
    }
    reached = {5}
    for row in (3, 2, 1):
        dilation = int(rows[row][1])
        picture.text(508, rows[row][0] + 37, f"dilation {dilation}", 14)
        below = {column + step for column in reached for step in (-dilation, 0, dilation)}
        for column in columns:
            for source in (column - dilation, column, column + dilation):
                if source in columns and column in reached:
                    picture.line(dots[row - 1, source], dots[row, column], signal=True)
        reached = below
    picture.text(240, 306, "i: the words' features after a first convolution of width 3", 14)
    picture.text(240, 34, "above: the same block twice more, with the same weights; then softmax", 14)
    return picture


def stack_lstm() -> Picture:
    """Stack-LSTM."""
    picture = Picture("Stack-LSTM: LSTMs over output, stack, buffer and actions score the next action.", 350)
    softmax = picture.box(280, 34, "softmax: SHIFT, OUT, REDUCE(y)", "decoder", 300)
    hidden = picture.box(280, 96, "p = relu(O o + S s + B b + A a + d)", "layer", 320)
    picture.up(hidden, softmax)
    contents = {
        "output": ("he", "saw"),
        "stack": ("Key", "and"),
        "buffer": ("Peele", "."),
        "actions": ("OUT", "OUT", "SHIFT", "SHIFT"),
    }
    for number, (name, items) in enumerate(contents.items()):
        x = 74 + 137 * number
        lstm = picture.box(x, 168, f"{name} LSTM", "layer", 122)
        picture.line(lstm, hidden)
        before = lstm
        for place, item in enumerate(reversed(items) if name != "buffer" else items):
            box = picture.box(x, 214 + 34 * place, item, "word", 80, 26)
            if place == 0:
                picture.up(box, before)
    return picture


def xor() -> Picture:
    """The four phrases of li2020."""
    picture = Picture("The XOR limitation: two of four phrases are entities, and no sum can tell them apart.", 330)
    phrases = {(0, 0): "Key and Peele", (0, 1): "Key and I", (1, 0): "You and Peele", (1, 1): "You and I"}
    for (row, column), phrase in phrases.items():
        entity = row == column
        x, y = 210 + 210 * column, 92 + 96 * row
        picture.box(x, y, "", "decoder" if entity else "word", 180, 64)
        picture.text(x, y - 4, phrase)
        picture.text(x, y + 20, "entity" if entity else "nothing", 13, SIGNAL if entity else INK)
    for column, name in enumerate(("r(Peele)", "r(I)")):
        picture.text(210 + 210 * column, 40, name)
    for row, name in enumerate(("l(Key)", "l(You)")):
        picture.text(58, 97 + 96 * row, name)
    picture.text(280, 268, "Scores of “and” that are a sum l(left) + r(right): both diagonals add up to", 14)
    picture.text(280, 296, "l(Key) + l(You) + r(Peele) + r(I), so neither can be above the other.", 14)
    return picture


DRAWINGS: tuple[Callable[[], Picture], ...] = (
    bilstm_cnn,
    cross_bilstm_cnn,
    att_bilstm_cnn,
    lstm_crf,
    stack_lstm,
    cnn_lstm_crf,
    grn,
    id_cnn,
    xor,
)


def pictures() -> dict[str, str]:
    """Return the files by their names."""
    return {f"{draw.__name__.replace('_', '-')}.svg": draw().svg() for draw in DRAWINGS}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in pictures().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
