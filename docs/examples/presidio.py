"""A Presidio recognizer whose entities are those of a tagger; tested with presidio-analyzer 2.2."""

from collections.abc import Mapping, Sequence
from typing import Any

from presidio_analyzer import EntityRecognizer, RecognizerResult

from hf_xorner import Tagger


class TaggerRecognizer(EntityRecognizer):
    """Finds the entities of a model, under Presidio's names for its labels, such as {"person": "PERSON"}."""

    def __init__(self, model: str, names: Mapping[str, str], min_score: float = 0.0) -> None:
        self.tagger = Tagger.from_pretrained(model, min_score=min_score)
        self.names = names
        super().__init__(sorted(set(names.values())))

    def load(self) -> None:
        """Do nothing: the model is loaded already."""

    def analyze(self, text: str, entities: Sequence[str], nlp_artifacts: Any = None) -> list[RecognizerResult]:
        """Return the wanted entities of a text with their places and scores."""
        named = [(self.names.get(entity.label), entity) for entity in self.tagger(text)]
        return [RecognizerResult(name, e.start, e.end, e.score) for name, e in named if name in entities]
