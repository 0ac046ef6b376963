"""Static word vectors distilled from a pretrained encoder: each word encoded alone, its states averaged and reduced."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .errors import DataError

#: Words that are encoded at a time; they are of like length, so hardly any padding is computed.
_BATCH = 256


def encode_words(
    words: Sequence[str],
    model: Any,
    tokenizer: Any,
    layers: Sequence[int] | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> NDArray[np.float32]:
    """Encode each word by itself: the mean over its pieces, special tokens left out, and over layers.

    Args:
        words: The words.
        model: An encoder of transformers.
        tokenizer: Its tokenizer.
        layers: The hidden states that are averaged; 0 is what enters the first layer. By default all but the first two.
        progress: Wraps the batches, to show how far it is.

    Returns:
        One vector a word. Shape: (words, hidden size).
    """
    last = model.config.num_hidden_layers
    layers = list(range(min(2, last), last + 1)) if layers is None else list(layers)
    if any(not 0 <= layer <= last for layer in layers):
        raise DataError(f"layers={layers}: the encoder has the layers 0 to {last}; choose among them.")
    order = sorted(range(len(words)), key=lambda index: len(words[index]))
    vectors = np.zeros((len(words), model.config.hidden_size), dtype=np.float32)
    model.eval()
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    for batch in progress(batches):
        vectors[batch] = _states([words[index] for index in batch], model, tokenizer, layers)
    return vectors


@torch.inference_mode()
def _states(words: list[str], model: Any, tokenizer: Any, layers: list[int]) -> NDArray[np.float32]:
    encoded = tokenizer(words, padding=True, truncation=True, return_special_tokens_mask=True, return_tensors="pt")
    special = encoded.pop("special_tokens_mask").bool() | ~encoded["attention_mask"].bool()
    states = model(**encoded.to(model.device), output_hidden_states=True).hidden_states
    mean = torch.stack([states[layer] for layer in layers]).mean(0)
    pieces = (~special).unsqueeze(-1).to(mean)
    # A word of which the tokenizer leaves nothing gets a vector of zeros.
    return ((mean * pieces).sum(1) / pieces.sum(1).clamp(min=1)).float().cpu().numpy()


def reduce(vectors: NDArray[np.float32], size: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float32]:
    """Reduce vectors to their first principal components, scaled so that components have a variance of 1 on average.

    Args:
        vectors: The vectors. Shape: (words, dimensions).
        size: The number of components kept.
        weights: How much each vector counts; all alike by default. Shape: (words,).

    Returns:
        The reduced vectors. Shape: (words, size).
    """
    if not 0 < size <= vectors.shape[1]:
        raise DataError(
            f"dim={size}: the encoder's vectors have {vectors.shape[1]} dimensions; give 1 to {vectors.shape[1]}."
        )
    share = np.full(len(vectors), 1 / len(vectors)) if weights is None else weights / weights.sum()
    wide = vectors.astype(np.float64)
    centred = wide - share @ wide
    variances, directions = np.linalg.eigh((centred * share[:, None]).T @ centred)
    kept = directions[:, ::-1][:, :size]
    # The sign of an eigenvector is arbitrary: the largest entry of each is made positive.
    kept = kept * np.sign(kept[np.abs(kept).argmax(0), np.arange(size)])
    scale = np.sqrt(variances[::-1][:size].mean())
    return (centred @ kept / max(scale, np.finfo(np.float64).tiny)).astype(np.float32)
