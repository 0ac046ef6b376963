"""Check the settings of a saved model before anything is built, and show foreign text in a terminal.

An ONNX export copies this module into `onnx_tagger.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

#: The suffix of the modules (configuration_…, modeling_…) and the prefix of the classes (…Config,
#: …ForTokenClassification) of each `model_type`.
ARCHITECTURES = {
    "bilstm-cnn": ("bilstm_cnn", "BiLstmCnn"),
    "cross-bilstm-cnn": ("bilstm_cnn", "CrossBiLstmCnn"),
    "att-bilstm-cnn": ("bilstm_cnn", "AttBiLstmCnn"),
    "lstm-crf": ("lstm_crf", "LstmCrf"),
    "cnn-lstm-crf": ("cnn_lstm_crf", "CnnLstmCrf"),
    "grn": ("grn", "Grn"),
    "id-cnn": ("id_cnn", "IdCnn"),
    "stack-lstm": ("stack_lstm", "StackLstm"),
}

#: The code that transformers names in the config of each `model_type`, and in tokenizer_config.json.
AUTO_MAPS: dict[str | None, dict[str, Any]] = {
    kind: {
        "AutoConfig": f"configuration_{module}.{prefix}Config",
        "AutoModelForTokenClassification": f"modeling_{module}.{prefix}ForTokenClassification",
    }
    for kind, (module, prefix) in ARCHITECTURES.items()
} | {None: {"AutoTokenizer": ["tokenization_word_char.WordCharTokenizer", None]}}

#: Parts of the names of settings by which transformers loads kernels, code, or files of another name or place.
_REFUSED = ("attn_impl", "experts_impl", "quantization_config", "custom_pipelines", "transformers_weights", "_file")


def check_settings(settings: Mapping[str, Any], types: Collection[str | None], own_code: bool = True) -> None:
    """Check the settings in config.json or tokenizer_config.json.

    Args:
        settings: The settings.
        types: The known values of `model_type`; `[None]` for a tokenizer.
        own_code: The code that the settings name must be this package's, unless the user trusts other code.

    Raises:
        ValueError: If the type is unknown, or a setting names code, files or repositories.
    """
    kind = settings.get("model_type")
    if own_code and kind not in types:
        raise ValueError(f"model_type={kind!r} is not one of {', '.join(map(str, types))}")
    if own_code and kind in AUTO_MAPS and settings.get("auto_map") not in (None, AUTO_MAPS[kind]):
        raise ValueError(f"auto_map={settings['auto_map']!r} is refused, as it names other code; save the model again")
    encoder = settings.get("context_encoder")
    for name, value in [*settings.items(), *(encoder.items() if isinstance(encoder, dict) else ())]:
        if value not in (None, True, False, "eager", "sdpa") and any(part in name for part in _REFUSED):
            raise ValueError(f"{name}={value!r} is refused; remove it from the settings")


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Return a text with escapes for its control characters, some of which are commands to a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
