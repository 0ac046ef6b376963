"""Write the model card from the facts of the training run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from transformers.utils import SAFE_WEIGHTS_NAME

from ..corpora.splits import SPLITS
from ..evaluation.plots import CURVE_FILE, draw_curve
from ..files import CARD_FILE, FACTS_FILE, HUB_NAME, PACKAGED, sha256_of, write_whole
from ..registration import CONFIGS, MODELS
from ..tagger import Tagger
from ..training.facts import AGREEMENT, read_facts, whole_facts
from ..vectors.distill import ORIGIN, START
from .checks import published_files, run_without_package

#: Invented sentences of news and tweets; a card that `publish` writes by itself has no text of the corpus.
SENTENCES = (
    "Marta Olsen flew from Oslo to Lisbon to meet the board of Fernbridge Bank .",
    "@jonas_k anyone else watching The Lantern Keepers at the Roxton tonight ?",
    "The Quellan Institute in Geneva tested the Aurora X2 phone against its German rivals .",
    "The Marlow Act was passed by the Senate of Westmark on 4 May 1912 .",
)
_EXAMPLES = 4
# With fewer entities than this, a single entity changes recall by over three points.
_FEW = 30
_CONFUSIONS = 5

# Characters with a meaning in Markdown or HTML; also underscores outside of words and the full stop after "www".
_MARKUP = re.compile(r"""[&<>|\\`*\[\]{}~$:@#!^"]|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.""", re.IGNORECASE)
_PLAIN_CODE = re.compile(r"[^\s`|<>&\\]+(?: [^\s`|<>&\\]+)*")


def write_card(
    folder: str | Path,
    seeds_of: Iterable[str | Path] = (),
    sentences: Sequence[str] = (),
    name: str | None = None,
    overwrite: bool = False,
    **metadata: Any,
) -> Path:
    """Write `README.md` and the picture of the learning curve into a model's folder.

    The usage snippet is run with the Python files of the folder, which must equal those of this package.

    Args:
        folder: The model's folder, with its facts.
        seeds_of: Folders of runs that only differ in their seed.
        sentences: Sentences from which examples are chosen; by default the built-in ones.
        name: The model's name; by default the name of its folder.
        overwrite: Replace an existing card.
        metadata: `license`, `language`, `dataset_id`, `dataset_revision` and `base_models`: see `Card`.

    Returns:
        The card's path.

    Raises:
        ValueError: If there already is a card, the facts are those of another model, or the model does not work.
    """
    folder = Path(folder)
    if (folder / CARD_FILE).exists() and not overwrite:
        raise ValueError(f"{folder / CARD_FILE} exists; move it away, or replace it by --overwrite.")
    names = published_files(folder)
    facts = read_facts(folder)
    if sha256_of(folder / SAFE_WEIGHTS_NAME) != facts["model"].get("sha256"):
        raise ValueError(f"{folder}: the weights are not those of {FACTS_FILE}; train the model again.")
    with whole_facts(folder):
        card = Card(name or folder.resolve().name, facts, tuple(map(read_facts, seeds_of)), **metadata)
        card.text()
        card = replace(card, has_curve=draw_curve(facts["curve"], folder / CURVE_FILE))
    # Without a minimum score, as in the pipeline of the snippet.
    chosen = choose_examples(Tagger.from_pretrained(str(folder), min_score=0), sentences or SENTENCES)
    card = replace(
        card,
        usage=_usage(card.name, chosen[0]),
        output=run_without_package(_usage("model", chosen[0]), folder, names).strip(),
        sentences=tuple(chosen),
    )
    return write_whole(folder / CARD_FILE, card.text())


def choose_examples(tagger: Tagger, sentences: Sequence[str]) -> list[str]:
    """Choose the sentences with the most types of entities, at most `_EXAMPLES`."""
    found = dict(zip(sentences, tagger(sentences), strict=True))
    return sorted(sentences, key=lambda text: -len({entity.label for entity in found[text]}))[:_EXAMPLES]


def _usage(model: str, sentence: str) -> str:
    """Return the usage snippet."""
    call = f'pipeline("ner", {_quoted(model)}, trust_remote_code=True, aggregation_strategy="simple")'
    return f'from transformers import pipeline\nprint(*{call}({_quoted(sentence)}), sep="\\n")'


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)


@dataclass(frozen=True)
class Card:
    """The content of a model card.

    Args:
        name: The name of the model: a Hub repository or a folder.
        facts: The facts of its training run.
        others: The facts of runs that only differ in their seed.
        usage: The usage snippet.
        output: Its output.
        sentences: Examples for the Hub's widget.
        drawn: True if there is a picture of the learning curve.
        license: The license, by its id on the Hub.
        language: The language of the text, an ISO 639 code.
        dataset_id: The dataset on the Hub.
        dataset_revision: Its commit.
        base_models: Encoders on the Hub, if the facts only name their folders.
    """

    name: str
    facts: Mapping[str, Any]
    others: tuple[Mapping[str, Any], ...] = ()
    usage: str = ""
    output: str = ""
    sentences: tuple[str, ...] = ()
    has_curve: bool = False
    license: str | None = None
    language: str | None = None
    dataset_id: str | None = None
    dataset_revision: str | None = None
    base_models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise if the runs have different recipes or the same seed."""
        if any(_recipe_of(run) != _recipe_of(self.facts) for run in self.others):
            raise ValueError(
                "the runs have different options, data or files; give runs that only differ in their seed."
            )
        if len({run["seed"] for run in self.runs}) < len(self.runs):
            raise ValueError("two runs have the same seed; give each run once, and not the one of this model.")

    @property
    def model_type(self) -> str:
        """The architecture."""
        return self.facts["config"]["model_type"]

    @property
    def summary(self) -> Markup:
        """The first line of the config's docstring."""
        return Markup((CONFIGS[self.model_type].__doc__ or "").splitlines()[0])

    @property
    def bibtex(self) -> str:
        """The BibTeX entry of the architecture's paper."""
        return CONFIGS[self.model_type].citation

    @property
    def labels(self) -> list[str]:
        """The entity types, or the labels themselves if they are plain."""
        names = self.facts["config"]["id2label"]
        labels = [names[number] for number in sorted(names, key=int)]
        return list(dict.fromkeys(label[2:] for label in labels if label != "O")) if self.finds_entities else labels

    @property
    def finds_entities(self) -> bool:
        """True if the labels mark spans."""
        return "per_type" in self.facts["data"]["splits"]["train"]

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """The runs of all seeds."""
        return sorted((self.facts, *self.others), key=lambda run: run["seed"])

    @property
    def splits(self) -> dict[str, Mapping[str, Any]]:
        """The counts of each split of the dataset."""
        splits = self.facts["data"]["splits"]
        return {name: splits[name] for name in SPLITS if name in splits}

    @property
    def label_rows(self) -> list[list[Any]]:
        """The count of each entity type, or plain label, in each split."""
        counts = [split["per_type" if self.finds_entities else "per_tag"] for split in self.splits.values()]
        return [[name, *(count.get(name, 0) for count in counts)] for name in sorted(set().union(*counts))]

    @property
    def measures(self) -> dict[str, str]:
        """The names of the scores, by their keys in the facts; the last one is the main score."""
        if not self.finds_entities:
            return {"accuracy": "accuracy"}
        return {"precision": "precision", "recall": "recall", "f1": AGREEMENT if self.teachers else "F1"}

    @property
    def teachers(self) -> list[str]:
        """The teachers whose labels are those of the whole corpus."""
        return self.facts["data"].get("labelled_by", [])

    @property
    def held_out_scores(self) -> dict[str, Mapping[str, Any]]:
        """The scores of each held-out split."""
        return {name: self.facts["scores"][name] for name in self.splits if name in self.facts["scores"]}

    @property
    def spread_rows(self) -> list[list[Any]]:
        """The mean and sample deviation of every score over the seeds."""
        values = {
            split: [self._over_seeds(split, measure) for measure in self.measures] for split in self.held_out_scores
        }
        return [[split, *(f"{mean(row):.2f} ± {stdev(row):.2f}" for row in rows)] for split, rows in values.items()]

    def _over_seeds(self, split: str, measure: str) -> list[float]:
        return [run["scores"][split][measure] for run in self.runs]

    def text(self) -> str:
        """Return the whole card.

        `ModelCard.from_template` would neither escape values nor know filters.
        """
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=True,  # so that the output of macros and filters is Markup
            finalize=shown,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "code": code,
            "json": lambda value: json.dumps(value, ensure_ascii=False),
            "listed": lambda values: Markup(", ").join(map(shown, values)),
            "supported": _supported,
            "error_rows": error_rows,
            "confusions": _confusions,
        }
        names = {"curve_file": CURVE_FILE, "few": _FEW, "origin": ORIGIN, "packaged": PACKAGED, "trained_start": START}
        body = environment.get_template("card_template.md").render(card=self, **names)
        body = re.sub(r"\n{3,}", "\n\n", body.strip())
        return f"---\n{self._metadata().to_yaml()}\n---\n\n{body}\n"

    def _metadata(self) -> ModelCardData:
        dataset = self.dataset_id or _hub_name(self.facts["data"]["source"])
        inputs = self.facts["inputs"]
        bases = [inputs[option]["name"] for option in ("model_name_or_path", "context") if option in inputs]
        if self.facts["options"].get("vectors") == "auto":
            bases.append(ORIGIN)
        tags = ["hf_xorner", *(["named-entity-recognition"] if self.finds_entities else []), self.model_type]
        results = list(self._results(dataset))
        return ModelCardData(
            language=self.language,
            license=self.license,
            library_name="transformers",
            pipeline_tag="token-classification",
            tags=[*tags, MODELS[self.model_type].__name__],
            datasets=[dataset] if dataset else None,
            base_model=list(dict.fromkeys([*self.base_models, *filter(None, map(_hub_name, bases))])) or None,
            metrics=[*self.measures],
            widget=[{"text": one_line(sentence)} for sentence in self.sentences] or None,
            model_name=one_line(self.name) if results else None,
            eval_results=results or None,
        )

    def _results(self, dataset: str | None) -> Iterator[EvalResult]:
        """Yield the scores for the Hub's leaderboards, between 0 and 1 as in the Trainer's cards."""
        source = one_line(self.facts["data"]["source"])
        for split in self.held_out_scores:
            for measure, name in self.measures.items():
                values = [value / 100 for value in self._over_seeds(split, measure)]
                over = f", mean of {len(values)} seeds ± {stdev(values):.4f}" if self.others else ""
                yield EvalResult(
                    task_type="token-classification",
                    task_name="Named entity recognition" if self.finds_entities else "Token classification",
                    dataset_type=dataset or source,
                    dataset_name=source,
                    dataset_split=split,
                    dataset_revision=self.dataset_revision,
                    metric_type=measure,
                    metric_name=f"{name} (0 to 1{over})",
                    metric_value=round(mean(values), 6),
                )


def _recipe_of(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the properties that runs with different seeds have in common."""
    options = {name: value for name, value in run["options"].items() if name not in ("seed", "data_seed")}
    return options, run["data"]["fingerprint"], run["data"].get("more_data"), run["inputs"]


def _hub_name(name: str) -> str | None:
    repository = name.partition(":")[0]
    return repository if re.fullmatch(HUB_NAME, repository, re.ASCII) else None


# --- Filters of the template -----------------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Replace line breaks, and characters that are invisible or change the direction of text, by spaces."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def shown(value: Any) -> Markup:
    """Return a value as one line of escaped Markdown; `Markup` is left as it is."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, (int, float)):
        return Markup(f"{value:,}" if isinstance(value, int) else f"{value:.2f}")
    return Markup(_MARKUP.sub(lambda match: f"&#{ord(match[0])};", one_line(str(value))))


def code(value: Any) -> Markup:
    """Return a value as inline code."""
    text = one_line(str(value))
    return Markup(f"`{text}`" if _PLAIN_CODE.fullmatch(text) else f"<code>{shown(text)}</code>")


def _supported(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the rows that have entities, sorted by name."""
    return {name: row for name, row in sorted(rows.items()) if row["support"]}


def error_rows(errors: Mapping[str, Any]) -> list[list[Any]]:
    """Return the outcomes of the entities of each type, with their sum as the last row."""
    rows = []
    for number, name in enumerate(errors.get("types", ())):
        predicted = errors["matrix"][number]
        right = predicted[number]
        others = (errors[key].get(name, 0) for key in ("boundary", "boundary_and_type", "missed", "spurious"))
        rows.append([name, errors["support"][name], right, sum(predicted) - right, *others])
    return rows and [*rows, ["all", *(sum(column) for column in [*zip(*rows, strict=True)][1:])]]


def _confusions(errors: Mapping[str, Any]) -> list[tuple[int, str, str]]:
    """Return count, gold type and predicted type of the most frequent confusions."""
    types = errors["types"]
    counts = zip(chain.from_iterable(errors["matrix"]), product(types, types), strict=True)
    pairs = [(count, gold, predicted) for count, (gold, predicted) in counts if count and predicted != gold]
    return sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))[:_CONFUSIONS]
