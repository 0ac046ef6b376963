"""Write the pictures of the README, from measured figures and from the entities of the English model.

`model_cards/comparison.json` has the figures; `scripts/compare_english.py --measure` writes it.

    python scripts/readme_pictures.py
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from hf_xorner import Tagger

ROOT = Path(__file__).resolve().parents[1]
COMPARISON = ROOT / "model_cards" / "comparison.json"
FOLDER = ROOT / "docs" / "pictures"
SENTENCES = (
    "The German firm Nordwind Energy hired Imran Vale in Oslo.",
    "anyone seen imran vale in oslo tonight? he plays for arsenal",
)
INK, SHEET = "#37414d", "#fafafa"
COLOURS = {"PER": "#fbe6cf", "ORG": "#d9ead9", "LOC": "#d6e4f5", "MISC": "#eadcf2"}
OURS, PEER = "#2f6db5", "#8b939c"
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
    """Draw a point for each system: F1 on English PUD against words a second."""
    left, right, top, bottom = 60, 620, 20, 320
    systems = {label: (values["words_per_second"], values["pud"]["f1"]) for label, values in figures.items()}
    speeds, scores = zip(*systems.values(), strict=True)
    slowest, fastest = math.log10(min(speeds)) - 0.1, math.log10(max(speeds)) + 0.1
    worst, best = 10 * (min(scores) // 10), 10 * (max(scores) // 10 + 1)

    def place(speed: float, score: float) -> tuple[float, float]:
        across = (math.log10(speed) - slowest) / (fastest - slowest)
        return left + (right - left) * across, bottom - (bottom - top) * (score - worst) / (best - worst)

    parts = []
    for score in range(int(worst), int(best) + 1, 10):
        y = place(min(speeds), score)[1]
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{INK}" stroke-opacity="0.15"/>')
        parts.append(text(left - 10, y + 4, str(score), 12, "end"))
    for speed in (digit * 10**power for power in range(1, 7) for digit in (1, 2, 5)):
        if slowest <= math.log10(speed) <= fastest:
            parts.append(text(round(place(speed, best)[0], 1), bottom + 20, f"{speed:,}", 12, "middle"))
    lowest = top - 14.0
    for label, (speed, score) in sorted(systems.items(), key=lambda item: -item[1][1]):
        x, y = place(speed, score)
        lowest = max(y + 4, lowest + 14)  # labels do not overlap
        side, anchor = (10, "start") if x < (left + right) / 2 else (-10, "end")
        colour = OURS if label.startswith("english-ner") else PEER
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        parts.append(text(round(x + side, 1), round(lowest, 1), label, 12, anchor))
    axis = "words a second of CPU time, one thread (right is faster)"
    parts.append(text((left + right) / 2, bottom + 42, axis, 13, "middle"))
    title = "F1 on persons, organisations and locations of English PUD, against words a second."
    note = "F1 (up is better): persons, organisations and locations of English PUD, on which no system was trained."
    return svg(title, 640, bottom + 76, [*parts, text(20, bottom + 64, note, 11)])


if __name__ == "__main__":
    main()
