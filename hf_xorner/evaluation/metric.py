"""The scores as a metric of the `evaluate` library."""

from collections.abc import Sequence
from typing import Any, Literal

from datasets import Features, List, Value

# If a file evaluate.py is imported in place of the library, this import fails with a clear error.
from evaluate import Metric, MetricInfo

from ..corpora.schemes import Scheme
from .comparison import Policy
from .scores import span_scores


class TaggingMetric(Metric):
    """Precision, recall and F1 of entities by strict match, and the accuracy of tags, in percent.

    The metric needs no network. ``TaggingMetric().compute(predictions=..., references=...)`` takes
    lists of tags, one for each sentence, and returns the result of `span_scores`. The evaluator of evaluate runs a
    model with it::

        evaluator("token-classification").compute(
            model_or_pipeline=model, tokenizer=tokenizer, data=dataset, metric=TaggingMetric()
        )

    Give the evaluator a model with its tokenizer, or a folder: with transformers 5, evaluate 0.4.6 fails on a pipeline.
    It joins the words of each sentence by spaces, and the tokenizer splits them again. If the words stay the same, so
    do the scores; a word that is split has the label of its first part. A word of only spaces counts as ``O``, and at
    the end of a sentence the evaluator fails with an IndexError. Its ``strategy="bootstrap"`` does not support
    sentences of different lengths; `bootstrap_intervals` does.
    """

    def __init__(self, policy: Policy = "conlleval", scheme: Scheme | Literal["auto"] = "auto", **options: Any) -> None:
        """Create a metric for one policy.

        Args:
            policy: The treatment of malformed spans; see `hf_xorner.evaluation.comparison.spans_of_ids`.
            scheme: The tag scheme; "auto" infers it from the prefixes and reads IOB1 as IOB2.
            **options: Options of `evaluate.Metric`. Predictions stay in memory, unless ``keep_in_memory=False`` or
                ``num_process`` is above 1; several processes share them in files, by their ``experiment_id``.
        """
        self.policy, self.scheme = policy, scheme
        options.setdefault("keep_in_memory", options.get("num_process", 1) == 1)
        super().__init__(**options)

    def _info(self) -> MetricInfo:
        features = Features(dict.fromkeys(("predictions", "references"), List(Value("string"))))
        description = str(TaggingMetric.__doc__)
        return MetricInfo(description=description, citation="", inputs_description="", features=features)

    def _compute(self, *, predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, Any]:
        return span_scores(references, predictions, self.policy, self.scheme)
