"""Configurations of the three taggers of li2020: Baseline-, Cross- and Att-BiLSTM-CNN.

Li, Fu, Ma. Why Attention? Analyze BiLSTM Deficiency and Its Remedies in the Case of NER. AAAI 2020.
"""

from __future__ import annotations

from typing import Any

from .configuration_tagger import TaggerConfig


class BiLstmCnnConfig(TaggerConfig):
    """Baseline-BiLSTM-CNN: each direction stacks on itself, so no layer sees both contexts of a word at once.

    Args:
        hidden_size: Units of an LSTM in each direction (li2020: 100).
        num_hidden_layers: Stacked LSTM layers (li2020: 2).
        dropout: Variational dropout on the input of every LSTM layer, on its recurrent state and on the top layer's
            output (li2020: 0.35), the masks separate for the two directions.
        dropout_masks: "sequence": every sentence has masks of its own (the paper). "batch": one mask serves the whole
            batch (li2020's program), which lets the fused kernels of GPUs do the recurrence.
    """

    model_type = "bilstm-cnn"

    hidden_size: int = 100
    num_hidden_layers: int = 2
    dropout: float = 0.35
    dropout_masks: str = "sequence"

    def __post_init__(self, **kwargs: Any) -> None:
        """Check this family's fields besides the shared ones."""
        super().__post_init__(**kwargs)
        self.check_choice("dropout_masks", ("sequence", "batch"))
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout={self.dropout} is no share of units to drop; give a number from 0 up to 1.")


class CrossBiLstmCnnConfig(BiLstmCnnConfig):
    """Cross-BiLSTM-CNN: both directions of a layer read both directions of the layer below."""

    model_type = "cross-bilstm-cnn"


class AttBiLstmCnnConfig(BiLstmCnnConfig):
    """Att-BiLSTM-CNN: the Baseline's states beside what self-attention gathers from the whole sentence.

    Args:
        num_attention_heads: Heads of the self-attention (li2020: 5).
        attention_head_dim: Size of a head (li2020: 40).
        attention_window: Sentences longer than this many words attend within overlapping windows of this size, so
            that cost stays linear in the length; shorter ones attend to all of themselves, as in the paper.
        attention_overlap: Words that two neighbouring windows share.
    """

    model_type = "att-bilstm-cnn"

    num_attention_heads: int = 5
    attention_head_dim: int = 40
    attention_window: int = 512
    attention_overlap: int = 128

    def __post_init__(self, **kwargs: Any) -> None:
        """Check this family's fields besides the shared ones."""
        super().__post_init__(**kwargs)
        if not 0 <= self.attention_overlap < self.attention_window:
            raise ValueError(
                f"attention_overlap={self.attention_overlap} must be smaller than "
                f"attention_window={self.attention_window} and not negative."
            )
