"""The model card of a run, written from its recorded facts; what a user has changed in it stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

from ..errors import first_line
from ..files import sha256_of, write_whole
from ..tagger import Tagger
from ..training.facts import Facts
from ..training.model_files import files_of_model
from .card_content import CURVE_FILE, Card, model_card, renewed
from .checks import faults_of_places

CARD_FILE = "README.md"

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
_BLUE, _ORANGE = "#0072B2", "#E69F00"


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
        told: `licence`, `language`, `dataset_id`, `dataset_revision` and `base_models`: see `Card`.

    Returns:
        The card's path.

    Raises:
        ValueError: If facts are missing or not this model's, or the card that is there cannot be read.
    """
    folder = Path(os.path.realpath(folder))
    facts = _facts_in(folder)
    for fault in faults_of_places(folder, files_of_model(folder)):
        raise ValueError(fault)
    weights = folder / facts.model["file"]
    if not weights.is_file() or sha256_of(weights) != facts.model["sha256"]:
        raise ValueError(f"{weights}: not the weights that the facts beside them speak of; train the model again.")
    others = tuple(_facts_in(Path(other)) for other in seeds_of)
    name = name or folder.name
    card = Card(name, facts, others, **told)
    _text_of(card, folder)  # what is not in order is found before the model runs
    chosen = _examples(folder, sentences or SENTENCES)
    card = replace(
        card,
        usage=_usage(name, chosen[0]),
        output=_output(_usage(str(folder), chosen[0])),
        sentences=tuple(chosen),
        drawn=draw_curve(card, folder / CURVE_FILE),
    )
    return write_whole(folder / CARD_FILE, _text_of(card, folder))


def _text_of(card: Card, folder: Path) -> str:
    """Return the text of a card, with what was changed by hand in the one that is there."""
    path = folder / CARD_FILE
    text = card.text()
    try:
        if path.exists():
            text = renewed(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"), text)
        model_card(text)  # refuses metadata that the Hub would
    except ValueError as error:
        raise ValueError(f"{path}: {first_line(error)}; mend the card, or move it away.") from None
    return text


def _examples(folder: Path, sentences: Sequence[str]) -> list[str]:
    """Return the few sentences in which the model of a folder finds the greatest variety of types."""
    try:
        return varied(Tagger.from_pretrained(str(folder)), sentences)
    # For a config or a tokenizer of wrong types, transformers raises whatever comes of it.
    except Exception as error:
        raise ValueError(f"{folder}: the model cannot be used ({first_line(error)}); save it anew.") from error


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
    """The two lines that use a model."""
    made = f'pipeline("ner", {_quoted(model)}, trust_remote_code=True, aggregation_strategy="simple")'
    return f'from transformers import pipeline\nprint(*{made}({_quoted(sentence)}), sep="\\n")\n'


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
    return done.stdout.strip()


def draw_curve(card: Card, path: Path) -> bool:
    """Draw loss and validation score of every epoch, if matplotlib is there; say whether it was done."""
    curve, measure = card.facts.curve, card.decisive
    losses = [(row["epoch"], row["loss"]) for row in curve if "loss" in row]
    scores = [(row["epoch"], row["dev"][measure]) for row in curve if measure in row.get("dev", {})]
    if len(losses) < 2:
        return False
    try:  # it takes a second, and pyplot is not asked: see hf_xorner.evaluation.plots
        from matplotlib.figure import Figure
    except ImportError:
        return False

    figure = Figure((6.5, 3.5), layout="constrained")
    left = figure.subplots()
    left.plot(*zip(*losses, strict=True), color=_BLUE)
    left.set_xlabel("epoch")
    left.set_ylabel("loss", color=_BLUE)
    if scores:
        right = left.twinx()
        right.plot(*zip(*scores, strict=True), color=_ORANGE, linestyle="--")
        right.set_ylabel(f"{card.measures[measure]} on validation (%)", color=_ORANGE)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120, metadata={"Software": None})
    write_whole(path, picture.getvalue())
    return True
