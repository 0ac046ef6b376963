"""The configuration fields of taggers that attend to their own sentence."""

from __future__ import annotations

from typing import Any

from .configuration_tagger import TaggerConfig


class SelfAttentionConfig(TaggerConfig):
    """The self-attention of li2020, in windows where a sentence is long.

    Args:
        num_attention_heads: Heads of the self-attention (li2020: 5).
        attention_head_dim: Size of a head (li2020: 40).
        attention_window: Sentences longer than this many words attend within overlapping windows of this size, so
            that cost stays linear in the length; shorter ones attend to all of themselves, as in the paper.
        attention_overlap: Words that two neighbouring windows share.
    """

    num_attention_heads: int = 5
    attention_head_dim: int = 40
    attention_window: int = 512
    attention_overlap: int = 128

    def __post_init__(self, **kwargs: Any) -> None:
        """Check these fields besides the shared ones."""
        super().__post_init__(**kwargs)
        if not 0 <= self.attention_overlap < self.attention_window:
            raise ValueError(
                f"attention_overlap={self.attention_overlap} must be smaller than "
                f"attention_window={self.attention_window} and not negative."
            )
