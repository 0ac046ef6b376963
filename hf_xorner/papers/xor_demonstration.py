"""Train models on the four phrases of li2020's XOR limitation, to see which phrases each model can learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..evaluation.plots import heat_map, save_figure
from ..models.modeling_tagger import TaggerForTokenClassification
from ..models.tokenization_word_char import WordCharTokenizer
from ..registration import CONFIGS, MODELS
from .xor_proof import IS_ENTITY, PHRASES

#: The two labellings of an entity, as chunk tags, in the public labels of `PHRASE_LABELS`.
PATTERNS = {"B I E": ("B-ART", "I-ART", "I-ART"), "O S O": ("O", "B-ART", "O")}
PHRASE_LABELS = ("O", "B-ART", "I-ART")
STEPS, LEARNING_RATE = 250, 1e-2
SIZES = {"hidden_size": 32, "word_dim": 32, "dropout": 0.0, "feature_dropout": 0.0}
#: The deviation of initial weights. With 0.2, or Glorot's, the Stack-LSTM stays at probabilities of a half.
DEVIATION = 0.4


class Contender(NamedTuple):
    """A model, and the patterns that it cannot learn.

    Attributes:
        name: The name in the table.
        model_type: The architecture.
        fields: Fields of the config.
        fails: The patterns with which at most 3 of 4 phrases can be right.
        why: The reason for the expectation.
    """

    name: str
    model_type: str
    fields: dict[str, str]
    fails: tuple[str, ...]
    why: str


CONTENDERS = (
    Contender("Baseline", "bilstm-cnn", {}, ("B I E", "O S O"), "scores of the middle word are sums of left and right"),
    Contender("Baseline with CRF", "bilstm-cnn", {"decoder": "crf"}, ("O S O",), "transitions do not see the words"),
    Contender("Cross", "cross-bilstm-cnn", {}, (), "both directions meet in the second layer"),
    Contender("Att", "att-bilstm-cnn", {}, (), "attention multiplies left and right"),
    Contender("GRN", "grn", {}, (), "a convolution reads the whole phrase"),
    Contender("Stack-LSTM", "stack-lstm", {}, (), "a hidden layer reads stack and buffer"),
)


class Outcome(NamedTuple):
    """The result of training a model.

    Attributes:
        contender: The model.
        pattern: The chunk tags of entities.
        right: Number of phrases whose middle word has the gold chunk tag.
        probabilities: The probability that the middle word is in an entity, for each phrase.
    """

    contender: Contender
    pattern: str
    right: int
    probabilities: list[float]

    @property
    def expected(self) -> str:
        """The expected result as text."""
        return "at most 3 of 4" if self.pattern in self.contender.fails else "4 of 4"

    @property
    def as_expected(self) -> bool:
        """True if the expectation holds."""
        return (self.right <= 3) == (self.pattern in self.contender.fails)


def demonstrate(seed: int = 0) -> Iterator[Outcome]:
    """Train every model on the four phrases, for either pattern."""
    return (outcome(contender, pattern, seed) for pattern in PATTERNS for contender in CONTENDERS)


def outcome(contender: Contender, pattern: str, seed: int = 0) -> Outcome:
    """Train one model on the four phrases for `STEPS` steps."""
    tokenizer = WordCharTokenizer.from_corpus(PHRASES)
    config_class = CONFIGS[contender.model_type]
    fields = {name: value for name, value in {**SIZES, **contender.fields}.items() if hasattr(config_class, name)}
    config = config_class(**tokenizer.model_fields(), id2label=dict(enumerate(PHRASE_LABELS)), **fields)
    tags = [PATTERNS[pattern] if is_entity else ("O",) * 3 for is_entity in IS_ENTITY]
    labels = torch.tensor([[PHRASE_LABELS.index(tag) for tag in row] for row in tags])
    inputs = tokenizer([list(phrase) for phrase in PHRASES], is_split_into_words=True, return_tensors="pt")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = MODELS[contender.model_type].load()(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=DEVIATION)
        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        model.train()
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(**inputs, labels=labels).loss.backward()
            optimizer.step()
    return Outcome(contender, pattern, *_middle_words(model.eval(), inputs, labels))


@torch.no_grad()
def _middle_words(model: TaggerForTokenClassification, inputs: dict, labels: torch.Tensor) -> tuple[int, list[float]]:
    lengths = inputs["attention_mask"].sum(1)
    encoded = model.encode(inputs["input_ids"], inputs["char_ids"], lengths)
    # Inner tags, since dropping malformed spans would hide wrong tags.
    decoded = model.decoder(model.score(encoded.states), lengths, encoded.states)
    right = (decoded.path == model.tags.to_inner(labels))[:, 1].sum()
    outside, _ = model.tags.outside
    return int(right), (1 - decoded.log_probs[:, 1, outside].exp()).tolist()


def draw_demonstration(outcomes: Sequence[Outcome], path: Path) -> Path:
    """Draw the probability of an entity for left and right words, for each model and pattern."""
    lefts, rights = (list(dict.fromkeys(phrase[side] for phrase in PHRASES)) for side in (0, 2))

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.1 * len(CONTENDERS), 2.4 * len(PATTERNS))
        grid = figure.subplots(len(PATTERNS), len(CONTENDERS))
        for axes, outcome in zip(grid.flat, outcomes, strict=True):  # by pattern, as from `demonstrate`
            values = np.zeros((len(lefts), len(rights)))
            for phrase, probability in zip(PHRASES, outcome.probabilities, strict=True):
                values[lefts.index(phrase[0]), rights.index(phrase[2])] = probability
            heat_map(axes, values, lefts, rights)
            axes.set_title(f"{outcome.contender.name}\n{outcome.pattern}: {outcome.right} of 4", fontsize=9)
        figure.suptitle("Probability that the middle word is in an entity")

    return save_figure(path, draw)
