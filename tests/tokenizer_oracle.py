"""Plain loops over words and characters: the expected output of a tokenizer for any arguments."""

import unicodedata
from collections import Counter

import numpy as np
import torch
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from hf_xorner.models.word_rule import WORD_PATTERN

SPLITTER = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)

LONG_WORD = "x" * 10_000

TEXTS = [
    "Ann Smith met Zeus in New York .",
    "",
    "  \t ",
    "zeus",
    "ANN saw 47 birds, didn't she? İstanbul é 東京 👩🏽‍🚀 שלום",
    "[PAD] [UNK] Nobody\u00a0[PAD]",
    "a b c d e f g h i j k",
    f"Ann {LONG_WORD} York",
    "\0 \ue000 \ue000\ue001nn",
]

GIVEN = [
    ["Ann", "Smith", "met", "Zeus"],
    [],
    [""],
    ["", " ", "New York", "\u200b", "[PAD]", "[UNK]", "", "."],
    ["\ue000", "\ue000\ue001", "\ue000\ue001Ann", "Ann\ue000\ue001Smith", "AnnSmith"],
    ["12:30", "12", "İSTANBUL", "É", "東京", "Zeus", LONG_WORD, "\n", "zeus", "3"],
]


# --- The oracle ------------------------------------------------------------------------------------------------------


class Oracle:
    """The expected output of the tokenizer, one word and one character at a time."""

    def __init__(self, sentences, *, min_count=1, casing="keep", digits="keep", max_word_chars=20):
        self.casing, self.digits, self.width = casing, digits, max_word_chars
        words, characters = Counter(), Counter()
        for sentence in sentences:
            for word in sentence:
                words[self.looked_up(word)] += 1
                characters.update(self.with_zeros(word))
        kept = [word for word in words if words[word] >= min_count]
        kept.sort(key=lambda word: (-words[word], word))
        self.words = {word: index for index, word in enumerate(kept, 2)}
        seen = sorted(characters, key=lambda character: (-characters[character], character))
        self.characters = {character: index for index, character in enumerate(seen, 6)}

    def with_zeros(self, word):
        if self.digits == "keep":
            return word
        return "".join("0" if unicodedata.category(character) == "Nd" else character for character in word)

    def looked_up(self, word):
        word = self.with_zeros(word)
        return word if self.casing == "keep" else word.replace("İ", "i").lower()

    def char_row(self, word):
        row = [self.character_id(character) for character in self.with_zeros(word)[: self.width]]
        return row + [0] * (self.width - len(row))

    def character_id(self, character):
        if character in self.characters:
            return self.characters[character]
        category = unicodedata.category(character)
        if category in ("Lu", "Lt"):
            return 2
        if category == "Ll":
            return 3
        if category == "Nd":
            return 4
        return 5 if category[0] in "PS" else 1

    def tokens(self, item):
        """(word id, character ids, offsets) of every word of a text or list of words."""
        is_split = not isinstance(item, str)
        pairs = [(word, (0, len(word))) for word in item] if is_split else SPLITTER.pre_tokenize_str(item)
        return [(self.words.get(self.looked_up(word), 1), self.char_row(word), index) for word, index in pairs]


def windows(size, limit, stride, side):
    """First and last word of each part that truncation makes of a sentence."""
    if limit is None or size <= limit:
        return [(0, size)]
    parts = []
    if side == "right":
        first = 0
        while not parts or parts[-1][1] < size:
            parts.append((first, min(first + limit, size)))
            first += limit - stride
    else:
        last = size
        while not parts or parts[-1][0] > 0:
            parts.append((max(last - limit, 0), last))
            last -= limit - stride
    return parts


def expected(oracle, batch, *, limit=None, stride=0, cut_side="right", overflow=False, pad=None, multiple=None, side):
    """Every column that the tokenizer can give for a batch, as lists, with the numbers of the words beside them."""
    rows = []
    for number, item in enumerate(batch):
        tokens = oracle.tokens(item)
        parts = windows(len(tokens), limit, stride, cut_side)
        for first, last in parts if overflow else parts[:1]:
            rows.append((number, list(range(first, last)), tokens[first:last]))
    width = {None: None, True: max((len(tokens) for _, _, tokens in rows), default=0), "max_length": limit}[pad]
    if width is not None and multiple:
        while width % multiple:
            width += 1
    names = ("input_ids", "char_ids", "attention_mask", "special_tokens_mask", "offset_mapping", "word_ids", "length")
    columns = {name: [] for name in names}
    for _, numbers, tokens in rows:
        missing = 0 if width is None else width - len(tokens)

        def padded(values, filler, missing=missing):
            filling = [filler for _ in range(missing)]
            return filling + list(values) if side == "left" else list(values) + filling

        columns["input_ids"].append(padded([token[0] for token in tokens], 0))
        columns["char_ids"].append(padded([token[1] for token in tokens], [0] * oracle.width))
        columns["offset_mapping"].append(padded([token[2] for token in tokens], (0, 0)))
        columns["attention_mask"].append(padded([1] * len(tokens), 0))
        columns["special_tokens_mask"].append(padded([0] * len(tokens), 1))
        columns["word_ids"].append(padded(numbers, None))
        columns["length"].append(len(tokens) + missing)
    if overflow:
        columns["overflow_to_sample_mapping"] = [number for number, _, _ in rows]
    return columns


def plain(value):
    """Tensors and arrays as nested lists; offsets as pairs."""
    return value.tolist() if isinstance(value, (np.ndarray, torch.Tensor)) else value


def pairs(rows):
    return [[tuple(pair) for pair in row] for row in rows]


POLICIES = [
    {},
    {"casing": "lower", "digits": "zero", "max_word_chars": 5},
    {"casing": "lower", "min_count": 2},
    {"digits": "zero", "max_word_chars": 3},
]

ALL_COLUMNS = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "return_length": True}


def random_settings(chooser, tensors):
    """One combination of what a caller can ask for: the call's arguments, and the oracle's."""
    limit = chooser.choice([None, 1, 2, 4, 5, 40])
    pad = chooser.choice([None, True, "max_length"])
    overflow = limit is not None and chooser.random() < 0.5
    if tensors and pad is None:
        pad = True
    if limit is None and pad == "max_length":
        pad = True
    stride = chooser.randrange(limit) if overflow else 0
    # Stock rule: a limit must be a multiple of what is padded to.
    multiple = chooser.choice([None, 4]) if pad and (limit or 4) % 4 == 0 else None
    side = chooser.choice(["left", "right"])
    call = {"padding": pad or False, "padding_side": side, "return_tensors": tensors}
    if limit is not None:
        call |= {"truncation": True, "max_length": limit}
    if overflow:
        call |= {"stride": stride, "return_overflowing_tokens": True}
    if multiple:
        call["pad_to_multiple_of"] = multiple
    wanted = {"limit": limit, "stride": stride, "overflow": overflow, "pad": pad, "multiple": multiple, "side": side}
    return call, wanted
