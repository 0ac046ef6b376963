"""A tagger of this package as somebody saved or published it; no other is loaded, and no code of its own is run."""

from __future__ import annotations

import torch
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, PreTrainedConfig

from ..data.errors import DataError, first_line
from ..models.configuration_tagger import TaggerConfig
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from ..registration import CONFIGS
from ..tagger import check_fit


def read_config(source: str) -> TaggerConfig:
    """Load the config of a tagger.

    Args:
        source: A folder, or a repository on the Hub.

    Raises:
        DataError: If there is none, or it is that of another model.
    """
    try:
        settings, _ = PreTrainedConfig.get_config_dict(source)
        name = settings.get("model_type")
        config = AutoConfig.from_pretrained(source, trust_remote_code=False) if name in CONFIGS else None
    # What goes wrong there (no such folder, no network, broken files) has no common type.
    except Exception as error:
        raise DataError(f"{source!r} is no model that can be loaded: {first_line(error)}.") from None
    if config is None:
        raise DataError(
            f"{source!r} is a model of the type {name!r}, and none of this package; name one of the types "
            f"{', '.join(CONFIGS)}."
        )
    return config


def read_tokenizer(source: str) -> WordCharTokenizer:
    """Load the tokenizer of a tagger.

    Args:
        source: A folder, or a repository on the Hub.

    Raises:
        DataError: If there is none, or it is another.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception as error:
        raise DataError(f"The tokenizer of {source!r} cannot be loaded: {first_line(error)}.") from None
    if not isinstance(tokenizer, WordCharTokenizer):
        raise DataError(
            f"The tokenizer of {source!r} is a {type(tokenizer).__name__}, which gives no characters; copy all files "
            "of the model."
        )
    return tokenizer


def read_model(source: str, tokenizer: WordCharTokenizer) -> TaggerForTokenClassification:
    """Load a tagger, in float32, whose weights must be safetensors.

    Args:
        source: A folder, or a repository on the Hub.
        tokenizer: Its tokenizer.

    Raises:
        DataError: If its weights are not all there.
        ValueError: If model and tokenizer do not fit each other.
    """
    try:
        model, report = AutoModelForTokenClassification.from_pretrained(
            source, use_safetensors=True, dtype=torch.float32, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:
        raise DataError(f"The weights of {source!r} cannot be loaded: {first_line(error)}.") from None
    faults = sorted({*report["missing_keys"], *report["unexpected_keys"]})
    if faults:
        raise DataError(f"The weights of {source!r} are not those of its config, for {faults[0]!r}; save it again.")
    check_fit(model, tokenizer)
    return model
