"""Configuration of the iterated dilated CNN of strubell2017."""

from __future__ import annotations

from typing import Any

from .configuration_tagger import TaggerConfig


class IdCnnConfig(TaggerConfig):
    """ID-CNN: a convolution, then one block of dilated convolutions again and again, each time by the same weights.

    Args:
        hidden_size: Filters of every convolution (strubell2017: 300).
        filter_width: Words that a filter reads (strubell2017: 3).
        dilations: How far apart these words stand, one number a convolution of the block (its program: 1, 2, 1; the
            paper's general form doubles: 1, 2, 4, …, and ends with 1).
        iterations: How often the block is applied. With 1, 2, 1 and width 3, a word sees 1 + 4 · iterations words on
            either side. The program's settings for CoNLL-2003 are 1 for sentences, where nothing is iterated any more,
            and 3 for documents; the paper's model is the iterated one, hence 3.
        loss_each_iteration: Train on the loss after every iteration, averaged over them, as the paper writes (its
            program: for documents, and added up); otherwise on that after the last one. Tags, and losses outside of
            training, are those of the last one.
        dropout: Dropout on what is classified (its program: 0.35).

    Other than in `TaggerConfig`:
        word_dim: 100.
        char_features, casing_features, shape_dim: no characters and no casing, but a shape of size 5.
        initializer: "uniform", as in its program.
        feature_dropout: 0.35, as in its program. That also replaces words by the unknown one (with probability 0.35 or,
            below a CRF, 0.15), of which there is `singleton_dropout` here, and punishes what dropout changes of the
            scores (by 1e-4 of its squares), which is left out.
        crf_boundaries: "none", should there be a CRF, as in its program.
    """

    model_type = "id-cnn"
    citation = """\
@inproceedings{strubell2017,
  title     = {Fast and Accurate Entity Recognition with Iterated Dilated Convolutions},
  author    = {Strubell, Emma and Verga, Patrick and Belanger, David and McCallum, Andrew},
  booktitle = {Proceedings of the Conference on Empirical Methods in Natural Language Processing},
  year      = {2017},
}"""

    hidden_size: int = 300
    filter_width: int = 3
    dilations: list[int] | tuple[int, ...] = (1, 2, 1)
    iterations: int = 3
    loss_each_iteration: bool = True
    dropout: float = 0.35
    word_dim: int = 100
    max_word_chars: int = 20
    char_features: str = "none"
    casing_features: bool = False
    shape_dim: int = 5
    feature_dropout: float = 0.35
    crf_boundaries: str = "none"
    initializer: str = "uniform"

    def __post_init__(self, **kwargs: Any) -> None:
        """Check these fields besides the shared ones."""
        super().__post_init__(**kwargs)
        if self.filter_width < 1 or self.filter_width % 2 == 0:
            raise ValueError(
                f"filter_width={self.filter_width} must be an odd number of words, so that as many are read before a "
                "word as after it."
            )
        if self.iterations < 1 or min(self.dilations, default=0) < 1:
            raise ValueError(
                f"iterations={self.iterations} and dilations={tuple(self.dilations)} must be numbers from 1 up."
            )
