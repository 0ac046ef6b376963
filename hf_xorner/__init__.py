"""Fast, small, exact taggers for named entities that are at home in the Hugging Face world."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .models.configuration_bilstm_cnn import AttBiLstmCnnConfig, BiLstmCnnConfig, CrossBiLstmCnnConfig
from .models.configuration_cnn_lstm_crf import CnnLstmCrfConfig
from .models.configuration_grn import GrnConfig
from .models.configuration_id_cnn import IdCnnConfig
from .models.configuration_lstm_crf import LstmCrfConfig
from .models.configuration_stack_lstm import StackLstmConfig
from .models.configuration_tagger import TaggerConfig
from .models.tokenization_word_char import WordCharTokenizer
from .registration import ON_DEMAND, register

if TYPE_CHECKING:
    from .corpora import load_corpus, xor_corpus
    from .models.modeling_bilstm_cnn import (
        AttBiLstmCnnForTokenClassification,
        BiLstmCnnForTokenClassification,
        CrossBiLstmCnnForTokenClassification,
    )
    from .models.modeling_cnn_lstm_crf import CnnLstmCrfForTokenClassification
    from .models.modeling_grn import GrnForTokenClassification
    from .models.modeling_id_cnn import IdCnnForTokenClassification
    from .models.modeling_lstm_crf import LstmCrfForTokenClassification
    from .models.modeling_stack_lstm import StackLstmForTokenClassification
    from .models.modeling_tagger import TaggerForTokenClassification, TaggerOutput
    from .tagger import Entity, Tagger
    from .training import TaggerTrainer

__version__ = "0.2.0"

__all__ = [
    "AttBiLstmCnnConfig",
    "AttBiLstmCnnForTokenClassification",
    "BiLstmCnnConfig",
    "BiLstmCnnForTokenClassification",
    "CnnLstmCrfConfig",
    "CnnLstmCrfForTokenClassification",
    "CrossBiLstmCnnConfig",
    "CrossBiLstmCnnForTokenClassification",
    "Entity",
    "GrnConfig",
    "GrnForTokenClassification",
    "IdCnnConfig",
    "IdCnnForTokenClassification",
    "LstmCrfConfig",
    "LstmCrfForTokenClassification",
    "StackLstmConfig",
    "StackLstmForTokenClassification",
    "Tagger",
    "TaggerConfig",
    "TaggerForTokenClassification",
    "TaggerOutput",
    "TaggerTrainer",
    "WordCharTokenizer",
    "load_corpus",
    "xor_corpus",
]

register()

#: Where a name lives that is imported when it is first used, so that importing the package stays cheap.
_LAZY = {
    "Entity": "tagger",
    "Tagger": "tagger",
    "TaggerForTokenClassification": "models.modeling_tagger",
    "TaggerOutput": "models.modeling_tagger",
    "TaggerTrainer": "training",
    "load_corpus": "corpora",
    "xor_corpus": "corpora",
}


def __getattr__(name: str) -> Any:
    if name in ON_DEMAND:
        value = ON_DEMAND[name].load()
    elif name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
