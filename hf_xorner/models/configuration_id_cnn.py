"""Configuration of the iterated dilated CNN of strubell2017."""

from __future__ import annotations

from typing import ClassVar

from .configuration_tagger import LAYERS, RATE, UNITS, TaggerConfig


class IdCnnConfig(TaggerConfig):
    """ID-CNN: a convolution, then one block of dilated convolutions applied repeatedly with the same weights.

    Args:
        hidden_size: Filters of every convolution (strubell2017: 300).
        filter_width: Words that a filter reads (strubell2017: 3).
        dilations: Distance between these words, for each convolution of the block (its program: 1, 2, 1; the paper's
            general form doubles: 1, 2, 4, …, and ends with 1).
        iterations: Number of applications of the block. With dilations 1, 2, 1 and width 3, a word sees
            1 + 4 · iterations words on either side. For CoNLL-2003 the program has 1 for sentences and 3 for documents;
            the paper's model is the iterated one.
        loss_each_iteration: Train on the mean of the losses after all iterations, as in the paper (its program: on
            their sum, for documents only), otherwise on the loss after the last. Evaluation uses the last iteration.
        dropout: Dropout on the states before the classifier (its program: 0.15).
        word_dropout: Probability of replacing a word by the unknown word in training (its program: 0.15).
        dropout_penalty: Weight in the loss of half the summed squares of the change of a batch's scores by dropout
            (its program: 1e-4).

    Defaults other than in `TaggerConfig`:
        word_dim: 100.
        char_features, casing_features, shape_dim: no characters, no casing, and a shape vector of size 5.
        initializer: "uniform", as in its program.
        feature_dropout: 0.35, as in its program.
        crf_boundaries: "none", as in its program with a CRF.
    """

    model_type = "id-cnn"
    citation = """\
@inproceedings{strubell2017,
  title     = {Fast and Accurate Entity Recognition with Iterated Dilated Convolutions},
  author    = {Strubell, Emma and Verga, Patrick and Belanger, David and McCallum, Andrew},
  booktitle = {Proceedings of the Conference on Empirical Methods in Natural Language Processing},
  year      = {2017},
}"""

    bounds: ClassVar = {
        **dict.fromkeys(("hidden_size", "filter_width", "dilations"), UNITS),
        "iterations": LAYERS,
        **dict.fromkeys(("dropout", "word_dropout"), RATE),
        "dropout_penalty": (0, 100),
    }
    odd: ClassVar = ("filter_width",)

    hidden_size: int = 300
    filter_width: int = 3
    dilations: list[int] | tuple[int, ...] = (1, 2, 1)
    iterations: int = 3
    loss_each_iteration: bool = True
    dropout: float = 0.15
    word_dropout: float = 0.0
    dropout_penalty: float = 0.0
    word_dim: int = 100
    char_features: str = "none"
    casing_features: bool = False
    shape_dim: int = 5
    feature_dropout: float = 0.35
    crf_boundaries: str = "none"
    initializer: str = "uniform"
