"""`hf-xorner card`: write the card of a model from the facts of its run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..hub.card import write_card
from .parser import Parser

EXAMPLES = (
    "hf-xorner card my_tagger --language en --license apache-2.0",
    "hf-xorner card runs/seed-1 --seeds_of runs/seed-2 runs/seed-3 --name me/my-tagger",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner card`."""
    parser = Parser(
        prog="hf-xorner card",
        description="Write README.md, the model card, into a model's folder. The usage example on the card is run.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="MODEL_DIR", help="The folder of a trained model.")
    parser.add_argument("--seeds_of", nargs="+", default=[], metavar="FOLDER", help="Runs that differ in their seed.")
    parser.add_argument("--sentences", type=Path, help="A file of examples to choose from, one a line.")
    parser.add_argument("--name", help="What the card calls the model; by default its folder's name.")
    parser.add_argument("--overwrite", action="store_true", help="Replace an existing card.")
    parser.add_argument("--language", help="The language of the text: an ISO 639 code.")
    parser.add_argument("--license", help="The model's license, as the Hub calls it, such as apache-2.0.")
    parser.add_argument("--dataset_id", help="The corpus on the Hub: owner/name.")
    parser.add_argument("--dataset_revision", help="The commit of it that was read.")
    parser.add_argument(
        "--base_model",
        nargs="+",
        default=(),
        metavar="OWNER/NAME",
        dest="base_models",
        help="The encoder behind its context or its vectors, on the Hub; one that was named so is known.",
    )
    return parser


def run(words: Sequence[str]) -> None:
    """Write the card."""
    options = vars(parser().parse_args(words))
    file = options.pop("sentences")
    sentences = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()] if file else []
    options["base_models"] = tuple(options["base_models"])
    print(f"written: {write_card(sentences=sentences, **options)}")
