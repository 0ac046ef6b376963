"""Training: the Trainer subclass, its collator, and a whole run from data to a saved model."""

from ..errors import TrainingError
from .arguments import RunArguments, TaggerTrainingArguments, parse
from .batches import TaggingCollator
from .run import prepare
from .trainer import TaggerTrainer

__all__ = [
    "RunArguments",
    "TaggerTrainer",
    "TaggerTrainingArguments",
    "TaggingCollator",
    "TrainingError",
    "parse",
    "prepare",
]
