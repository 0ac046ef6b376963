"""Scores of taggers, in percent: spans from tags, precision, recall and F1, and where the errors are."""

from ..corpora.schemes import TagSet, scheme_of
from .breakdowns import chunk_tag_recall, confusion, per_length, per_type, surface_scores, tag_scores
from .comparison import Comparison
from .partitions import seen_partition, surface_forms, vocabulary_partition
from .scores import checked_span_scores, compute_metrics_for, scores_of, span_scores
from .spans import Spans, spans_of_ids, spans_of_tags

__all__ = [
    "Comparison",
    "Spans",
    "TagSet",
    "checked_span_scores",
    "chunk_tag_recall",
    "compute_metrics_for",
    "confusion",
    "per_length",
    "per_type",
    "scheme_of",
    "scores_of",
    "seen_partition",
    "span_scores",
    "spans_of_ids",
    "spans_of_tags",
    "surface_forms",
    "surface_scores",
    "tag_scores",
    "vocabulary_partition",
]
