"""Configuration of Att-BiLSTM-CNN (li2020)."""

from __future__ import annotations

from .configuration_bilstm_cnn import BiLstmCnnConfig
from .configuration_tagger import SelfAttentionConfig


class AttBiLstmCnnConfig(BiLstmCnnConfig, SelfAttentionConfig):
    """Att-BiLSTM-CNN: the Baseline's states beside self-attention over them.

    Defaults other than in `SelfAttentionConfig`:
        attention_initializer: "head": li2020's program draws the matrices of each head apart.
    """

    model_type = "att-bilstm-cnn"

    attention_initializer: str = "head"
