"""Write the model card of a run from its facts, and keep a user's edits."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..errors import first_line
from ..files import sha256_of, write_whole
from ..tagger import Tagger
from ..training.facts import read_facts
from ..training.model_files import CARD, files_of_model
from .card_content import CURVE_FILE, Card, model_card, renewed
from .checks import faults_of_places
from .loading import last_error, run_offline

#: Invented sentences of many kinds of text, so that every model finds something in some of them.
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
_EXAMPLES = 4


def write_card(
    folder: str | Path,
    seeds_of: Iterable[str | Path] = (),
    sentences: Sequence[str] = (),
    name: str | None = None,
    **options: Any,
) -> Path:
    """Write `README.md` into a model's folder, and keep what was edited in an existing one.

    The usage snippet is run, and with it the Python files in the folder.

    Args:
        folder: The model's folder, with its facts.
        seeds_of: Folders of runs that differ only in their seed.
        sentences: Sentences to choose examples from; by default the built-in ones.
        name: The model's name; by default that of its folder.
        options: `licence`, `language`, `dataset_id`, `dataset_revision` and `base_models`: see `Card`.

    Returns:
        The card's path.

    Raises:
        ValueError: If facts are missing or of another model, or the existing card cannot be read.
    """
    folder = Path(os.path.realpath(folder))
    facts = _facts_in(folder)
    for fault in faults_of_places(folder, files_of_model(folder)):
        raise ValueError(fault)
    weights = folder / facts.model["file"]
    if not weights.is_file() or sha256_of(weights) != facts.model["sha256"]:
        raise ValueError(f"{weights}: the weights are not those of {folder / 'facts.json'}; train the model again.")
    name = name or folder.name
    card = Card(name, facts, tuple(_facts_in(Path(other)) for other in seeds_of), **options)
    _text_of(card, folder)  # raises before the model is run
    chosen = _examples(folder, sentences or SENTENCES)
    card = replace(
        card,
        usage=_usage(name, chosen[0]),
        output=_output(_usage(str(folder), chosen[0])),
        sentences=tuple(chosen),
        drawn=draw_curve(card, folder / CURVE_FILE),
    )
    return write_whole(folder / CARD, _text_of(card, folder))


def _facts_in(folder: Path) -> Any:
    return SimpleNamespace(**read_facts(folder))


def _text_of(card: Card, folder: Path) -> str:
    """Return the text of a card, with the edits of the existing one."""
    path = folder / CARD
    text = card.text()
    try:
        if path.exists():
            text = renewed(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"), text)
        model_card(text)
    except ValueError as error:
        raise ValueError(f"{path}: {first_line(error)}; correct the card, or move it away.") from None
    return text


def _examples(folder: Path, sentences: Sequence[str]) -> list[str]:
    try:
        return varied(Tagger.from_pretrained(str(folder), min_score=0), sentences)  # as the pipeline of the example
    # transformers raises many types of errors for wrong types in a config or a tokenizer.
    except Exception as error:
        raise ValueError(f"{folder}: the model cannot be used ({first_line(error)}); save it again.") from error


def varied(tagger: Tagger, sentences: Sequence[str]) -> list[str]:
    """Choose a few sentences, at least one, that show many types of entities."""
    found = [{entity.label for entity in entities} for entities in tagger.tag(sentences)]
    chosen: list[int] = []
    seen: set[str] = set()
    while len(chosen) < _EXAMPLES:
        best = max(range(len(sentences)), key=lambda number: (len(found[number] - seen), len(found[number])))
        if chosen and not found[best] - seen:
            break
        chosen.append(best)
        seen |= found[best]
    return [sentences[number] for number in chosen]


def _usage(model: str, sentence: str) -> str:
    """Return the usage snippet."""
    call = f'pipeline("ner", {_quoted(model)}, trust_remote_code=True, aggregation_strategy="simple")'
    return f'from transformers import pipeline\nprint(*{call}({_quoted(sentence)}), sep="\\n")\n'


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)


def _output(code: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        done = run_offline(code, Path(scratch))
    if done.returncode:
        raise ValueError(f"the usage snippet of the card fails: {last_error(done)}")
    return done.stdout.strip()


def draw_curve(card: Card, path: Path) -> bool:
    """Draw the loss and the validation score of every epoch; False without matplotlib or without two losses."""
    curve, measure = card.facts.curve, card.decisive
    losses = [(row["epoch"], row["loss"]) for row in curve if "loss" in row]
    scores = [(row["epoch"], row["dev"][measure]) for row in curve if measure in row.get("dev", {})]
    if len(losses) < 2:
        return False
    try:  # imported here because it takes a second; pyplot would keep global state
        from matplotlib.figure import Figure
    except ImportError:
        return False

    figure = Figure((6.5, 3.5), layout="constrained")
    left = figure.subplots()
    left.plot(*zip(*losses, strict=True), color="C0")
    left.set_xlabel("epoch")
    left.set_ylabel("loss", color="C0")
    if scores:
        right = left.twinx()
        right.plot(*zip(*scores, strict=True), color="C1", linestyle="--")
        right.set_ylabel(f"{card.measures[measure]} on validation (%)", color="C1")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120, metadata={"Software": None})
    write_whole(path, picture.getvalue())
    return True
