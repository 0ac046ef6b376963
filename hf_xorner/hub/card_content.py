"""The content of a model card: its text by sections, its metadata, and how an edited card is brought up to date."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
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

CURVE_FILE = "learning_curve.png"

_HERE = Path(__file__).parent
_DEEPEST = 100
_OPENING = (
    *(yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken, yaml.BlockSequenceStartToken),
    yaml.BlockMappingStartToken,
)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
_SECTION = re.compile(
    r"^<!-- hf_xorner:begin (?P<name>\w+) (?P<digest>\w+) -->\n(?P<text>.*?)^<!-- hf_xorner:end (?P=name) -->$",
    re.MULTILINE | re.DOTALL,
)
_HEADER = re.compile(r"^<!-- hf_xorner:header (?P<keys>.*) -->\n", re.MULTILINE)
_MARK = re.compile(r"^(?=[ \t]*<!-- hf_xorner:)", re.MULTILINE)

# Characters with a meaning in Markdown or HTML: underscores unless inside a word, full stops only in web addresses.
_MARKUP = re.compile(r"""[&<>|\\`*\[\]{}~$:@#!^"]|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.""", re.IGNORECASE)
_PLAIN_CODE = re.compile(r"[^\s`|<>&\\]+(?: [^\s`|<>&\\]+)*")

# With fewer entities than this, one entity more or less changes recall by over three points.
_FEW = 30
_CONFUSIONS = 5
_ROWS_OF_CURVE = 20
_RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_ACCURACY = {"accuracy": "accuracy"}
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}|code|multilingual")


# --- Editing ---------------------------------------------------------------------------------------------------------


def renewed(old: str, new: str) -> str:
    """Bring a card up to date, and keep what a user has edited.

    Sections and header keys that are as they were generated are replaced; everything else stays. A removed header key
    stays away; a removed section comes back, unless its empty marks are left. Comments in the header are lost.

    Args:
        old: The existing card.
        new: The newly generated one.

    Raises:
        ValueError: If the header or the marks of sections are broken.
    """
    old_header, generated, body = _parts(old)
    header, digests, new_body = _parts(new)
    edited = {key: value for key, value in old_header.items() if generated.get(key) != _digest(value)}
    removed = generated.keys() - old_header.keys()
    header = {key: value for key, value in (header | edited).items() if key not in removed}
    return _assembled(header, digests, _sections_renewed(body, new_body))


def _sections_renewed(old: str, new: str) -> str:
    """Replace the unedited sections of a body, and insert the missing ones after those that precede them."""
    sections = {found["name"]: found[0] for found in _SECTION.finditer(new)}
    there = [found["name"] for found in _SECTION.finditer(old)]
    if len(_MARK.findall(old)) != 2 * len(there):
        raise ValueError("a mark <!-- hf_xorner:begin … or <!-- hf_xorner:end … has lost its counterpart")
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
    """Parse a card with the Hub's client.

    Raises:
        ValueError: If its header is invalid.
    """
    _header_of(text)
    try:
        card = ModelCard(text)
        card.data.to_dict()
        return card
    # The client passes the keys of the header on as arguments, and looks up further keys in some of the values.
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def _header_of(card: str) -> dict[str, Any]:
    """Read the YAML header of a card. Tags are refused, and aliases, whose expansion may grow exponentially."""
    found = REGEX_YAML_BLOCK.search(card)
    if not found:
        return {}
    try:
        depth = 0
        for token in yaml.scan(found[2]):
            if isinstance(token, (yaml.AliasToken, yaml.TagToken)):
                raise ValueError(
                    f"line {token.start_mark.line + 2} has an alias or a tag of YAML; write the value itself"
                )
            # Reading is quadratic in the depth.
            depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
            if depth > _DEEPEST:
                raise RecursionError
        header = yaml.safe_load(found[2]) or {}
        _dump(header)  # takes more of the stack than reading
    except RecursionError:
        raise ValueError("the header is nested too deeply") from None
    except (yaml.YAMLError, OverflowError):
        header = None
    if not isinstance(header, dict) or not all(isinstance(key, str) for key in header):
        raise ValueError("the header between the lines --- is not YAML of keys and values")
    return header


def _parts(card: str) -> tuple[dict[str, Any], dict[str, str], str]:
    """Split a card into its header, the digests of the generated header values, and its body."""
    header = _header_of(card)
    body = REGEX_YAML_BLOCK.sub("", card, count=1)
    mark = _HEADER.search(body)
    digests = dict(pair.rpartition("=")[::2] for pair in mark["keys"].split()) if mark else {}
    return header, digests, _HEADER.sub("", body)


def _assembled(header: Mapping[str, Any], digests: Mapping[str, str], body: str) -> str:
    marks = " ".join(f"{key}={digest}" for key, digest in digests.items())
    return f"---\n{_dump(header)}---\n<!-- hf_xorner:header {marks} -->\n{body}"


def _dump(header: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(header), sort_keys=False, allow_unicode=True, width=float("inf"))


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else yaml.safe_dump(value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- Markdown --------------------------------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Replace line breaks, and characters that are invisible or change the direction of text, by spaces."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def shown(value: Any) -> Markup:
    """Return a value as one line of escaped Markdown; `Markup` is left as it is."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, (int, float)):
        return Markup(f"{value:,}" if isinstance(value, int) else f"{value:.2f}")
    return Markup(_MARKUP.sub(lambda found: f"&#{ord(found[0])};", one_line(str(value))))


def code(value: Any) -> Markup:
    """Return a value as inline code."""
    text = one_line(str(value))
    return Markup(f"`{text}`" if _PLAIN_CODE.fullmatch(text) else f"<code>{shown(text)}</code>")


def fence(text: str, language: str) -> Markup:
    """Return lines as a code block, whose fence is longer than any run of backticks in them."""
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return Markup(f"{ticks}{language}\n{_MARK.sub('# ', lines)}\n{ticks}")


def _section(text: str, name: str) -> Markup:
    """Put a section of the card between its marks."""
    text = f"{text.strip()}\n"
    return Markup(f"<!-- hf_xorner:begin {name} {_digest(text)} -->\n{text}<!-- hf_xorner:end {name} -->\n")


def _supported(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the rows that have entities, sorted by name."""
    return {name: row for name, row in sorted(rows.items()) if row["support"]}


def error_rows(errors: Mapping[str, Any]) -> list[list[Any]]:
    """Return the outcomes of the entities of each type, with their sum as the last row; `errors` as in `Facts`."""
    rows = []
    for name in sorted(errors.get("support", ())):
        predicted = errors["matrix"].get(name, {})
        right = predicted.get(name, 0)
        others = (errors[key].get(name, 0) for key in ("boundary", "boundary_and_type", "missed", "spurious"))
        rows.append([name, errors["support"][name], right, sum(predicted.values()) - right, *others])
    return rows and [*rows, ["all", *(sum(column) for column in [*zip(*rows, strict=True)][1:])]]


def _confusions(errors: Mapping[str, Any]) -> list[tuple[int, str, str]]:
    """Return count, gold type and predicted type of the most frequent confusions."""
    pairs = [(n, gold, other) for gold, row in errors["matrix"].items() for other, n in row.items() if other != gold]
    return sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))[:_CONFUSIONS]


def _rendered(card: Card) -> str:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,  # so that the output of macros and filters is Markup
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "section": _section,
        "code": code,
        "fence": fence,
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "listed": lambda values: Markup(", ").join(map(shown, values)),
        "supported": _supported,
        "error_rows": error_rows,
        "confusions": _confusions,
    }
    return environment.get_template("card_template.md").render(card=card, curve_file=CURVE_FILE, few=_FEW)


# --- The card --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Card:
    """Everything that a model card shows.

    Args:
        name: The name of the model: a Hub repository or a folder.
        facts: The facts of its training run.
        others: The facts of runs that differ only in their seed.
        usage: The usage snippet.
        output: Its output.
        sentences: Examples for the Hub's widget.
        drawn: Whether there is a picture of the learning curve.
        licence: The licence, as the Hub spells it.
        language: The language of the text, an ISO 639 code.
        dataset_id: The dataset on the Hub.
        dataset_revision: Its commit.
        base_models: Encoders on the Hub, if the facts only have the name of a folder.
    """

    name: str
    facts: Any
    others: tuple[Any, ...] = ()
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
        """Refuse values that the Hub would refuse, incomplete facts, and runs of different recipes."""
        if self.model_type not in CONFIGS:
            raise ValueError(f"{self.model_type!r} is unknown; the architectures are {', '.join(CONFIGS)}.")
        if self.language is not None and not _LANGUAGE.fullmatch(self.language):
            raise ValueError(f"language={self.language!r} is not an ISO 639 code; give one such as en.")
        names = [("dataset_id", self.dataset_id), *(("base_model", name) for name in self.base_models)]
        for option, name in names:
            if name is not None and not _HUB_NAME.fullmatch(name):
                raise ValueError(f"{option}={name!r} is not a repository on the Hub; give owner/name.")
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
            raise ValueError("two runs have the same seed; give each run once, and not the one of this model.")

    def _check_facts(self, run: Any) -> None:
        """Refuse facts that lack counts or scores."""
        counts = ("entities", "per_type") if self.finds_entities else ("per_tag",)
        scores = (*self.measures, "per_type", "per_length") if self.finds_entities else tuple(self.measures)
        places = [("data.splits", run.data["splits"], counts), ("scores", run.scores, scores)]
        missing = ["data.splits.train"] if "train" not in run.data["splits"] else []
        missing += [
            f"{place}.{split}.{key}"
            for place, splits, keys in places
            for split, found in splits.items()
            for key in keys
            if key not in found
        ]
        if missing:
            raise ValueError(f"the facts of seed {run.seed} lack {missing[0]}; train it again.")
        if not all(re.fullmatch("[0-9]{1,9}", key) for key in run.config["id2label"]):
            raise ValueError(f"the facts of seed {run.seed} have labels without a number in config.id2label.")

    @property
    def model_type(self) -> str:
        """The architecture."""
        return self.facts.config["model_type"]

    @property
    def summary(self) -> Markup:
        """The first line of the config's docstring."""
        return Markup((CONFIGS[self.model_type].__doc__ or "").splitlines()[0])

    @property
    def paper(self) -> str:
        """The key of the architecture's paper."""
        return self.bibtex.partition("{")[2].partition(",")[0]

    @property
    def bibtex(self) -> str:
        """The BibTeX entry of that paper."""
        return CONFIGS[self.model_type].citation

    @property
    def labels(self) -> list[str]:
        """The entity types, or the labels themselves if they are plain."""
        labels = [label for _, label in sorted(self.facts.config["id2label"].items(), key=lambda item: int(item[0]))]
        if not self.finds_entities:
            return labels
        return list(dict.fromkeys(label[2:] for label in labels if label != "O"))

    @property
    def finds_entities(self) -> bool:
        """Return whether the labels mark spans."""
        return "per_type" in self.facts.data["splits"].get("train", {})

    @property
    def runs(self) -> list[Any]:
        """The runs of all seeds."""
        return sorted((self.facts, *self.others), key=lambda run: run.seed)

    @property
    def splits(self) -> dict[str, Mapping[str, Any]]:
        """The counts of each split of the dataset."""
        found = self.facts.data["splits"]
        return {name: found[name] for name in SPLITS if name in found}

    @property
    def label_rows(self) -> list[list[Any]]:
        """The count of each entity type, or plain label, in each split."""
        counts = [split["per_type" if self.finds_entities else "per_tag"] for split in self.splits.values()]
        return [[name, *(count.get(name, 0) for count in counts)] for name in sorted(set().union(*counts))]

    @property
    def duration(self) -> str:
        """The training time."""
        seconds = self.facts.speed["training_seconds"]
        if seconds < 120:
            return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.2f} seconds"
        minutes = round(seconds / 60)
        return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours {minutes % 60} minutes"

    @property
    def curve_rows(self) -> list[list[Any]]:
        """A limited number of epochs of the learning curve, with the last and the best."""
        curve, measure = self.facts.curve, self.decisive
        best = max(curve, key=lambda row: row.get("dev", {}).get(measure, -1), default=None)
        step = -(-len(curve) // _ROWS_OF_CURVE) or 1
        return [
            [f"{row['epoch']:g}", f"{row['loss']:.4g}" if "loss" in row else "", row.get("dev", {}).get(measure, "")]
            for number, row in enumerate(curve, 1)
            if number % step == 0 or row is curve[-1] or row is best
        ]

    @property
    def measures(self) -> dict[str, str]:
        """The names of the scores, by their keys in the facts; the last one decides."""
        return _RATIOS if self.finds_entities else _ACCURACY

    @property
    def decisive(self) -> str:
        """The key of the score that training selects by."""
        return [*self.measures][-1]

    @property
    def judged(self) -> dict[str, Mapping[str, Any]]:
        """The scores of each held-out split."""
        return {name: self.facts.scores[name] for name in self.splits if name in self.facts.scores}

    @property
    def spread_rows(self) -> list[list[Any]]:
        """The mean and sample deviation of every score over the seeds."""
        values = {split: [self._over_seeds(split, measure) for measure in self.measures] for split in self.judged}
        return [[split, *(f"{mean(row):.2f} ± {stdev(row):.2f}" for row in rows)] for split, rows in values.items()]

    def _over_seeds(self, split: str, measure: str) -> list[float]:
        return [run.scores[split][measure] for run in self.runs]

    def text(self) -> str:
        """Return the whole card."""
        header = yaml.safe_load(_dump(self._header()))  # digests are of the values as they are read
        digests = {key: _digest(value) for key, value in header.items()}
        return _assembled(header, digests, f"\n{_rendered(self).strip()}\n")

    def _header(self) -> dict[str, Any]:
        """Return the metadata of the card, in the form of the Hub's client."""
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
        """Yield the scores for the Hub's leaderboards, between 0 and 1 as in the Trainer's cards."""
        source = one_line(self.facts.data["source"])
        for split in self.judged:
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


def _recipe_of(run: Any) -> tuple[Any, ...]:
    """Return what runs that differ only in their seed have in common."""
    options = {name: value for name, value in run.options.items() if name not in ("seed", "data_seed")}
    return options, run.data["fingerprint"], run.data.get("more_data"), run.inputs


def _hub_name(name: str) -> str | None:
    return name if _HUB_NAME.fullmatch(name) else None
