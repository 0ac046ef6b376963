"""The architectures, and their registration with the Auto classes of transformers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

from .models.configuration_tagger import TaggerConfig
from .models.tokenization_word_char import WordCharTokenizer
from .safety import ARCHITECTURES


class ModelOnDemand:
    """Imports a model class when it is first used: importing PreTrainedModel takes over a second."""

    def __init__(self, config_class: type[TaggerConfig], module: str, name: str) -> None:
        self.config_class = config_class
        self.__name__ = name
        self._module = module

    def load(self) -> type:
        """Import the class."""
        return getattr(import_module(self._module, __package__), self.__name__)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(self.load(), attribute)


#: Config classes and model classes by `model_type`.
CONFIGS: dict[str, type[TaggerConfig]] = {}
MODELS: dict[str, ModelOnDemand] = {}
for _module, _prefix in ARCHITECTURES.values():
    _config = getattr(import_module(f".models.configuration_{_module}", __package__), f"{_prefix}Config")
    CONFIGS[_config.model_type] = _config
    _model = ModelOnDemand(_config, f".models.modeling_{_module}", f"{_prefix}ForTokenClassification")
    MODELS[_config.model_type] = _model
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoTokenizer.register(_config, fast_tokenizer_class=WordCharTokenizer, exist_ok=True)
    AutoModelForTokenClassification.register(_config, _model, exist_ok=True)
