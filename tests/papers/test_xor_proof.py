"""The proofs of the XOR limitation, against enumeration of tag sequences and exact arithmetic written again here."""

from fractions import Fraction
from itertools import product

import pytest

from hf_xorner.papers.xor_demonstration import CONTENDERS, PATTERNS, outcome
from hf_xorner.papers.xor_proof import IS_ENTITY, PHRASES, decide, holds, inequalities

NOTHING = ("O", "O", "O")
CASES = [
    # pattern, decoder, whether it can be learnt (li2020, sections 3.3 and 3.4)
    ("B I E", "softmax", False),
    ("B I E", "crf", True),
    ("O S O", "softmax", False),
    ("O S O", "crf", False),
    ("S O S", "softmax", True),  # the middle word is nothing in all phrases
    ("B E O", "crf", True),
]


def score(solution, phrase, tags, decoder, meet):
    """The score of a sequence of tags, from the unknowns of a solution; what is not there counts nothing."""
    left, _, right = phrase
    whole = " ".join(phrase)
    total = solution.get(("first", whole, tags[0]), 0) + solution.get(("last", whole, tags[2]), 0)
    if meet:
        total += solution.get(("middle", whole, tags[1]), 0)
    else:
        total += solution.get(("left", left, tags[1]), 0) + solution.get(("right", right, tags[1]), 0)
    if decoder == "crf":
        total += solution.get(("move", tags[0], tags[1]), 0) + solution.get(("move", tags[1], tags[2]), 0)
    return total


@pytest.mark.parametrize("meet", [False, True])
@pytest.mark.parametrize(("pattern", "decoder", "learnt"), CASES)
def test_patterns_are_learnable_as_the_paper_proves(pattern, decoder, learnt, meet):
    pattern = tuple(pattern.split())
    proof = decide(inequalities(pattern, decoder, directions_meet=meet))
    assert proof.feasible == (learnt or meet)
    if proof.feasible:
        # The gold tags are the best of all 125 sequences, by more than 0.
        for phrase, is_entity in zip(PHRASES, IS_ENTITY, strict=True):
            gold = pattern if is_entity else NOTHING
            scores = {tags: score(proof.solution, phrase, tags, decoder, meet) for tags in product("OSBIE", repeat=3)}
            best = scores.pop(gold)
            assert best > max(scores.values())
        return
    # For any numbers at all, the weighted sum of the margins is 0, so they cannot all be more than 0.
    assert all(isinstance(number, Fraction) and number > 0 for _, number in proof.multipliers)
    names = {name for inequality, _ in proof.multipliers for name in inequality.terms}
    for chosen in names:
        numbers = {chosen: Fraction(1)}
        margins = [
            number
            * (
                score(numbers, term.phrase, term.gold, decoder, meet)
                - score(numbers, term.phrase, term.others, decoder, meet)
            )
            for term, number in proof.multipliers
        ]
        assert sum(margins) == 0


def test_inequalities_of_a_crf_are_those_of_all_other_sequences():
    system = inequalities(("O", "S", "O"), "crf")
    assert len(system) == 4 * (5**3 - 1)
    assert {inequality.others for inequality in system if inequality.phrase == PHRASES[0]} == {
        tags for tags in product("OSBIE", repeat=3) if tags != ("O", "S", "O")
    }


def test_wrong_proofs_do_not_hold():
    infeasible, feasible = inequalities(("O", "S", "O"), "crf"), inequalities(("B", "I", "E"), "crf")
    refuted, solved = decide(infeasible), decide(feasible)
    assert holds(refuted, infeasible) and holds(solved, feasible)
    assert not holds(refuted._replace(multipliers=[]), infeasible)
    assert not holds(refuted._replace(multipliers=refuted.multipliers[1:]), infeasible)
    assert not holds(
        refuted._replace(multipliers=[(inequality, -number) for inequality, number in refuted.multipliers]), infeasible
    )
    assert not holds(refuted, feasible)
    assert not holds(solved._replace(solution={name: Fraction(0) for name in solved.solution}), feasible)


def test_unknown_patterns_are_refused():
    for pattern in (("B", "E"), ("B", "X", "E")):
        with pytest.raises(ValueError, match="not a pattern of three tags"):
            inequalities(pattern, "crf")


@pytest.mark.parametrize(("number", "pattern", "expected"), [(1, "O S O", "at most 3 of 4"), (2, "B I E", "4 of 4")])
def test_an_outcome_has_the_probabilities_of_four_phrases(number, pattern, expected, monkeypatch):
    monkeypatch.setattr("hf_xorner.papers.xor_demonstration.STEPS", 2)
    result = outcome(CONTENDERS[number], pattern)
    assert result.expected == expected
    assert len(result.probabilities) == 4 and all(0 <= probability <= 1 for probability in result.probabilities)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
def test_all_models_learn_the_phrases_as_expected(contender, pattern, seed):
    result = outcome(contender, pattern, seed)
    assert result.as_expected
    if result.right == 4:
        assert min(result.probabilities[:2]) > 0.5 > max(result.probabilities[2:])
