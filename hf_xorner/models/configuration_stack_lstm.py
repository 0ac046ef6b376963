"""Configuration of the Stack-LSTM of lample2016."""

from __future__ import annotations

from typing import Any, ClassVar

from .configuration_lstm_crf import LstmCrfConfig
from .configuration_tagger import LAYERS, SIZE, UNITS, TaggerConfig


class StackLstmConfig(TaggerConfig):
    """Stack-LSTM: builds labelled chunks by the actions SHIFT, OUT and REDUCE.

    LSTMs over output, stack, buffer and past actions score the next action.

    The fields `decoder`, `conditioned_transitions`, `crf_boundaries` and `constrain_transitions` are ignored.

    Args:
        hidden_size: Units of each LSTM and of the layer that reads all four (lample2016: 100).
        num_hidden_layers: Layers of each of the four LSTMs (lample2016: 2).
        cell: The cells of these LSTMs and of the composition. "coupled": the forget gate is 1 − i, and i and o read
            the cell through full matrices (lample2016, and the first release of its program; see also
            `char_lstm_cell`). "standard": the usual LSTM (the program's later release).
        action_dim: Size of an action's vector (lample2016: 16).
        label_dim: Size of the vector of a chunk's type (lample2016: 20).
        composition_size: Units in each direction of the bidirectional LSTM that computes the vector of a chunk; the
            paper does not say (its program: 100).

    Defaults other than in `TaggerConfig`:
        word_dim: 100, as for English.
        singleton_dropout: 0.5.
        max_word_chars: 200, as the paper does not truncate words.
        char_lstm_cell: "coupled".
        initializer: "uniform" (the paper is silent; its program draws uniformly, too).
        feature_dropout: 0.2, on [word ; characters], as for English (0.3 for other languages).
        malformed_spans: "repair", as the paper scores by conlleval.
        loss_reduction: "sum", the negative log-likelihood of sentences; the paper's batch is one sentence.
    """

    model_type = "stack-lstm"
    citation = LstmCrfConfig.citation
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "cell": ("coupled", "standard"),
        "tag_scheme": ("bioes",),
    }
    bounds: ClassVar = {
        **dict.fromkeys(("hidden_size", "composition_size"), UNITS),
        **dict.fromkeys(("action_dim", "label_dim"), SIZE),
        "num_hidden_layers": LAYERS,
    }

    hidden_size: int = 100
    num_hidden_layers: int = 2
    cell: str = "coupled"
    action_dim: int = 16
    label_dim: int = 20
    composition_size: int = 50
    word_dim: int = 100
    singleton_dropout: float = 0.5
    max_word_chars: int = 200
    char_features: str = "lstm"
    char_lstm_cell: str = "coupled"
    casing_features: bool = False
    feature_dropout: float = 0.2
    malformed_spans: str = "repair"
    loss_reduction: str = "sum"
    initializer: str = "uniform"
