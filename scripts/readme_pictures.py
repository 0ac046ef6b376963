"""Write the pictures of the README, from measured figures and from the entities of the English model.

`model_cards/english-comparison.json` has the figures; `scripts/compare_english.py` writes it.

    python scripts/readme_pictures.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from hf_xorner import Tagger
from hf_xorner.files import PACKAGED

ROOT = Path(__file__).resolve().parents[1]
COMPARISON = ROOT / "model_cards" / "english-comparison.json"
FOLDER = ROOT / "docs" / "pictures"
SENTENCES = (
    "The German firm Nordwind Energy hired Imran Vale in Oslo.",
    "anyone seen imran vale in oslo tonight? he plays for arsenal",
)
INK, SHEET = "#37414d", "#fafafa"
COLOURS = {"PER": "#fbe6cf", "ORG": "#d9ead9", "LOC": "#d6e4f5", "MISC": "#eadcf2"}
OURS, PEER = "#2f6db5", "#b9c0c8"
#: Width of a letter of the monospaced font, and height of a line.
LETTER, LINE = 9.6, 58
SANS = 'font-family="sans-serif"'


def main() -> None:
    """Write both pictures."""
    FOLDER.mkdir(exist_ok=True)
    entities = Tagger.from_pretrained()(SENTENCES)
    (FOLDER / "entities.svg").write_text(entities_picture(SENTENCES, entities), encoding="utf-8")
    (FOLDER / "peers.svg").write_text(peers_picture(json.loads(COMPARISON.read_text())), encoding="utf-8")


def svg(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    """Return a drawing on a light sheet, which suits light and dark pages."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">'
    sheet = f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{SHEET}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", sheet, *parts, "</svg>\n"])


def text(x: float, y: float, content: str, size: int = 14, anchor: str = "start", attributes: str = "") -> str:
    """Return a line of text."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}" text-anchor="{anchor}" '
        f"{attributes or SANS}>{escape(content)}</text>"
    )


def entities_picture(sentences: Sequence[str], tagged: Sequence[Sequence[Any]]) -> str:
    """Draw sentences with their entities in boxes, and the label of each below."""
    parts = []
    for row, (sentence, entities) in enumerate(zip(sentences, tagged, strict=True)):
        y = 38 + LINE * row
        for entity in entities:
            x, width = 20 + LETTER * entity.start, LETTER * (entity.end - entity.start)
            parts.append(
                f'<rect x="{x - 3:g}" y="{y - 18:g}" width="{width + 6:g}" height="25" rx="4" '
                f'fill="{COLOURS[entity.label]}" stroke="{INK}"/>'
            )
            parts.append(text(x + width / 2, y + 22, f"{entity.label} {entity.score:.2f}", 11, "middle"))
        for word in re.finditer(r"\w+|[^\w\s]+", sentence):
            # The width of each word is set, so that it fills its box in any font.
            fixed = f'font-family="monospace" textLength="{LETTER * len(word[0]):g}" lengthAdjust="spacingAndGlyphs"'
            parts.append(text(20 + LETTER * word.start(), y, word[0], 16, attributes=fixed))
    width = 40 + LETTER * max(map(len, sentences))
    return svg("Entities that the English model finds in two sentences.", width, 20 + LINE * len(sentences), parts)


def peers_picture(figures: dict[str, dict[str, Any]]) -> str:
    """Draw bars of F1 and of words a second for this model and for spaCy's."""
    english = PACKAGED["english"]
    ours, peer = f"model_cards/{english}", "spacy:en_core_web_sm"
    systems = ((ours, f"hf_xorner {english}", OURS), (peer, "spaCy en_core_web_sm", PEER))
    rows = [
        ("F1, news and encyclopedia", "pud, as spelt"),
        ("F1, the same in lower case", "pud, lower case"),
    ]
    values = [(name, [figures[system][key]["f1"] for system, *_ in systems], "{:.1f}", 100) for name, key in rows]
    speeds = [figures[system]["words_per_second"] for system, *_ in systems]
    values.append(("words a second, two cores", speeds, "{:,.0f}", max(speeds)))
    parts = []
    for number, (_, label, colour) in enumerate(systems):
        parts += [f'<rect x="{20 + 300 * number}" y="14" width="14" height="14" fill="{colour}"/>']
        parts += [text(42 + 300 * number, 26, label)]
    for row, (name, pair, form, most) in enumerate(values):
        y = 48 + 52 * row
        parts.append(text(20, y + 22, name))
        for number, (value, (*_, colour)) in enumerate(zip(pair, systems, strict=True)):
            length = 300 * value / most
            parts.append(f'<rect x="240" y="{y + 18 * number}" width="{length:.1f}" height="16" fill="{colour}"/>')
            parts.append(text(248 + length, y + 13 + 18 * number, form.format(value), 13))
    note = "F1: persons, organisations and locations of Universal NER's English PUD, on which neither was trained."
    parts.append(text(20, 62 + 52 * len(values), note, 11))
    note = "Speed of spaCy: an untrained pipeline with the layers of its NER alone."
    parts.append(text(20, 78 + 52 * len(values), note, 11))
    title = (
        "F1 on persons, organisations and locations of English PUD, text that neither was trained on, and speed, of "
        f"{english} and spaCy's small English model."
    )
    return svg(title, 640, 92 + 52 * len(values), parts)


if __name__ == "__main__":
    main()
