"""Training: the Trainer subclass, its collator, and a whole run from data to a saved model."""

from .arguments import RunArguments, TaggerTrainingArguments, parse
from .collator import TaggingCollator
from .errors import TrainingError
from .run import TrainingRun, prepare
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
    "parse",
    "prepare",
    "stoppable",
]
