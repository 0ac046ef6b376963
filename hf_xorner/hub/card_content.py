"""What a model card says, in one dataclass that the template is filled from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from markupsafe import Markup

from ..data.files import SPLITS
from ..registration import CONFIGS, MODELS
from ..training.facts import Facts
from .card_scores import HeldOut
from .card_sections import card_of
from .card_text import code, environment, one_line
from .citations import PAPERS, bibtex

CURVE_FILE = "learning_curve.png"

_RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_ACCURACY = {"accuracy": "accuracy"}
_ROWS_OF_CURVE = 20
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}|code|multilingual")


@dataclass(frozen=True)
class Card:
    """Everything that a model card shows.

    Args:
        name: The model's: a repository of the Hub, or its folder's name.
        facts: Of the run that made it.
        others: Facts of runs that differ from it in their seed alone.
        usage: The lines that use the model.
        output: What they print.
        sentences: Examples for the Hub's widget.
        drawn: Whether the learning curve lies beside the card as a picture.
        licence: The model's, as the Hub calls it.
        language: Of the text, as an ISO 639 code.
        dataset_id: The corpus on the Hub.
        dataset_revision: The commit of it that was read.
        base_models: Encoders on the Hub that it was made with, where the facts have but a folder's name.
    """

    name: str
    facts: Facts
    others: tuple[Facts, ...] = ()
    usage: str = ""
    output: str = ""
    sentences: tuple[str, ...] = ()
    drawn: bool = False
    licence: str | None = None
    language: str | None = None
    dataset_id: str | None = None
    dataset_revision: str | None = None
    base_models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the Hub would, facts without what a card shows, and runs that are not of one recipe."""
        if self.model_type not in CONFIGS:
            raise ValueError(f"{self.model_type!r} is none of the architectures {', '.join(CONFIGS)}.")
        if self.language is not None and not _LANGUAGE.fullmatch(self.language):
            raise ValueError(f"language={self.language!r} is no ISO 639 code; give one such as en.")
        if self.dataset_id is not None and not _HUB_NAME.fullmatch(self.dataset_id):
            raise ValueError(f"dataset_id={self.dataset_id!r} is no data set of the Hub; give owner/name.")
        for name in self.base_models:
            if not _HUB_NAME.fullmatch(name):
                raise ValueError(f"base_model={name!r} is no model of the Hub; give owner/name.")
        for run in self.others:
            if _recipe_of(run) != _recipe_of(self.facts):
                raise ValueError(
                    f"the run of seed {run.seed} has other options, data or files; give runs of one recipe."
                )
            if run.scores.keys() != self.facts.scores.keys():
                raise ValueError(f"the run of seed {run.seed} was scored on other splits; give runs of one recipe.")
        for run in self.runs:
            self._check_facts(run)
        if len({run.seed for run in self.runs}) < len(self.runs):
            raise ValueError("two of the runs have the same seed; give each once, and this model's not again.")

    def _check_facts(self, run: Facts) -> None:
        """Refuse facts of entities that lack their counts or scores, and the same of plain labels."""
        counts = ("entities", "per_type") if self.finds_entities else ("per_tag",)
        scores = (*self.measures, "per_type", "per_length") if self.finds_entities else tuple(self.measures)
        if "train" not in run.data["splits"]:
            raise ValueError(f"the facts of seed {run.seed} lack data.splits.train; train it again.")
        wanted = [("data.splits", run.data["splits"], counts), ("scores", run.scores, scores)]
        for place, splits, keys in wanted:
            for split, found in splits.items():
                if missing := [key for key in keys if key not in found]:
                    raise ValueError(f"the facts of seed {run.seed} lack {place}.{split}.{missing[0]}; train it again.")
        if not all(re.fullmatch("[0-9]{1,9}", key) for key in run.config["id2label"]):
            raise ValueError(f"the facts of seed {run.seed} have labels without a number in config.id2label.")

    # --- What it is

    @property
    def model_type(self) -> str:
        """The architecture, by the name that a config file calls it."""
        return self.facts.config["model_type"]

    @property
    def summary(self) -> Markup:
        """What the architecture is, in a line of the package's own."""
        return Markup((CONFIGS[self.model_type].__doc__ or "").splitlines()[0])

    @property
    def paper(self) -> str:
        """The key of the paper that the architecture comes from."""
        return PAPERS[self.model_type]

    @property
    def bibtex(self) -> str:
        """The BibTeX of that paper."""
        return bibtex(self.model_type)

    @property
    def labels(self) -> list[str]:
        """The entity types, or the labels themselves where they are plain."""
        labels = [label for _, label in sorted(self.facts.config["id2label"].items(), key=lambda item: int(item[0]))]
        if not self.finds_entities:
            return labels
        return list(dict.fromkeys(label[2:] for label in labels if label != "O"))

    @property
    def finds_entities(self) -> bool:
        """Whether labels mark spans, and do not stand each for itself."""
        return "per_type" in self.facts.data["splits"].get("train", {})

    @property
    def runs(self) -> list[Facts]:
        """The runs of all seeds."""
        return sorted((self.facts, *self.others), key=lambda run: run.seed)

    # --- What it read

    @property
    def splits(self) -> list[str]:
        """The splits of the corpus."""
        return [name for name in SPLITS if name in self.facts.data["splits"]]

    @property
    def data_rows(self) -> list[list[Any]]:
        """What each split holds."""
        counted = ("sentences", "tokens", *["entities"] * self.finds_entities)
        return [[name, *(self.facts.data["splits"][name][key] for key in counted)] for name in self.splits]

    @property
    def label_rows(self) -> list[list[Any]]:
        """How often each type, or plain label, is in each split."""
        counts = [self._counts(split) for split in self.splits]
        return [[name, *(count.get(name, 0) for count in counts)] for name in sorted(set().union(*counts))]

    def _counts(self, split: str) -> Mapping[str, int]:
        return self.facts.data["splits"][split]["per_type" if self.finds_entities else "per_tag"]

    @property
    def option_rows(self) -> list[list[Any]]:
        """Every option that is not its default."""
        return [
            [code(name), code(json.dumps(value, ensure_ascii=False))]
            for name, value in sorted(self.facts.options.items())
        ]

    @property
    def duration(self) -> str:
        """How long training took."""
        seconds = self.facts.speed["training_seconds"]
        if seconds < 120:
            return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.2f} seconds"
        minutes = round(seconds / 60)
        return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours {minutes % 60} minutes"

    @property
    def curve_rows(self) -> list[list[Any]]:
        """The learning curve, at most so many epochs of it, with the last and the best."""
        curve, measure = self.facts.curve, self.decisive
        best = max(curve, key=lambda row: row.get("dev", {}).get(measure, -1), default=None)
        step = -(-len(curve) // _ROWS_OF_CURVE) or 1
        return [
            [f"{row['epoch']:g}", f"{row['loss']:.4g}" if "loss" in row else "", row.get("dev", {}).get(measure, "")]
            for number, row in enumerate(curve, 1)
            if number % step == 0 or row is curve[-1] or row is best
        ]

    # --- How well it does

    @property
    def measures(self) -> dict[str, str]:
        """The scores by their key in the facts, and what they are called."""
        return _RATIOS if self.finds_entities else _ACCURACY

    @property
    def decisive(self) -> str:
        """The key of the score that sums up."""
        return [*self.measures][-1]

    @property
    def judged(self) -> list[HeldOut]:
        """The splits that it was judged on."""
        scores = self.facts.scores
        return [HeldOut(name, scores[name], tuple(self.measures)) for name in self.splits if name in scores]

    @property
    def spread_rows(self) -> list[list[Any]]:
        """Mean and sample deviation of every score over the seeds."""
        rows = []
        for split in self.judged:
            values = [self._over_seeds(split.name, measure) for measure in self.measures]
            rows.append([split.name, *(f"{mean(row):.2f} ± {stdev(row):.2f}" for row in values)])
        return rows

    def _over_seeds(self, split: str, measure: str) -> list[float]:
        return [run.scores[split][measure] for run in self.runs]

    @property
    def limits(self) -> Iterator[Markup]:
        """What the scores of the last held-out split say against it."""
        if self.finds_entities and self.judged:
            yield from self.judged[-1].limits(self.labels)

    # --- What the Hub reads

    def header(self) -> dict[str, Any]:
        """The card's metadata, as the Hub's own client writes them."""
        dataset = self.dataset_id or _hub_name(self.facts.data["source"])
        bases = [self.facts.inputs.get(option, {}).get("name", "") for option in ("model_name_or_path", "context")]
        tags = ["hf_xorner", *["named-entity-recognition"] * self.finds_entities, self.model_type]
        results = list(self._results(dataset))
        data = ModelCardData(
            language=self.language,
            license=self.licence,
            library_name="transformers",
            pipeline_tag="token-classification",
            tags=[*tags, MODELS[CONFIGS[self.model_type]][1]],
            datasets=[dataset] if dataset else None,
            base_model=list(dict.fromkeys([*self.base_models, *filter(None, map(_hub_name, bases))])) or None,
            metrics=[*self.measures],
            widget=[{"text": one_line(sentence)} for sentence in self.sentences] or None,
            model_name=one_line(self.name) if results else None,
            eval_results=results or None,
        )
        return data.to_dict()

    def _results(self, dataset: str | None) -> Iterator[EvalResult]:
        """The scores as the Hub's leaderboards have them: like seqeval's and the Trainer's cards' between 0 and 1."""
        source = one_line(self.facts.data["source"])
        for split in self.judged:
            for measure, name in self.measures.items():
                values = [value / 100 for value in self._over_seeds(split.name, measure)]
                over = f", mean of {len(values)} seeds ± {stdev(values):.4f}" if self.others else ""
                yield EvalResult(
                    task_type="token-classification",
                    task_name="Named entity recognition" if self.finds_entities else "Token classification",
                    dataset_type=dataset or source,
                    dataset_name=source,
                    dataset_split=split.name,
                    dataset_revision=self.dataset_revision,
                    metric_type=measure,
                    metric_name=f"{name} (0 to 1{over})",
                    metric_value=round(mean(values), 6),
                )

    def text(self) -> str:
        """The whole card."""
        template = environment().get_template("card_template.md")
        return card_of(self.header(), template.render(card=self, curve_file=CURVE_FILE))


def _recipe_of(run: Facts) -> tuple[Any, ...]:
    """What runs that differ in their seed alone have in common."""
    options = {name: value for name, value in run.options.items() if name not in ("seed", "data_seed")}
    return options, run.data["fingerprint"], run.inputs


def _hub_name(name: str) -> str | None:
    return name if _HUB_NAME.fullmatch(name) else None
