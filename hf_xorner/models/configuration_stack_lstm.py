"""Configuration of the Stack-LSTM of lample2016."""

from __future__ import annotations

from typing import Any, ClassVar

from .configuration_lstm_crf import LstmCrfConfig
from .configuration_tagger import TaggerConfig


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
        word_layer_size: Units of a relu layer between a word's features and the LSTMs (lample2016's program: 100); 0
            for none, as in the paper.
        action_dim: Size of an action's vector (lample2016: 16).
        label_dim: Size of the vector of a chunk's type (lample2016: 20).
        composition: How a bidirectional LSTM computes the vector of a chunk. "token": it reads the words and then the
            type; its last states are the vector (lample2016). "guarded": it reads the vector of the empty stack and
            then the words; the vector is relu(W h + R r + b) of its last states h and the type r, and has the size of
            a word (lample2016's program).
        composition_size: Units of that LSTM in each direction, unspecified in the paper (its program: 100).
        composition_layers: Layers of that LSTM, unspecified in the paper (its program: 2).
        outside: The input of the output's LSTM for OUT. "composed": a chunk of one word without type (lample2016).
            "word": the word itself (lample2016's program); it needs "guarded" composition.
        dropout: Dropout between the layers of the four LSTMs (lample2016's program; the paper has feature dropout
            only).

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
        "composition": ("token", "guarded"),
        "outside": ("composed", "word"),
    }

    hidden_size: int = 100
    num_hidden_layers: int = 2
    cell: str = "coupled"
    word_layer_size: int = 0
    action_dim: int = 16
    label_dim: int = 20
    composition: str = "token"
    composition_size: int = 50
    composition_layers: int = 1
    outside: str = "composed"
    dropout: float = 0.0
    word_dim: int = 100
    singleton_dropout: float = 0.5
    max_word_chars: int = 200
    char_features: str = "lstm"
    char_lstm_cell: str = "coupled"
    skip_unknown_chars: bool = True
    casing_features: bool = False
    feature_dropout: float = 0.2
    malformed_spans: str = "repair"
    loss_reduction: str = "sum"
    initializer: str = "uniform"

    def __post_init__(self, **kwargs: Any) -> None:
        """Check the shared fields and these."""
        super().__post_init__(**kwargs)
        if self.outside == "word" and self.composition == "token":
            raise ValueError('outside="word" needs composition="guarded", which makes chunks as large as words.')
