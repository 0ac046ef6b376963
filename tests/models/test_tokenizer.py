"""The tokenizer agrees with plain loops over words and characters, whatever it is asked for."""

import copy
import pickle
import random
import sys
import time
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from conftest import LABELS, SENTENCES, build_model
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split
from transformers import AutoTokenizer, DataCollatorForTokenClassification

from hf_xorner import WordCharTokenizer
from hf_xorner.models.characters import character_types
from hf_xorner.models.configuration_tagger import CHARACTER_TYPE_CODES
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
    """What the tokenizer should give, one word and one character at a time."""

    def __init__(self, sentences, *, min_count=1, casing="keep", digits="keep", max_word_chars=20, min_char_count=1):
        self.casing, self.digits, self.width = casing, digits, max_word_chars
        words, characters = Counter(), Counter()
        for sentence in sentences:
            for word in sentence:
                words[self.looked_up(word)] += 1
                characters.update(self.with_zeros(word))
        kept = [word for word in words if words[word] >= min_count]
        kept.sort(key=lambda word: (-words[word], word))
        self.words = {word: index for index, word in enumerate(kept, 2)}
        seen = [character for character in characters if characters[character] >= min_char_count]
        seen.sort(key=lambda character: (-characters[character], character))
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
        given = not isinstance(item, str)
        pairs = [(word, (0, len(word))) for word in item] if given else SPLITTER.pre_tokenize_str(item)
        return [(self.words.get(self.looked_up(word), 1), self.char_row(word), place) for word, place in pairs]


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
    {"casing": "lower", "min_count": 2, "min_char_count": 3},
    {"digits": "zero", "min_char_count": 2, "max_word_chars": 3},
]


@pytest.fixture(scope="module", params=POLICIES, ids=str)
def both(request):
    """A tokenizer and its oracle."""
    return WordCharTokenizer.from_corpus(SENTENCES, **request.param), Oracle(SENTENCES, **request.param)


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


ALL_COLUMNS = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "return_length": True}


@pytest.mark.parametrize("tensors", [None, "np", "pt"])
@pytest.mark.parametrize("cut_side", ["right", "left"])
def test_encodings_agree_with_plain_loops(both, tensors, cut_side):
    tokenizer, oracle = both
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.truncation_side = cut_side
    chooser = random.Random(0)
    for _ in range(60):
        given_words = chooser.random() < 0.5
        pool = GIVEN if given_words else TEXTS
        single = chooser.random() < 0.3
        batch = [chooser.choice(pool) for _ in range(1 if single else chooser.randrange(1, 6))]
        call, wanted = random_settings(chooser, tensors)
        output = tokenizer(batch[0] if single else batch, is_split_into_words=given_words, **call, **ALL_COLUMNS)
        columns = expected(oracle, batch, cut_side=cut_side, **wanted)

        word_ids = columns.pop("word_ids")
        assert [output.word_ids(row) for row in range(len(word_ids))] == word_ids
        assert set(output) == set(columns)
        unpacked = single and tensors is None and not wanted["overflow"]
        for name, rows in columns.items():
            found = [output[name]] if unpacked else plain(output[name])
            if name == "offset_mapping":
                found = pairs(found)
            assert found == rows, (name, call)


@pytest.mark.parametrize("tensors", [None, "np", "pt"])
@pytest.mark.parametrize("given_words", [False, True])
def test_columns_come_only_when_asked_for(tokenizer, tensors, given_words):
    output = tokenizer(["Ann"], is_split_into_words=given_words, return_tensors=tensors)
    assert list(output) == ["input_ids", "char_ids", "attention_mask"]
    assert "attention_mask" not in tokenizer("Ann", return_attention_mask=False)


@pytest.mark.parametrize("kind", [np.ndarray, torch.Tensor])
def test_tensors_are_integers_of_full_shape_even_when_empty(tokenizer, kind):
    tensors = "np" if kind is np.ndarray else "pt"
    for item, rows in (("", 1), ([""], 1), (["", "Ann"], 2)):
        output = tokenizer(item, padding=True, return_tensors=tensors, return_offsets_mapping=True)
        words = 1 if rows == 2 else 0
        assert all(isinstance(value, kind) and "int64" in str(value.dtype) for value in output.values())
        assert tuple(output["char_ids"].shape) == (rows, words, 10)
        assert tuple(output["offset_mapping"].shape) == (rows, words, 2)


@pytest.mark.parametrize(
    ("item", "given_words", "ids"),
    [("", False, []), ([""], False, [[]]), ([], False, []), ([[]], True, [[]]), ([[], []], True, [[], []])],
)
def test_nothing_in_gives_nothing_out(tokenizer, item, given_words, ids):
    assert tokenizer(item, is_split_into_words=given_words)["input_ids"] == ids
    assert tokenizer(item, is_split_into_words=given_words, padding=True, truncation=True)["char_ids"] == ids


def test_longest_text_is_not_cut_unless_asked(tokenizer):
    text = "Ann " * 30_000
    assert len(tokenizer(text)["input_ids"]) == 30_000
    assert len(tokenizer(text, truncation=True)["input_ids"]) == 30_000


# --- pad and the stock collator --------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("tensors", [None, "np", "pt"])
def test_pad_gives_what_padding_at_once_gives(both, side, tensors):
    tokenizer = copy.deepcopy(both[0])
    tokenizer.padding_side = side
    for options in ({}, {"pad_to_multiple_of": 4}, {"padding": "max_length", "max_length": 12}):
        at_once = tokenizer(GIVEN, is_split_into_words=True, return_tensors=tensors, **{"padding": True, **options})
        one_by_one = [tokenizer(words, is_split_into_words=True) for words in GIVEN]
        columns = {name: [row[name] for row in one_by_one] for name in one_by_one[0]}
        for rows in (one_by_one, columns):
            later = tokenizer.pad(copy.deepcopy(rows), return_tensors=tensors, **options)
            assert {name: plain(value) for name, value in later.items()} == {
                name: plain(value) for name, value in at_once.items()
            }


@pytest.mark.parametrize("side", ["left", "right"])
def test_stock_collator_pads_words_characters_and_labels(tokenizer, side):
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.padding_side = side
    labels = [[position % len(LABELS) for position in range(len(words))] for words in GIVEN]
    rows = [
        {**tokenizer(words, is_split_into_words=True), "labels": row} for words, row in zip(GIVEN, labels, strict=True)
    ]
    batch = DataCollatorForTokenClassification(tokenizer)(rows)
    columns = expected(Oracle(SENTENCES, max_word_chars=10), GIVEN, pad=True, side=side)
    for name in ("input_ids", "char_ids", "attention_mask"):
        assert batch[name].tolist() == columns[name]
    width = max(map(len, GIVEN))
    filling = [[-100] * (width - len(row)) for row in labels]
    wanted = [f + row if side == "left" else row + f for row, f in zip(labels, filling, strict=True)]
    assert batch["labels"].tolist() == wanted


# --- Words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_every_given_word_is_one_token(policy):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **policy)
    words = [
        "",
        " ",
        "\t\n",
        "New York",
        "a  b ",
        "[PAD]",
        "[UNK]",
        LONG_WORD,
        "\ue000",
        "\ue000\ue001",
        "\uf8ff",
        "\0",
    ]
    output = tokenizer([words, words[::-1]], is_split_into_words=True)
    assert [len(row) for row in output["input_ids"]] == [len(words)] * 2
    assert output.word_ids(0) == list(range(len(words)))
    assert set(output["input_ids"][0]) == {1}
    assert not any(output["char_ids"][0][0])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=6), max_size=4))
def test_any_given_words_are_one_token_each(tokenizer_pair, sentences):
    tokenizer, oracle = tokenizer_pair
    if not sentences:
        return
    output = tokenizer(sentences, is_split_into_words=True, return_offsets_mapping=True)
    for number, words in enumerate(sentences):
        tokens = oracle.tokens(words)
        assert output["input_ids"][number] == [token[0] for token in tokens]
        assert output["char_ids"][number] == [token[1] for token in tokens]
        assert output["offset_mapping"][number] == [token[2] for token in tokens]


@pytest.fixture(scope="module")
def tokenizer_pair():
    policy = {"casing": "lower", "digits": "zero", "max_word_chars": 4}
    return WordCharTokenizer.from_corpus(SENTENCES, **policy), Oracle(SENTENCES, **policy)


PIECES = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(
        ["Ann", "zeus", "'s", "[PAD]", "[UNK]", " ", "\n", "\0", "é", "e\u0301", "👩🏽‍🚀", "🇸🇪", "שלום", "مرحبا", "İ"]
    ),
)
ANY_TEXT = st.lists(PIECES, max_size=30).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_TEXT, min_size=1, max_size=3))
def test_offsets_of_any_text_are_its_words_in_order(tokenizer_pair, texts):
    tokenizer, oracle = tokenizer_pair
    output = tokenizer(texts, return_offsets_mapping=True, return_special_tokens_mask=True)
    for number, text in enumerate(texts):
        position = 0
        for start, end in output["offset_mapping"][number]:
            assert position <= start < end <= len(text)
            assert not text[position:start].strip()
            position = end
        assert tokenizer.tokenize(text) == [text[start:end] for start, end in output["offset_mapping"][number]]
        assert output["input_ids"][number] == [token[0] for token in oracle.tokens(text)]
        assert output["char_ids"][number] == [token[1] for token in oracle.tokens(text)]
        assert not any(output["special_tokens_mask"][number])


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_names_of_special_tokens_in_a_text_are_text(policy):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **policy)
    for text in ("[PAD]", "Ann[PAD]", "[UNK] [PAD]"):
        output = tokenizer(text)
        assert 0 not in output["input_ids"]
        assert "".join(tokenizer.tokenize(text)) == text.replace(" ", "")
    assert tokenizer.convert_tokens_to_ids(["[PAD]", "[UNK]"]) == [0, 1] == [tokenizer.pad_token_id, 1]


def test_words_that_look_like_special_tokens_are_not_learned():
    tokenizer = WordCharTokenizer.from_corpus([["[PAD]", "[UNK]", "", "\ue000", LONG_WORD, "\ud800", "Ann"]])
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "Ann": 2}
    assert tokenizer(["[PAD]", "[UNK]", "Ann"], is_split_into_words=True)["input_ids"] == [1, 1, 2]


# --- Policies --------------------------------------------------------------------------------------------------------


def test_casing_policy_lowers_words_but_not_characters():
    tokenizer = WordCharTokenizer.from_corpus([["Ann", "İstanbul", "ΑΣ"]], casing="lower")
    assert set(tokenizer.get_vocab()) == {"[PAD]", "[UNK]", "ann", "istanbul", "ας"}
    upper = tokenizer(["ANN", "İSTANBUL", "istanbul", "ΑΣ"], is_split_into_words=True)
    lower = tokenizer(["ann", "istanbul", "istanbul", "ας"], is_split_into_words=True)
    assert upper["input_ids"] == lower["input_ids"]
    assert 1 not in upper["input_ids"]
    assert upper["char_ids"][0] != lower["char_ids"][0]


def test_casing_policy_keeps_the_length_of_every_character():
    tokenizer = WordCharTokenizer.from_corpus([["ann"]], casing="lower")
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    changed = [character for character in characters if len(character.lower()) != 1]
    assert changed == ["İ"]
    words = [f"{character}nn" for character in ("A", "a", "İ")]
    assert tokenizer(words, is_split_into_words=True)["input_ids"] == [2, 2, 1]


def test_digit_policy_reads_every_digit_as_zero():
    tokenizer = WordCharTokenizer.from_corpus([["1996", "Ann"]], digits="zero")
    known = tokenizer.get_vocab()["0000"]
    output = tokenizer(["2024", "٣٥٠١", "𝟗𝟗𝟗𝟗", "½"], is_split_into_words=True)
    assert output["input_ids"] == [known] * 3 + [1]
    assert output["char_ids"][0] == output["char_ids"][1] == output["char_ids"][2]
    assert output["char_ids"][3][0] == 1


def test_unknown_policies_are_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"casing='upper' is unknown; choose 'keep' or 'lower'"):
        WordCharTokenizer.from_corpus([], casing="upper")
    with pytest.raises(ValueError, match=r"digits='drop' is unknown; choose 'keep' or 'zero'"):
        WordCharTokenizer.from_corpus([], digits="drop")


def test_rare_words_and_characters_stay_unknown():
    sentences = [["bee", "bee", "ox"], ["bee", "Qat", "ox", "7"]]
    tokenizer = WordCharTokenizer.from_corpus(sentences, min_count=2, min_char_count=2)
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "bee": 2, "ox": 3}
    assert tokenizer.characters == "ebox"
    assert tokenizer("Qat 7")["char_ids"][0][:3] == [2, 3, 3]
    assert tokenizer("Qat 7")["char_ids"][1][:1] == [4]


def test_vocabulary_does_not_depend_on_the_order_of_the_corpus():
    shuffled = [sentence[::-1] for sentence in SENTENCES[::-1]]
    one, other = (WordCharTokenizer.from_corpus(sentences) for sentences in (SENTENCES, shuffled))
    assert one.get_vocab() == other.get_vocab()
    assert one.characters == other.characters


def test_corpus_may_be_a_stream_of_texts_or_words():
    sentences = [[word for word in words if "'" not in word] for words in SENTENCES]
    texts = (" ".join(words) for words in sentences)
    mixed = (words if number % 2 else " ".join(words) for number, words in enumerate(sentences))
    vocabularies = [WordCharTokenizer.from_corpus(corpus).get_vocab() for corpus in (texts, mixed)]
    assert vocabularies[0] == vocabularies[1]


def test_unseen_characters_keep_their_type():
    tokenizer = WordCharTokenizer.from_corpus([["a"]], max_word_chars=12)
    row = tokenizer(["ŽǅžЖ५7€«–東\ue000ʰ"], is_split_into_words=True)["char_ids"][0]
    assert row == [2, 2, 3, 2, 4, 4, 5, 5, 5, 1, 1, 1]
    assert tokenizer.model_fields()["char_types"] == "..Uldpl"


def test_character_types_are_those_of_unicode_for_every_code_point():
    def code(category):
        if category in ("Lu", "Lt"):
            return "U"
        return {"Ll": "l", "Nd": "d"}.get(category) or ("p" if category[0] in "PS" else ".")

    by_category = {}
    for point in range(sys.maxunicode + 1):
        by_category.setdefault(unicodedata.category(chr(point)), []).append(point)
    types = character_types()
    assert len(types) == sys.maxunicode + 1
    for category, points in by_category.items():
        assert (types[points] == CHARACTER_TYPE_CODES.index(code(category))).all(), category


def test_model_fields_describe_the_ids(tokenizer):
    fields = tokenizer.model_fields()
    output = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="np")
    assert output["input_ids"].max() == fields["vocab_size"] - 1
    assert output["char_ids"].max() == fields["char_vocab_size"] - 1
    assert len(fields["char_types"]) == fields["char_vocab_size"]
    assert output["char_ids"].shape[-1] == fields["max_word_chars"] == 10
    assert fields["pad_token_id"] == 0


# --- Errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "given_words", "message"),
    [
        ("a\ud800", False, r"Text 0 holds a lone surrogate, U\+D800, at character 1"),
        (["a", "\udfff"], False, r"Text 1 holds a lone surrogate, U\+DFFF, at character 0"),
        ([["a"], ["b", "\udc00"]], True, r"Text 1 holds a lone surrogate, U\+DC00, at character 1"),
        # The halves of one character, in two words, are no character.
        (["\ud83d", "\ude00"], True, r"Text 0 holds a lone surrogate, U\+D83D"),
        (["a", 3], False, "text 1"),
        (["a", None], False, "text 1"),
        ([("a", "b")], False, "text 0"),
        (b"a", False, "text 0"),
        (7, False, "text 0"),
        ("a", True, "a list of words"),
        (["a", ["b"]], True, "a list of words"),
        ([["a"], "b"], True, "text 1"),
        ([["a", None]], True, "text 0"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(tokenizer, item, given_words, message):
    with pytest.raises(ValueError, match=message) as refusal:
        tokenizer(item, is_split_into_words=given_words)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("texts", [("a", "b"), (["a"], ["b"])])
def test_text_pairs_are_refused(tokenizer, texts):
    with pytest.raises(ValueError, match="reads single texts"):
        tokenizer(*texts)


def test_lone_surrogate_in_a_corpus_is_refused():
    with pytest.raises(ValueError, match=r"Text 1 holds a lone surrogate, U\+D800, at character 2"):
        WordCharTokenizer.from_corpus(["a", "a \ud800"])


@pytest.mark.parametrize("overflow", [False, True])
def test_stride_that_leaves_nothing_new_is_refused(tokenizer, overflow):
    with pytest.raises(ValueError, match="stride=2 must be smaller than max_length=2"):
        tokenizer("a b c", truncation=True, max_length=2, stride=2, return_overflowing_tokens=overflow)


def test_padding_to_a_length_needs_one_that_fits(tokenizer):
    with pytest.raises(ValueError, match='padding="max_length" needs max_length'):
        tokenizer("Ann", padding="max_length")
    with pytest.raises(ValueError, match="Text 1 has 3 words, more than max_length=2; add truncation=True"):
        tokenizer(["Ann", "a b c"], padding="max_length", max_length=2)


def test_ragged_rows_make_no_tensor(tokenizer):
    with pytest.raises(ValueError, match="padding=True"):
        tokenizer(["a", "b c"], return_tensors="pt")


# --- Saving, copying, sharing ----------------------------------------------------------------------------------------


def everything(tokenizer):
    """All that a tokenizer says of a few texts and words."""
    texts = tokenizer(TEXTS, padding=True, return_tensors="np", **ALL_COLUMNS)
    words = tokenizer(GIVEN, is_split_into_words=True, **ALL_COLUMNS)
    return [
        {name: plain(value) for name, value in output.items()} for output in (texts, words)
    ], tokenizer.model_fields()


def test_saved_tokenizer_is_the_same(both, tmp_path):
    tokenizer = both[0]
    tokenizer.save_pretrained(tmp_path)
    loaded = WordCharTokenizer.from_pretrained(tmp_path)
    assert everything(loaded) == everything(tokenizer)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    loaded.save_pretrained(tmp_path / "again")
    assert everything(WordCharTokenizer.from_pretrained(tmp_path / "again")) == everything(tokenizer)


def test_saved_beside_a_model_it_loads_by_the_auto_class(tokenizer, model_type, tmp_path):
    build_model(model_type, tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded) is WordCharTokenizer
    assert everything(loaded) == everything(tokenizer)


def test_changed_defaults_survive_saving(tokenizer, tmp_path):
    changed = copy.deepcopy(tokenizer)
    changed.padding_side, changed.truncation_side, changed.model_max_length = "left", "left", 5
    changed.save_pretrained(tmp_path)
    loaded = WordCharTokenizer.from_pretrained(tmp_path, padding_side="left", truncation_side="left")
    output = loaded(["a b c d e f g", "Ann"], padding=True, truncation=True)
    assert output["attention_mask"] == [[1] * 5, [0] * 4 + [1]]
    assert output["char_ids"][0] == loaded("c d e f g")["char_ids"]


def test_copies_are_the_same(both):
    tokenizer = both[0]
    for copied in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer), copy.copy(tokenizer)):
        assert everything(copied) == everything(tokenizer)


def test_use_does_not_change_the_state(tokenizer):
    used = copy.deepcopy(tokenizer)
    before = Hasher.hash(used)
    used("Ann saw", padding="max_length", max_length=9, truncation=True, padding_side="left")
    used(GIVEN, is_split_into_words=True, padding=True, pad_to_multiple_of=8, return_tensors="pt")
    used("a b c d", truncation=True, max_length=2, stride=1, return_overflowing_tokens=True)
    used.pad([used("Ann"), used("Ann saw")])
    used.tokenize("Ann saw")
    assert Hasher.hash(used) == before


def test_mapped_dataset_has_the_same_fingerprint_every_time(tokenizer):
    dataset = Dataset.from_dict({"tokens": [words for words in GIVEN if words]})

    def encode(batch):
        return tokenizer(batch["tokens"], is_split_into_words=True)

    first = dataset.map(encode, batched=True)
    tokenizer(["Ann", "a b"], padding=True, truncation=True, max_length=1)
    second = dataset.map(encode, batched=True)
    assert first._fingerprint == second._fingerprint
    columns = expected(Oracle(SENTENCES, max_word_chars=10), dataset["tokens"], side="right")
    assert list(second["input_ids"]) == columns["input_ids"]
    assert list(second["char_ids"]) == columns["char_ids"]


def test_eight_threads_with_different_settings_do_not_disturb_each_other(tokenizer):
    chooser = random.Random(1)
    jobs = []
    for _ in range(400):
        given_words = chooser.random() < 0.5
        pool = GIVEN if given_words else TEXTS
        call, _ = random_settings(chooser, "np")
        jobs.append(([chooser.choice(pool) for _ in range(4)], {**call, "is_split_into_words": given_words}))

    def encode(job):
        output = tokenizer(job[0], **job[1], **ALL_COLUMNS)
        return {name: value.tolist() for name, value in output.items()}

    alone = [encode(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(encode, jobs))
    assert together == alone


# --- Speed -----------------------------------------------------------------------------------------------------------


def wnut_sentences(path):
    sentences, words = [], []
    for line in path.read_text(encoding="utf-8").replace("\ufeff", "").split("\n"):
        token = line.split("\t")[0].strip()
        if token:
            words.append(token)
        elif words:
            sentences.append(words)
            words = []
    return sentences


def test_wnut_train_is_encoded_in_under_half_a_second(corpora):
    sentences = wnut_sentences(corpora / "wnut17" / "train.conll")
    tokenizer = WordCharTokenizer.from_corpus(sentences)
    assert sum(map(len, sentences)) == 62_730
    texts = [" ".join(words) for words in sentences]
    for batch, given_words in ((sentences, True), (texts, False)):
        times = []
        for _ in range(4):
            start = time.perf_counter()
            output = tokenizer(batch, is_split_into_words=given_words, padding=True, return_tensors="np")
            times.append(time.perf_counter() - start)
        assert output["char_ids"].shape == (len(batch), output["input_ids"].shape[1], 20)
        assert min(times[1:]) < 0.5
