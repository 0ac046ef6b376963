"""Export of a tagger to one ONNX graph, from the ids of words, characters and pieces to labels and their probabilities.

The graph is built node by node from the modules of the model. Recurrences are ONNX's `LSTM`, `Scan` and `Loop`, which
support any length; an export takes less than a second. `torch.onnx.export` unrolls loops and cannot trace the model's
code, which reads values to save time; a second, traceable version of it would be as long as this export. The tests
compare every architecture with PyTorch. Only the encoder of a contextual model is exported by PyTorch.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
import torch
from transformers.utils import SAFE_WEIGHTS_NAME

from ..files import GRAPH_FILE, check_only_replaces, expanded, write_whole
from ..loading import load
from ..models.modeling_tagger import TaggerForTokenClassification
from . import runtime_code
from .decoders import add_decoder, add_labels
from .encoders import add_encoder
from .features import add_features
from .graph import Graph, Value
from .runtime import RUNTIME_FILE


def export_onnx(source: str, output: str | Path, precision: str = "fp32") -> list[Path]:
    """Export a saved tagger to a folder from which it runs without PyTorch.

    Args:
        source: The model's folder, or its repository on the Hub.
        output: The folder to write to; if it is the model's folder, only the new files are written.
        precision: See `onnx_model`.

    Returns:
        The written files: `model.onnx`, config and tokenizer, and `onnx_tagger.py`, which runs them.
    """
    output = expanded(output)
    contents = {RUNTIME_FILE: runtime_code().encode(), **exported_files(source, precision)}
    if Path(source).is_dir() and output.resolve() == Path(source).resolve():
        contents = {name: contents[name] for name in (GRAPH_FILE, RUNTIME_FILE)}
    elif (output / SAFE_WEIGHTS_NAME).exists():
        raise ValueError(f"{output} holds the weights of another model; name another folder.")
    else:
        check_only_replaces(output, contents, RUNTIME_FILE)
    return [write_whole(output / name, content) for name, content in contents.items()]


def exported_files(source: str, precision: str) -> dict[str, bytes]:
    """The files of the graph, the config and the tokenizer of a saved tagger, by name."""
    model, tokenizer = load(source, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        # Not the Python files, which need PyTorch.
        contents = {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.json"))}
    return {GRAPH_FILE: onnx_model(model, precision).SerializeToString(), **contents}


@torch.no_grad()
def onnx_model(model: TaggerForTokenClassification, precision: str = "fp32") -> onnx.ModelProto:
    """The ONNX model of a tagger.

    Inputs of the distinct words of a batch: `input_ids` (distinct,), `char_ids` (distinct, characters) and, for models
    that read pieces, `piece_ids` (distinct, pieces). Inputs of right-padded sentences: `word_index` (batch, words), the
    index of each word among the distinct ones, and `attention_mask` (batch, words). Columns of `char_ids` after the end
    of all words may be cut off. Outputs: `labels` (batch, words), and `path_log_probs` (batch, words, 2).

    Args:
        model: The tagger.
        precision: The precision of saved weights, "fp32", "fp16" or "int8"; computations are in float32.
    """
    graph, config = Graph(precision), model.config
    shapes: dict[str, list[str | int]] = {
        "input_ids": ["distinct"],
        "char_ids": ["distinct", "characters"],
        "piece_ids": ["distinct", config.max_word_pieces],
        "word_index": ["batch", "words"],
        "attention_mask": ["batch", "words"],
    }
    if not config.composed_dim and not config.context_encoder:
        del shapes["piece_ids"]
    ids = {name: Value(graph, name) for name in shapes}
    # From here on, words come first: recurrences run over the first axis.
    index, mask = (graph.transpose(ids[name], 1, 0) for name in ("word_index", "attention_mask"))
    lengths = graph.sum(mask, 0)
    features = add_features(graph, model.features, ids, index, mask)
    states = add_encoder(graph, model, features, lengths)
    decoded = add_decoder(graph, model, states, lengths)
    labels = add_labels(graph, model.tags, decoded.path, lengths, config.malformed_spans == "repair")
    path_log_probs = graph.stack(decoded.marginal, decoded.conditional, axis=2)
    return graph.model(
        {name: ("int64", shape) for name, shape in shapes.items()},
        {
            "labels": (graph.transpose(labels, 1, 0), "int64", ["batch", "words"]),
            "path_log_probs": (graph.transpose(path_log_probs, 1, 0, 2), "float32", ["batch", "words", 2]),
        },
    )
