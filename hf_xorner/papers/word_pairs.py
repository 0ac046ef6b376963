"""Weights between pairs of words: attention (li2020, Figure 2), relations (chen2019, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..evaluation.plots import heat_map, save_figure
from ..tagger import Tagger

#: The visible parts of the sentences in li2020's Figure 1.
FIGURE_1 = ("conveyed it from Dutch into English", "a meeting at the White house Saturday")


class WordPairs(NamedTuple):
    """Weights of pairs of words: row i shows what word i attends to.

    Attributes:
        words: The n words.
        tags: Their labels.
        names: The name of each map.
        maps: (maps, n, n), from 0 to 1.
    """

    words: list[str]
    tags: list[str]
    names: list[str]
    maps: np.ndarray


@torch.inference_mode()
def word_pairs(tagger: Tagger, sentence: str | Sequence[str]) -> WordPairs:
    """Return the attention of each head, or the norms of a GRN's relations, scaled to [0, 1] as in chen2019's Figure 4.

    Raises:
        ValueError: If the model has neither, or the sentence no words.
    """
    words = tagger.tokenizer.tokenize(sentence) if isinstance(sentence, str) else list(sentence)
    if not words:
        raise ValueError(f"the text {sentence!r} has no words; give a sentence.")
    inputs = tagger.tokenizer([words], is_split_into_words=True, return_tensors="pt").to(tagger.model.device)
    output = tagger.model(**inputs, output_attentions=True)
    if output.attentions is None:
        raise ValueError(f"a model of type {tagger.model.config.model_type} has neither attention nor relations.")
    maps = output.attentions[0][0].float().cpu().numpy()
    names = [f"head {head + 1}" for head in range(len(maps))]
    if tagger.model.config.model_type == "grn":
        span = np.ptp(maps)
        maps, names = (maps - maps.min()) / (span if span > 0 else 1), ["relation"]
    labels = tagger.model.config.labels
    return WordPairs(words, [labels[label] for label in output.logits[0].argmax(-1).tolist()], names, maps)


def draw_pairs(pairs: WordPairs, path: Path) -> Path:
    """Draw a heat map of each map; maps of relations only have the rows of entities, as in chen2019's Figure 4."""
    entities = [index for index, tag in enumerate(pairs.tags) if tag != "O" and pairs.names == ["relation"]]
    shown = entities or list(range(len(pairs.words)))
    rows = [f"{pairs.words[index]}  {pairs.tags[index]}" for index in shown]
    width, height = 1.8 + 0.4 * len(pairs.words), 1.8 + 0.4 * len(shown)

    def draw(figure: Any) -> None:
        figure.set_size_inches(width * len(pairs.maps), height + 0.4)
        panels = np.ravel(figure.subplots(1, len(pairs.maps)))
        for axes, name, values in zip(panels, pairs.names, pairs.maps, strict=True):
            heat_map(axes, values[shown], rows, pairs.words)
            axes.set_title(name)

    return save_figure(path, draw)
