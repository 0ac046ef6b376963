"""`hf-xorner distill`: train a small tagger on labels and on what larger taggers find."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from . import train
from .parser import Parser

EXAMPLES = (
    "hf-xorner distill --teacher large_tagger --dataset my_corpus/ --text sentences.txt --output_dir small_tagger",
    "hf-xorner distill --teacher seed-1 seed-2 --student ma2016/table3/blstm-cnns-crf --teacher_weight 0.8",
)
DESCRIPTION = (
    "The same as `hf-xorner train` with --teacher. The student learns the labels, and the mean posterior of the "
    "teachers: the loss is in part the mean of -log p over their label sequences, computed exactly for a CRF. The "
    "teachers label the training sentences and --text; `datasets` caches what they find. All options of `hf-xorner "
    "train` are options."
)
GROUPS = {"distillation": ("teacher", "student", "text", "teacher_weight"), **train.GROUPS}


def parser() -> argparse.ArgumentParser:
    """Return a parser of all options for the help texts."""
    parser = train.parser()
    parser.prog, parser.description = "hf-xorner distill", DESCRIPTION
    parser._actions[:] = [action for action in parser._actions if action.dest not in ("recipe", "teacher_text")]
    return with_own_options(parser)


def with_own_options(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options that `hf-xorner train` has under other names."""
    parser.add_argument("--student", metavar="RECIPE", help="The recipe of the model to train, or a YAML file.")
    parser.add_argument("--text", nargs="+", default=[], help="Files of plain text, a sentence a line.")
    return parser


def run(words: Sequence[str]) -> None:
    """Train with the teachers."""
    own, rest = with_own_options(Parser(allow_abbrev=False, add_help=False)).parse_known_args(words)
    if not any(word.partition("=")[0] == "--teacher" for word in rest):
        raise ValueError("name at least one tagger to learn from by --teacher.")
    text = ["--teacher_text", *own.text] if own.text else []
    train.run([*([own.student] if own.student else []), *rest, *text])
