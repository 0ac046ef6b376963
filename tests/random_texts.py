"""Random texts and words, known and unknown to the tiny tokenizer, and models that find much in them."""

import random

import torch
from conftest import LABELS, SENTENCES, build_model
from hypothesis import strategies as st

DECODERS = ["softmax", "crf"]

UNKNOWN = ["Øystein", "x", "77", "👩🏽‍🚀", "שלום", "東", "e\u0301té", "…"]
KNOWN = sorted({word for words in SENTENCES for word in words if "'" not in word})


def random_sentences(count, seed=0, longest=14):
    chooser = random.Random(seed)
    return [
        [chooser.choice(KNOWN if chooser.random() < 0.8 else UNKNOWN) for _ in range(chooser.randrange(1, longest))]
        for _ in range(count)
    ]


TEXTS = [" ".join(words) for words in random_sentences(24)]
GIVEN = [*random_sentences(24, seed=1), ["New York", "", " ", "Ann", "[PAD]", ""], [""]]

PIECES = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from([*KNOWN, *UNKNOWN, "[PAD]", "[UNK]", " ", "  ", "\n", "\0", "🇸🇪", "\u200d", "\u0301", "'s", "İ"]),
)


def lively_model(kind, tokenizer, decoder, words=GIVEN, **fields):
    """A model of random weights that finds many entities in given words, some of them neighbours of one type."""
    inputs = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    begins = torch.tensor([label.startswith("B-") for label in LABELS])
    for seed in range(100):
        model = build_model(kind, tokenizer, decoder=decoder, seed=seed, spread=1.0, **fields)
        labels = model(**inputs).logits.argmax(-1)
        begin = begins[labels] & inputs["attention_mask"].bool()
        neighbours = begin[:, 1:] & begin[:, :-1] & (labels[:, 1:] == labels[:, :-1])
        if begin.sum() > 40 and neighbours.sum() > 10:
            return model
    raise AssertionError("no random model finds enough")
