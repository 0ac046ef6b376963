"""What the words of a sentence look at: attention (li2020, Figure 2), relations (chen2019, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import torch

from ..tagger import Tagger

#: The sentences of li2020's Figure 1, as far as it shows them.
FIGURE_1 = ("conveyed it from Dutch into English", "a meeting at the White house Saturday")

_STYLE = (
    "body{font:16px system-ui,sans-serif;color-scheme:light dark}table{border-collapse:collapse;margin:1em 0}"
    "th{font-weight:normal;padding:2px 8px;text-align:right}thead th{text-align:left;writing-mode:vertical-rl}"
    "td{width:2.6em;height:2.2em;text-align:center;font-size:12px}"
)


class WordPairs(NamedTuple):
    """Weights of pairs of words: row i for what word i looks at.

    Attributes:
        words: The n words.
        tags: Their labels.
        names: What each map is called.
        maps: (maps, n, n), from 0 to 1.
    """

    words: list[str]
    tags: list[str]
    names: list[str]
    maps: np.ndarray


@torch.inference_mode()
def word_pairs(tagger: Tagger, sentence: str | Sequence[str]) -> WordPairs:
    """The attention of each head, or the norms of a GRN's relations, scaled to [0, 1] as in chen2019's Figure 4.

    Raises:
        ValueError: If the model has neither, or the sentence has no words.
    """
    given = not isinstance(sentence, str)
    words = tagger.tokenizer.tokenize(sentence) if isinstance(sentence, str) else list(sentence)
    if not words:
        raise ValueError("the sentence has no words; name one that has.")
    inputs = tagger.tokenizer([sentence], is_split_into_words=given, return_tensors="pt").to(tagger.model.device)
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


def pairs_to_html(pairs: WordPairs) -> str:
    """A page with a table of each map; darker is more."""
    head = "".join(f"<th scope=col>{escape(word)}</th>" for word in pairs.words)
    tables = []
    for name, rows in zip(pairs.names, pairs.maps, strict=True):
        body = "".join(
            f"<tr><th scope=row>{escape(word)} <small>{escape(tag)}</small></th>{''.join(map(_cell, row))}</tr>"
            for word, tag, row in zip(pairs.words, pairs.tags, rows.tolist(), strict=True)
        )
        tables.append(
            f"<table><caption>{escape(name)}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
    title = escape(" ".join(pairs.words))
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1>{''.join(tables)}</body></html>\n"
    )


def _cell(value: float) -> str:
    colour = "white" if value > 0.55 else "inherit"
    return f'<td style="background:rgba(0,90,170,{value:.3f});color:{colour}">{value:.2f}</td>'
