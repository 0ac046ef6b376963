"""The XOR corpus of li2020, generated from a seed.

Li, Fu and Ma (AAAI 2020) show that a BiLSTM whose two directions are stacked separately scores a word by a *sum* of a
function of its left context and a function of its right context. No such sum can label the middle word of four phrases:

====================  ====================
``Key and Peele``     a work of art
``You and I``         a work of art
``Key and I``         nothing
``You and Peele``     nothing
====================  ====================

The corpus has many names in place of the four. Those on the left are of class A (like Key) or B (like You), and so
are those on the right (like Peele and I). A phrase holds an entity if the classes of its two names agree. There are no
other clues: the phrases come in blocks of four sentences that only differ in the names, where two names on either side
form all four phrases. So for every name, and for every other word, exactly half of the phrases hold an entity.

A model must be able to learn the class of a name. In the paper, pretrained vectors show it. Here vectors start at
random, and the phrases alone make a parity problem: a two-layer bidirectional LSTM had learned nothing after 2,000
steps. So the training split also has each name alone, in sentences without a phrase, where class A is a person and
class B is not, as Key is a person and You is not.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

# The two kinds of phrases, named by the paper's chunk tags: the entity is the whole phrase, or only the middle word.
WHOLE_PHRASE = "B-I-E"
MIDDLE_WORD = "O-S-O"
_KINDS = (WHOLE_PHRASE, MIDDLE_WORD)
# The kind of the training sentences that hold a single name and no phrase.
ALONE = "alone"
LABELS = ("O", "B-LINK", "I-LINK", "B-PER", "I-PER", "B-WORK", "I-WORK")
_FEATURES = Features(
    tokens=List(Value("string")),
    ner_tags=List(ClassLabel(names=list(LABELS))),
    kind=Value("string"),
    middle=Value("int32"),
)

# Each kind has another middle word; with the same one, the two kinds would contradict each other.
_MIDDLE = {WHOLE_PHRASE: "and", MIDDLE_WORD: "with"}
_TAGS = {WHOLE_PHRASE: ("B-WORK", "I-WORK", "I-WORK"), MIDDLE_WORD: ("O", "B-LINK", "O")}
_TAG_ALONE = {"A": "B-PER", "B": "O"}
# The sentences of a block: class of the left name, class of the right name.
_CLASSES = tuple(product("AB", repeat=2))
_BLOCK = len(_CLASSES)

_BEFORE = (
    "we",
    "we saw",
    "she wrote about",
    "nobody there knew",
    "my sister told us of",
    "last week they showed",
    "people on our street like",
    "he said that",
)
_AFTER = (
    "again",
    "on Sunday",
    "at the fair",
    "before the rain",
    "in our old school",
    "for the third time",
    "to my surprise",
    "as he had hoped to",
)
_ENDS = (".", "!", "?")
_ONSETS = ("B", "D", "F", "G", "H", "J", "K", "L", "M", "N", "P", "R", "S", "T", "V", "Z", "Br", "Dr", "Gr", "Tr")
_MIDDLES = ("al", "am", "an", "ar", "el", "en", "er", "im", "in", "ol", "on", "or")
_CODAS = ("a", "by", "dre", "ek", "i", "ko", "ley", "mo", "na", "o", "ric", "son", "ta", "vi", "wen", "zo")
_EVERY_NAME = ["".join(parts) for parts in product(_ONSETS, _MIDDLES, _CODAS)]

_Row = dict[str, Any]


class _Block(NamedTuple):
    """Four sentences that only differ in their names; for each side, the name of either class."""

    kind: str
    left: dict[str, str]
    right: dict[str, str]


def xor_corpus(
    seed: int = 13, train: int = 1920, validation: int = 320, test: int = 640, names: int = 40, alone: int = 4
) -> DatasetDict:
    """Generate the XOR corpus: sentences in which the label of a word depends on both its neighbours at once.

    Half of the phrases are of either kind. With *and* between two names the whole phrase is an entity ``WORK`` or
    nothing (IOB2 ``B I I``, in BIOES ``B I E``); with *with* the middle word alone is an entity ``LINK`` or nothing
    (``O B O``, in BIOES ``O S O``). No pair of names occurs twice in the corpus, so the pairs of validation and test
    are not in the training split. With at least ``8 * names`` training phrases, every name occurs in phrases of either
    kind; by default, each is in 24 phrases and 4 times alone, in the training split's 2,560 sentences.

    Args:
        seed: The corpus is a function of its arguments; another seed gives other names, pairs and sentences.
        train: The number of training phrases, a multiple of 8: blocks of four, for either kind.
        validation: The number of validation phrases, a multiple of 8; a split of size 0 is left out.
        test: The number of test phrases, a multiple of 8.
        names: The number of names in each of the four pools: left and right, class A and class B.
        alone: The number of additional training sentences for each name alone. With 0, the corpus has only phrases and
            takes far longer to learn.

    Returns:
        The splits with the columns ``tokens``, ``ner_tags``, ``kind`` and ``middle``. ``kind`` is ``"B-I-E"``,
        ``"O-S-O"`` or, in training only, ``"alone"``; ``middle`` is the index of the middle word of the
        phrase, or of the name that stands alone. A phrase holds an entity if the label at ``middle`` is not ``O``.

    Raises:
        ValueError: If a size is negative or not a multiple of 8, or there are too few pairs of names.
    """
    sizes = {"train": train, "validation": validation, "test": test}
    unit = _BLOCK * len(_KINDS)
    for split, size in sizes.items():
        if size < 0 or size % unit:
            raise ValueError(f"{split}={size}: phrases come in blocks of four of each kind; give a multiple of {unit}.")
    capacity = unit * names * (names // 2)
    if sum(sizes.values()) > capacity:
        raise ValueError(
            f"{sum(sizes.values())} phrases are requested, but {names} names per pool make {capacity}; "
            "give more names or smaller splits."
        )
    rng = random.Random(seed)
    pools = _name_pools(names, rng)
    blocks = {kind: _blocks(kind, pools) for kind in _KINDS}
    splits = {}
    for split, size in sizes.items():
        chosen = [next(blocks[kind]) for _ in range(size // unit) for kind in _KINDS]
        rows = [row for block in chosen for row in _phrases(block, rng)]
        if split == "train" and rows:
            rows += [_alone(name, its_class, rng) for (_, its_class), pool in pools.items() for name in pool * alone]
        rng.shuffle(rows)
        if rows:
            splits[split] = Dataset.from_list(rows, features=_FEATURES)
    return DatasetDict(splits)


def _name_pools(size: int, rng: random.Random) -> dict[tuple[str, str], list[str]]:
    """Return disjoint pools of invented names by side and class."""
    # At random, so that the spelling gives no clue to the side or the class.
    drawn = iter(rng.sample(_EVERY_NAME, 4 * size))
    return {(side, name): list(islice(drawn, size)) for side in ("left", "right") for name in "AB"}


def _blocks(kind: str, pools: dict[tuple[str, str], list[str]]) -> Iterator[_Block]:
    """Yield the blocks of a kind, round after round, in an order that splits can cut anywhere.

    Round r combines the left names i with the right names i + r, of the same and of the other class. Neighbouring
    rounds share names, so a training split of a few rounds connects all names; if it had two parts without a common
    name, the classes of one part could be swapped without a change in the phrases. Each kind has its own rounds, and
    so its own pairs.
    """
    size = len(pools["left", "A"])
    rounds = size // 2
    first = _KINDS.index(kind) * rounds
    for shift in range(first, first + rounds):
        for index in range(size):
            yield _Block(
                kind,
                left={name: pools["left", name][index] for name in "AB"},
                right={name: pools["right", name][(index + shift) % size] for name in "AB"},
            )


def _phrases(block: _Block, rng: random.Random) -> Iterator[_Row]:
    before, after = _surroundings(rng)
    for left, right in _CLASSES:
        words = [block.left[left], _MIDDLE[block.kind], block.right[right]]
        tags = _TAGS[block.kind] if left == right else ("O", "O", "O")
        yield _row(before, words, tags, after, block.kind, len(before) + 1)


def _alone(name: str, its_class: str, rng: random.Random) -> _Row:
    before, after = _surroundings(rng)
    return _row(before, [name], [_TAG_ALONE[its_class]], after, ALONE, len(before))


def _surroundings(rng: random.Random) -> tuple[list[str], list[str]]:
    return rng.choice(_BEFORE).split(), [*rng.choice(_AFTER).split(), rng.choice(_ENDS)]


def _row(
    before: list[str], words: Sequence[str], tags: Sequence[str], after: list[str], kind: str, middle: int
) -> _Row:
    labels = ["O"] * len(before) + list(tags) + ["O"] * len(after)
    return {
        "tokens": [*before, *words, *after],
        "ner_tags": [LABELS.index(label) for label in labels],
        "kind": kind,
        "middle": middle,
    }
