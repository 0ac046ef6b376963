"""Write the card of a model from the facts of its run.

    python scripts/card.py MODEL_DIR [--seeds_of FOLDER …] [--sentences FILE] [--name OWNER/NAME]
                           [--language en] [--licence apache-2.0] [--dataset_id OWNER/NAME] [--base_model OWNER/NAME]

The card is README.md in the model's folder; what was changed there by hand stays. The lines that use the model are run,
and with them the Python files of the folder. `--help` lists the options.
"""

import argparse
import sys
from pathlib import Path

from hf_xorner.hub.card import write_card


def arguments() -> argparse.ArgumentParser:
    """The options of the card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("folder", metavar="MODEL_DIR", help="The folder of a trained model.")
    parser.add_argument("--seeds_of", nargs="+", default=[], metavar="FOLDER", help="Runs that differ in their seed.")
    parser.add_argument("--sentences", type=Path, help="A file of examples to choose from, one a line.")
    parser.add_argument("--name", help="What the card calls the model; by default its folder's name.")
    parser.add_argument("--language", help="The language of the text: an ISO 639 code.")
    parser.add_argument("--licence", help="The model's licence, as the Hub calls it.")
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


def main() -> None:
    """Run from the command line."""
    options = vars(arguments().parse_args())
    try:
        file = options.pop("sentences")
        sentences = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()] if file else []
        options["base_models"] = tuple(options["base_models"])
        print(f"written: {write_card(sentences=sentences, **options)}")
    except (ValueError, OSError) as error:
        sys.exit(f"card.py: {error}")


if __name__ == "__main__":
    main()
