"""CUDA graphs: which calls are captured, when calls are ordinary, and Tagger with captured batches."""

import logging
import random

import pytest
import torch
from conftest import ARCHITECTURES, SENTENCES, TAG_SCORING, build_model
from graph_recorder import Recorder
from random_texts import lively_model
from torch import nn

from hf_xorner import Tagger, cuda_graphs
from hf_xorner.cuda_graphs import ORDINARY_CALLS, Replayed, longest_word, rounded_size


@pytest.fixture
def replayed():
    """A linear layer whose results are multiplied by a constant."""
    module = nn.Linear(2, 3)
    return Replayed(lambda values, times=1: (module(values) * times,), module, Recorder())


@torch.inference_mode()
def check(replayed, size=4, **constants):
    values = torch.randn(size, 2)
    (found,) = replayed(values=values, **constants)
    torch.testing.assert_close(found, replayed.module(values) * constants.get("times", 1))
    return found


def test_sizes_are_rounded_to_few():
    assert [rounded_size(size) for size in (0, 1, 8, 9, 63, 64, 65, 97)] == [0, 8, 8, 16, 64, 64, 96, 128]
    assert len({rounded_size(size) for size in range(1, 257)}) == 14


def test_the_longest_word_is_that_of_the_batch():
    char_ids = torch.zeros(2, 3, 20, dtype=torch.long)
    assert longest_word(char_ids) == 0
    char_ids[1, 2, :9] = 5
    assert longest_word(char_ids) == 16


def test_a_shape_is_captured_after_ordinary_calls_and_then_replayed(replayed):
    for number in range(ORDINARY_CALLS + 4):
        check(replayed)
        assert replayed.capture.replays == max(0, number + 1 - ORDINARY_CALLS)
    assert replayed.capture.captures == 1


def test_each_shape_and_each_constant_has_its_own_graph(replayed):
    for _ in range(ORDINARY_CALLS + 2):
        check(replayed)
        check(replayed, size=5)
        check(replayed, times=2)
    assert replayed.capture.captures == 3


def test_results_are_not_overwritten_by_the_next_call(replayed):
    results = [check(replayed) for _ in range(ORDINARY_CALLS + 3)]
    assert len({tuple(result.flatten().tolist()) for result in results}) == len(results)


def test_new_values_of_weights_count(replayed):
    for number in range(ORDINARY_CALLS + 3):
        with torch.no_grad():
            replayed.module.weight.fill_(number)
        check(replayed)
    assert replayed.capture.captures == 1


def test_weights_that_move_are_captured_anew(replayed):
    for _ in range(2):
        replayed.module.weight = nn.Parameter(torch.randn(3, 2))
        for _ in range(ORDINARY_CALLS + 1):
            check(replayed)
    assert replayed.capture.captures == 2


def test_shapes_beyond_the_maximum_are_ordinary(replayed, monkeypatch, caplog):
    monkeypatch.setattr(cuda_graphs, "MOST_GRAPHS", 2)
    with caplog.at_level(logging.WARNING):
        for _ in range(ORDINARY_CALLS + 2):
            for size in (1, 2, 3, 4):
                check(replayed, size=size)
    assert replayed.capture.captures == 2 and len(caplog.messages) == 1


def test_a_function_that_reads_values_is_never_captured_again(caplog):
    calls = []

    def function(values):
        calls.append(1)
        return (values * values.max().item(),)

    replayed = Replayed(function, nn.Linear(1, 1), Recorder())
    with caplog.at_level(logging.WARNING):
        for number in range(8):
            values = torch.tensor([1.0, number])
            assert torch.equal(replayed(values=values)[0], values * values.max())
    assert replayed.capture.captures == 0 and len(caplog.messages) == 1
    assert len(calls) == 8 + 1


# --- Tagger -----------------------------------------------------------------------------------------------------------


def items(count=150):
    draw = random.Random(0)
    words = sorted({word for sentence in SENTENCES for word in sentence})
    return [draw.choices(words, k=draw.randrange(12)) for _ in range(count)]


@pytest.mark.parametrize("kind", [name for name in TAG_SCORING if name in ARCHITECTURES])
def test_replayed_batches_give_the_same_entities(tokenizer, as_on_a_gpu, kind):
    tagger = Tagger(lively_model(kind, tokenizer, "crf").double(), tokenizer)
    expected = tagger.tag(items(), batch_size=10)
    assert sum(map(len, expected)) > 50
    as_on_a_gpu()
    tagger.graphs = Replayed(tagger.score, tagger.model, Recorder())
    found = tagger.tag(items(), batch_size=10)
    assert tagger.graphs.capture.replays > 3
    for one, other in zip(found, expected, strict=True):
        assert [entity[:-1] for entity in one] == [entity[:-1] for entity in other]
        assert [entity.score for entity in one] == pytest.approx([entity.score for entity in other])


def test_without_cuda_nothing_is_replayed(tokenizer):
    assert Tagger(build_model("grn", tokenizer), tokenizer).graphs is None


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_cuda_graphs_give_the_same_entities(tokenizer, cuda, kind):
    model = lively_model(kind, tokenizer, "crf")
    expected = Tagger(model, tokenizer).tag(items(), batch_size=10)
    tagger = Tagger(model, tokenizer, cuda)
    assert tagger.tag(items(), batch_size=10) is not None
    found = tagger.tag(items(), batch_size=10)
    assert (tagger.graphs is None) == (kind == "stack-lstm")
    for one, other in zip(found, expected, strict=True):
        assert [entity[:-1] for entity in one] == [entity[:-1] for entity in other]
