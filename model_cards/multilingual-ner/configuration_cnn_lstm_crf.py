"""Configuration of the BLSTM-CNNs-CRF of ma2016 and of its variants in chen2019."""

from __future__ import annotations

from typing import Any, ClassVar

from .configuration_tagger import RATE, UNITS, SelfAttentionConfig


class CnnLstmCrfConfig(SelfAttentionConfig):
    """BLSTM-CNNs-CRF: a character CNN, a bidirectional LSTM and a CRF (default: its transitions depend on the words).

    The rows of ma2016's Table 3 are BRNN (`encoder="rnn"`, `char_features="none"`, `decoder="softmax"`), BLSTM
    (`char_features="none"`, `decoder="softmax"`), BLSTM-CNN (`decoder="softmax"`), and the full model. chen2019's
    CNN-BiLSTM-CRF has `conditioned_transitions=False`; its CNN-BiLSTM-Att-CRF also `self_attention`.

    Args:
        hidden_size: Units of the recurrent layer in each direction (ma2016: 200).
        encoder: "lstm" or "rnn", a plain tanh network (ma2016's BRNN).
        dropout: Dropout on the recurrent layer's output (ma2016: 0.5); see also `char_dropout` and `feature_dropout`.
        self_attention: Append self-attention to the layer's states, [H ; C]. chen2019 cites Zukov-Gregoric et al.
            (ICTAI 2017) and has neither equations nor a program; this is the multi-head attention of li2020.

    Defaults other than in `TaggerConfig`:
        word_dim: 100.
        max_word_chars: 45, as in ma2016's program; the paper does not say.
        char_dim: 30.
        char_filters: 30, of one width, 3, over the vectors of characters alone.
        char_activation: "tanh", as in ma2016's program; the paper does not mention it.
        char_padding: 2, as in ma2016's program; Figure 1 shows padding on both sides as character embeddings.
        feature_dropout: 0.5, and `char_dropout` alike.
        crf_emissions: False: ψ has a weight vector and a bias for each pair of labels (section 2.3), and nothing else.
        crf_boundaries: "start": the paper's first pair begins with a start symbol; its last pair ends with a word.
        malformed_spans: "repair", as by conlleval; the paper does not say.
        loss_reduction: "sentence".
        initializer: "uniform".
    """

    model_type = "cnn-lstm-crf"
    citation = """\
@inproceedings{ma2016,
  title     = {End-to-end Sequence Labeling via Bi-directional {LSTM-CNNs-CRF}},
  author    = {Ma, Xuezhe and Hovy, Eduard},
  booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
  year      = {2016},
}"""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"encoder": ("lstm", "rnn")}
    bounds: ClassVar = {"hidden_size": UNITS, "dropout": RATE}

    hidden_size: int = 200
    encoder: str = "lstm"
    dropout: float = 0.5
    self_attention: bool = False
    word_dim: int = 100
    max_word_chars: int = 45
    char_dim: int = 30
    char_filters: int = 30
    char_widths: list[int] | tuple[int, ...] = (3,)
    char_type_features: bool = False
    char_activation: str = "tanh"
    char_bias: bool = True
    char_padding: int = 2
    char_dropout: float = 0.5
    casing_features: bool = False
    feature_dropout: float = 0.5
    decoder: str = "crf"
    conditioned_transitions: bool = True
    crf_emissions: bool = False
    crf_boundaries: str = "start"
    malformed_spans: str = "repair"
    loss_reduction: str = "sentence"
    initializer: str = "uniform"
