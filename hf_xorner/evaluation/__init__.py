"""Scores of taggers, in percent: spans of tags, precision, recall and F1, breakdowns of errors, significance, plots."""

from .scores import compute_metrics_for, span_scores

__all__ = ["compute_metrics_for", "span_scores"]
