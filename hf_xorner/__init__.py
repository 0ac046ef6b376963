"""Fast, small taggers for named entities, as models, tokenizers and pipelines of transformers."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_xorner.safety import ARCHITECTURES

if TYPE_CHECKING:
    from .corpora import load_corpus as load_corpus
    from .corpora import xor_corpus as xor_corpus
    from .entities import Entities as Entities
    from .entities import Entity as Entity
    from .errors import DataError as DataError
    from .evaluation.evaluate import evaluate as evaluate
    from .export.runtime import OnnxTagger as OnnxTagger
    from .files import english as english
    from .files import multilingual as multilingual
    from .hub import publish as publish
    from .models.configuration_tagger import TaggerConfig as TaggerConfig
    from .models.modeling_tagger import TaggerForTokenClassification as TaggerForTokenClassification
    from .models.modeling_tagger import TaggerOutput as TaggerOutput
    from .models.tokenization_word_char import WordCharTokenizer as WordCharTokenizer
    from .tagger import Tagger as Tagger
    from .training.arguments import TaggerTrainingArguments as TaggerTrainingArguments
    from .training.batches import TaggingCollator as TaggingCollator
    from .training.run import train as train
    from .training.trainer import TaggerTrainer as TaggerTrainer

__version__ = "0.3.0"

#: The public names by module, which is imported when one of them is first used.
_LAZY = {
    "corpora": ("load_corpus", "xor_corpus"),
    "entities": ("Entities", "Entity"),
    "errors": ("DataError",),
    "evaluation.evaluate": ("evaluate",),
    "export.runtime": ("OnnxTagger",),
    "files": ("english", "multilingual"),
    "hub": ("publish",),
    "models.configuration_tagger": ("TaggerConfig",),
    "models.modeling_tagger": ("TaggerForTokenClassification", "TaggerOutput"),
    "models.tokenization_word_char": ("WordCharTokenizer",),
    "tagger": ("Tagger",),
    "training.arguments": ("TaggerTrainingArguments",),
    "training.batches": ("TaggingCollator",),
    "training.run": ("train",),
    "training.trainer": ("TaggerTrainer",),
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}

for _module, _prefix in ARCHITECTURES.values():
    _MODULES[f"{_prefix}Config"] = f"models.configuration_{_module}"
    _MODULES[f"{_prefix}ForTokenClassification"] = f"models.modeling_{_module}"
__all__ = sorted(_MODULES)

# PyTorch's threads wait for each other by spinning, by default for milliseconds. On a busy machine this takes time from
# the threads that they wait for: with two other runs on two cores, 60 steps of training took 20 to 70 s, and 3 to 4 s
# with this limit. It is an effect on the whole program, but it is only read when PyTorch is first imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

# Importing the package registers the architectures with transformers, which takes two seconds to import; therefore the
# commands of this package only do it when they need a model. An embedded Python may have no argv.
_program = Path((getattr(sys, "argv", None) or [""])[0]).stem
if _program != "hf-xorner" and sys.orig_argv[1:3] != ["-m", "hf_xorner"]:
    import_module(".registration", __name__)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
