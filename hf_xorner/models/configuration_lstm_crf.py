"""Configuration of the LSTM-CRF of lample2016."""

from __future__ import annotations

from typing import Any, ClassVar

from .configuration_tagger import SIZE, UNITS, TaggerConfig


class LstmCrfConfig(TaggerConfig):
    """LSTM-CRF: characters and words through LSTMs with coupled gates, a tanh layer, a CRF with start and end.

    The ablations of the paper's Table 5 are `char_features="none"`, `feature_dropout=0`, `decoder="softmax"`, and no
    pretrained vectors.

    Args:
        hidden_size: Units of the LSTM in each direction (lample2016: 100).
        cell: "coupled": the forget gate is 1 − i, and i and o read the cell through full matrices, as in the paper (see
            also `char_lstm_cell`). "standard": the usual LSTM.
        tanh_size: Units of the tanh layer between LSTM and CRF (lample2016: 100); 0 for no such layer.

    Defaults other than in `TaggerConfig`:
        word_dim: 100, as for English.
        singleton_dropout: 0.5.
        max_word_chars: 200, as the paper does not truncate words.
        initializer: "uniform" (the paper does not say; its program: "glorot", a tenth as wide for 25,000 words).
        feature_dropout: 0.5, on [word ; characters].
        malformed_spans: "repair", as the paper scores by conlleval.
        loss_reduction: "sum", the negative log-likelihood of sentences; the paper's batch is one sentence.
    """

    model_type = "lstm-crf"
    citation = """\
@inproceedings{lample2016,
  title     = {Neural Architectures for Named Entity Recognition},
  author    = {Lample, Guillaume and Ballesteros, Miguel and Subramanian, Sandeep and Kawakami, Kazuya and Dyer, Chris},
  booktitle = {Proceedings of NAACL-HLT},
  year      = {2016},
}"""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"cell": ("coupled", "standard")}
    bounds: ClassVar = {"hidden_size": UNITS, "tanh_size": SIZE}

    hidden_size: int = 100
    cell: str = "coupled"
    tanh_size: int = 100
    word_dim: int = 100
    singleton_dropout: float = 0.5
    max_word_chars: int = 200
    char_features: str = "lstm"
    char_lstm_cell: str = "coupled"
    casing_features: bool = False
    feature_dropout: float = 0.5
    decoder: str = "crf"
    malformed_spans: str = "repair"
    loss_reduction: str = "sum"
    initializer: str = "uniform"
