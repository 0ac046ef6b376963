"""Overlapping windows as nodes of an ONNX graph (see `number_of_windows` and `home_window` of `models/layers.py`)."""

from __future__ import annotations

from .graph import Graph, Value


def number_of_windows(graph: Graph, lengths: Value, window: int, overlap: int) -> Value:
    """The number of windows over sequences of some lengths."""
    step = window - overlap
    return graph.Max(lengths + (step - 1 - overlap), step) / step


def home_window(graph: Graph, position: Value, lengths: Value, window: int, overlap: int) -> Value:
    """The window in which a position is nearest to the middle."""
    nearest = graph.Max(position - overlap // 2, 0) / (window - overlap)
    return graph.Min(nearest, number_of_windows(graph, lengths, window, overlap) - 1)
