"""Static vectors of words or of pieces distilled from a pretrained encoder: encoded alone, averaged and reduced."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import DataError
from .composition import Composition, fit_composition
from .encoders import PretrainedEncoder, usual_layers

#: Words that are encoded at a time; they are of like length, so hardly any padding is computed.
_BATCH = 256

#: Pieces of a word that its composition is fitted to.
LONGEST_WORD = 12


def encode_words(
    words: Sequence[str],
    encoder: PretrainedEncoder,
    layers: Sequence[int] | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> NDArray[np.float32]:
    """Encode each word by itself: the mean over its pieces, special ones left out, and over layers.

    Args:
        words: The words. Of one that is longer than the encoder can read, the beginning is read.
        encoder: The encoder.
        layers: The hidden states that are averaged; 0 is what enters the first layer. By default all but the first two.
        progress: Wraps the batches, to show how far it is.

    Returns:
        One vector a word, zeros for those of which the tokenizer leaves nothing. Shape: (words, hidden size).
    """
    model, layers = encoder.model, _checked(layers, encoder.model)
    frame = encoder.pieces.frame()
    longest = encoder.window - sum(map(len, frame))
    order = sorted(range(len(words)), key=lambda index: len(words[index]))
    vectors = np.zeros((len(words), model.config.hidden_size), dtype=np.float32)
    model.eval()
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    for batch in progress(batches):
        vectors[batch] = _means(encoder.pieces.of([words[index] for index in batch], longest), model, frame, layers)
    return vectors


def encode_pieces(
    encoder: PretrainedEncoder,
    layers: Sequence[int] | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> NDArray[np.float32]:
    """Encode each piece by itself, between the special ones: the mean over layers.

    Args:
        encoder: The encoder.
        layers: As for `encode_words`.
        progress: As for `encode_words`.

    Returns:
        One vector a piece. Shape: (pieces, hidden size).
    """
    model, pieces, layers = encoder.model, encoder.pieces, _checked(layers, encoder.model)
    vectors = np.zeros((pieces.size, model.config.hidden_size), dtype=np.float32)
    model.eval()
    batches = [np.arange(start, min(start + _BATCH, pieces.size)) for start in range(0, pieces.size, _BATCH)]
    for batch in progress(batches):
        vectors[batch] = _means(batch[:, None] + 1, model, pieces.frame(), layers)
    return vectors


@torch.inference_mode()
def _means(
    piece_ids: NDArray[np.int64], model: Any, frame: tuple[list[int], list[int]], layers: list[int]
) -> NDArray[np.float32]:
    """The mean states of words, given as `WordPieces.of` gives them, each between the special pieces."""
    before, after = frame
    counts = (piece_ids > 0).sum(1)
    width = max(int(counts.max()), 1)
    ids = np.zeros((len(piece_ids), len(before) + width + len(after)), dtype=np.int64)
    place = np.arange(ids.shape[1]) - len(before)
    inside = (place >= 0) & (place < counts[:, None])
    mask = place < counts[:, None] + len(after)
    ids[~mask] = model.config.pad_token_id or 0
    ids[:, : len(before)] = before
    ids[inside] = piece_ids[piece_ids > 0] - 1
    for number, piece in enumerate(after):
        ids[np.arange(len(ids)), len(before) + counts + number] = piece
    tensors = (torch.from_numpy(array).to(model.device) for array in (ids, mask.astype(np.int64)))
    states = model(**dict(zip(("input_ids", "attention_mask"), tensors, strict=True)), output_hidden_states=True)
    mean = torch.stack([states.hidden_states[layer] for layer in layers]).mean(0).float().cpu().numpy()
    return (mean * inside[..., None]).sum(1) / np.maximum(counts, 1)[:, None]


def _checked(layers: Sequence[int] | None, model: Any) -> list[int]:
    """The layers that are averaged, all of which the encoder has."""
    last = model.config.num_hidden_layers
    chosen = usual_layers(last) if layers is None else list(layers)
    if any(not 0 <= layer <= last for layer in chosen):
        raise DataError(f"layers={chosen}: the encoder has the layers 0 to {last}; choose among them.")
    return chosen


class Reduction(NamedTuple):
    """A projection onto principal components, scaled so that these have a variance of 1 on average.

    Attributes:
        mean: Shape: (dimensions,).
        directions: Shape: (dimensions, size).
    """

    mean: NDArray[np.float64]
    directions: NDArray[np.float64]

    @classmethod
    def of(cls, vectors: NDArray[np.float32], size: int) -> "Reduction":
        """Find the first principal components of vectors.

        Args:
            vectors: The vectors. Shape: (words, dimensions).
            size: The number of components kept.
        """
        if not 0 < size <= vectors.shape[1]:
            raise DataError(
                f"dim={size}: the encoder's vectors have {vectors.shape[1]} dimensions; give 1 to {vectors.shape[1]}."
            )
        wide = vectors.astype(np.float64)
        mean = wide.mean(0)
        variances, directions = np.linalg.eigh((wide - mean).T @ (wide - mean) / len(wide))
        kept = directions[:, ::-1][:, :size]
        # The sign of an eigenvector is arbitrary: the largest entry of each is made positive.
        kept = kept * np.sign(kept[np.abs(kept).argmax(0), np.arange(size)])
        scale = np.sqrt(variances[::-1][:size].mean())
        return cls(mean, kept / max(scale, np.finfo(np.float64).tiny))

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Reduce vectors: (words, dimensions) to (words, size)."""
        return ((vectors - self.mean) @ self.directions).astype(np.float32)


def compose(
    words: Sequence[str],
    encoder: PretrainedEncoder,
    size: int,
    layers: Sequence[int] | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Composition:
    """Distil a vector for each piece of an encoder, and fit how words are composed of them.

    Args:
        words: The words that the composition is fitted to, and whose principal components are kept.
        encoder: The encoder.
        size: The number of components kept.
        layers: As for `encode_words`.
        progress: As for `encode_words`.
    """
    pieces = encoder.pieces
    of_words = encode_words(words, encoder, layers, progress)
    of_pieces = encode_pieces(encoder, layers, progress)
    reduction = Reduction.of(of_words, size)
    vectors = reduction(of_pieces)
    mix, bias = fit_composition(vectors, reduction(of_words), pieces.of(words, LONGEST_WORD))
    return Composition(vectors, mix, bias, pieces)
