"""Makes the Auto classes of transformers know every family, without importing a model before one is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, PreTrainedConfig

from .models.configuration_bilstm_cnn import AttBiLstmCnnConfig, BiLstmCnnConfig, CrossBiLstmCnnConfig
from .models.configuration_cnn_lstm_crf import CnnLstmCrfConfig
from .models.configuration_grn import GrnConfig
from .models.configuration_id_cnn import IdCnnConfig
from .models.configuration_lstm_crf import LstmCrfConfig
from .models.configuration_stack_lstm import StackLstmConfig
from .models.tokenization_word_char import WordCharTokenizer

#: The module and the name of the model that each config configures.
MODELS: dict[type[PreTrainedConfig], tuple[str, str]] = {
    BiLstmCnnConfig: ("modeling_bilstm_cnn", "BiLstmCnnForTokenClassification"),
    CrossBiLstmCnnConfig: ("modeling_bilstm_cnn", "CrossBiLstmCnnForTokenClassification"),
    AttBiLstmCnnConfig: ("modeling_bilstm_cnn", "AttBiLstmCnnForTokenClassification"),
    LstmCrfConfig: ("modeling_lstm_crf", "LstmCrfForTokenClassification"),
    CnnLstmCrfConfig: ("modeling_cnn_lstm_crf", "CnnLstmCrfForTokenClassification"),
    GrnConfig: ("modeling_grn", "GrnForTokenClassification"),
    IdCnnConfig: ("modeling_id_cnn", "IdCnnForTokenClassification"),
    StackLstmConfig: ("modeling_stack_lstm", "StackLstmForTokenClassification"),
}

#: The architectures by the name that a config file calls them.
CONFIGS: dict[str, type[PreTrainedConfig]] = {config.model_type: config for config in MODELS}


class ModelOnDemand:
    """Stands in the registry for a model class until it is used: importing PreTrainedModel takes over a second."""

    def __init__(self, config_class: type[PreTrainedConfig], module: str, name: str) -> None:
        self.config_class = config_class
        self.__name__ = name
        self._module = module

    def load(self) -> type:
        """Import the class."""
        return getattr(import_module(f".models.{self._module}", __package__), self.__name__)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(self.load(), attribute)


#: Model classes by name, each to be imported on demand.
ON_DEMAND = {name: ModelOnDemand(config, module, name) for config, (module, name) in MODELS.items()}


def register() -> None:
    """Register all families."""
    for config_class, (_, name) in MODELS.items():
        AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
        AutoTokenizer.register(config_class, fast_tokenizer_class=WordCharTokenizer, exist_ok=True)
        AutoModelForTokenClassification.register(config_class, ON_DEMAND[name], exist_ok=True)
