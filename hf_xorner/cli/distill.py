"""`hf-xorner distill`: train a small tagger on labels and on what larger taggers find."""

from __future__ import annotations

from collections.abc import Sequence

from . import train

EXAMPLES = (
    "hf-xorner distill my_corpus/ --teacher large_tagger --teacher_text sentences.txt --output_dir small_tagger",
    "hf-xorner distill ma2016/table3/blstm-cnns-crf --teacher seed-1 seed-2 --teacher_weight 0.8",
)
DESCRIPTION = (
    "The same as `hf-xorner train` with --teacher. The student learns the labels, and the mean posterior of the "
    "teachers: the loss is in part the mean of -log p over their label sequences, computed exactly for a CRF. The "
    "teachers label the training sentences and --teacher_text. All options of `hf-xorner train` are options."
)
#: The command with the same options.
LIKE = "train"


def run(words: Sequence[str]) -> None:
    """Train with the teachers."""
    if not any(word.partition("=")[0] == "--teacher" for word in words):
        raise ValueError("name at least one tagger to learn from by --teacher.")
    train.run(words)
