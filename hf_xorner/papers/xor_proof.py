r"""The XOR limitation of li2020 (sections 3.3 and 3.4) as linear inequalities, decided and proved exactly.

Four phrases have one of two left words, a middle word, and one of two right words; two of the phrases are entities:

    Key and Peele    entity        Key and I        nothing
    You and I        entity        You and Peele    nothing

Where the directions do not meet, the scores of the middle word are a sum of what the left words say and of what the
right words say. The outer words' scores may depend on the whole phrase: a direction that ends at a word has read it
all. All of these numbers are unknowns. The tagger is right if the gold tags score higher than all others in each
phrase: one inequality `sum > 0` for each. They either have a solution, or there are multipliers, none of them negative,
with which they add up to `0 > 0`. Both are found by linear programming and then checked in fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

PHRASES = (("Key", "and", "Peele"), ("You", "and", "I"), ("Key", "and", "I"), ("You", "and", "Peele"))
#: Which of the phrases are entities.
IS_ENTITY = (True, True, False, False)
INNER_TAGS = ("O", "S", "B", "I", "E")
DECODERS = ("softmax", "crf")
#: Denominators of solutions and multipliers are at most this.
_DENOMINATOR = 10_000

#: An unknown number: what it is, and what it depends on.
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
    """That a system of inequalities has a solution, or that it has none.

    Attributes:
        feasible: Whether there is a solution.
        solution: The unknowns of one, if there is.
        multipliers: If there is none: numbers by which inequalities are multiplied to add up to 0 > 0.
    """

    feasible: bool
    solution: Mapping[Unknown, Fraction]
    multipliers: list[tuple[Inequality, Fraction]]


def inequalities(pattern: tuple[str, ...], decoder: str, directions_meet: bool = False) -> list[Inequality]:
    """The inequalities of a tagger that is right on all four phrases.

    Args:
        pattern: The gold tags of the entities, one a word, of O, S, B, I, E.
        decoder: "softmax" labels every word by itself, "crf" also scores pairs of neighbouring tags.
        directions_meet: Whether the middle word's scores may depend on the whole phrase, as in Cross and Att.

    Raises:
        ValueError: If a pattern does not have three of these tags.
    """
    if len(pattern) != 3 or set(pattern) - set(INNER_TAGS):
        raise ValueError(f"{' '.join(pattern)!r} is no pattern of three tags among {', '.join(INNER_TAGS)}.")
    system = []
    for phrase, is_entity in zip(PHRASES, IS_ENTITY, strict=True):
        gold = pattern if is_entity else ("O", "O", "O")
        for tags in product(INNER_TAGS, repeat=3):
            differing = sum(one != another for one, another in zip(tags, gold, strict=True))
            # Word by word, tags that differ in several words are wrong for each of them.
            if differing == 0 or (decoder == "softmax" and differing > 1):
                continue
            terms = Counter(_unknowns(phrase, gold, decoder, directions_meet))
            terms.subtract(_unknowns(phrase, tags, decoder, directions_meet))
            system.append(Inequality(phrase, gold, tags, {name: count for name, count in terms.items() if count}))
    return system


def _unknowns(phrase: tuple[str, ...], tags: tuple[str, ...], decoder: str, directions_meet: bool) -> list[Unknown]:
    """The unknowns that add up to the score of tags."""
    whole, (left, _, right) = " ".join(phrase), phrase
    unknowns: list[Unknown] = [("first", whole, tags[0]), ("last", whole, tags[2])]
    unknowns += (
        [("middle", whole, tags[1])] if directions_meet else [("left", left, tags[1]), ("right", right, tags[1])]
    )
    return unknowns + ([("move", *pair) for pair in pairwise(tags)] if decoder == "crf" else [])


def decide(system: list[Inequality]) -> Proof:
    """Decide whether inequalities have a solution, and prove it.

    Raises:
        ArithmeticError: If the result of linear programming does not hold in fractions.
    """
    names = sorted({name for inequality in system for name in inequality.terms})
    place = {name: number for number, name in enumerate(names)}
    entries = [(row, place[name], count) for row, each in enumerate(system) for name, count in each.terms.items()]
    rows, columns, counts = zip(*entries, strict=True)
    matrix = csr_matrix((counts, (rows, columns)), shape=(len(system), len(names)))
    # All sums are homogeneous: if they can be more than 0, they can be at least 1.
    result = linprog(np.zeros(len(names)), A_ub=-matrix, b_ub=-np.ones(len(system)), bounds=(None, None))
    if result.status == 0:
        proof = Proof(True, dict(zip(names, _fractions(result.x), strict=True)), [])
    else:
        # Multipliers that add up to 1; the fewest would be hard to find, the least by a random weight are few.
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
        sums = (sum(count * proof.solution[name] for name, count in each.terms.items()) for each in system)
        return all(total > 0 for total in sums)
    total: dict[Unknown, Fraction] = defaultdict(Fraction)
    for inequality, number in proof.multipliers:
        for name, count in inequality.terms.items():
            total[name] += count * number
    fits = all(inequality in system and number > 0 for inequality, number in proof.multipliers)
    return fits and bool(proof.multipliers) and not any(total.values())
