"""Tagger gives the same entities as the stock pipeline, for mixed texts and words, as a stream."""

import copy
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle, islice, pairwise
from pathlib import Path

import chain_oracle as oracle
import numpy as np
import pandas
import pytest
import torch
from conftest import ARCHITECTURES, SENTENCES, TAG_SCORING, build_model
from datasets import Dataset
from datasets.fingerprint import Hasher
from helpers import chains_of, posix
from hypothesis import given
from hypothesis import strategies as st
from processes import run_python
from random_texts import DECODERS, GIVEN, PIECES, TEXTS, lively_model
from transformers import PreTrainedTokenizerFast, pipeline

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.entities import Entities, Entity
from hf_xorner.files import model_folder
from hf_xorner.models.word_ids import INSIDE


@pytest.fixture(scope="module", params=list(zip(ARCHITECTURES, cycle(DECODERS))), ids="-".join)
def each_tagger(request, tokenizer):
    """Every architecture with one decoder in turn."""
    kind, decoder = request.param
    return Tagger(lively_model(kind, tokenizer, decoder, score_temperature=1.4), tokenizer)


@pytest.fixture(scope="module")
def pipe(each_tagger):
    return pipeline("ner", model=each_tagger.model, tokenizer=each_tagger.tokenizer, aggregation_strategy="simple")


@pytest.fixture
def two_threads():
    """Two threads; other tests run on one thread a process."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def nearly_the_same(tagged, expected):
    """Check that entities are the same, with scores that differ by rounding alone."""
    for entities, others in zip(tagged, expected, strict=True):
        assert [entity | {"score": 0} for entity in entities] == [other | {"score": 0} for other in others]
        assert [entity.score for entity in entities] == pytest.approx([other.score for other in others], abs=1e-5)


def same_entities(actual, shown):
    """Check that the pipeline shows a tagger's entities, and perhaps empty words; its scores are means over words."""
    shown = [(entity["entity_group"], entity["start"], entity["end"]) for entity in shown if entity["word"].strip()]
    assert [(entity.label, entity.start, entity.end) for entity in actual] == shown


@pytest.mark.parametrize("items", [TEXTS, GIVEN], ids=["texts", "words"])
def test_entities_match_the_pipeline(each_tagger, pipe, items):
    shown = pipe(items, is_split_into_words=items is GIVEN)
    assert sum(map(len, shown)) > 10
    for batch_size in (1, 7, 64):
        for entities, expected in zip(each_tagger(items, batch_size=batch_size), shown, strict=True):
            same_entities(entities, expected)


def share_of_paths(chain, begin, tags):
    """Probability that a span of words has these tags: what is left of all paths if the others are barred."""
    emissions, *moves = chain
    constrained = emissions.copy()
    for index, tag in enumerate(tags, begin):
        constrained[index] = -np.inf
        constrained[index, tag] = emissions[index, tag]
    with np.errstate(invalid="ignore"):
        return np.exp(oracle.recursions(constrained, *moves)[0] - oracle.recursions(*chain)[0])


def entities_and_tags(tagger, items):
    """Every entity, its inner tags on the best path, and their probability, both from the oracle."""
    for item, entities in zip(items, tagger(items), strict=True):
        if not entities:
            continue
        words = tagger.tokenizer.tokenize(item) if isinstance(item, str) else item
        (chain,) = chains_of(tagger.model, tagger.tokenizer([words], is_split_into_words=True, return_tensors="pt"))
        path = oracle.best_path(*chain)
        for entity in entities:
            tags = path[entity.word_start : entity.word_end]
            names = [tagger.model.tags.inner_tags[tag] for tag in tags]
            yield entity, names, share_of_paths(chain, entity.word_start, tags)


def well_formed(entity, names):
    """Return whether inner tags are those of an entity: B I* E or S."""
    kinds = "S" if len(names) == 1 else f"B{'I' * (len(names) - 2)}E"
    return names == [f"{kind}-{entity.label}" for kind in kinds]


@pytest.mark.parametrize("kind", [kind for kind in ARCHITECTURES if kind in TAG_SCORING])
def test_score_is_the_probability_of_the_entity(kind, tokenizer):
    for decoder in DECODERS:
        tagger = Tagger(lively_model(kind, tokenizer, decoder), tokenizer)
        scored = list(entities_and_tags(tagger, [*TEXTS[:12], *GIVEN[:12]]))
        assert len(scored) > 20
        for entity, names, share in scored:
            assert entity.score == pytest.approx(share, abs=1e-5)
            assert well_formed(entity, names) or tagger.model.config.malformed_spans == "repair"


@pytest.mark.parametrize("kind", ["cross-bilstm-cnn", "cnn-lstm-crf"])
def test_score_of_a_longer_entity_is_the_probability_of_all_its_tags(kind, tokenizer):
    options = {"constrain_transitions": True, "crf_emissions": True, "malformed_spans": "drop"}
    model = build_model(kind, tokenizer, decoder="crf", spread=1.0, **options)
    with torch.no_grad():
        inside = model.tags.on(torch.device("cpu")).kind == INSIDE
        layer = model.decoder.pairs if model.config.pairs_only else model.classifier
        layer.bias.fill_(0).view(-1, len(inside))[:, inside] = 5.0
    longer = 0
    for entity, names, share in entities_and_tags(Tagger(model, tokenizer), [*TEXTS, *GIVEN]):
        assert well_formed(entity, names)
        assert entity.score == pytest.approx(share, abs=1e-5)
        longer += len(names) > 1
    assert longer > 5


def test_score_of_a_repaired_entity_is_that_of_its_original_tags(tokenizer):
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf", malformed_spans="repair")
    repaired = 0
    for entity, names, share in entities_and_tags(Tagger(model, tokenizer), GIVEN):
        assert entity.score == pytest.approx(share, abs=1e-5)
        repaired += not well_formed(entity, names)
    assert repaired > 5


def test_plain_labels_are_grouped_like_in_the_pipeline_with_the_score_of_all_words(tokenizer):
    for decoder in DECODERS:
        labels = ["NOUN", "VERB", "O"]
        model = build_model("cross-bilstm-cnn", tokenizer, labels=labels, spread=1.0, decoder=decoder)
        longest = 0
        for entity, names, share in entities_and_tags(Tagger(model, tokenizer), TEXTS):
            assert names == [entity.label] * len(names)
            assert entity.score == pytest.approx(share, abs=1e-5)
            longest = max(longest, len(names))
        assert longest > 1
    pipe = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    for entities, shown in zip(Tagger(model, tokenizer)(TEXTS), pipe(TEXTS), strict=True):
        same_entities(entities, shown)


def test_texts_and_words_may_be_mixed_and_keep_their_order(each_tagger):
    items = [*TEXTS[:9], *GIVEN[-9:], *(tuple(words) for words in GIVEN[:9]), "", [], " ", [""], "Ann"]
    random.Random(0).shuffle(items)
    alone = [each_tagger(item, is_split_into_words=not isinstance(item, str)) for item in items]
    for batch_size in (3, 200):
        nearly_the_same(each_tagger(iter(items), batch_size=batch_size), alone)


def test_annotations_are_entities_labels_and_offsets(each_tagger, tokenizer):
    names = each_tagger.labels
    items = [*TEXTS[:6], *GIVEN[:6], "", []]
    for item, annotation in zip(items, each_tagger.annotate(items, batch_size=3), strict=True):
        words = tokenizer.tokenize(item) if isinstance(item, str) else item
        text = item if isinstance(item, str) else " ".join(item)
        assert [text[start:end] for start, end in annotation.offsets] == words
        if words:
            inputs = tokenizer([words], is_split_into_words=True, return_tensors="pt")
            assert annotation.labels == [names[label] for label in each_tagger.model(**inputs).logits[0].argmax(-1)]
        nearly_the_same([annotation.entities], each_tagger([item]))


def test_the_fingerprint_of_a_tagger_does_not_change_with_use(tokenizer):
    """Otherwise `Dataset.map` would tag everything again."""
    tagger = Tagger(lively_model("cnn-lstm-crf", tokenizer, "crf"), tokenizer)
    before = Hasher.hash(tagger)
    assert tagger(SENTENCES[:1]) and Hasher.hash(tagger) == before


def test_a_redacted_text_is_the_rest_with_replacements_and_can_be_restored(each_tagger):
    count = 0
    for text in (*TEXTS, "e\u0301té Ann 👩🏽‍🚀 Smith met שלום Zeus \u202eNew York\u202c 🇸🇪"):
        entities, redaction = each_tagger(text), each_tagger.redact(text, "<{label}>")
        expected = entities.text
        for entity in reversed(entities):
            expected = f"{expected[: entity.start]}<{entity.label}>{expected[entity.end :]}"
        assert redaction.text == expected
        assert redaction.restore() == entities.text
        assert [entity.text for entity in redaction] == [entity.text for entity in entities]
        assert {redaction.text[e.start : e.end] == f"<{e.label}>" for e in redaction} <= {True}
        count += len(entities)
    assert count > 20


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), max_size=6))
def test_no_character_of_an_entity_is_left_whatever_spans_overlap(spans):
    text = "abcdefghijklmnopqrst"
    entities = [
        Entity(label="X", text=text[start : start + size], start=start, end=min(20, start + size))
        for start, size in spans
        if start < 20
    ]
    covered = {letter for entity in entities for letter in entity.text}
    assert Entities(entities, text).redact("█").text.replace("█", "") == "".join(x for x in text if x not in covered)


@pytest.mark.parametrize(
    ("template", "expected"),
    [("[{label}_{number}]", "[PER_1], who [PER_2] saw [PER_1] in [LOC_1]."), ("█", "█, who █ saw █ in █.")],
)
def test_equal_entities_are_redacted_with_the_same_number(template, expected):
    text = "Ann, who Bo saw Ann in Oslo."
    spans = [("PER", 0, 3), ("PER", 9, 11), ("PER", 16, 19), ("LOC", 23, 27)]
    entities = [Entity(label=label, text=text[start:end], start=start, end=end) for label, start, end in spans]
    assert Entities(entities, text).redact(template).text == expected
    assert Entities(entities[::-1], text).redact(template).restore() == text


def test_an_infinite_stream_is_read_lazily(tagger):
    read = 0

    def endless():
        nonlocal read
        for read in count(1):
            yield TEXTS[read % len(TEXTS)]

    results = tagger.pipe(endless(), batch_size=2)
    assert read == 0
    assert len(list(islice(results, 5))) == 5
    assert read == 2 * tagger.batches_ahead
    assert len(list(islice(results, 2 * tagger.batches_ahead))) == 2 * tagger.batches_ahead
    assert read == 4 * tagger.batches_ahead


def test_few_documents_are_read_ahead(tagger, monkeypatch):
    monkeypatch.setattr("hf_xorner.entities.MOST_AHEAD", 300)
    read = []
    stream = tagger.pipe(read.append(text) or text for text in ["Ann saw Zeus. " * 10] * 9)
    assert len(next(stream)) and len(read) == 3  # of 140 characters each
    assert len(list(stream)) == 8 and len(read) == 9


@posix
def test_a_forked_process_can_use_the_tagger_of_its_parent():
    code = """
import os, torch
from hf_xorner import Tagger
torch.set_num_threads(2)
tagger = Tagger.from_pretrained()
texts = [f"Imran Vale flew to Oslo. {number}" for number in range(300)]
tagger(texts)
if not (child := os.fork()):
    os._exit(len(tagger(texts[0])) + len(tagger(texts)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run_python(["-c", code], timeout=100)
    assert done.stdout == f"{(2 + 300) % 256}\n", done.stderr


def test_a_type_may_be_called_o(tagger):
    model = copy.deepcopy(tagger.model)
    model.config.id2label = {at: label.replace("GOD", "O") for at, label in model.config.id2label.items()}
    for entities, expected in zip(Tagger(model, tagger.tokenizer)(TEXTS), tagger(TEXTS), strict=True):
        assert [entity.label for entity in entities] == [entity.label.replace("GOD", "O") for entity in expected]


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (None, TypeError, "Text 40 is a NoneType"),
        (b"Ann", TypeError, "Text 40 is a bytes"),
        (["Ann", 3], ValueError, "list of words.*text 40"),
        ("Ann \ud800", ValueError, r"Text 40 holds a lone surrogate, U\+D800, at character 4"),
        (["Ann", "\ud800"], ValueError, "Text 40 holds a lone surrogate"),
    ],
)
def test_invalid_items_are_reported_by_their_position(tagger, item, error, message):
    with pytest.raises(error, match=message):
        tagger([*(["Ann"] * 40), item, "Ann"], batch_size=1)


def test_a_text_for_pipe_and_a_batch_size_of_0_are_refused(tagger):
    with pytest.raises(TypeError, match=r"tagger\(text\)"):
        tagger.pipe("Ann Smith")
    with pytest.raises(ValueError, match="batch_size=0"):
        tagger(["Ann"], batch_size=0)


@pytest.mark.parametrize("table", [dict, pandas.DataFrame, Dataset.from_dict])
def test_tables_are_refused_with_the_remedy(tagger, table):
    with pytest.raises(TypeError, match="pass that of the texts"):
        tagger(table({"text": TEXTS}))


def test_every_kind_of_sequence_of_texts_is_a_list_of_texts(tagger):
    expected = [tagger(text) for text in TEXTS]
    column = Dataset.from_dict({"text": TEXTS})["text"]
    for texts in (TEXTS, tuple(TEXTS), pandas.Series(TEXTS), np.array(TEXTS), iter(TEXTS), column):
        nearly_the_same(tagger(texts), expected)
    assert [entities.text for entities in tagger(["Ann Smith"])] == ["Ann Smith"]
    assert tagger(["Ann", "Smith"], is_split_into_words=True) == tagger([["Ann", "Smith"]])[0]
    assert tagger([]) == [] and tagger([], is_split_into_words=True) == Entities()


def test_empty_words_and_texts_have_no_entities(each_tagger):
    assert not any(each_tagger(["", " ", [""], ["", ""]]))
    for annotation in each_tagger.annotate([["", ""], [""]]):
        assert set(annotation.labels) == {"O"}


def test_slices_and_sums_of_entities_keep_their_text(tagger):
    entities = next(filter(lambda entities: len(entities) > 1, tagger(TEXTS)))
    for part in (entities[:1], entities[:1] + entities[1:], entities[:1] + list(entities[1:])):
        assert isinstance(part, Entities) and part.text == entities.text
    assert part.redact().restore() == entities.text
    assert type(entities + tagger("another text")) is list


def test_a_tagger_is_moved_to_a_device(tokenizer):
    tagger = Tagger(build_model("bilstm-cnn", tokenizer), tokenizer)
    assert tagger.to("meta") is tagger and tagger.device.type == "meta"
    with pytest.raises(ValueError, match="device='nowhere'"):
        tagger.to("nowhere")


@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=4))
def test_entities_of_any_text_are_its_words_and_those_of_the_pipeline(tagger, texts):
    pipe = pipeline("ner", model=tagger.model, tokenizer=tagger.tokenizer, aggregation_strategy="simple", device="cpu")
    for text, entities in zip(texts, tagger(texts, batch_size=2), strict=True):
        offsets = tagger.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        for entity in entities:
            assert (entity.start, entity.end) == (offsets[entity.word_start][0], offsets[entity.word_end - 1][1])
            assert entity.text and text[entity.start : entity.end] == entity.text
        assert all(left.end <= right.start for left, right in pairwise(entities))
        same_entities(entities, pipe(text))


def test_the_tokenizer_of_another_model_is_refused(tokenizer):
    model = build_model("bilstm-cnn", tokenizer)
    # Another order of the same characters has other types at the same ids.
    swapped = [[word.swapcase() for word in words] for words in SENTENCES]
    plain = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, pad_token="[PAD]")
    Tagger(model, tokenizer)
    # As trained with a Python that does not know the last character.
    model.config.char_types = model.config.char_types[:-1] + "."
    Tagger(model, tokenizer)
    for other, message in (
        (WordCharTokenizer.from_corpus([*SENTENCES, ["ann", "sees"]], max_word_chars=10), "vocab_size"),
        (WordCharTokenizer.from_corpus(SENTENCES, max_word_chars=12), "max_word_chars"),
        (WordCharTokenizer.from_corpus(swapped, max_word_chars=10), "load both from one folder"),
        (plain, "load the WordCharTokenizer"),
    ):
        with pytest.raises(ValueError, match=message):
            Tagger(model, other)


def test_results_do_not_depend_on_the_number_of_threads(each_tagger, two_threads):
    items = [*TEXTS, *GIVEN] * 2
    torch.set_num_threads(1)
    alone = each_tagger(items, batch_size=4)
    torch.set_num_threads(3)
    assert each_tagger(items, batch_size=4) == alone
    assert torch.get_num_threads() == 3


def test_short_texts_use_one_thread(each_tagger, two_threads, monkeypatch):
    seen, score = [], Tagger.score
    monkeypatch.setattr(
        Tagger, "score", lambda *args, **options: seen.append(torch.get_num_threads()) or score(*args, **options)
    )
    for text in ("Ann met Bo.", "Ann met Bo. " * 20):
        each_tagger(text)
    assert seen == [1, 2] and torch.get_num_threads() == 2


def test_words_computed_once_and_in_each_batch_give_the_same_results(each_tagger, monkeypatch):
    items = [*TEXTS, *GIVEN]
    monkeypatch.setattr("hf_xorner.tagger.DISTINCT_AT_ONCE", 5)
    results = []
    for few in (0, 10**9):
        monkeypatch.setattr("hf_xorner.tagger.FEWEST_WORDS", few)
        results.append(each_tagger(items, batch_size=4))
    nearly_the_same(*results)


def test_threads_may_share_a_tagger(tagger):
    items = [*TEXTS, *GIVEN]
    alone = tagger(items, batch_size=4)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: tagger(items, batch_size=4), range(8))) == [alone] * 8


def test_an_error_in_a_thread_is_raised(tokenizer, two_threads, monkeypatch):
    tagger = Tagger(lively_model("bilstm-cnn", tokenizer, "softmax"), tokenizer)
    monkeypatch.setattr(tagger.model, "score", lambda states: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tagger(TEXTS, batch_size=1)


@pytest.mark.parametrize(("model_type", "decoder"), list(zip(ARCHITECTURES, cycle(DECODERS))))
def test_a_long_document_in_blocks_has_the_entities_of_the_pipeline(tokenizer, model_type, decoder, monkeypatch):
    document = [word for words in GIVEN for word in words] * 2
    model = lively_model(model_type, tokenizer, decoder, words=[document]).double()
    tagger = Tagger(model, tokenizer)
    (expected,) = tagger([document])
    assert len(expected) > 25 and expected[-1].word_end > 0.8 * len(document)
    pipe = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    same_entities(expected, pipe([document], is_split_into_words=True)[0])
    monkeypatch.setattr("hf_xorner.models.recurrent.WORDS_IN_BLOCK", 100)
    nearly_the_same(tagger([document]), [expected])


def test_documents_too_long_to_compare_all_words_are_refused(tokenizer, monkeypatch):
    monkeypatch.setattr("hf_xorner.models.modeling_grn.LONGEST_COMPARED", 1000)
    for relation in ("gated", "scalar_gate", "direct"):
        tagger = Tagger(build_model("grn", tokenizer, relation=relation), tokenizer)
        tagger([["Ann"] * 1000])
        if relation == "direct":
            tagger([["Ann"] * 1001])
        else:
            with pytest.raises(ValueError, match=r"has 1,001 words, .* for at most 1,000; split the text"):
                tagger([["Ann"] * 1001])


# Runs by itself and on one thread, so that peak memory and processor time are those of this document.
LONG_DOCUMENT = """
import resource, sys, time
from conftest import CONFIGS, LABELS, MODELS, SENTENCES
import hf_xorner
import torch

torch.set_num_threads(1)

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

torch.manual_seed(0)
tokenizer = hf_xorner.WordCharTokenizer.from_corpus(SENTENCES)
config = CONFIGS[sys.argv[1]](**tokenizer.model_fields(), id2label=dict(enumerate(LABELS)))
model = MODELS[sys.argv[1]].load()(config).eval()
tagger = hf_xorner.Tagger(model, tokenizer)
sentence = [word for words in SENTENCES for word in words]
tagger([sentence])
before = peak_mb()
for size in map(int, sys.argv[2:]):
    document = (sentence * (size // len(sentence) + 1))[:size]
    start = time.process_time()
    (entities,) = tagger([document])
    print(size, time.process_time() - start, peak_mb() - before, all(e.word_end <= size for e in entities))
"""


#: Memory in MB that a document of 500,000 words may take beyond that of a short one, where the aim of 1,600 is missed.
MORE_MEMORY = {
    **dict.fromkeys(("bilstm-cnn", "cross-bilstm-cnn", "att-bilstm-cnn"), 2_600),
    "cnn-lstm-crf": 3_000,
    "id-cnn": 3_500,
    "stack-lstm": 8_000,
}


@pytest.mark.slow
def test_a_document_of_500_000_words_takes_linear_time(model_type, request):
    sizes = [16_000, 32_000] if model_type == "grn" else [250_000, 500_000]  # GRN compares all words
    command = [sys.executable, "-c", LONG_DOCUMENT, model_type, *map(str, sizes)]
    tests = request.config.rootpath / "tests"
    result = subprocess.run(command, cwd=tests, capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    (_, half_time, _, half_right), (_, time, memory, right) = rows
    assert half_right == right == "True"
    assert float(time) < (5 if model_type == "grn" else 2.6) * float(half_time)
    assert float(memory) < MORE_MEMORY.get(model_type, 1_600)


def test_short_names_name_the_models_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "MISC" in Tagger.from_pretrained("english").entity_labels
    assert Tagger.from_pretrained("english-open").entity_labels == ["LOC", "ORG", "PER"]
    Path("english").mkdir()
    assert model_folder("english") == "english"  # a folder comes first, as for names on the Hub
    assert model_folder("me/english") == "me/english"


def test_results_do_not_depend_on_the_mode_of_the_model_or_of_torch(tagger, monkeypatch):
    texts = [" ".join(words) for words in SENTENCES] * 60
    expected = tagger(texts)
    assert any(expected)
    tagger.model.train()
    tagger.model.features.eval()
    modes = [module.training for module in tagger.model.modules()]
    try:
        assert tagger(texts) == expected == tagger(texts)
        assert [module.training for module in tagger.model.modules()] == modes
        monkeypatch.setattr(tagger.model.config, "return_dict", False)
        with torch.autocast("cpu"), torch.device("meta"):
            assert tagger(texts) == expected
    finally:
        tagger.model.eval()
