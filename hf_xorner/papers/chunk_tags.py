"""Recall of predicted chunk tags, word by word, with parts of the classifier's input set to zero."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..evaluation.breakdowns import CHUNK_TAGS, chunk_tags_of
from ..evaluation.comparison import Comparison, IntArray, percent
from ..models.modeling_tagger import TaggerForTokenClassification
from ..tagger import Tagger

#: The name of the classifier's whole input.
ALL = "all"


def raw_chunk_tags(
    tagger: Tagger, sentences: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Compute the recall of words by their chunk tag before malformed spans are dropped or repaired (li2020, Table 5).

    A word is recalled if its decoded tag has the position of the gold tag; types do not matter. If the model's
    classifier reads states and heads of attention, [H ; C1 ; C2 ; …], the recall is also computed with only some of
    these vectors and zeros for the others, without training.

    Args:
        tagger: The tagger, whose labels have the prefixes B- and I-.
        sentences: The words of each sentence.
        gold: The gold tags of each sentence.

    Returns:
        For each of ``O``, ``S``, ``B``, ``I``, ``E`` the recall with ``all`` vectors and, with attention, with only
        ``H``, ``C``, ``C1``, ``C2``, …; and the ``support`` in words.
    """
    comparison = Comparison.of(gold, gold)
    expected = chunk_tags_of(comparison.gold_ids, comparison)
    predicted = _predicted(tagger, sentences)
    rows = {}
    for name, tag in CHUNK_TAGS.items():
        words = (expected == tag) & comparison.labelled
        support = int(words.sum())
        recalls = {part: percent(int((tags[words] == tag).sum()), support) for part, tags in predicted.items()}
        rows[name] = {**recalls, "support": support}
    return rows


@torch.inference_mode()
def _predicted(tagger: Tagger, sentences: Sequence[Sequence[str]]) -> dict[str, IntArray]:
    """Return the chunk tag of each word, for each part of the classifier's input. Shape: (words,) each."""
    model, words = tagger.model, tagger.tokenizer.words_of(sentences, True)
    parts = _parts(model)
    chunk_tags = {part: np.zeros(len(words.row), dtype=np.int64) for part in parts}
    for inputs, mask, positions in tagger.batches(words, 64):
        lengths = mask.sum(1).to(model.device)
        encoded = model.encode(lengths=lengths, **inputs)
        for part, mask_of_part in parts.items():
            states = encoded.states * mask_of_part
            path = model.decoder(model.score(states), lengths, states).path
            chunk_tags[part][positions] = model.tags.on(path.device).kind[path].cpu()[mask]
    return chunk_tags


def _parts(model: TaggerForTokenClassification) -> dict[str, Tensor]:
    """Return masks (output_size,) of the classifier's input, by name."""
    size, attention = model.encoder.output_size, getattr(model.encoder, "attention", None)
    position = torch.arange(size, device=model.device)
    parts = {ALL: position >= 0}
    if attention is not None:
        in_context = position - (size - attention.output_size)  # in C; negative in H
        parts |= {"H": in_context < 0, "C": in_context >= 0}
        parts |= {f"C{head + 1}": in_context // attention.head_dim == head for head in range(attention.num_heads)}
    return parts
