"""Configurations of Baseline-, Cross- and Att-BiLSTM-CNN (li2020)."""

from __future__ import annotations

from typing import Any, ClassVar

from .configuration_tagger import LAYERS, RATE, UNITS, SelfAttentionConfig, TaggerConfig


class BiLstmCnnConfig(TaggerConfig):
    """Baseline-BiLSTM-CNN: each direction stacks on itself, so no layer sees both contexts of a word at once.

    Args:
        hidden_size: Units of an LSTM in each direction (li2020: 100).
        num_hidden_layers: Stacked LSTM layers (li2020: 2).
        dropout: Variational dropout on the input of every LSTM layer, on its recurrent state and on the top layer's
            output (li2020: 0.35), with separate masks for the two directions.
        dropout_masks: "sequence": every sentence has its own masks (the paper). "batch": the batch shares one mask
            (li2020's program), which allows the fused kernels of GPUs.
    """

    model_type = "bilstm-cnn"
    citation = """\
@inproceedings{li2020,
  title     = {Why Attention? Analyze {BiLSTM} Deficiency and Its Remedies in the Case of {NER}},
  author    = {Li, Peng-Hsuan and Fu, Tsu-Jui and Ma, Wei-Yun},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year      = {2020},
}"""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"dropout_masks": ("sequence", "batch")}
    bounds: ClassVar = {"hidden_size": UNITS, "num_hidden_layers": LAYERS, "dropout": RATE}

    hidden_size: int = 100
    num_hidden_layers: int = 2
    dropout: float = 0.35
    dropout_masks: str = "sequence"


class CrossBiLstmCnnConfig(BiLstmCnnConfig):
    """Cross-BiLSTM-CNN: both directions of a layer read both directions of the layer below."""

    model_type = "cross-bilstm-cnn"


class AttBiLstmCnnConfig(BiLstmCnnConfig, SelfAttentionConfig):
    """Att-BiLSTM-CNN: the Baseline's states and the context that self-attention computes from them.

    Defaults other than in `SelfAttentionConfig`:
        attention_initializer: "head": li2020's program draws each head's matrices separately.
    """

    model_type = "att-bilstm-cnn"

    attention_initializer: str = "head"
