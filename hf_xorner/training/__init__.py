"""Training: the Trainer subclass, its collator, and a whole run from data to a saved model."""

from ..errors import TrainingError
from .arguments import RunArguments, TaggerTrainingArguments, parse
from .batches import TaggingCollator
from .progress import Stopped, stoppable
from .run import (
    TrainingRun,
    best_seed,
    check_output,
    check_seeds,
    folder_locked,
    folder_of,
    of_each_seed,
    prepare,
    seed_table,
)
from .trainer import TaggerTrainer

__all__ = [
    "RunArguments",
    "Stopped",
    "TaggerTrainer",
    "TaggerTrainingArguments",
    "TaggingCollator",
    "TrainingError",
    "TrainingRun",
    "best_seed",
    "check_output",
    "check_seeds",
    "folder_locked",
    "folder_of",
    "of_each_seed",
    "parse",
    "prepare",
    "seed_table",
    "stoppable",
]
