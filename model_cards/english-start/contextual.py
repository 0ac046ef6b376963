"""Word features from a pretrained encoder: its states over the pieces of a sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoModel

from .configuration_tagger import TaggerConfig, encoder_config
from .frozen_vectors import NEEDS_PIECES
from .layers import home_window, number_of_windows

#: Pieces, padding included, that the encoder reads at a time; limits the memory for long documents. Fewer on a CPU, so
#: that windows of one length are read together: with all in one batch, a third of its work was padding.
PIECES_AT_ONCE, PIECES_ON_CPU = 8192, 512


class Windows(NamedTuple):
    """Sentences of n pieces as N windows of at most C pieces, which start at 0, S, 2S, … with S = C - overlap.

    The windows of a sentence depend on its own length only, never on its batch.
    """

    first: Tensor  # (N,) index of a window's first piece among those of all sentences
    size: Tensor  # (N,) its pieces
    home: Tensor  # (P,) the window from which a piece takes its state, in which it is nearest to the middle
    position: Tensor  # (P,) its index within that window

    @classmethod
    def of(cls, counts: Tensor, capacity: int, overlap: int) -> Windows:
        """Windows over sentences of `counts` (B,) pieces."""
        step = capacity - overlap
        number = torch.where(counts > 0, number_of_windows(counts, capacity, overlap), 0)  # (B,)
        before = number.cumsum(0) - number
        sentence = torch.arange(len(counts), device=counts.device)
        of_window, of_piece = sentence.repeat_interleave(number), sentence.repeat_interleave(counts)
        start = (torch.arange(len(of_window), device=counts.device) - before[of_window]) * step
        begins = counts.cumsum(0) - counts
        rank = torch.arange(len(of_piece), device=counts.device) - begins[of_piece]
        home = home_window(rank, counts[of_piece], capacity, overlap)
        return cls(
            first=begins[of_window] + start,
            size=(counts[of_window] - start).clamp(max=capacity),
            home=before[of_piece] + home,
            position=rank - home * step,
        )


class ContextualFeatures(nn.Module):
    """The states of a pretrained encoder over the pieces of a sentence (ELMo's role in chen2019).

    A word's feature is the mean over its pieces of their states, averaged over `context_layers`; zeros for a word
    without pieces. A frozen encoder has no dropout, so `states` can be cached.
    """

    def __init__(self, config: TaggerConfig, encoder: nn.Module | None = None) -> None:
        super().__init__()
        self.config = config
        settings = encoder_config(config.context_encoder or {})
        self.encoder: Any = encoder or AutoModel.from_config(settings, trust_remote_code=False)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler = None  # one vector per sentence, which is not used
        self.padding = settings.pad_token_id or 0
        self.output_size = settings.hidden_size

    def forward(self, piece_ids: Tensor | None, states: Tensor | None = None) -> Tensor:
        """Features (B, T, hidden) of piece_ids (B, T, max_word_pieces), or cached ones from `states`."""
        if states is None:
            if piece_ids is None:
                raise ValueError(NEEDS_PIECES)
            states = self.states(piece_ids)
        if not states.numel():  # A batch without words may have a wrong last dimension.
            states = states.new_zeros(*states.shape[:2], self.output_size)
        return states

    @torch.compiler.disable
    def states(self, piece_ids: Tensor) -> Tensor:
        """The encoder's states of words: piece_ids (B, T, max_word_pieces) → (B, T, hidden)."""
        if piece_ids.is_meta:
            raise ValueError("A model with a context_encoder does not run on the meta device.")
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.config.context_frozen):
            config, present = self.config, piece_ids > 0
            pieces, counts = piece_ids[present] - 1, present.sum((1, 2))
            capacity = config.context_window - len(config.context_prefix) - len(config.context_suffix)
            windows = Windows.of(counts, capacity, config.context_overlap)
            of_windows, begins = self.read(pieces, windows)
            states = of_windows[begins[windows.home] + windows.position]
            in_word = present.sum(-1).flatten()  # (B · T,)
            word = torch.arange(len(in_word), device=in_word.device).repeat_interleave(in_word)
            sums = states.new_zeros(len(in_word), states.shape[-1]).index_add(0, word, states)
            return (sums / in_word.clamp(min=1).unsqueeze(1)).unflatten(0, piece_ids.shape[:2])

    def read(self, pieces: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
        """The states of the pieces of all windows, longest first, and the row (N,) at which each window begins."""
        order = windows.size.argsort(descending=True, stable=True)
        first, size = windows.first[order], windows.size[order]
        sizes = size.tolist()
        parts = [pieces.new_zeros(0, self.output_size, dtype=self.encoder.get_input_embeddings().weight.dtype)]
        begin, most = 0, PIECES_ON_CPU if pieces.device.type == "cpu" else PIECES_AT_ONCE
        while begin < len(sizes):
            end = begin + max(1, most // sizes[begin])
            parts.append(self.read_together(pieces, first[begin:end], size[begin:end]))
            begin = end
        return torch.cat(parts), (size.cumsum(0) - size)[order.argsort()]

    def read_together(self, pieces: Tensor, first: Tensor, size: Tensor) -> Tensor:
        """The states of windows that start at `first` (n,) and have `size` (n,) pieces, longest first."""
        config = self.config
        before, after = len(config.context_prefix), len(config.context_suffix)
        position = torch.arange(before + int(size[0]) + after, device=pieces.device) - before
        inside = (position >= 0) & (position < size.unsqueeze(1))  # (n, width)
        ids = pieces.new_full(inside.shape, self.padding)
        ids[inside] = pieces[(first.unsqueeze(1) + position)[inside]]
        if before:
            ids[:, :before] = pieces.new_tensor(config.context_prefix)
        for number, index in enumerate(config.context_suffix):
            ids[position == size.unsqueeze(1) + number] = index
        mask = position < size.unsqueeze(1) + after
        hidden = self.encoder(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states
        return torch.stack([hidden[layer][inside] for layer in config.context_layers]).mean(0)
