"""The states of a pretrained encoder as nodes of an ONNX graph (see `models/contextual.py`)."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from onnx import compose
from torch import Tensor, nn

from ..models.contextual import ContextualFeatures
from .graph import OPSET, Graph, Value
from .windows import home_window, number_of_windows

#: Prefix of the names of the encoder's values in the graph.
_PREFIX = "encoder/"


def add_context(graph: Graph, context: ContextualFeatures, pieces: Value) -> Value:
    """Features (T, B, hidden) of words from the ids + 1 of their pieces, 0 for none: (T, B, P).

    Every sentence has as many windows as the longest one of the batch; the encoder reads all windows at once.
    """
    config = context.config
    time, batch, room = (graph.size(pieces, axis) for axis in range(3))
    prefix, suffix = list(config.context_prefix), list(config.context_suffix)
    capacity, overlap = config.context_window - len(prefix) - len(suffix), config.context_overlap
    step = capacity - overlap

    # The pieces of each sentence, one after another.
    flat = graph.reshape(graph.transpose(pieces, 1, 0, 2), batch, -1)  # (B, T · P)
    present = flat > 0
    counted = graph.CumSum(graph.cast(present, "int64"), 1)
    rank, count = counted - 1, graph.max(counted, 1)
    behind = graph.unsqueeze(graph.size(flat, 1), 0)
    sentence = graph.filled(0, batch, graph.size(flat, 1) + 1, dtype=np.int64)
    sentence = graph.ScatterElements(sentence, graph.Where(present, rank, behind), flat - 1, axis=1)
    longest = graph.Max(graph.max(count, 0, keep=True), 1)

    # Their windows, in the frame of the encoder's special pieces.
    number, width = number_of_windows(graph, longest, capacity, overlap), graph.Min(longest, capacity)
    starts = graph.arange(number) * step
    size = graph.Max(graph.Min(graph.unsqueeze(count, 1) - starts, capacity), 0)  # (B, windows)
    size = graph.unsqueeze(size, 2)
    total = width + (len(prefix) + len(suffix))
    position = graph.arange(total) - len(prefix)
    source = graph.unsqueeze(starts, 1) + graph.Max(graph.Min(position, width - 1), 0)
    ids = graph.Gather(sentence, graph.Min(source, longest - 1), axis=1)  # (B, windows, total)
    ids = graph.Where(position < size, ids, context.padding)
    for index, piece in enumerate(prefix):
        ids = graph.Where(position == index - len(prefix), piece, ids)
    for index, piece in enumerate(suffix):
        ids = graph.Where(position == size + index, piece, ids)
    mask = graph.cast(position < (size + len(suffix)), "int64")
    states = _add_encoder(graph, context, *(graph.reshape(values, -1, total) for values in (ids, mask)))

    # A piece takes its state from the window in which it is nearest to the middle; a word has the mean of its pieces.
    states = graph.reshape(states, batch, number * total, context.output_size)
    home = home_window(graph, rank, graph.unsqueeze(count, 1), capacity, overlap)
    in_window = graph.Max(home * total + rank - home * step + len(prefix), 0)
    of_pieces = graph.Where(graph.unsqueeze(present, 2), graph.pick_rows(states, in_window), 0.0)
    sums = graph.sum(graph.reshape(of_pieces, batch, time, room, context.output_size), 2)
    in_word = graph.sum(graph.cast(pieces > 0, "float32"), 2)
    return graph.transpose(sums, 1, 0, 2) / graph.unsqueeze(graph.Max(in_word, 1.0), 2)


class _Layers(nn.Module):
    """The mean hidden states of an encoder."""

    def __init__(self, context: ContextualFeatures) -> None:
        super().__init__()
        self.context = context

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """ids and mask (N, pieces) → (N, pieces, hidden)."""
        hidden = self.context.encoder(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        return torch.stack([hidden[layer] for layer in self.context.config.context_layers]).mean(0)


def _add_encoder(graph: Graph, context: ContextualFeatures, ids: Value, mask: Value) -> Value:
    """Include the encoder's graph from PyTorch's exporter."""
    example = torch.full((2, 7), context.padding)
    sizes = {0: torch.export.Dim("windows"), 1: torch.export.Dim("pieces")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the code of transformers
        exported = torch.onnx.export(
            _Layers(context).eval(),
            (example, torch.ones_like(example)),
            input_names=["ids", "mask"],
            output_names=["states"],
            dynamic_shapes=(sizes, sizes),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    return graph.include(compose.add_prefix(exported.model_proto, _PREFIX), [ids, mask])
