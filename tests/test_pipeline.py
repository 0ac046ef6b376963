"""The stock `pipeline("ner")` returns exactly the entities that a model decodes."""

import copy
from itertools import cycle, pairwise

import pytest
import tiny_encoders as tiny
from conftest import ARCHITECTURES, LABELS, SENTENCES, build_model, with_decoders
from hypothesis import given, settings
from hypothesis import strategies as st
from random_texts import DECODERS, GIVEN, PIECES, STRATEGIES, TEXTS, lively_model, random_sentences
from transformers import pipeline

from hf_xorner import Tagger, WordCharTokenizer


@pytest.fixture(scope="module", params=with_decoders(ARCHITECTURES, DECODERS), ids="-".join)
def model(request, tokenizer):
    kind, decoder = request.param
    return lively_model(kind, tokenizer, decoder)


#: For what does not depend on the decoder: every architecture and every decoder, not every pair of them.
one_of_each = pytest.mark.parametrize("model", list(zip(ARCHITECTURES, cycle(DECODERS))), indirect=True, ids="-".join)


@pytest.fixture(scope="module")
def pipe(model, tokenizer):
    return pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")


def decoded_labels(model, tokenizer, item):
    """The words' offsets and the labels that the model's logits give them, one item by itself."""
    given_words = not isinstance(item, str)
    inputs = tokenizer(item, is_split_into_words=given_words, return_offsets_mapping=True, return_tensors="pt")
    offsets = inputs.pop("offset_mapping")[0].tolist()
    if given_words:
        begins, place = [], 0
        for word in item:
            begins.append(place)
            place += len(word) + 1
        offsets = [[begin + start, begin + end] for begin, (start, end) in zip(begins, offsets, strict=True)]
    ids = model(**inputs).logits[0].argmax(-1).tolist()
    return offsets, [LABELS[index] for index in ids]


def chunks(offsets, labels):
    """(type, start, end) of every chunk of well-formed IOB2 labels."""
    found = []
    for (start, end), label in zip(offsets, labels, strict=True):
        if label.startswith("B-"):
            found.append((label[2:], start, end))
        elif label != "O":
            kind, first, _ = found.pop()
            assert kind == label[2:]
            found.append((kind, first, end))
    return found


def spans(entities):
    return [(entity["entity_group"], entity["start"], entity["end"]) for entity in entities]


@pytest.mark.parametrize("batch_size", [1, 8])
@pytest.mark.parametrize("items", [TEXTS, GIVEN], ids=["texts", "words"])
def test_entities_are_the_decoded_chunks(model, tokenizer, pipe, items, batch_size):
    expected = [chunks(*decoded_labels(model, tokenizer, item)) for item in items]
    assert sum(map(len, expected)) > 10
    given_words = items is GIVEN
    results = pipe(items, is_split_into_words=given_words, batch_size=batch_size)
    assert [spans(entities) for entities in results] == expected


def test_adjacent_entities_of_one_type_are_not_merged(model, tokenizer):
    neighbours = 0
    for item in TEXTS + GIVEN:
        _, labels = decoded_labels(model, tokenizer, item)
        neighbours += sum(left[2:] == right[2:] and right.startswith("B-") for left, right in pairwise(labels))
    assert neighbours > 10


@pytest.mark.parametrize("items", [TEXTS, GIVEN], ids=["texts", "words"])
def test_all_aggregation_strategies_give_the_same_spans(pipe, items):
    options = {"is_split_into_words": items is GIVEN, "batch_size": 8}
    simple = pipe(items, **options)
    for strategy in STRATEGIES[1:]:
        others = pipe(items, aggregation_strategy=strategy, **options)
        for entities, other in zip(simple, others, strict=True):
            assert spans(other) == spans(entities)
            for entity, same in zip(entities, other, strict=True):
                assert entity["score"] == pytest.approx(same["score"], abs=1e-6)
    words = pipe(items, aggregation_strategy="none", **options)
    for entities, tokens in zip(simple, words, strict=True):
        places = [(token["start"], token["end"]) for token in tokens]
        assert chunks(places, [token["entity"] for token in tokens]) == spans(entities)


def test_scores_are_mean_probabilities_of_the_decoded_labels(model, tokenizer, pipe):
    for text in TEXTS[:10]:
        inputs = tokenizer(text, return_tensors="pt")
        best = model(**inputs).logits[0].softmax(-1).amax(-1).tolist()
        starts = [start for start, _ in tokenizer(text, return_offsets_mapping=True)["offset_mapping"]]
        for entity in pipe(text):
            within = range(entity["start"], entity["end"])
            inside = [score for start, score in zip(starts, best, strict=True) if start in within]
            assert entity["score"] == pytest.approx(sum(inside) / len(inside), abs=1e-5)


def test_words_of_entities_are_their_surface_forms(pipe):
    for text, entities in zip(TEXTS, pipe(TEXTS), strict=True):
        for entity in entities:
            assert entity["word"] == text[entity["start"] : entity["end"]]


def short_tokenizer(tokenizer, words):
    short = copy.deepcopy(tokenizer)
    short.model_max_length = words
    return short


@one_of_each
@pytest.mark.parametrize("strategy", ["simple", "first"])
@pytest.mark.parametrize("items", [TEXTS, GIVEN], ids=["texts", "words"])
def test_stride_does_not_change_short_texts(model, tokenizer, pipe, items, strategy):
    short = short_tokenizer(tokenizer, 14)
    strided = pipeline("ner", model=model, tokenizer=short, aggregation_strategy=strategy, stride=5)
    options = {"is_split_into_words": items is GIVEN, "batch_size": 8}
    assert [spans(found) for found in strided(items, **options)] == [spans(found) for found in pipe(items, **options)]


@one_of_each
@pytest.mark.parametrize("batch_size", [1, 8])
@pytest.mark.parametrize("given_words", [False, True])
def test_stride_merges_the_entities_of_windows(model, tokenizer, given_words, batch_size):
    window, stride = 6, 2
    short = short_tokenizer(tokenizer, window)
    strided = pipeline("ner", model=model, tokenizer=short, aggregation_strategy="simple", stride=stride)
    sentences = random_sentences(8, seed=2, longest=40)
    items = sentences if given_words else [" ".join(words) for words in sentences]
    results = strided(items, is_split_into_words=given_words, batch_size=batch_size)
    for item, entities in zip(items, results, strict=True):
        words = item if given_words else tokenizer.tokenize(item)
        possible, first = set(), 0
        while True:
            # What the model sees of each window, in places of the whole text; texts are their words joined by blanks.
            before = sum(len(word) + 1 for word in words[:first])
            offsets, labels = decoded_labels(model, tokenizer, words[first : first + window])
            moved = [(start + before, end + before) for start, end in offsets]
            possible |= set(chunks(moved, labels))
            if first + window >= len(words):
                break
            first += window - stride
        found = spans(entities)
        assert set(found) <= possible
        assert all(left[2] <= right[1] for left, right in pairwise(found))
        for kind, start, end in possible - set(found):
            assert any(start < other_end and other_start < end for _, other_start, other_end in found), kind


@one_of_each
@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"], ids=ascii)
def test_text_without_words_has_no_entities(model, tokenizer, pipe, text):
    assert pipe(text) == []
    assert pipe([text, "Ann", text], batch_size=3)[::2] == [[], []]
    for strategy in ("none", *STRATEGIES):
        assert pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy=strategy)(text) == []


@one_of_each
@pytest.mark.parametrize(
    "text",
    [
        "👩🏽‍🚀 met 🇸🇪🏴󠁧󠁢󠁳󠁣󠁴󠁿 in 👨‍👩‍👧‍👦Ann",
        "פגשתי את Ann בניו יורק.",
        "\u202eمرحبا\u202c يا Zeus، ٣٫٥",
        "e\u0301te\u0301 \0 \u200b\ufeff[PAD][UNK]",
        f"{'x' * 10_000} Ann",
    ],
    ids=["emoji", "Hebrew", "Arabic", "invisible", "long word"],
)
def test_offsets_count_characters_in_any_script(model, tokenizer, pipe, text):
    assert spans(pipe(text)) == chunks(*decoded_labels(model, tokenizer, text))


@pytest.fixture(scope="module", params=ARCHITECTURES)
def crf_pipe(request, tokenizer):
    model = lively_model(request.param, tokenizer, "crf")
    return pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_text_has_entities_made_of_its_words(crf_pipe, tokenizer, text):
    words = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    starts, ends = {start for start, _ in words}, {end for _, end in words}
    position = 0
    for entity in crf_pipe(text):
        start, end = entity["start"], entity["end"]
        assert position <= start < end
        assert start in starts
        assert end in ends
        assert entity["word"] == " ".join(text[first:last] for first, last in words if start <= first < end)
        position = end


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_lower_casing_tokenizer_keeps_offsets_and_strategies(kind):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, casing="lower", digits="zero", max_word_chars=6)
    model = lively_model(kind, tokenizer, "crf")
    texts = [f"{text.upper()} İstanbul [PAD] 99:59" for text in TEXTS[:12]]
    expected = [chunks(*decoded_labels(model, tokenizer, text)) for text in texts]
    assert any(expected)
    for strategy in STRATEGIES:
        found = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy=strategy)(texts)
        assert [spans(entities) for entities in found] == expected


def test_plain_labels_have_no_prefixes(tokenizer):
    labels = ["NOUN", "VERB", "X"]
    model = build_model("cross-bilstm-cnn", tokenizer, labels=labels)
    tokens = pipeline("ner", model=model, tokenizer=tokenizer)("Ann saw London")
    inputs = tokenizer("Ann saw London", return_tensors="pt")
    assert [token["entity"] for token in tokens] == [labels[index] for index in model(**inputs).logits[0].argmax(-1)]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def with_encoder(request):
    """A model that holds an encoder and vectors of its pieces, and its tokenizer."""
    encoder, own = (
        (tiny.bert(), tiny.bert_tokenizer()) if request.param == "bert" else (tiny.roberta(), tiny.roberta_tokenizer())
    )
    pieces = tiny.pieces_of(own)
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, pieces=pieces, max_word_pieces=4, max_word_chars=10)
    model = lively_model("bilstm-cnn", tokenizer, "crf", **tiny.context_fields(encoder, pieces, composed_dim=3))
    return model, tokenizer


@pytest.mark.parametrize("batch_size", [1, 2, 8])
@pytest.mark.parametrize("items", [TEXTS, GIVEN, ["", "Ann", " ", "\u200b"]], ids=["texts", "words", "hardly any"])
def test_encoder_pieces_are_batched(with_encoder, items, batch_size):
    model, tokenizer = with_encoder
    expected = [chunks(*decoded_labels(model, tokenizer, item)) for item in items]
    stock = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    results = stock(items, is_split_into_words=items is GIVEN, batch_size=batch_size)
    assert [spans(entities) for entities in results] == expected
    tagged = Tagger(model, tokenizer).tag(items, batch_size=batch_size)
    if items is not GIVEN:  # of given words, a tagger counts words
        assert [[(entity.label, entity.start, entity.end) for entity in entities] for entities in tagged] == expected
    assert len(items) < 10 or sum(map(len, expected)) > 10


@pytest.mark.parametrize("batch_size", [1, 3])
def test_stride_splits_the_pieces_into_windows(with_encoder, batch_size):
    model, tokenizer = with_encoder
    strided = pipeline(
        "ner", model=model, tokenizer=short_tokenizer(tokenizer, 14), aggregation_strategy="simple", stride=5
    )
    expected = [chunks(*decoded_labels(model, tokenizer, text)) for text in TEXTS]
    assert [spans(entities) for entities in strided(TEXTS, batch_size=batch_size)] == expected
    assert strided(["Ann met Zeus in LONDON . " * 9] * 2, batch_size=batch_size)
