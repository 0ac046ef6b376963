"""What a model card says, in one dataclass that the template is filled from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..corpora.splits import SPLITS
from ..registration import CONFIGS, MODELS
from ..training.facts import Facts

_SECTION = re.compile(
    r"^<!-- hf_xorner:begin (?P<name>\w+) (?P<digest>\w+) -->\n(?P<text>.*?)^<!-- hf_xorner:end (?P=name) -->$",
    re.MULTILINE | re.DOTALL,
)
_HEADER = re.compile(r"^<!-- hf_xorner:header (?P<keys>.*) -->\n", re.MULTILINE)
#: So many levels deep may the header be nested, and by these tokens of YAML is it.
_DEEPEST = 50
_OPENING = (
    *(yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken),
    *(yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken),
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
_MARK = re.compile(r"^(?=[ \t]*<!-- hf_xorner:)", re.MULTILINE)


def section(text: str, name: str) -> Markup:
    """Put a section of the card between its marks."""
    text = f"{text.strip()}\n"
    return Markup(f"<!-- hf_xorner:begin {name} {_digest(text)} -->\n{text}<!-- hf_xorner:end {name} -->\n")


def without_marks(text: str) -> str:
    """Lines of which none can be taken for a mark."""
    return _MARK.sub("# ", text)


def card_of(header: Mapping[str, Any], body: str) -> str:
    """Put a card together from its metadata and its sections."""
    header = yaml.safe_load(_dump(header))  # digests are of what will be read
    marks = " ".join(f"{key}={_digest(value)}" for key, value in header.items())
    return f"---\n{_dump(header)}---\n<!-- hf_xorner:header {marks} -->\n\n{body.strip()}\n"


def renewed(old: str, new: str) -> str:
    """Bring a card up to date.

    Sections and keys of the header that are as they were written are renewed; those that were changed stay, and so does
    everything else. A key that was removed stays away. A section that was removed comes back: it stays away when its
    marks are left with nothing between them. Comments inside the header are lost.

    Args:
        old: The card that is there.
        new: The same as it is written now.

    Raises:
        ValueError: If the header or the marks of sections are not in order.
    """
    old_header, remembered, body = _parts(old)
    header, digests, new_body = _parts(new)
    changed = {key: value for key, value in old_header.items() if remembered.get(key) != _digest(value)}
    removed = remembered.keys() - old_header.keys()
    header = {key: value for key, value in (header | changed).items() if key not in removed}
    marks = " ".join(f"{key}={digest}" for key, digest in digests.items())
    return f"---\n{_dump(header)}---\n<!-- hf_xorner:header {marks} -->\n{_sections_renewed(body, new_body)}"


def _sections_renewed(old: str, new: str) -> str:
    """Renew the sections of a body that were not changed, and add those that it lacks where they belong."""
    sections = {found["name"]: found[0] for found in _SECTION.finditer(new)}
    there = [found["name"] for found in _SECTION.finditer(old)]
    if len(_MARK.findall(old)) != 2 * len(there):
        raise ValueError("one of the marks <!-- hf_xorner:begin …, <!-- hf_xorner:end … has lost the other")
    body = _SECTION.sub(
        lambda found: sections.get(found["name"], "") if _digest(found["text"]) == found["digest"] else found[0], old
    )
    before = ""
    for name, text in sections.items():
        if name not in there:
            head, end, tail = body.partition(before) if before else (body.rstrip("\n"), "", "\n")
            body = f"{head}{end}\n\n{text}{tail}"
        before = f"<!-- hf_xorner:end {name} -->"
    return body


def model_card(text: str) -> ModelCard:
    """Return a card as the client of the Hub reads it.

    Raises:
        ValueError: If its header cannot be read.
    """
    _header_of(text)
    try:
        card = ModelCard(text)
        card.data.to_dict()
        return card
    # The client passes the keys of the header on as arguments, and looks for more below some of them.
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def _header_of(card: str) -> dict[str, Any]:
    """Read the header of a card: YAML of keys and values without tags, and without aliases, by which it may explode."""
    found = REGEX_YAML_BLOCK.search(card)
    depth = 0
    try:
        for token in yaml.scan(found[2] if found else ""):
            depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
            if isinstance(token, (yaml.AliasToken, yaml.TagToken)):
                line = token.start_mark.line + 2
                raise ValueError(f"line {line} has an alias or a tag of YAML; write the value out")
            if depth > _DEEPEST:
                raise ValueError(f"the header is nested more than {_DEEPEST} levels deep")
        header = (yaml.safe_load(found[2]) if found else None) or {}
    except (yaml.YAMLError, OverflowError):
        header = None
    if not isinstance(header, dict) or not all(isinstance(key, str) for key in header):
        raise ValueError("the header between the lines --- is not YAML of keys and values")
    return header


def _parts(card: str) -> tuple[dict[str, Any], dict[str, str], str]:
    """The header of a card, the digests of what was generated of it, and its body."""
    header = _header_of(card)
    found = REGEX_YAML_BLOCK.search(card)
    body = card[found.end() :] if found else card
    mark = _HEADER.search(body)
    keys = dict(pair.rpartition("=")[::2] for pair in mark["keys"].split()) if mark else {}
    return header, keys, _HEADER.sub("", body)


def _dump(header: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(header), sort_keys=False, allow_unicode=True, width=float("inf"))


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else yaml.safe_dump(value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# What has a meaning in Markdown or HTML: underscores unless inside a word, stops only in web addresses.
_MEANS = re.compile(r"""[&<>|\\`*\[\]{}~$:@#!^"]|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.""", re.IGNORECASE)
_PLAIN_CODE = re.compile(r"[^\s`|<>&\\]+(?: [^\s`|<>&\\]+)*")


def one_line(text: str) -> str:
    """A text with blanks in place of line breaks, and of what cannot be seen but may turn the direction of writing."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def shown(value: Any) -> Markup:
    """Any value as Markdown that shows it in one line; what is Markdown already stays so."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, int):
        return Markup(f"{value:,}")
    if isinstance(value, float):
        return Markup(f"{value:.2f}")
    return Markup(_MEANS.sub(lambda found: f"&#{ord(found[0])};", one_line(str(value))))


def code(value: Any) -> Markup:
    """A value in a line, as code."""
    text = one_line(str(value))
    return Markup(f"`{text}`" if _PLAIN_CODE.fullmatch(text) else f"<code>{shown(text)}</code>")


def fence(text: str, language: str) -> Markup:
    """Lines of code, fenced by more backticks than any of them has."""
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return Markup(f"{ticks}{language}\n{without_marks(lines)}\n{ticks}")


def listed(values: Iterable[Any]) -> Markup:
    """Values, separated by commas."""
    return Markup(", ").join(map(shown, values))


def table(heads: Sequence[Any], rows: Iterable[Sequence[Any]], numbers: bool = True) -> Markup:
    """A table; after its first column there are numbers, if so said."""
    rule = ["---", *["---:" if numbers else "---"] * (len(heads) - 1)]
    lines = [heads, [Markup(cell) for cell in rule], *rows]
    return Markup("\n".join(f"| {' | '.join(map(shown, cells))} |" for cells in lines))


def environment() -> Environment:
    """Where templates are filled in: `shown` is what becomes of everything that is put in."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # what macros and filters make is known as Markdown
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"section": section, "code": code, "fence": fence, "listed": listed}
    made.globals["table"] = table
    return made


# With fewer entities than this, one more or less is over three points of recall.
_FEW = 30
_CONFUSIONS = 5
_FATES = ("boundary", "boundary_and_type", "missed")


@dataclass(frozen=True)
class HeldOut:
    """What a model did on a split that it was not trained on; what the facts do not have has no rows.

    Args:
        name: The split's.
        scores: See `hf_xorner.training.facts.Facts`.
        measures: The keys of its scores: ratios and F1 of entities, or the accuracy of plain labels.
    """

    name: str
    scores: Mapping[str, Any]
    measures: tuple[str, ...]

    @property
    def by_type(self) -> list[list[Any]]:
        """The scores: over all, as means, of surface forms, and by type."""
        scores = self.scores
        rows = [("all", scores), ("mean of the types", scores.get("macro")), ("surface forms", scores.get("surface"))]
        return [self._row(name, row) for name, row in [*rows, *sorted(scores.get("per_type", {}).items())] if row]

    @property
    def by_length(self) -> list[list[Any]]:
        """The scores by the lengths that its entities have."""
        return [self._row(name, row) for name, row in sorted(self.scores["per_length"].items()) if row["support"]]

    @property
    def by_novelty(self) -> list[list[Any]]:
        """The scores of entities that are entities of the training data, and of the others."""
        names = {"seen": "known", "unseen": "new"}
        found = self.scores.get("seen", {})
        return [self._row(name, found[key]) for key, name in names.items() if key in found and found[key]["support"]]

    def _row(self, name: str, row: Mapping[str, Any]) -> list[Any]:
        return [name, *(row[measure] for measure in self.measures), *([row.get("support", "")] * self._has_entities)]

    @property
    def _has_entities(self) -> bool:
        return "per_type" in self.scores

    # --- Confidence

    @property
    def calibration(self) -> Mapping[str, Any] | None:
        """How far confidences can be trusted, if any entity was predicted."""
        found = self.scores.get("calibration")
        return found if found and found["count"] else None

    @property
    def calibration_rows(self) -> list[list[Any]]:
        """The entities that were predicted with confidences within the same bounds."""
        return [
            [f"{100 * row['lower']:g} to {100 * row['upper']:g}", row["confidence"], row["accuracy"], row["count"]]
            for row in (self.calibration or {"bins": ()})["bins"]
        ]

    # --- Errors

    @property
    def error_rows(self) -> list[list[Any]]:
        """What became of the entities of each type, and how many were predicted where there is none."""
        errors = self.scores.get("confusion")
        if not errors or not errors["support"]:
            return []
        rows = []
        for name in sorted(errors["support"]):
            exact = errors["matrix"].get(name, {})
            right = exact.get(name, 0)
            others = (errors[key].get(name, 0) for key in (*_FATES, "spurious"))
            rows.append([errors["support"][name], right, sum(exact.values()) - right, *others])
        return [[name, *row] for name, row in zip(sorted(errors["support"]), rows, strict=True)] + [
            ["all", *(sum(column) for column in zip(*rows, strict=True))]
        ]

    @property
    def confusions(self) -> list[Markup]:
        """The types that were most often taken for another."""
        matrix = self.scores.get("confusion", {}).get("matrix", {})
        pairs = [(n, gold, other) for gold, row in matrix.items() for other, n in row.items() if other != gold]
        pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
        return [Markup(f"{shown(gold)} as {shown(other)} ({shown(n)})") for n, gold, other in pairs[:_CONFUSIONS]]

    # --- What speaks against it

    def limits(self, labels: Sequence[str]) -> Iterator[Markup]:
        """What the scores say against the model, which knows types of entities."""
        types = {name: row for name, row in sorted(self.scores["per_type"].items()) if row["support"]}
        weakest = sorted(types, key=lambda name: types[name]["f1"])[: min(3, len(types) // 2)]
        if weakest:
            found = listed([Markup(f"{shown(name)} (F1 {types[name]['f1']:.2f})") for name in weakest])
            yield Markup(f"Weakest on {self.name}: {found}.")
        few = [Markup(f"{shown(name)} ({row['support']})") for name, row in types.items() if row["support"] < _FEW]
        if few:
            yield Markup(f"Scores of types with fewer than {_FEW} entities in {self.name} say little: {listed(few)}.")
        if unjudged := [name for name in labels if name not in types]:
            yield Markup(f"Without any entity in {self.name}, and so without a recall: {listed(unjudged)}.")
        if (long := self.scores.get("per_length", {}).get("3+", {})).get("support"):
            yield Markup(
                f"Of the {long['support']:,} entities of {self.name} with more than 3 words "
                f"it finds {long['recall']:.2f} %."
            )
        novelty = self.scores.get("seen", {})
        if novelty and all(row["support"] for row in novelty.values()):
            seen, unseen = (novelty[key]["recall"] for key in ("seen", "unseen"))
            yield Markup(
                f"Of the entities of {self.name} that are entities of the training data too it finds {seen:.2f} %, "
                f"of the others {unseen:.2f} %."
            )
        if (surface := self.scores.get("surface")) and surface["support"]:
            yield Markup(
                f"Counting each distinct surface form of {self.name} once, its F1 is {surface['f1']:.2f}, "
                f"where over all mentions it is {self.scores['f1']:.2f}."
            )


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
        return self.bibtex.partition("{")[2].partition(",")[0]

    @property
    def bibtex(self) -> str:
        """The BibTeX of that paper."""
        return CONFIGS[self.model_type].citation

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
            tags=[*tags, MODELS[self.model_type].__name__],
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
