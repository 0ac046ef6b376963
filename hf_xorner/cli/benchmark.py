"""`hf-xorner benchmark`: words per second of tagging and training, of models and of spaCy's NER."""

from __future__ import annotations

import contextlib
import io
import json
import math
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import DataLoader

from .. import Tagger, load_corpus
from ..corpora.assemble import words_and_tags
from ..export.runtime import OnnxTagger
from ..options import option, read_options
from ..registration import CONFIGS
from ..training import TaggerTrainer, TaggingCollator, prepare
from ..training.arguments import arguments_of
from ..training.recipes import recipe_names
from .export import onnx_needed

#: A CRF whose transitions are numbers, as in other libraries.
CHEN2019 = {"conditioned_transitions": False}
#: The architecture and the fields of each model that can be measured.
CONTESTANTS: dict[str, tuple[str, dict]] = {name: (name, {}) for name in CONFIGS} | {
    "cnn-lstm-crf/small": ("cnn-lstm-crf", {**CHEN2019, "char_dim": 50, "char_filters": 50, "hidden_size": 100}),
    "cnn-lstm-crf/chen2019": ("cnn-lstm-crf", CHEN2019),
}
#: By default, the sentences that are measured; those that are tagged one by one.
SENTENCES, SINGLE = 1280, 300
#: Updates of a model, and of spaCy's, before they are timed, after which they find entities; spaCy's batches.
UPDATES, BATCH = 100, 32

EXAMPLES = (
    "hf-xorner benchmark",
    "hf-xorner benchmark cross-bilstm-cnn grn --device cpu --json figures.json",
    "hf-xorner benchmark --against spacy --dataset conll2003 --data_dir conll2003",
    "hf-xorner benchmark bilstm-cnn li2020/table1/cross --train --sentences 640",
)
DESCRIPTION = (
    "Measure words per second of training steps and of tagging, and the peak memory of a new process that does both. "
    "Machines are noisy: compare figures of one run. The rounds of all models alternate, and the best one counts. "
    "--train measures the seconds of an epoch of the Trainer, and of a bare loop of the same steps over batches that "
    "were encoded before; trained vectors of the same size replace pretrained ones."
)

#: The words of each sentence, and their tags in IOB2.
Sentences = list[tuple[list[str], list[str]]]
#: Figures by model and by name.
Rows = dict[str, dict[str, float]]
#: Calls to be timed, by model and kind of work; a call that times itself returns its seconds.
Calls = dict[tuple[str, str], Callable[[], object]]


@dataclass
class Options:
    """The options of a benchmark."""

    models: list[str] = option(
        [],
        "Architectures, cnn-lstm-crf/small, cnn-lstm-crf/chen2019, or with --train recipes; by default the "
        "architectures.",
        positional=True,
    )
    train: bool = option(False, "Time training epochs of the Trainer and of bare loops.")
    against: str | None = option(
        None,
        "spacy: compare with spaCy's NER, tagging the corpus' whole test split, or with --train an epoch.",
        choices=("spacy",),
    )
    onnx: bool = option(False, "With --against, also measure the ONNX export of each model.")
    dataset: str = option("xor", "The corpus whose training split is used.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    context: str | None = option(None, "Another encoder for recipes that read one: a folder or owner/name.")
    sentences: int | None = option(
        None, f"Number of sentences; by default {SENTENCES}, against spaCy all.", bounds=(1, math.inf)
    )
    rounds: int = option(5, "Number of rounds.", bounds=(1, math.inf))
    device: str = option("cpu", "The device: cpu or cuda.")
    json: str | None = option(None, "Write the figures to this JSON file.")


def run(words: Iterable[str]) -> None:
    """Measure, and print a table."""
    options = read_options(Options, list(words))
    tagging_of_spacy = options.against and not options.train
    names = options.models or list(CONFIGS)
    known = [*CONTESTANTS, *(recipe_names() if options.train else [])]
    if unknown := set(names) - set(known):
        raise ValueError(f"{', '.join(sorted(unknown))} is unknown; choose among {', '.join(known)}.")
    if options.onnx and not tagging_of_spacy:
        raise ValueError("--onnx has no effect without --against spacy; leave it out.")
    if options.against and find_spec("spacy") is None:
        raise ValueError('--against spacy needs spaCy: pip install "hf_xorner[spacy]".')
    measure = time_epochs if options.train else time_tagging_and_spacy if options.against else time_models
    with onnx_needed(), tempfile.TemporaryDirectory() as folder:
        rows = measure(names, options, folder)
    print(f"{options.dataset} on {options.device}, {torch.get_num_threads()} threads")
    print(" " * 40 + "".join(f"{column:>18}" for column in rows[names[0]]))
    for name, row in rows.items():
        print(f"{name:<40}" + "".join(f"{value:>18.{0 if value >= 1000 else 2}f}" for value in row.values()))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def best_seconds(calls: Calls, options: Options) -> dict[tuple[str, str], float]:
    """The best time of every call; rounds alternate, so that a busy moment of the machine hits all alike."""
    best: dict[tuple[str, str], float] = {}
    # A GPU's work is timed, not its launching.
    synchronise = torch.cuda.synchronize if options.device.startswith("cuda") else lambda: None
    for number in range(options.rounds + 1):
        for key, call in calls.items():
            synchronise()
            start = time.perf_counter()
            own = call()
            synchronise()
            elapsed = own if isinstance(own, float) else time.perf_counter() - start
            if number:  # The first round warms up.
                best[key] = min(elapsed, best.get(key, elapsed))
    return best


def new_process() -> ProcessPoolExecutor:
    """Return an executor of one new process."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


# --- Models ----------------------------------------------------------------------------------------------------------

#: Options that switch off what is not timed.
QUIET = {
    "eval_strategy": "no",
    "save_strategy": "no",
    "load_best_model_at_end": False,
    "num_train_epochs": 1,
    "disable_tqdm": True,
}
#: Options of a recipe that are taken back: what is not timed, and files that are not read.
TAKEN_BACK = ("average_epochs", "early_stopping", "vectors", "composed", "vectors_as", "most_frequent_vectors")


def trainer_for(name: str, options: Options, folder: str) -> TaggerTrainer:
    """Return the Trainer of a recipe or a model over some sentences, which writes into a folder."""
    values: dict[str, Any] = {**QUIET, "dataset": options.dataset, "data_dir": options.data_dir}
    values |= {"output_dir": f"{folder}/{name}", "use_cpu": options.device == "cpu"}
    if name in CONTESTANTS:
        model_type, fields = CONTESTANTS[name]
        run, training, config_fields = arguments_of({**values, "model_type": model_type, **fields})
    else:
        values |= dict.fromkeys(TAKEN_BACK)
        values |= {"context": options.context} if options.context else {}
        run, training, config_fields = arguments_of(values, name)
    run.given = None  # the defaults, whatever the size of the corpus
    trainer = prepare(run, training, config_fields).trainer
    count = min(options.sentences or SENTENCES, len(trainer.train_dataset))
    trainer.train_dataset = trainer.train_dataset.select(range(count))
    return trainer


def fitted(name: str, options: Options, folder: str) -> TaggerTrainer:
    """Return the Trainer of a model after a few updates."""
    trainer = trainer_for(name, options, folder)
    trainer.optimizer = torch.optim.Adam(trainer.model.parameters(), 0.003)
    update(trainer, islice(cycle(batches_of(trainer)), UPDATES))
    return trainer


def sentences_of(split: Dataset) -> Sentences:
    """Return words and tags of each sentence."""
    return list(zip(*words_and_tags(split), strict=True))


def batches_of(trainer: TaggerTrainer) -> list[dict[str, torch.Tensor]]:
    """Return encoded batches of the sentences, on the device of the model."""
    size, collate = trainer.args.per_device_train_batch_size, TaggingCollator(trainer.processing_class)
    loader = DataLoader(trainer.train_dataset, size, collate_fn=collate)
    return [{key: value.to(trainer.model.device) for key, value in batch.items()} for batch in loader]


def update(trainer: TaggerTrainer, batches: Iterable[dict[str, torch.Tensor]]) -> None:
    """Update the model once for each batch."""
    trainer.model.train()
    for batch in batches:
        trainer.model(**batch).loss.backward()
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()


def tag(trainer: TaggerTrainer) -> None:
    """Tag the sentences."""
    Tagger(trainer.model, trainer.processing_class).tag(trainer.train_dataset["tokens"][:])


def time_models(names: list[str], options: Options, folder: str) -> Rows:
    """Measure words per second of training steps and of tagging, and peak memory."""
    calls: Calls = {}
    for name in names:
        trainer = fitted(name, options, folder)
        calls[name, "train"] = partial(update, trainer, batches_of(trainer))
        calls[name, "tag"] = partial(tag, trainer)
    words = sum(map(len, trainer.train_dataset["tokens"]))
    rows: Rows = {name: {} for name in names}
    for (name, kind), seconds in best_seconds(calls, options).items():
        rows[name][kind] = words / seconds
    for name, row in rows.items():
        with new_process() as process:
            row["peak_mb"] = process.submit(peak_mb, name, options, folder).result()
    return rows


def peak_mb(name: str, options: Options, folder: str) -> float:
    """Train and tag with a model; return the peak memory of this process, in MB."""
    tag(fitted(name, options, folder))
    if options.device.startswith("cuda"):
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")
    if status.exists():
        # Linux counts into ru_maxrss what the process that started this one held at that time.
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def time_epochs(names: list[str], options: Options, folder: str) -> Rows:
    """Measure the seconds of an epoch of the Trainer, and of a bare loop."""
    rows: Rows = {}
    for name in names:
        trainer = trainer_for(name, options, folder)
        trainer.create_optimizer()
        calls: Calls = {
            (name, "bare"): partial(update, trainer, batches_of(trainer)),
            (name, "trainer"): lambda trainer=trainer: trainer.train().metrics["train_runtime"],
        }
        with contextlib.redirect_stdout(io.StringIO()):  # the losses
            bare, own = best_seconds(calls, options).values()
        rows[name] = {"bare": bare, "trainer": own, "overhead": own / bare - 1}
        if options.against:
            with new_process() as process:
                spacy = process.submit(spacy_epoch_seconds, sentences_of(trainer.train_dataset)).result()
            rows[name] |= {"spacy": spacy, "share_of_spacy": own / spacy}
    return rows


# --- Tagging, with spaCy ---------------------------------------------------------------------------------------------


def time_tagging_and_spacy(names: list[str], options: Options, folder: str) -> Rows:
    """Measure words per second, words in and entities out, and the median time of a single sentence, with spaCy's."""
    corpus = load_corpus(options.dataset, options.data_dir)
    test = corpus["test"]["tokens"][: options.sentences]
    single = test[:: -(-len(test) // SINGLE)]
    taggers: dict[str, Any] = {}
    for name in names:
        trainer = fitted(name, options, folder)
        taggers[name] = Tagger(trainer.model, trainer.processing_class)
        if options.onnx:
            from ..export.onnx import export_onnx

            taggers[name].save_pretrained(f"{folder}/{name}/onnx")
            export_onnx(f"{folder}/{name}/onnx", f"{folder}/{name}/onnx")
            taggers[f"{name} onnx"] = OnnxTagger.from_pretrained(f"{folder}/{name}/onnx")
    with new_process() as process:
        process.submit(prepare_spacy, sentences_of(corpus["train"])).result()
        calls: Calls = {
            ("spacy", "tag"): lambda: process.submit(spacy_tag_seconds, test).result(),
            ("spacy", "single"): lambda: process.submit(spacy_single_seconds, single).result(),
        }
        for name, tagger in taggers.items():
            calls[name, "tag"] = partial(tagger.tag, test)
            calls[name, "single"] = partial(single_seconds, tagger, single)
        seconds = best_seconds(calls, options)
    return {
        name: {
            "words_per_second": sum(map(len, test)) / seconds[name, "tag"],
            "times_spacy": seconds["spacy", "tag"] / seconds[name, "tag"],
            "sentence_ms": 1000 * seconds[name, "single"],
        }
        for name in ("spacy", *taggers)
    }


def single_seconds(tagger: Callable[[list[str]], Any], sentences: list[list[str]]) -> float:
    """Return the median of the seconds of sentences that are tagged one by one."""
    seconds = []
    for words in sentences:
        start = time.perf_counter()
        tagger(words)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


# These functions run in a process of their own.

_pipeline: Any = None


def prepare_spacy(sentences: Sentences) -> None:
    """Train spaCy's default NER for CPUs for a few updates, for the functions below."""
    global _pipeline
    import spacy
    from spacy.util import minibatch

    _pipeline = spacy.blank("en")
    _pipeline.add_pipe("ner")
    examples = _examples(_pipeline, sentences[: UPDATES * BATCH])
    optimizer = _pipeline.initialize(lambda: examples)
    for batch in minibatch(examples, BATCH):
        _pipeline.update(batch, sgd=optimizer)


def spacy_tag_seconds(sentences: list[list[str]]) -> float:
    """Return the seconds from words to entities, at the better of one and two processes."""
    seconds = []
    for processes in (1, 2):
        start = time.perf_counter()
        docs = (_document(_pipeline, words) for words in sentences)
        for doc in _pipeline.pipe(docs, batch_size=256, n_process=processes):
            _entities(doc)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def spacy_single_seconds(sentences: list[list[str]]) -> float:
    """Return the median of the seconds of sentences that are tagged one by one."""
    return single_seconds(lambda words: _entities(_pipeline(_document(_pipeline, words))), sentences)


def spacy_epoch_seconds(sentences: Sentences) -> float:
    """Return the seconds of the second epoch of `spacy train` with its default configuration for CPUs."""
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
    limits = {"max_epochs": 3, "max_steps": 0, "patience": 0, "eval_frequency": 10**9}
    config["training"] |= {**limits, "before_update": {"@callbacks": "hf_xorner.note"}}
    docs = [example.reference for example in _examples(spacy.blank("en"), sentences)]
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("train", docs), ("dev", docs[:50])):
            config["paths"][name] = f"{folder}/{name}.spacy"
            DocBin(docs=part).to_disk(config["paths"][name])
        train(init_nlp(config), None, stdout=io.StringIO())
    return begun[2] - begun[1]


def _examples(nlp: Any, sentences: Sentences) -> list[Any]:
    from spacy.training import Example, iob_to_biluo

    return [
        Example.from_dict(_document(nlp, words), {"words": words, "entities": iob_to_biluo(tags)})
        for words, tags in sentences
    ]


def _document(nlp: Any, words: list[str]) -> Any:
    from spacy.tokens import Doc

    return Doc(nlp.vocab, words=words)


def _entities(doc: Any) -> list[tuple[str, str, int, int]]:
    return [(entity.label_, entity.text, entity.start_char, entity.end_char) for entity in doc.ents]
