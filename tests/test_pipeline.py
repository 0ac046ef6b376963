"""The stock `pipeline("ner")` returns exactly the entities that a model decodes."""

import copy
from itertools import cycle, pairwise

import pytest
import tiny_encoders as tiny
from conftest import ARCHITECTURES, LABELS, SENTENCES
from random_texts import DECODERS, GIVEN, TEXTS, lively_model, random_sentences
from transformers import pipeline

from hf_xorner import Tagger, WordCharTokenizer

STRATEGIES = ["simple", "first", "average", "max"]


@pytest.fixture(scope="module", params=list(zip(ARCHITECTURES, cycle(DECODERS))), ids="-".join)
def model(request, tokenizer):
    """Every architecture with one decoder in turn."""
    kind, decoder = request.param
    return lively_model(kind, tokenizer, decoder)


@pytest.fixture(scope="module")
def pipe(model, tokenizer):
    return pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")


def decoded_labels(model, tokenizer, item):
    """The words' offsets and the labels that the model's logits give them, one item by itself."""
    given_words = not isinstance(item, str)
    inputs = tokenizer(item, is_split_into_words=given_words, return_offsets_mapping=True, return_tensors="pt")
    offsets = inputs.pop("offset_mapping")[0].tolist()
    if given_words:
        begins, position = [], 0
        for word in item:
            begins.append(position)
            position += len(word) + 1
        offsets = [[begin + start, begin + end] for begin, (start, end) in zip(begins, offsets, strict=True)]
    ids = model(**inputs).logits[0].argmax(-1).tolist()
    return offsets, [LABELS[index] for index in ids]


def chunks(offsets, labels):
    """(type, start, end) of every chunk of well-formed IOB2 labels."""
    spans = []
    for (start, end), label in zip(offsets, labels, strict=True):
        if label.startswith("B-"):
            spans.append((label[2:], start, end))
        elif label != "O":
            kind, first, _ = spans.pop()
            assert kind == label[2:]
            spans.append((kind, first, end))
    return spans


def spans(entities):
    return [(entity["entity_group"], entity["start"], entity["end"]) for entity in entities]


@pytest.mark.parametrize("items", [TEXTS, GIVEN], ids=["texts", "words"])
def test_entities_are_the_decoded_chunks_whatever_the_strategy(model, tokenizer, pipe, items):
    labelled = [decoded_labels(model, tokenizer, item) for item in items]
    expected = [chunks(*pair) for pair in labelled]
    neighbours = sum(
        left[2:] == right[2:] and right.startswith("B-") for _, labels in labelled for left, right in pairwise(labels)
    )
    assert sum(map(len, expected)) > 10 and neighbours > 5
    options = {"is_split_into_words": items is GIVEN, "batch_size": 8}
    simple = pipe(items, **options)
    assert [spans(entities) for entities in simple] == expected
    for strategy in STRATEGIES[1:]:
        for entities, others in zip(simple, pipe(items, aggregation_strategy=strategy, **options), strict=True):
            assert spans(others) == spans(entities)
            scores = [entity["score"] for entity in entities]
            assert [other["score"] for other in others] == pytest.approx(scores, abs=1e-6)
    for entities, tokens in zip(simple, pipe(items, aggregation_strategy="none", **options), strict=True):
        offsets = [(token["start"], token["end"]) for token in tokens]
        assert chunks(offsets, [token["entity"] for token in tokens]) == spans(entities)


@pytest.mark.parametrize("given_words", [False, True], ids=["texts", "words"])
def test_stride_merges_the_entities_of_windows(model, tokenizer, pipe, given_words):
    window, stride, short = 6, 2, copy.deepcopy(tokenizer)
    short.model_max_length = window
    strided = pipeline("ner", model=model, tokenizer=short, aggregation_strategy="simple", stride=stride)
    sentences = random_sentences(8, seed=2, longest=40)
    items = sentences if given_words else [" ".join(words) for words in sentences]
    options = {"is_split_into_words": given_words, "batch_size": 8}
    for words, entities, whole in zip(sentences, strided(items, **options), pipe(items, **options), strict=True):
        possible, merged = set(), spans(entities)
        for first in range(0, max(1, len(words) - stride), window - stride):
            # Entities of each window, at their positions in the whole text, which is its words joined by blanks.
            before = sum(len(word) + 1 for word in words[:first])
            offsets, labels = decoded_labels(model, tokenizer, words[first : first + window])
            possible |= set(chunks([(start + before, end + before) for start, end in offsets], labels))
        assert set(merged) <= possible
        assert merged == spans(whole) or len(words) > window
        assert all(left[2] <= right[1] for left, right in pairwise(merged))
        for _, start, end in possible - set(merged):
            assert any(start < other_end and other_start < end for _, other_start, other_end in merged)


HOSTILE = [
    "👩🏽‍🚀 met 🇸🇪🏴󠁧󠁢󠁳󠁣󠁴󠁿 in 👨‍👩‍👧‍👦Ann",
    "פגשתי את Ann בניו יורק.",
    "\u202eمرحبا\u202c يا Zeus، ٣٫٥",
    "e\u0301te\u0301 \0 \u200b\ufeff[PAD][UNK]",
    f"{'x' * 10_000} Ann",
]


def test_offsets_count_characters_in_any_script_and_empty_texts_have_no_entities(model, tokenizer, pipe):
    for text in HOSTILE:
        assert spans(pipe(text)) == chunks(*decoded_labels(model, tokenizer, text))
    for text in ("", " ", "\n\t \u3000"):
        assert pipe([text, "Ann", text], batch_size=3)[::2] == [[], []]
        for strategy in ("none", *STRATEGIES):
            assert pipe(text, aggregation_strategy=strategy) == []


@pytest.mark.parametrize("encoder", [tiny.bert, tiny.roberta], ids=["bert", "roberta"])
def test_the_pieces_of_an_encoder_are_batched_and_split_into_windows(encoder):
    piece_tokenizer = tiny.bert_tokenizer() if encoder is tiny.bert else tiny.roberta_tokenizer()
    pieces = tiny.pieces_of(piece_tokenizer)
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, pieces=pieces, max_word_pieces=4, max_word_chars=10)
    model = lively_model("bilstm-cnn", tokenizer, "crf", **tiny.context_fields(encoder(), pieces, composed_dim=3))
    stock = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    for items in (TEXTS, GIVEN, ["", "Ann", " ", "\u200b"]):
        expected = [chunks(*decoded_labels(model, tokenizer, item)) for item in items]
        for batch_size in (1, 8):
            results = stock(items, is_split_into_words=items is GIVEN, batch_size=batch_size)
            assert list(map(spans, results)) == expected
            if items is not GIVEN:  # of given words, a tagger counts words
                tagged = Tagger(model, tokenizer)(items, batch_size=batch_size)
                assert [
                    [(entity.label, entity.start, entity.end) for entity in entities] for entities in tagged
                ] == expected
