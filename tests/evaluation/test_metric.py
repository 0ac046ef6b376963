import random

import evaluate
import pytest
from conftest import LABELS
from datasets import ClassLabel, Dataset, Features, List, Value
from random_texts import random_sentences

from hf_xorner.evaluation import span_scores
from hf_xorner.evaluation.metric import TaggingMetric

GOLD = [["B-X", "I-X", "O", "B-Y"], ["B-X"], ["O", "I-Y"]]
PREDICTED = [["B-X", "I-X", "O", "B-X"], ["I-X"], ["B-Y", "I-Y"]]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The default cache folder of metrics."""
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", str(tmp_path / "metrics"))


def test_scores_match_span_scores():
    for policy in ("conlleval", "strict"):
        metric = TaggingMetric(policy)
        assert metric.compute(predictions=PREDICTED, references=GOLD) == span_scores(GOLD, PREDICTED, policy)
        metric.add(prediction=PREDICTED[0], reference=GOLD[0])
        metric.add_batch(predictions=PREDICTED[1:], references=GOLD[1:])
        assert metric.compute() == span_scores(GOLD, PREDICTED, policy)
    gold, predicted = [["I-X", "B-X"]], [["I-X", "I-X"]]
    scores = TaggingMetric("strict", scheme="iob1").compute(predictions=predicted, references=gold)
    assert scores == span_scores(gold, predicted, "strict", "iob1")
    assert TaggingMetric().compute(predictions=[["NN", "NN"]], references=[["NN", "VB"]]) == {"accuracy": 50.0}
    with pytest.raises(ValueError, match="2 gold tags but 1"):
        TaggingMetric().compute(predictions=[["O"]], references=[["O", "O"]])


def is_one_word_each(words, tokenizer):
    text = " ".join(words)
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    return [text[start:end] for start, end in offsets] == words


@pytest.fixture(scope="module")
def sentences(tokenizer):
    one_word_each = [words for words in random_sentences(60, seed=3) if is_one_word_each(words, tokenizer)]
    assert len(one_word_each) > 40
    return one_word_each


def gold_for(predicted):
    """Gold tags that a system with these predictions gets partly right."""
    chooser = random.Random(0)
    return [[tag if chooser.random() < 0.8 else chooser.choice(LABELS) for tag in tags] for tags in predicted]


def run_evaluator(model, sentences, gold, tag, **options):
    features = Features({"tokens": List(Value("string")), "ner_tags": List(tag)})
    dataset = Dataset.from_dict({"tokens": sentences, "ner_tags": gold}, features=features)
    evaluator = evaluate.evaluator("token-classification")
    return evaluator.compute(model_or_pipeline=model, data=dataset, metric=TaggingMetric(), **options)


def test_the_evaluator_computes_the_scores_of_the_given_words(tagger, tokenizer, sentences):
    predicted = [annotation.labels for annotation in tagger.annotate(sentences)]
    gold = gold_for(predicted)
    expected = span_scores(gold, predicted)
    assert 10 < expected["f1"] < 90
    for tag in (ClassLabel(names=LABELS), Value("string")):
        scores = run_evaluator(tagger.model, sentences, gold, tag, tokenizer=tokenizer, device=-1)
        assert {name: scores[name] for name in expected} == expected
