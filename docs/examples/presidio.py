"""A Presidio recognizer whose entities are those of a tagger, and an engine with it; tested with presidio-analyzer 2.2.

`python presidio.py "Imran Vale flew to Oslo from 192.0.2.1."` prints what the engine finds.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.nlp_engine import SpacyNlpEngine

from hf_xorner import Tagger

#: Presidio's names for the labels of the English tagger.
NAMES = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}


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


def analyzer_of(model: str = "english", names: Mapping[str, str] = NAMES, min_score: float = 0.0) -> AnalyzerEngine:
    """Return an engine with the tagger in place of a spaCy model, and Presidio's patterns, such as IP addresses."""
    engine = SpacyNlpEngine()
    engine.nlp = {"en": spacy.blank("en")}  # words for the context of patterns; no spaCy model is downloaded
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(["en"])
    registry.remove_recognizer("SpacyRecognizer")
    registry.add_recognizer(TaggerRecognizer(model, names, min_score))
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])


if __name__ == "__main__":
    text = sys.argv[1]
    for result in analyzer_of().analyze(text, "en"):
        print(result.entity_type, text[result.start : result.end], round(result.score, 2))
