"""Load a saved tagger: its config, tokenizer and weights.

Code in the model's folder runs only with `trust_remote_code=True`; weights are read from safetensors only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, PreTrainedConfig
from transformers.utils import logging

from .errors import DataError, first_line, why_not_loaded
from .files import model_folder
from .models.configuration_tagger import TaggerConfig
from .models.modeling_tagger import TaggerForTokenClassification
from .models.tokenization_word_char import WordCharTokenizer
from .registration import CONFIGS

#: Options of `from_pretrained` about the location of the files; the others are about the weights.
_HUB_OPTIONS = ("cache_dir", "force_download", "local_files_only", "proxies", "revision", "subfolder", "token")


def load(source: str, **options: Any) -> tuple[TaggerForTokenClassification, WordCharTokenizer]:
    """Load a model and its tokenizer.

    Args:
        source: A folder, a repository on the Hub, or the short name of a model of the package (`files.PACKAGED`).
        options: The options of `from_pretrained`.

    Raises:
        DataError: If a file is missing or broken, or the architecture is unknown.
    """
    trusted = {"trust_remote_code": options.pop("trust_remote_code", False)}
    hub = {name: options[name] for name in _HUB_OPTIONS if name in options} | trusted
    config, tokenizer = load_config(source, **hub), load_tokenizer(source, **hub)
    return load_model(source, config, tokenizer, **options, **trusted), tokenizer


def load_config(source: str, *, trust_remote_code: bool = False, **hub: Any) -> TaggerConfig:
    """Load the config of a tagger; see `load`."""
    source = model_folder(source)
    with _reading(source, "config"):
        settings, _ = PreTrainedConfig.get_config_dict(source, **hub)
        _check_settings(settings)
        kind, kinds = settings.get("model_type"), ", ".join(CONFIGS)
        if not trust_remote_code and kind not in CONFIGS:
            raise ValueError(
                f"config.json is missing, or its model_type {kind!r} is not one of this package's: {kinds}"
            )
        return AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code, **hub)


def _check_settings(settings: dict[str, Any]) -> None:
    """Raise on entries of a config, or of its encoder's config, for which transformers would load code or files."""
    encoder = settings.get("context_encoder")
    for part in (settings, encoder if isinstance(encoder, dict) else {}):
        for name in part:
            attention = "attn_implementation" in name and part[name] not in (None, "eager", "sdpa")
            if attention or name == "quantization_config":
                raise ValueError(f"{name}={part[name]!r} is refused; remove it from config.json")


def load_tokenizer(source: str, *, trust_remote_code: bool = False, **hub: Any) -> WordCharTokenizer:
    """Load the tokenizer of a tagger; see `load`."""
    source = model_folder(source)
    with _reading(source, "tokenizer"):
        return AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code, **hub)


def load_model(
    source: str, config: TaggerConfig, tokenizer: WordCharTokenizer, **options: Any
) -> TaggerForTokenClassification:
    """Load the weights of a tagger, which must match the config exactly; see `load`."""
    check_fit(config, tokenizer)
    source = model_folder(source)
    with _reading(source, "weights"):
        model, report = AutoModelForTokenClassification.from_pretrained(
            source, config=config, use_safetensors=True, output_loading_info=True, **options
        )
    if faults := sorted({*report["missing_keys"], *report["unexpected_keys"]}):
        raise DataError(
            f"{source}: the weights do not match the config: {faults[0]!r} is missing or unexpected; "
            "copy all files of the model, or save it again."
        )
    return model


def check_fit(config: TaggerConfig, tokenizer: WordCharTokenizer) -> None:
    """Raise if a tokenizer does not belong to the model."""
    if not hasattr(tokenizer, "model_fields"):
        raise ValueError(
            f"{type(tokenizer).__name__} returns no character ids; load the WordCharTokenizer with all its files."
        )
    for field, value in tokenizer.model_fields().items():
        expected = getattr(config, field)
        if field == "char_types":
            # Characters that are newer than a version of Python have the type "." there.
            pairs = zip(value, expected, strict=False)
            value = "".join(theirs if "." in (own, theirs) else own for own, theirs in pairs)
        if value != expected:
            raise ValueError(
                f"The tokenizer has {field}={value!r} and the model {field}={expected!r}; load both from one folder."
            )


def moved(model: Any, device: str | torch.device) -> Any:
    """Move a model to a device, and return it."""
    try:
        return model.to(device)
    # AssertionError if PyTorch was not built for the device.
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={str(device)!r}: {first_line(error)}.") from None


@contextmanager
def _reading(source: str, part: str) -> Iterator[None]:
    """Convert any error in loading a part into a DataError with one sentence."""
    try:
        yield
    # The errors for missing folders, no network and broken files have no common type. Rust panics are not Exceptions.
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        missing = "" if Path(source).exists() else "there is no such folder, and "
        raise DataError(f"{source}: {missing}the {part} cannot be loaded: {why_not_loaded(error)}.") from None


@contextmanager
def without_bars() -> Iterator[None]:
    """Disable the progress bars of transformers and huggingface_hub."""
    shown = logging.is_progress_bar_enabled()
    if shown:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
