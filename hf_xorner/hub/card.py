"""The model card of a run, written from its recorded facts; what a user has changed in it stays."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from markupsafe import Markup

from ..data.errors import first_line
from ..data.files import SPLITS
from ..data.fingerprints import file_fingerprint
from ..registration import CONFIGS, MODELS
from ..tagger import Tagger
from ..training.facts import Facts, write_whole
from .card_sections import card_of, renewed
from .card_text import code, environment, listed, one_line, shown
from .citations import PAPERS, bibtex

CARD_FILE = "README.md"
CURVE_FILE = "learning_curve.png"

#: Invented, and of many kinds of text, so that some of them show what a model finds.
SENTENCES = (
    "Marta Olsen flew from Oslo to Lisbon to meet the board of Fernbridge Bank .",
    "On Friday the Harrow Valley Rovers beat Dunmore United 3-1 in Port Ellery .",
    "@jonas_k anyone else watching The Lantern Keepers at the Roxton tonight ?",
    "The Quellan Institute in Geneva tested the Aurora X2 phone against its German rivals .",
    "Dr. Imran Vale gave 40 mg of velotrin to a patient with anaemia .",
    "President Adela Moreau will visit Japan in March 2031 with two French ministers .",
    "Tickets for Blue Harbour's concert in Berlin cost $45 on Monday at 7 p.m. .",
    "In 1887 the painter Tove Lindqvist finished Winter at Skagen for the Danish queen .",
    "The Marlow Act was passed by the Senate of Westmark on 4 May 1912 .",
    "The protein KRT99 binds to BRX2 in liver cells of mice .",
    "Hurricane Petra reached Cádiz , and Red Lantern Relief sent 12 ships .",
    "we saw Vinwen and Vorric again .",
    "we like Grorvi with Marta !",
)
_WIDGETS = 4

_RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_ACCURACY = {"accuracy": "accuracy"}
# With fewer entities than this, one more or less is over three points of recall.
_FEW = 30
_ROWS_OF_CURVE = 20
_BLUE, _ORANGE = "#0072B2", "#E69F00"
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

    def __post_init__(self) -> None:
        """Refuse what the Hub would, and runs that are not of one recipe."""
        if self.model_type not in CONFIGS:
            raise ValueError(f"{self.model_type!r} is none of the architectures {', '.join(CONFIGS)}.")
        if self.language is not None and not _LANGUAGE.fullmatch(self.language):
            raise ValueError(f"language={self.language!r} is no ISO 639 code; give one such as en.")
        if self.dataset_id is not None and not _HUB_NAME.fullmatch(self.dataset_id):
            raise ValueError(f"dataset_id={self.dataset_id!r} is no data set of the Hub; give owner/name.")
        for run in self.others:
            if _recipe_of(run) != _recipe_of(self.facts):
                raise ValueError(
                    f"the run of seed {run.seed} has other options, data or files; give runs of one recipe."
                )
        if len({run.seed for run in self.runs}) < len(self.runs):
            raise ValueError("two of the runs have the same seed; give each once, and this model's not again.")

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
        return "per_type" in self.facts.data["splits"]["train"]

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
    def judged(self) -> list[str]:
        """The splits that it was judged on."""
        return [name for name in self.splits if name in self.facts.scores]

    @property
    def spread_rows(self) -> list[list[Any]]:
        """Mean and sample deviation of every score over the seeds."""
        rows = []
        for split in self.judged:
            values = [[run.scores[split][measure] for run in self.runs] for measure in self.measures]
            rows.append([split, *(f"{mean(row):.2f} ± {stdev(row):.2f}" for row in values)])
        return rows

    def score_rows(self, split: str) -> list[list[Any]]:
        """The scores of a split: over all, as means, of surface forms, by type."""
        scores = self.facts.scores[split]
        rows = [("all", scores), ("mean of the types", scores.get("macro")), ("surface forms", scores.get("surface"))]
        return [self._scored(name, row) for name, row in [*rows, *sorted(scores.get("per_type", {}).items())] if row]

    def length_rows(self, split: str) -> list[list[Any]]:
        """The scores of a split by the lengths that its entities have."""
        lengths = self.facts.scores[split]["per_length"]
        return [self._scored(name, row) for name, row in sorted(lengths.items()) if row["support"]]

    def _scored(self, name: str, row: Mapping[str, Any]) -> list[Any]:
        return [name, *(row[measure] for measure in self.measures), *([row.get("support", "")] * self.finds_entities)]

    @property
    def limits(self) -> Iterator[Markup]:
        """What the scores of the last held-out split say against it."""
        if not self.finds_entities or not self.judged:
            return
        split = self.judged[-1]
        scores = self.facts.scores[split]
        types = {name: row for name, row in sorted(scores["per_type"].items()) if row["support"]}
        weakest = sorted(types, key=lambda name: types[name]["f1"])[: min(3, len(types) // 2)]
        if weakest:
            found = listed([Markup(f"{shown(name)} (F1 {types[name]['f1']:.2f})") for name in weakest])
            yield Markup(f"Weakest on {split}: {found}.")
        few = [Markup(f"{shown(name)} ({row['support']})") for name, row in types.items() if row["support"] < _FEW]
        if few:
            yield Markup(f"Scores of types with fewer than {_FEW} entities in {split} say little: {listed(few)}.")
        if unjudged := [name for name in self.labels if name not in types]:
            yield Markup(f"Without any entity in {split}, and so without a recall: {listed(unjudged)}.")
        lengths = scores.get("per_length", {})
        if (long := lengths.get("3+", {})).get("support"):
            yield Markup(f"Of the {long['support']:,} entities of {split} with more than 3 words it finds ") + Markup(
                f"{long['recall']:.2f} %."
            )
        if (surface := scores.get("surface")) and surface["support"]:
            yield Markup(
                f"Counting each distinct surface form of {split} once, its F1 is {surface['f1']:.2f}, "
                f"where over all mentions it is {scores['f1']:.2f}."
            )

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
            base_model=[name for base in bases if (name := _hub_name(base))] or None,
            metrics=[*self.measures],
            widget=[{"text": one_line(sentence)} for sentence in self.sentences] or None,
            model_name=one_line(self.name) if results else None,
            eval_results=results or None,
        )
        return data.to_dict()

    def _results(self, dataset: str | None) -> Iterator[EvalResult]:
        """The scores as the Hub's leaderboards have them: like seqeval's and the Trainer's cards' between 0 and 1."""
        source = one_line(self.facts.data["source"])
        over = f", mean of {len(self.runs)} seeds" if self.others else ""
        for split in self.judged:
            for measure, name in self.measures.items():
                yield EvalResult(
                    task_type="token-classification",
                    task_name="Named entity recognition" if self.finds_entities else "Token classification",
                    dataset_type=dataset or source,
                    dataset_name=source,
                    dataset_split=split,
                    dataset_revision=self.dataset_revision,
                    metric_type=measure,
                    metric_name=f"{name} (0 to 1{over})",
                    metric_value=round(mean(run.scores[split][measure] for run in self.runs) / 100, 6),
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


# --- Writing it ------------------------------------------------------------------------------------------------------


def write_card(
    folder: str | Path,
    seeds_of: Iterable[str | Path] = (),
    sentences: Sequence[str] = (),
    name: str | None = None,
    **told: Any,
) -> Path:
    """Write the card of a model beside it, as `README.md`; what was changed there by hand stays.

    The lines that use the model are run, and with them the Python files in its folder.

    Args:
        folder: The model's, with its facts.
        seeds_of: Folders of runs that differ in their seed alone.
        sentences: Examples to choose from, in place of the built-in ones.
        name: What the card calls the model; by default its folder's name.
        told: `licence`, `language`, `dataset_id` and `dataset_revision`: see `Card`.

    Returns:
        The card's path.

    Raises:
        ValueError: If facts are missing or not this model's, or the card that is there cannot be read.
    """
    folder = Path(folder).resolve()
    facts = _facts_in(folder)
    weights = folder / facts.model["file"]
    if not weights.is_file() or file_fingerprint(weights)["sha256"] != facts.model["sha256"]:
        raise ValueError(f"{weights}: not the weights that the facts beside them speak of; train the model again.")
    others = tuple(_facts_in(Path(other)) for other in seeds_of)
    name = name or folder.name
    card = Card(name, facts, others, **told)  # what is not in order comes out before the model runs
    chosen = varied(Tagger.from_pretrained(str(folder)), sentences or SENTENCES)
    card = replace(
        card,
        usage=_usage(name, chosen[0]),
        output=_output(_usage(str(folder), chosen[0])),
        sentences=tuple(chosen),
        drawn=draw_curve(card, folder / CURVE_FILE),
    )
    path = folder / CARD_FILE
    text = card.text()
    try:
        if path.exists():
            text = renewed(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"), text)
        ModelCard(text)  # refuses metadata that the Hub would
    except ValueError as error:
        raise ValueError(f"{path}: {first_line(error)}; mend the card, or move it away.") from None
    return write_whole(path, text)


def _facts_in(folder: Path) -> Facts:
    """The facts of a folder, without paths of a machine."""
    facts = Facts.read(folder)
    facts.to_json()
    return facts


def varied(tagger: Tagger, sentences: Sequence[str]) -> list[str]:
    """Of some sentences the few in which a tagger finds the greatest variety of types; one at least."""
    found = [{entity.label for entity in entities} for entities in tagger.tag(sentences)]
    chosen: list[int] = []
    seen: set[str] = set()
    while len(chosen) < _WIDGETS:
        best = max(range(len(sentences)), key=lambda number: (len(found[number] - seen), len(found[number])))
        if chosen and not found[best] - seen:
            break
        chosen.append(best)
        seen |= found[best]
    return [sentences[number] for number in chosen]


def _usage(model: str, sentence: str) -> str:
    """The lines that use a model."""
    return (
        "from transformers import pipeline\n\n"
        f'ner = pipeline("ner", model={_quoted(model)}, trust_remote_code=True, aggregation_strategy="simple")\n'
        f"for entity in ner({_quoted(sentence)}):\n"
        '    print((entity["entity_group"], entity["word"], entity["start"], entity["end"]))\n'
    )


def _quoted(text: str) -> str:
    """A text as Python has it."""
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)


def _output(lines: str) -> str:
    """What lines print that a stranger runs, who has neither network nor this package."""
    with tempfile.TemporaryDirectory() as elsewhere:
        offline = {"HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": elsewhere, "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, "-c", lines],
            cwd=elsewhere,
            env={**os.environ, **offline},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["it ended without a word"]
        raise ValueError(f"the model cannot be used as its card would say: {reason[0]}")
    return done.stdout


def draw_curve(card: Card, path: Path) -> bool:
    """Draw loss and validation score of every epoch, if matplotlib is there; say whether it was done."""
    curve, measure = card.facts.curve, card.decisive
    losses = [(row["epoch"], row["loss"]) for row in curve if "loss" in row]
    scores = [(row["epoch"], row["dev"][measure]) for row in curve if measure in row.get("dev", {})]
    if find_spec("matplotlib") is None or len(losses) < 2:
        return False
    from matplotlib.figure import Figure  # takes a second, and pyplot is not asked: see hf_xorner.evaluation.plots

    figure = Figure((6.5, 3.5), layout="constrained")
    left = figure.subplots()
    left.plot(*zip(*losses, strict=True), color=_BLUE)
    left.set_xlabel("epoch")
    left.set_ylabel("loss", color=_BLUE)
    if scores:
        right = left.twinx()
        right.plot(*zip(*scores, strict=True), color=_ORANGE, linestyle="--")
        right.set_ylabel(f"{card.measures[measure]} on validation (%)", color=_ORANGE)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
    return True
