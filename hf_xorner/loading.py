"""Load a saved tagger: its config, tokenizer and weights.

Code in the model's folder runs only with `trust_remote_code=True`; weights are read from safetensors only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from huggingface_hub import ModelCard, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, PreTrainedConfig
from transformers.tokenization_utils_base import TOKENIZER_CONFIG_FILE
from transformers.utils import (
    ADAPTER_CONFIG_NAME,
    CONFIG_NAME,
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    cached_file,
    find_adapter_config_file,
    logging,
)
from transformers.utils.hub import get_checkpoint_shard_files

from .errors import DataError, first_line, why_not_loaded
from .files import CARD_FILE, model_folder, refuse_aliases
from .models.configuration_tagger import TaggerConfig
from .models.modeling_tagger import TaggerForTokenClassification
from .models.tokenization_word_char import WordCharTokenizer
from .models.word_ids import check_fields, no_panic
from .registration import CONFIGS
from .safety import check_settings

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
    with _reading(source, "config") as source:
        read_settings(source, CONFIGS, trust_remote_code, **hub)
        return AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code, **hub)


def load_tokenizer(source: str, *, trust_remote_code: bool = False, **hub: Any) -> WordCharTokenizer:
    """Load the tokenizer of a tagger; see `load`."""
    with _reading(source, "tokenizer") as source:
        read_settings(source, [None], trust_remote_code, TOKENIZER_CONFIG_FILE, **hub)
        return AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code, **hub)


def load_model(
    source: str, config: TaggerConfig, tokenizer: WordCharTokenizer, **options: Any
) -> TaggerForTokenClassification:
    """Load the weights of a tagger, which must match the config exactly; see `load`."""
    check_fit(config, tokenizer)
    with _reading(source, "weights") as source, without_bars():
        check_size(source, AutoModelForTokenClassification, config, **options)
        model, report = AutoModelForTokenClassification.from_pretrained(
            source, config=config, use_safetensors=True, output_loading_info=True, **options
        )
    if faults := sorted({*report["missing_keys"], *report["unexpected_keys"]}):
        raise DataError(
            f"{source}: the weights do not match the config: {faults[0]!r} is missing or unexpected; "
            "copy all files of the model, or save it again."
        )
    return model


def read_settings(
    source: str, types: Collection[str | None], trusted: bool = False, name: str = CONFIG_NAME, **hub: Any
) -> dict[str, Any]:
    """Read and check config.json or tokenizer_config.json of a model; see `check_settings`.

    Raises:
        ValueError: If a setting, or an adapter with the model, names code, files or repositories.
    """
    settings = dict(json.loads(Path(cached_file(source, name, **hub)).read_text(encoding="utf-8")))
    check_settings(settings, types, own_code=not trusted)
    if find_adapter_config_file(source, **hub):
        raise ValueError(f"{ADAPTER_CONFIG_NAME} is refused, as it names another model; merge the adapter and save it")
    return settings


def read_card(source: str | Path, **options: Any) -> ModelCard | None:
    """Read the card of a model in a folder or on the Hub; None if it has none. The options are those of `ModelCard`.

    Raises:
        ValueError: If its metadata cannot be read.
    """
    path = Path(source) / CARD_FILE
    try:
        if not path.parent.is_dir():
            path = Path(hf_hub_download(str(source), path.name))
        text = path.read_text(encoding="utf-8")
        if metadata := REGEX_YAML_BLOCK.search(text):
            refuse_aliases(metadata[2])
        return ModelCard(text, **options)
    except (FileNotFoundError, EntryNotFoundError):  # the card is optional
        return None
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: the metadata cannot be read ({first_line(error)}); correct them.") from None


def check_size(source: str, auto_class: Any, config: PreTrainedConfig, **options: Any) -> None:
    """Raise if a config describes a model with more numbers than the files of its weights have bytes."""
    hub = {name: options[name] for name in _HUB_OPTIONS if name in options}
    find = partial(cached_file, source, _raise_exceptions_for_missing_entries=False, **hub)
    files = [find(SAFE_WEIGHTS_NAME)]
    if files == [None] and (index := find(SAFE_WEIGHTS_INDEX_NAME)):
        files, _ = get_checkpoint_shard_files(source, index, **hub)
    with torch.device("meta"):
        needed = sum(values.numel() for values in auto_class.from_config(config).state_dict().values())
    if files != [None] and needed > sum(map(os.path.getsize, files)):
        raise ValueError(f"config.json describes a model of {needed:,} numbers, more than the weights have bytes")


def check_fit(config: TaggerConfig, tokenizer: WordCharTokenizer) -> None:
    """Raise if a tokenizer does not belong to the model."""
    if not hasattr(tokenizer, "model_fields"):
        raise ValueError(
            f"{type(tokenizer).__name__} returns no character ids; load the WordCharTokenizer with all its files."
        )
    check_fields(vars(config), tokenizer.model_fields())


def moved(model: Any, device: str | torch.device) -> Any:
    """Move a model to a device, and return it."""
    try:
        return model.to(device)
    # AssertionError if PyTorch was not built for the device.
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={str(device)!r}: {first_line(error)}.") from None


@contextmanager
def _reading(source: str, part: str) -> Iterator[str]:
    """Yield the folder or repository of a model, and convert any error in loading a part into a DataError."""
    folder = model_folder(source)
    try:
        with no_panic():
            yield folder
    # The errors for missing folders, no network and broken files have no common type.
    except Exception as error:
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


@contextmanager
def without_reports() -> Iterator[None]:
    """Silence what transformers reports of weights that are missing or not used."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
