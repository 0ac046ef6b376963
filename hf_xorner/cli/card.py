"""`hf-xorner card`: write the model card from the facts of the training run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..corpora.hold_out import EXAMPLES_FILE
from ..files import expanded, read_text
from ..hub.card import write_card
from ..options import option, read_options

EXAMPLES = (
    "hf-xorner card my_tagger --name me/my-tagger --language en --license apache-2.0",
    "hf-xorner card runs/seed-1 --seeds_of runs/seed-2 runs/seed-3 --name me/my-tagger",
)


DESCRIPTION = "Write README.md, the model card, into a model's folder. The usage example on the card is run."


@dataclass
class Options:
    """The options of a card."""

    model: str = option(help="The folder of a trained model.", positional=True)
    seeds_of: list[str] = option([], "The folders of runs with other seeds, for mean and standard deviation.")
    sentences: str | None = option(
        None, "A file of example sentences, one per line; by default held-out ones of the corpus, if it is your own."
    )
    name: str | None = option(None, "The name of the model on the card; by default the name of its folder.")
    overwrite: bool = option(False, "Replace an existing card.")
    language: str | None = option(None, "The language of the text: an ISO 639 code.")
    license: str | None = option(None, "The model's license, by its id on the Hub, such as apache-2.0.")
    dataset_id: str | None = option(None, "The corpus on the Hub: owner/name.")
    dataset_revision: str | None = option(None, "The commit of this corpus.")
    base_model: list[str] = option(
        [], "The encoder of the model's context or vectors on the Hub, unless training named it as owner/name."
    )


def run(words: Sequence[str]) -> None:
    """Write the card."""
    options = vars(read_options(Options, words))
    model, file = options.pop("model"), options.pop("sentences")
    path = expanded(file) if file else Path(model, EXAMPLES_FILE)
    text = read_text(path, "utf-8-sig") if file or path.is_file() else ""
    options["sentences"] = [line for line in text.splitlines() if line.strip()]
    options["base_models"] = tuple(options.pop("base_model"))
    print(f"written: {write_card(model, **options)}")
    if text and not file:
        print(f"Its example sentences are held-out ones of the corpus ({path}); --sentences names others.")
