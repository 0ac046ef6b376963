"""The scores as a metric of the library evaluate."""

from collections.abc import Sequence
from typing import Any, Literal

from datasets import Features, List, Value

# Names, not the module: where scripts/evaluate.py is found in place of the library, this fails, and says so.
from evaluate import Metric, MetricInfo

from ..corpora.schemes import Scheme
from .scores import checked_span_scores
from .spans import POLICIES, Policy

_DESCRIPTION = "Precision, recall and F1 of entities by strict match, and the accuracy of tags, in percent."

_INPUTS = """
Args:
    predictions: The predicted tags of each sentence.
    references: The gold tags of each sentence.

Returns:
    precision, recall, f1 (micro averages), accuracy, and support, the number of gold entities; macro, the means of the
    types; per_type, the figures of each type. Plain tags have an accuracy only.
"""


class TaggingMetric(Metric):
    """The scores of tags as a metric of evaluate, which needs no network and writes no files.

    ``TaggingMetric().compute(predictions=..., references=...)`` takes a list of tags for each sentence and returns what
    `checked_span_scores` does, in percent. evaluate's own evaluator runs a model with it::

        evaluator("token-classification").compute(
            model_or_pipeline=model, tokenizer=tokenizer, data=dataset, metric=TaggingMetric()
        )

    Give the evaluator a model with its tokenizer, or a folder: with transformers 5, evaluate 0.4.6 fails on a pipeline.
    It joins the words of each sentence by blanks and has the tokenizer part them again. Where the same words come back,
    the figures are those on the given words; a word that comes back in parts has the label of the first. A word without
    any character but blanks counts as ``O``, and at the end of a sentence makes the evaluator fail with an IndexError.
    Its ``strategy="bootstrap"`` takes no sentences of different lengths; `bootstrap_intervals` does.
    """

    def __init__(self, policy: Policy = "conlleval", scheme: Scheme | Literal["auto"] = "auto", **options: Any) -> None:
        """Make a metric for one policy.

        Args:
            policy: What malformed spans are: see `hf_xorner.evaluation.spans.spans_of_ids`.
            scheme: How the tags mark spans; "auto" goes by their prefixes and takes IOB1 for IOB2.
            **options: Of `evaluate.Metric`. Predictions stay in memory unless ``keep_in_memory=False``, or
                ``num_process`` says that several processes share them by files, under an ``experiment_id`` of theirs.
        """
        if policy not in POLICIES:
            raise ValueError(f"unknown policy {policy!r}; expected one of {', '.join(POLICIES)}.")
        self.policy, self.scheme = policy, scheme
        options.setdefault("keep_in_memory", options.get("num_process", 1) == 1)
        super().__init__(**options)

    def _info(self) -> MetricInfo:
        tags = List(Value("string"))
        return MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=Features({"predictions": tags, "references": tags}),
        )

    def _build_data_dir(self) -> str:
        # evaluate makes a folder in the user's cache also where it is to write nothing.
        return self._data_dir_root if self.keep_in_memory else super()._build_data_dir()

    def _finalize(self) -> None:
        if self.keep_in_memory and self.buf_writer is None:
            raise ValueError("there are no tags to score; give predictions and references, or add some before.")
        super()._finalize()

    def _compute(
        self, *, predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]], **options: Any
    ) -> dict[str, Any]:
        if options:
            raise TypeError(f"compute() knows predictions and references, and no {', '.join(sorted(options))}.")
        return checked_span_scores(references, predictions, self.policy, self.scheme)
