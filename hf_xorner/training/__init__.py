"""Training: the Trainer subclass, its collator, and a whole run from data to a saved model."""

from .arguments import RunArguments, TaggerTrainingArguments, parse
from .checkpoints import folder_locked
from .collator import TaggingCollator
from .errors import TrainingError
from .run import TrainingRun, check_output, prepare
from .seeds import best_seed, check_seeds, folder_of, of_each_seed, seed_table
from .stopping import Stopped, stoppable
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
