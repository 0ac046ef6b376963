"""The speed of spaCy's NER, for the comparisons of `hf-xorner benchmark` and `hf-xorner epochs`.

These functions run in a process of their own, which imports spaCy and not PyTorch.
"""

from __future__ import annotations

import io
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: Words of each sentence, and their tags in IOB2.
Sentences = list[tuple[list[str], list[str]]]

TAG_BATCH = 256
#: Updates before the pipeline is timed, after which it finds entities.
UPDATES = 100

_pipeline: Any = None


def process_with_spacy() -> ProcessPoolExecutor:
    """Return an executor of one new process.

    Raises:
        ValueError: If spaCy is not installed.
    """
    if find_spec("spacy") is None:
        raise ValueError('--against spacy needs spaCy: pip install "hf_xorner[spacy]".')
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def prepare(sentences: Sentences) -> str:
    """Train spaCy's default NER for CPUs for a few updates, for the functions below; return spaCy's version."""
    global _pipeline
    import spacy
    from spacy.util import minibatch

    _pipeline = spacy.blank("en")
    _pipeline.add_pipe("ner")
    examples = _examples(_pipeline, sentences[: UPDATES * 32])
    optimizer = _pipeline.initialize(lambda: examples)
    for batch in minibatch(examples, 32):
        _pipeline.update(batch, sgd=optimizer)
    return spacy.__version__


def tag_seconds(sentences: list[list[str]], processes: int) -> float:
    """Return the seconds from words to entities."""
    start = time.perf_counter()
    docs = (_document(words) for words in sentences)
    for doc in _pipeline.pipe(docs, batch_size=TAG_BATCH, n_process=processes):
        _entities(doc)
    return time.perf_counter() - start


def single_seconds(sentences: list[list[str]]) -> list[float]:
    """Return the seconds of each sentence that is tagged by itself."""
    seconds = []
    for words in sentences:
        start = time.perf_counter()
        _entities(_pipeline(_document(words)))
        seconds.append(time.perf_counter() - start)
    return seconds


def epoch_seconds(sentences: Sentences) -> list[float]:
    """Return the seconds of the first two epochs of `spacy train` with its default configuration for CPUs."""
    import spacy
    from spacy.cli.init_config import init_config
    from spacy.tokens import DocBin
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train

    begun: dict[int, float] = {}

    def note(_: Any, info: dict[str, Any]) -> None:
        begun.setdefault(info["epoch"], time.perf_counter())

    spacy.registry.callbacks("hf_xorner.note", func=lambda: note)
    config = init_config(lang="en", pipeline=["ner"], optimize="efficiency")
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder, f"{name}.spacy")) for name in ("train", "dev")}
        examples = _examples(spacy.blank("en"), sentences)
        DocBin(docs=[each.reference for each in examples]).to_disk(paths["train"])
        DocBin(docs=[each.reference for each in examples[:50]]).to_disk(paths["dev"])
        config["paths"] |= paths
        limits = {"max_epochs": 3, "max_steps": 0, "patience": 0, "eval_frequency": 10**9}
        config["training"] |= {**limits, "before_update": {"@callbacks": "hf_xorner.note"}}
        pipeline = init_nlp(config)
        train(pipeline, None, stdout=io.StringIO(), stderr=sys.stderr)
    return [begun[1] - begun[0], begun[2] - begun[1]]


def _examples(pipeline: Any, sentences: Sentences) -> list[Any]:
    from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo

    examples = []
    for words, tags in sentences:
        gold = _document(words, pipeline)
        gold.ents = biluo_tags_to_spans(gold, iob_to_biluo(tags))
        examples.append(Example(_document(words, pipeline), gold))
    return examples


def _document(words: list[str], pipeline: Any = None) -> Any:
    from spacy.tokens import Doc

    return Doc((pipeline or _pipeline).vocab, words=words)


def _entities(doc: Any) -> list[tuple[str, str, int, int]]:
    return [(entity.label_, entity.text, entity.start_char, entity.end_char) for entity in doc.ents]
