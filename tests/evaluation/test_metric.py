import random
import threading

import evaluate
import pytest
import torch
from conftest import ARCHITECTURES, LABELS, REPOSITORY, with_decoders
from datasets import ClassLabel, Dataset, Features, List, Value
from processes import run_python
from random_texts import DECODERS, lively_model, random_sentences

from hf_xorner import Tagger
from hf_xorner.evaluation import span_scores
from hf_xorner.evaluation.metric import TaggingMetric

GOLD = [["B-X", "I-X", "O", "B-Y"], ["B-X"], ["O", "I-Y"]]
PREDICTED = [["B-X", "I-X", "O", "B-X"], ["I-X"], ["B-Y", "I-Y"]]
TIMES = {"total_time_in_seconds", "samples_per_second", "latency_in_seconds"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The default cache folder of metrics."""
    folder = tmp_path / "metrics"
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", str(folder))
    return folder


# --- The metric by itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["conlleval", "strict"])
def test_scores_match_span_scores(policy):
    found = TaggingMetric(policy).compute(predictions=PREDICTED, references=GOLD)
    assert found == span_scores(GOLD, PREDICTED, policy)
    assert 0 < found["f1"] < 100


def test_the_given_scheme_is_used_and_plain_tags_have_an_accuracy_only():
    gold, predicted = [["I-X", "B-X"]], [["I-X", "I-X"]]
    found = TaggingMetric("strict", scheme="iob1").compute(predictions=predicted, references=gold)
    assert found == span_scores(gold, predicted, "strict", "iob1")
    assert found["support"] == 2
    assert TaggingMetric().compute(predictions=[["NN", "NN"]], references=[["NN", "VB"]]) == {"accuracy": 50.0}
    assert TaggingMetric().compute(predictions=[], references=[]) == span_scores([], [])


def test_sentences_can_be_added_one_by_one_and_in_batches_and_nothing_is_written(cache):
    metric = TaggingMetric()
    for _ in range(2):
        metric.add(prediction=PREDICTED[0], reference=GOLD[0])
        metric.add_batch(predictions=PREDICTED[1:], references=GOLD[1:])
        assert metric.compute() == span_scores(GOLD, PREDICTED)
    assert not cache.exists()


@pytest.mark.parametrize("options", [{}, {"keep_in_memory": False}], ids=["memory", "files"])
def test_metrics_are_independent(options, cache):
    metrics = [TaggingMetric(policy, **options) for policy in ("conlleval", "strict", "conlleval")]
    pairs = [(GOLD, PREDICTED), (GOLD[:2], PREDICTED[:2]), ([["B-X"]], [["O"]])]
    for metric, (gold, predicted) in zip(metrics, pairs, strict=True):
        metric.add(prediction=predicted[0], reference=gold[0])
    for metric, (gold, predicted) in zip(metrics, pairs, strict=True):
        if gold[1:]:
            metric.add_batch(predictions=predicted[1:], references=gold[1:])
    for metric, (gold, predicted) in reversed(list(zip(metrics, pairs, strict=True))):
        assert metric.compute() == span_scores(gold, predicted, metric.policy)
    assert not list(cache.rglob("*.arrow"))


def test_metrics_of_several_threads_are_independent():
    found = {}

    def score(number):
        gold = [["B-X"] * 4] * 50
        predicted = [["B-X"] * number + ["O"] * (4 - number)] * 50
        found[number] = TaggingMetric().compute(predictions=predicted, references=gold)["recall"]

    threads = [threading.Thread(target=score, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: 25.0 * number for number in range(5)}


def test_several_processes_gather_their_predictions(tmp_path):
    shares = [slice(0, 1), slice(1, 3)]
    found = {}

    def score(process):
        metric = TaggingMetric(num_process=2, process_id=process, experiment_id="mine", cache_dir=str(tmp_path))
        assert not metric.keep_in_memory
        share = shares[process]
        found[process] = metric.compute(predictions=PREDICTED[share], references=GOLD[share])

    threads = [threading.Thread(target=score, args=(process,)) for process in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The first process gathers what the others wrote.
    assert found == {0: span_scores(GOLD, PREDICTED), 1: None}


def test_it_can_be_combined_with_other_metrics():
    both = evaluate.combine([TaggingMetric("conlleval"), TaggingMetric("strict")])
    found = both.compute(predictions=PREDICTED, references=GOLD)
    assert found["tagging_metric_0_f1"] == span_scores(GOLD, PREDICTED, "conlleval")["f1"]
    assert found["tagging_metric_1_f1"] == span_scores(GOLD, PREDICTED, "strict")["f1"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "no tags to score"),
        ({"predictions": [["O"]], "references": [["O", "O"]]}, "sentence 0 .* 2 gold tags but 1"),
        ({"predictions": [["O"]], "references": [["O"], ["O"]]}, "Mismatch in the number of predictions"),
        ({"predictions": [[1, 0]], "references": [[0, 0]]}, "don't match the expected format"),
    ],
)
def test_invalid_input_is_refused_and_discarded(inputs, message):
    metric = TaggingMetric()
    with pytest.raises(ValueError, match=message):
        metric.compute(**inputs)
    assert metric.compute(predictions=PREDICTED, references=GOLD) == span_scores(GOLD, PREDICTED)


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="unknown policy 'loose'; expected one of strict, conlleval"):
        TaggingMetric("loose")
    with pytest.raises(TypeError, match="not scheme"):
        TaggingMetric().compute(predictions=[["O"]], references=[["O"]], scheme="iob1")


def test_scripts_do_not_import_evaluate_py_as_the_library():
    # Python finds modules beside a script before all others.
    program = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "scripts")!r})
import hf_xorner.corpora, hf_xorner.evaluation.report
assert "hf_xorner.tagger" not in sys.modules, "files of predictions are scored without loading what models need"
import hf_xorner.training, hf_xorner.tagger
assert "evaluate" not in sys.modules
try:
    import hf_xorner.evaluation.metric
except ImportError as error:
    assert error.name == "evaluate" and error.path.endswith("evaluate.py"), error
else:
    raise AssertionError("the metric was built on a script")
"""
    run_python(["-c", program]).check_returncode()


# --- With the evaluator ----------------------------------------------------------------------------------------------


def is_one_word_each(words, tokenizer):
    text = " ".join(words)
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    return [text[start:end] for start, end in offsets] == words


def tags_of(entities, words):
    """IOB2 tags of what the Tagger found."""
    tags = ["O"] * len(words)
    for entity in entities:
        inside = entity.word_end - entity.word_start - 1
        tags[entity.word_start : entity.word_end] = [f"B-{entity.label}"] + [f"I-{entity.label}"] * inside
    return tags


@pytest.fixture(scope="module")
def sentences(tokenizer):
    found = [words for words in random_sentences(60, seed=3) if is_one_word_each(words, tokenizer)]
    assert len(found) > 40
    return found


@pytest.fixture(scope="module", params=with_decoders(ARCHITECTURES, DECODERS), ids="-".join)
def model(request, tokenizer):
    kind, decoder = request.param
    return lively_model(kind, tokenizer, decoder)


def gold_for(predicted):
    """Gold tags that a system with these predictions gets partly right."""
    chooser = random.Random(0)
    return [[tag if chooser.random() < 0.8 else chooser.choice(LABELS) for tag in tags] for tags in predicted]


def dataset_of(sentences, gold, tag):
    features = Features({"tokens": List(Value("string")), "ner_tags": List(tag)})
    return Dataset.from_dict({"tokens": sentences, "ner_tags": gold}, features=features)


def run_evaluator(model, dataset, policy="conlleval", **options):
    evaluator = evaluate.evaluator("token-classification")
    metric = TaggingMetric(policy)
    return evaluator.compute(model_or_pipeline=model, data=dataset, metric=metric, **options)


@pytest.mark.parametrize("policy", ["conlleval", "strict"])
def test_the_evaluator_computes_the_scores_of_the_given_words(model, tokenizer, sentences, policy, cache):
    tagged = Tagger(model, tokenizer).tag(sentences)
    predicted = [tags_of(entities, words) for entities, words in zip(tagged, sentences, strict=True)]
    gold = gold_for(predicted)
    expected = span_scores(gold, predicted, policy)
    assert 10 < expected["f1"] < 90
    dataset = dataset_of(sentences, gold, ClassLabel(names=LABELS))
    found = run_evaluator(model, dataset, policy, tokenizer=tokenizer, device=-1)
    assert set(found) == set(expected) | TIMES
    assert {name: found[name] for name in expected} == expected
    assert not cache.exists()


def test_the_evaluator_takes_tags_as_strings_and_models_as_folders(tokenizer, sentences, tmp_path):
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    gold = gold_for([["O"] * len(words) for words in sentences])
    by_number = dataset_of(sentences, gold, ClassLabel(names=LABELS))
    by_string = dataset_of(sentences, gold, Value("string"))
    expected = run_evaluator(model, by_number, tokenizer=tokenizer)
    assert expected["support"] > 20
    for found in (
        run_evaluator(model, by_string, tokenizer=tokenizer),
        run_evaluator(str(tmp_path / "model"), by_string),
    ):
        assert {name: found[name] for name in set(found) - TIMES} == {
            name: expected[name] for name in set(expected) - TIMES
        }


def test_a_split_word_has_the_label_of_its_first_part(tokenizer):
    model = lively_model("bilstm-cnn", tokenizer, "softmax")
    words = ["Ann's", "dog", "met", "Smith,", "London."]
    assert not is_one_word_each(words, tokenizer)
    text = " ".join(words)
    encoding = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    starts = encoding.pop("offset_mapping")[0, :, 0].tolist()
    with torch.no_grad():
        labels = [LABELS[index] for index in model(**encoding).logits[0].argmax(-1)]
    firsts = [labels[starts.index(text.index(word))] for word in words]
    found = run_evaluator(model, dataset_of([words], [firsts], Value("string")), tokenizer=tokenizer)
    assert found["accuracy"] == 100
