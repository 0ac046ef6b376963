"""Configuration of the gated relation network of chen2019."""

from __future__ import annotations

from typing import Any, ClassVar

from .configuration_tagger import RATE, UNITS, TaggerConfig


class GrnConfig(TaggerConfig):
    """GRN: convolutions over a word's neighbours, gated relations to all words of the sentence, and a CRF.

    The paper's baselines are DFN (`relation="direct"`) and GAttN (`relation="scalar_gate"`). Its ablations are no
    relation layer (`relation="none"`), one branch (`context_widths=(3,)`), and no context layer (`context_widths=()`).

    Args:
        hidden_size: Channels of every branch of the context layer (chen2019: 400).
        context_widths: Widths of the context layer's convolutions, one branch each (chen2019: 1, 3, 5). Empty: the
            relation layer reads the word features and has their size.
        relation: The use of r_ij = W [x_i ; x_j] + b. "gated": r_i = 1/T Σ_j σ(r_ij) ⊙ x_j (GRN). "direct":
            r_i = 1/T Σ_j r_ij (DFN). "scalar_gate": one gate for all channels of a pair of words (GAttN). "none": no
            relation layer.
        dropout: Dropout after the relation layer (chen2019: 0.5).

    Defaults other than in `TaggerConfig`:
        word_dim: 100.
        max_word_chars: 200, as neither the paper nor its program truncates words.
        char_dim, char_filters, char_widths: 30, 30 and 3; filters have biases and read no character types.
        char_windows: "centred" on each character of a word (eq. 2), with zeros beyond its ends. chen2019's program
            fills words up to the batch's longest with a trained vector.
        initializer: "kaiming". In chen2019's program the relation layer starts within ±1/√hidden_size.
        feature_dropout: 0.5, on [word ; characters].
        decoder: "crf", with `crf_boundaries="start"`: eq. 9 begins with y_0; chen2019's program has "both".
        malformed_spans: "repair", as the paper scores by conlleval.
        loss_reduction: "sum", the negative log-likelihood of sentences; chen2019's program: "sentence".
    """

    model_type = "grn"
    citation = """\
@inproceedings{chen2019,
  title     = {{GRN}: Gated Relation Network to Enhance Convolutional Neural Network for Named Entity Recognition},
  author    = {Chen, Hui and Lin, Zijia and Ding, Guiguang and Lou, Jianguang and Zhang, Yusen and Karlsson, Borje},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year      = {2019},
}"""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"relation": ("gated", "direct", "scalar_gate", "none")}
    bounds: ClassVar = {"hidden_size": UNITS, "context_widths": UNITS, "dropout": RATE}
    odd: ClassVar = ("context_widths",)

    hidden_size: int = 400
    context_widths: list[int] | tuple[int, ...] = (1, 3, 5)
    relation: str = "gated"
    dropout: float = 0.5
    word_dim: int = 100
    max_word_chars: int = 200
    char_dim: int = 30
    char_filters: int = 30
    char_widths: list[int] | tuple[int, ...] = (3,)
    char_type_features: bool = False
    char_bias: bool = True
    char_windows: str = "centred"
    casing_features: bool = False
    feature_dropout: float = 0.5
    decoder: str = "crf"
    crf_boundaries: str = "start"
    malformed_spans: str = "repair"
    loss_reduction: str = "sum"
    initializer: str = "kaiming"
