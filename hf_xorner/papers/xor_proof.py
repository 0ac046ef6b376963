r"""The XOR limitation of li2020 (sections 3.3 and 3.4) as linear inequalities, decided and proved exactly.

Four phrases have one of two left words, a middle word, and one of two right words; two of the phrases are entities:

    Key and Peele    entity        Key and I        nothing
    You and I        entity        You and Peele    nothing

If the two directions are stacked separately, a score of the middle word is the sum of a function of the left word and a
function of the right word. The scores of the outer words may depend on the whole phrase, which one of the directions
has read. All these numbers are unknowns. The tagger is right if the gold tags score higher than all others in each
phrase; each comparison is an inequality `sum > 0`. The inequalities either have a solution, or there are non-negative
multipliers with which they add up to `0 > 0`. Both are computed by linear programming and checked in exact fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

PHRASES = (("Key", "and", "Peele"), ("You", "and", "I"), ("Key", "and", "I"), ("You", "and", "Peele"))
#: True for phrases that are entities.
IS_ENTITY = (True, True, False, False)
INNER_TAGS = ("O", "S", "B", "I", "E")
DECODERS = ("softmax", "crf")
#: Maximum denominator of solutions and multipliers.
_DENOMINATOR = 10_000

#: An unknown number: its kind, and the words and tags on which it depends.
Unknown = tuple[str, ...]


class Inequality(NamedTuple):
    """The gold tags of a phrase score higher than other tags: the terms add up to more than 0."""

    phrase: tuple[str, ...]
    gold: tuple[str, ...]
    others: tuple[str, ...]
    terms: Mapping[Unknown, int]

    def __str__(self) -> str:
        return f"{' '.join(self.phrase)}: {' '.join(self.gold)} above {' '.join(self.others)}"


class Proof(NamedTuple):
    """A proof that a system of inequalities has a solution, or that it has none.

    Attributes:
        feasible: True if there is a solution.
        solution: The values of the unknowns in a solution, if there is one.
        multipliers: Otherwise, multipliers with which inequalities add up to 0 > 0.
    """

    feasible: bool
    solution: Mapping[Unknown, Fraction]
    multipliers: list[tuple[Inequality, Fraction]]


def inequalities(pattern: tuple[str, ...], decoder: str, directions_meet: bool = False) -> list[Inequality]:
    """The inequalities of a tagger that is right on all four phrases.

    Args:
        pattern: The gold tags of the entities, one of O, S, B, I, E per word.
        decoder: "softmax" labels every word independently, "crf" also scores pairs of neighbouring tags.
        directions_meet: True if the middle word's scores may depend on the whole phrase, as in Cross and Att.

    Raises:
        ValueError: If a pattern does not have three of these tags.
    """
    if len(pattern) != 3 or set(pattern) - set(INNER_TAGS):
        raise ValueError(f"{list(pattern)} is not a pattern of three tags among {', '.join(INNER_TAGS)}.")
    system = []
    for phrase, is_entity in zip(PHRASES, IS_ENTITY, strict=True):
        gold = pattern if is_entity else ("O", "O", "O")
        for tags in product(INNER_TAGS, repeat=3):
            differing = sum(tag != gold_tag for tag, gold_tag in zip(tags, gold, strict=True))
            # With softmax, tags that differ in several words follow from those that differ in one.
            if differing == 0 or (decoder == "softmax" and differing > 1):
                continue
            terms = Counter(_unknowns(phrase, gold, decoder, directions_meet))
            terms.subtract(_unknowns(phrase, tags, decoder, directions_meet))
            system.append(Inequality(phrase, gold, tags, {name: count for name, count in terms.items() if count}))
    return system


def _unknowns(phrase: tuple[str, ...], tags: tuple[str, ...], decoder: str, directions_meet: bool) -> list[Unknown]:
    """Return the unknowns whose sum is the score of tags."""
    phrase_text, (left, _, right) = " ".join(phrase), phrase
    unknowns: list[Unknown] = [("first", phrase_text, tags[0]), ("last", phrase_text, tags[2])]
    unknowns += (
        [("middle", phrase_text, tags[1])] if directions_meet else [("left", left, tags[1]), ("right", right, tags[1])]
    )
    return unknowns + ([("move", *pair) for pair in pairwise(tags)] if decoder == "crf" else [])


def decide(system: list[Inequality]) -> Proof:
    """Decide whether inequalities have a solution, and prove it.

    Raises:
        ArithmeticError: If the result of linear programming does not hold in fractions.
    """
    # Imported here because only proofs need it; it comes with an extra.
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    names = sorted({name for inequality in system for name in inequality.terms})
    column_of = {name: column for column, name in enumerate(names)}
    entries = [
        (row, column_of[name], n) for row, inequality in enumerate(system) for name, n in inequality.terms.items()
    ]
    rows, columns, counts = zip(*entries, strict=True)
    matrix = csr_matrix((counts, (rows, columns)), shape=(len(system), len(names)))
    # All sums are homogeneous: if they can exceed 0, they can be at least 1.
    result = linprog(np.zeros(len(names)), A_ub=-matrix, b_ub=-np.ones(len(system)), bounds=(None, None))
    if result.status == 0:
        proof = Proof(True, dict(zip(names, _fractions(result.x), strict=True)), [])
    else:
        # Multipliers that add up to 1. Finding the fewest is hard; minimising a random weight gives few.
        equalities = csr_matrix(np.vstack([matrix.toarray().T, np.ones(len(system))]))
        right = np.append(np.zeros(len(names)), 1)
        weight = np.random.default_rng(0).uniform(1, 2, len(system))
        result = linprog(weight, A_eq=equalities, b_eq=right, bounds=(0, None))
        smallest = min(value for value in result.x if value > 1e-9)
        multipliers = zip(system, _fractions(result.x / smallest), strict=True)
        proof = Proof(False, {}, [(inequality, number) for inequality, number in multipliers if number])
    if not holds(proof, system):
        raise ArithmeticError("the result of linear programming does not hold in fractions.")
    return proof


def _fractions(values: Iterable[float]) -> list[Fraction]:
    return [Fraction(float(value)).limit_denominator(_DENOMINATOR) for value in values]


def holds(proof: Proof, system: list[Inequality]) -> bool:
    """Check a proof in fractions."""
    if proof.feasible:
        return all(sum(n * proof.solution[name] for name, n in inequality.terms.items()) > 0 for inequality in system)
    total: dict[Unknown, Fraction] = defaultdict(Fraction)
    for inequality, number in proof.multipliers:
        for name, count in inequality.terms.items():
            total[name] += count * number
    fits = all(inequality in system and number > 0 for inequality, number in proof.multipliers)
    return fits and bool(proof.multipliers) and not any(total.values())
