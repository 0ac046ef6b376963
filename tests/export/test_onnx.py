"""ONNX graphs give the labels and probabilities of PyTorch, for every architecture, decoder, length and batch."""

import sys

import helpers
import numpy as np
import onnx
import onnxruntime
import pytest
import tiny_encoders as tiny
import torch
from conftest import SENTENCES, VARIANTS, build_model, has_field, with_decoders, without_dropout

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.cli import main
from hf_xorner.export.onnx import export_onnx, onnx_model

BATCHES = ((1,), (3, 1, 2), (120, 7, 64), (5,) * 7)
OTHER_LABELS = {
    "plain": ["NOUN", "VERB", "X"],
    "single words only": ["O", "B-DAY", "B-PER", "I-PER"],
    "unordered": ["I-PER", "B-LOC", "O", "B-PER", "I-LOC"],
}
PIECES = WordCharTokenizer.from_corpus(
    SENTENCES, pieces=tiny.pieces_of(tiny.bert_tokenizer()), max_word_pieces=3, max_word_chars=6
)


def session(model, precision="fp32"):
    """Return an ONNX Runtime session of one thread."""
    exported = onnx_model(model, precision)
    onnx.checker.check_model(exported, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(exported.SerializeToString(), options, ["CPUExecutionProvider"])


def run(session, batch):
    names = [each.name for each in session.get_inputs()]
    return session.run(None, {name: batch[name].numpy() for name in names})


@torch.no_grad()
def expected(model, batch):
    """Return labels, their probabilities and the path's log probabilities."""
    output = model(**batch, output_path_log_probs=True)
    probabilities, labels = output.logits.softmax(-1).max(-1)
    return labels.numpy(), probabilities.numpy(), output.path_log_probs.numpy()


def assert_equal(found, wanted, batch):
    words = batch["attention_mask"].bool().numpy()
    np.testing.assert_array_equal(found[0][words], wanted[0][words])
    np.testing.assert_allclose(found[1][words], wanted[1][words], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found[2][words], wanted[2][words], rtol=1e-4, atol=1e-3)


def batch_of(model, lengths, seed=0):
    batch = helpers.pad(helpers.random_sentences(model.config, lengths, seed))
    if model.config.max_word_pieces:
        generator = torch.Generator().manual_seed(seed)
        shape = (*batch["input_ids"].shape, model.config.max_word_pieces)
        ids = torch.randint(1, model.config.piece_vocab_size + 1, shape, generator=generator)
        counts = torch.randint(0, shape[2] + 1, (*shape[:2], 1), generator=generator)
        # Padding has pieces, too, which must not matter.
        batch["piece_ids"] = ids.masked_fill(torch.arange(shape[2]) >= counts, 0)
    return batch


def assert_model_equals_its_graph(model, batches=BATCHES):
    graph = session(model)
    for seed, lengths in enumerate(batches):
        batch = batch_of(model, lengths, seed)
        assert_equal(run(graph, batch), expected(model, batch), batch)


@pytest.mark.parametrize(("kind", "decoder"), with_decoders(VARIANTS, helpers.DECODERS), ids=str)
def test_every_architecture_and_decoder_matches_pytorch(kind, decoder, tokenizer):
    assert_model_equals_its_graph(build_model(kind, tokenizer, **helpers.DECODERS[decoder]))
