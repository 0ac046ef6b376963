"""Fast, small, exact taggers for named entities as models, tokenizers and pipelines of transformers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .models.configuration_tagger import TaggerConfig
from .models.tokenization_word_char import WordCharTokenizer
from .registration import CONFIGS, MODELS, register

if TYPE_CHECKING:
    from .corpora import load_corpus, xor_corpus
    from .models.modeling_tagger import TaggerForTokenClassification, TaggerOutput
    from .tagger import Entity, Tagger
    from .training import TaggerTrainer

__version__ = "0.2.0"

__all__ = [
    "Entity",
    "Tagger",
    "TaggerConfig",
    "TaggerForTokenClassification",
    "TaggerOutput",
    "TaggerTrainer",
    "WordCharTokenizer",
    "load_corpus",
    "xor_corpus",
]

#: Modules of names that are imported when they are first used, so that importing the package stays fast.
_LAZY = {
    "Entity": "tagger",
    "Tagger": "tagger",
    "TaggerForTokenClassification": "models.modeling_tagger",
    "TaggerOutput": "models.modeling_tagger",
    "TaggerTrainer": "training",
    "load_corpus": "corpora",
    "xor_corpus": "corpora",
}
_CONFIGS = {config.__name__: config for config in CONFIGS.values()}
_MODELS = {model.__name__: model for model in MODELS.values()}
__all__ += [*_CONFIGS, *_MODELS]
__all__.sort()
globals().update(_CONFIGS)

register()


def __getattr__(name: str) -> Any:
    if name in _MODELS:
        value = _MODELS[name].load()
    elif name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
