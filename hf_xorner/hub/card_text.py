"""Text in Markdown: names of labels, files and corpora are shown as they are, and never mean anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .card_sections import section, without_marks

# What has a meaning in Markdown or HTML: underscores unless inside a word, stops only in web addresses.
_MEANS = re.compile(r"""[&<>|\\`*\[\]{}~$:@#!^"]|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.""", re.IGNORECASE)
_PLAIN_CODE = re.compile(r"[^\s`|<>&\\]+(?: [^\s`|<>&\\]+)*")


def one_line(text: str) -> str:
    """A text with blanks in place of line breaks, and of what cannot be seen but may turn the direction of writing."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def shown(value: Any) -> Markup:
    """Any value as Markdown that shows it in one line; what is Markdown already stays so."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, int):
        return Markup(f"{value:,}")
    if isinstance(value, float):
        return Markup(f"{value:.2f}")
    return Markup(_MEANS.sub(lambda found: f"&#{ord(found[0])};", one_line(str(value))))


def code(value: Any) -> Markup:
    """A value in a line, as code."""
    text = one_line(str(value))
    return Markup(f"`{text}`" if _PLAIN_CODE.fullmatch(text) else f"<code>{shown(text)}</code>")


def fence(text: str, language: str) -> Markup:
    """Lines of code, fenced by more backticks than any of them has."""
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return Markup(f"{ticks}{language}\n{without_marks(lines)}\n{ticks}")


def listed(values: Iterable[Any]) -> Markup:
    """Values, separated by commas."""
    return Markup(", ").join(map(shown, values))


def table(heads: Sequence[Any], rows: Iterable[Sequence[Any]], numbers: bool = True) -> Markup:
    """A table; after its first column there are numbers, if so said."""
    rule = ["---", *["---:" if numbers else "---"] * (len(heads) - 1)]
    lines = [heads, [Markup(cell) for cell in rule], *rows]
    return Markup("\n".join(f"| {' | '.join(map(shown, cells))} |" for cells in lines))


def environment() -> Environment:
    """Where templates are filled in: `shown` is what becomes of everything that is put in."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # what macros and filters make is known as Markdown
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"section": section, "code": code, "fence": fence, "listed": listed}
    made.globals["table"] = table
    return made
