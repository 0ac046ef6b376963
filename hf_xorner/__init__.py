"""Fast, small taggers for named entities, as models, tokenizers and pipelines of transformers."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .corpora import load_corpus, xor_corpus
    from .entities import Entities, Entity
    from .errors import DataError
    from .evaluation.evaluate import evaluate
    from .export.runtime import OnnxTagger
    from .files import english
    from .hub import publish
    from .models.configuration_tagger import TaggerConfig
    from .models.modeling_tagger import TaggerForTokenClassification, TaggerOutput
    from .models.tokenization_word_char import WordCharTokenizer
    from .tagger import Tagger
    from .training.arguments import TaggerTrainingArguments
    from .training.batches import TaggingCollator
    from .training.run import train
    from .training.trainer import TaggerTrainer

__version__ = "0.3.0"

__all__ = [
    "DataError",
    "Entities",
    "Entity",
    "OnnxTagger",
    "Tagger",
    "TaggerConfig",
    "TaggerForTokenClassification",
    "TaggerOutput",
    "TaggerTrainer",
    "TaggerTrainingArguments",
    "TaggingCollator",
    "WordCharTokenizer",
    "english",
    "evaluate",
    "load_corpus",
    "publish",
    "train",
    "xor_corpus",
]

#: The public names by module, which is imported when one of them is first used.
_LAZY = {
    "corpora": ("load_corpus", "xor_corpus"),
    "entities": ("Entities", "Entity"),
    "errors": ("DataError",),
    "evaluation.evaluate": ("evaluate",),
    "export.runtime": ("OnnxTagger",),
    "files": ("english",),
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


def _architectures() -> dict[str, Any]:
    """Return the config classes and the model classes, which are imported on demand, by name."""
    registration = import_module(".registration", __name__)
    return {entry.__name__: entry for entry in (*registration.CONFIGS.values(), *registration.MODELS.values())}


# PyTorch's threads wait for each other by spinning, by default for milliseconds. On a busy machine this takes time from
# the threads that they wait for: with two other runs on two cores, 60 steps of training took 20 to 70 s, and 3 to 4 s
# with this limit. It is read when PyTorch is first imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

# The command line imports what it needs, as transformers takes two seconds to import. Everywhere else, importing the
# package registers the architectures with transformers.
_PROGRAM = [Path(program).stem for program in getattr(sys, "argv", [])[:1]]  # an embedded Python may have no argv
if _PROGRAM != ["hf-xorner"] and sys.orig_argv[1:3] != ["-m", "hf_xorner"]:
    __all__ += _architectures()
    __all__.sort()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name.endswith(("Config", "ForTokenClassification")) and name in (architectures := _architectures()):
        value = architectures[name] if name.endswith("Config") else architectures[name].load()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
