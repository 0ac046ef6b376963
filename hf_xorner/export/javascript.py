r"""The word rule as a JavaScript regular expression with the flag `v`.

Oniguruma and JavaScript differ in the names of scripts, `\s`, `\z`, escapes, possessive quantifiers, atomic groups and
`(?i:…)`. An atomic part X becomes `(?=(?<name>X))\k<name>`, which matches the same.
"""

from __future__ import annotations

import re

_SCRIPTS = ("Katakana", "Han", "Hiragana", "Hebrew", "Latin", "Greek", "Cyrillic")
#: Translations of escapes other than those of properties and code points.
_ESCAPES = {"s": r"\p{White_Space}", "S": r"\P{White_Space}", "z": "$", "n": r"\n", "r": r"\r"}
#: Characters beyond ASCII that fold to an ASCII letter.
_FOLDED = {"s": "\u017f", "k": "\u212a"}

_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})")
_OPENING = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|i:))?")
_ESCAPE = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|([pP])\{(\w+)\}|(.))", re.DOTALL)


def javascript_pattern(pattern: str) -> str:
    """Translate an Oniguruma expression, as in `word_rule.py`, to a JavaScript expression that matches the same."""
    return _Translation(pattern).alternatives()


class _Translation:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.position, self.atomics = pattern, 0, 0
        self.ignores_case = False

    def alternatives(self) -> str:
        """Alternatives up to the end of a group or of the pattern."""
        sequences = [self.sequence()]
        while self.skip("|"):
            sequences.append(self.sequence())
        return "|".join(sequences)

    def sequence(self) -> str:
        """Parts, each with its quantifier."""
        parts = []
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            part = self.part()
            quantifier = self.take(_QUANTIFIER) or ""
            part += quantifier
            possessive = len(quantifier) == 1 and self.skip("+")
            parts.append(self.atomic(part) if possessive else part)
        return "".join(parts)

    def part(self) -> str:
        """A group, a class of characters, or one character."""
        if self.pattern[self.position] == "[":
            return self.characters()
        opening = self.take(_OPENING)
        if opening is None:
            return self.character(in_class=False)
        outside = self.ignores_case
        self.ignores_case = outside or opening == "(?i:"
        inside = self.alternatives()
        self.ignores_case = outside
        self.skip(")")
        if opening == "(?>":
            return f"(?:{self.atomic(inside)})"
        return f"{'(?:' if opening in ('(', '(?i:') else opening}{inside})"

    def atomic(self, part: str) -> str:
        """Make a part atomic: no shorter match of it is tried later."""
        self.atomics += 1
        return rf"(?:(?=(?<a{self.atomics}>{part}))\k<a{self.atomics}>)"

    def characters(self) -> str:
        """A class in brackets, which may hold others."""
        self.position += 1
        parts = ["[^" if self.skip("^") else "["]
        while not self.skip("]"):
            if self.pattern[self.position] == "[":
                parts.append(self.characters())
            elif self.skip("&&"):
                parts.append("&&")
            else:
                parts.append(self.character(in_class=True))
                # A hyphen is a range between two characters, else itself.
                if self.pattern[self.position] == "-" and self.pattern[self.position + 1] != "]":
                    self.position += 1
                    parts += ["-", self.character(in_class=True)]
        return "".join([*parts, "]"])

    def character(self, in_class: bool) -> str:
        """One character, or a property of characters."""
        escape = _ESCAPE.match(self.pattern, self.position)
        if escape is None:
            literal = self.pattern[self.position]
            self.position += 1
        else:
            self.position = escape.end()
            code_point, letter, name, literal = escape.groups()
            if name is not None:
                return rf"\{letter}{{{'Script=' if name in _SCRIPTS else ''}{name}}}"
            if code_point is not None:
                literal = chr(int(code_point, 16))
            elif literal in _ESCAPES:
                return _ESCAPES[literal]
        if self.ignores_case and literal.isascii() and literal.isalpha():
            both = literal.lower() + literal.upper() + _FOLDED.get(literal.lower(), "")
            return both if in_class else f"[{both}]"
        return literal if literal.isascii() and literal.isalnum() else rf"\u{{{ord(literal):X}}}"

    def take(self, expression: re.Pattern[str]) -> str | None:
        """Return the match of an expression at the current position and move behind it; None if there is no match."""
        match = expression.match(self.pattern, self.position)
        if match is None:
            return None
        self.position = match.end()
        return match.group()

    def skip(self, text: str) -> bool:
        """Return True if a text is at the current position, and move behind it."""
        matches = self.pattern.startswith(text, self.position)
        if matches:
            self.position += len(text)
        return matches
