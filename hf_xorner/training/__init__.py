"""Training: the Trainer subclass, its collator, and a whole run from data to a saved model."""

from .arguments import RunArguments, TaggerTrainingArguments, parse
from .collator import TaggingCollator
from .run import TrainingRun, prepare
from .trainer import TaggerTrainer

__all__ = [
    "RunArguments",
    "TaggerTrainer",
    "TaggerTrainingArguments",
    "TaggingCollator",
    "TrainingRun",
    "parse",
    "prepare",
]
