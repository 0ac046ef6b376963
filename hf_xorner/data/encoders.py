"""Pretrained encoders with the tokenizers of their pieces."""

from typing import Any, NamedTuple

import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

from ..errors import DataError, first_line
from ..models.pieces import WordPieces

#: An encoder reads no more pieces than this at once, though it may be able to: attention's cost grows with the square.
LONGEST_WINDOW = 512


class PretrainedEncoder(NamedTuple):
    """A pretrained encoder with the tokenizer of its pieces.

    Attributes:
        model: The encoder.
        pieces: What cuts words into its pieces.
        window: How many pieces it reads at once, special ones included.
    """

    model: PreTrainedModel
    pieces: WordPieces
    window: int


def read_encoder(source: str) -> PretrainedEncoder:
    """Load a pretrained encoder, whose weights must be safetensors.

    Args:
        source: A folder, or a repository on the Hub.

    Raises:
        DataError: If there is none, or it has no tokenizer of the `tokenizers` library.
    """
    try:
        model = AutoModel.from_pretrained(source, use_safetensors=True, dtype=torch.float32, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    # What goes wrong there (no such folder, no network, broken files, weights in a pickle) has no common type.
    except Exception as error:
        raise DataError(f"{str(source)!r} is no encoder that can be loaded: {first_line(error)}") from None
    return encoder_of(model, tokenizer, str(source))


def encoder_of(model: Any, tokenizer: Any, source: str = "the encoder") -> PretrainedEncoder:
    """Put a loaded encoder and its tokenizer together.

    Args:
        model: An encoder of transformers.
        tokenizer: Its tokenizer.
        source: What messages call it.

    Raises:
        DataError: If the tokenizer is not of the `tokenizers` library, or knows nothing but special pieces, as one has
            that was loaded without its files.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise DataError(f"{source!r} has no tokenizer.json; choose an encoder with a fast tokenizer.")
    if model.config.is_encoder_decoder:
        raise DataError(f"{source!r} is an encoder with a decoder behind it; choose an encoder alone.")
    pieces = WordPieces(tokenizer.backend_tokenizer)
    if pieces.size <= len(tokenizer.all_special_ids):
        raise DataError(f"{source!r} has no tokenizer's files; copy the whole folder of the encoder.")
    known = model.get_input_embeddings().num_embeddings
    if pieces.size > known:
        raise DataError(
            f"{source!r} knows {known} pieces, and its tokenizer {pieces.size}; "
            "save it after model.resize_token_embeddings(len(tokenizer))."
        )
    # Some count positions from behind the padding's, so that two of them are not for use.
    positions = getattr(model.config, "max_position_embeddings", None)
    limits = [LONGEST_WINDOW, tokenizer.model_max_length, *([positions - 2] if positions and positions > 2 else [])]
    return PretrainedEncoder(model, pieces, min(limits))


def usual_layers(last: int) -> list[int]:
    """Return all hidden states but the first two, which know little besides a word's form.

    Args:
        last: The number of the encoder's layers.
    """
    return list(range(min(2, last), last + 1))
