"""Scores of taggers: spans from tags, strict precision, recall and F1 in percent."""

from .scores import checked_span_scores, compute_metrics_for, span_scores
from .spans import Spans, TagSet, spans_of_ids, spans_of_tags

__all__ = [
    "Spans",
    "TagSet",
    "checked_span_scores",
    "compute_metrics_for",
    "span_scores",
    "spans_of_ids",
    "spans_of_tags",
]
