"""`hf-xorner benchmark`: measure words per second of training and tagging, also of spaCy's NER."""

import contextlib
import io
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.data import DataLoader

from .. import Tagger, load_corpus
from ..corpora.assemble import words_and_tags
from ..corpora.hold_out import hold_out
from ..export.runtime import OnnxTagger
from ..files import write_json
from ..options import option, read_options
from ..registration import CONFIGS
from ..training.arguments import RunArguments, arguments_of
from ..training.batches import TaggingCollator
from ..training.recipes import recipe_names
from ..training.run import prepare
from ..training.trainer import TaggerTrainer

#: A CRF with constant transitions, as in other libraries.
CHEN2019 = {"conditioned_transitions": False}
#: The architecture and the config's fields of each model that can be measured.
CONTESTANTS: dict[str, tuple[str, dict]] = {name: (name, {}) for name in CONFIGS} | {
    "cnn-lstm-crf/small": ("cnn-lstm-crf", {**CHEN2019, "char_dim": 50, "char_filters": 50, "hidden_size": 100}),
    "cnn-lstm-crf/chen2019": ("cnn-lstm-crf", CHEN2019),
}
#: Number of sentences that are tagged one by one.
SINGLE = 300
#: Updates of each model before it is timed, enough to find entities; and spaCy's batch size.
UPDATES, BATCH = 100, 32

EXAMPLES = (
    "hf-xorner benchmark",
    "hf-xorner benchmark cross-bilstm-cnn grn --device cpu --json figures.json",
    "hf-xorner benchmark --against spacy --dataset conll2003 --data_dir conll2003",
    "hf-xorner benchmark bilstm-cnn li2020/table1/cross --train --sentences 640",
)
DESCRIPTION = (
    "Measure words per second of training steps and of tagging the test split, the median time for a single sentence, "
    "and the peak memory of a new process that trains and tags. Only compare figures of one run, since machines are "
    "noisy. The best round counts; rounds of a model alternate with spaCy's. Models are first trained for "
    f"{UPDATES} updates; trained vectors of the same size replace the pretrained ones of a recipe."
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
        "Architectures, cnn-lstm-crf/small, cnn-lstm-crf/chen2019, or recipes; by default the architectures.",
        positional=True,
    )
    train: bool = option(False, "Also time an epoch of the Trainer.")
    against: str | None = option(None, '"spacy": also measure spaCy\'s NER.', choices=("spacy",))
    onnx: bool = option(False, "Also measure the ONNX export of each model.")
    dataset: str = option("xor", "The corpus; its training split and test split are used.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    context: str | None = option(None, "Another encoder for recipes with an encoder: a folder or owner/name.")
    sentences: int = option(640, "Number of sentences of each split.", bounds=(1, math.inf))
    rounds: int = option(3, "Number of rounds.", bounds=(1, math.inf))
    device: str = option("cpu", "The device.", choices=("cpu", "cuda"))
    json: str | None = option(None, "Write the figures to this JSON file.")


def run(words: Iterable[str]) -> None:
    """Measure, and print the figures of each model as soon as they are known."""
    options = read_options(Options, list(words))
    names = options.models or list(CONFIGS)
    if unknown := {*names}.difference(CONTESTANTS, recipe_names()):
        raise ValueError(
            f"{', '.join(sorted(unknown))} is unknown; choose among {', '.join(CONTESTANTS)} and the package's recipes."
        )
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda: there is no GPU that PyTorch can use; leave the option out.")
    for package in (options.against, "onnx" if options.onnx else None):
        if package:  # if it is missing, the error comes before the training
            import_module(package)
    columns = ["train", *(["trainer"] if options.train else []), "tag", "sentence_ms", "peak_mb"]
    columns += ["times_spacy"] if options.against else []
    print(f"{options.dataset} on {options.device}, {torch.get_num_threads()} threads")
    print(" " * 40 + "".join(f"{column:>14}" for column in columns), flush=True)
    rows: Rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, row in measure(names, options, folder):
            rows[name] = row
            cells = (f"{row[key]:,.{0 if row[key] >= 1000 else 2}f}" if key in row else "" for key in columns)
            print(f"{name:<40}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    if options.json:
        write_json(options.json, rows)


def measure(names: list[str], options: Options, folder: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the names and figures of the models, of their exports and of spaCy."""
    corpus, _ = hold_out(load_corpus(options.dataset, options.data_dir), RunArguments.hold_out, options.dataset)
    if "test" not in corpus:
        raise ValueError(f"{options.dataset} has no test split, which is timed; name a folder with one.")
    test = corpus["test"]["tokens"][: options.sentences]
    single = test[:: -(-len(test) // SINGLE)]
    train = list(
        zip(*words_and_tags(corpus["train"].select(range(min(options.sentences, len(corpus["train"]))))), strict=True)
    )
    count = {"tag": sum(map(len, test)), **dict.fromkeys(("train", "trainer"), sum(len(words) for words, _ in train))}
    spacy_calls: Calls = {}
    with new_process() as process:
        if options.against:
            process.submit(prepare_spacy, train).result()
            spacy_calls["spacy", "train"] = lambda: process.submit(spacy_update).result()
            spacy_calls["spacy", "tag"] = lambda: process.submit(spacy_tag_seconds, test).result()
            spacy_calls["spacy", "sentence_ms"] = lambda: process.submit(spacy_single_seconds, single).result()
        spacy: dict[str, float] = {}
        for name in names:
            print(f"{name}: measuring", file=sys.stderr, end="\r" if sys.stderr.isatty() else "\n")
            calls = {**calls_of(name, options, folder, test, single), **spacy_calls}
            rows: Rows = {key: {} for key, _ in calls}
            for (key, kind), least in best_seconds(calls, options).items():
                rows[key][kind] = count[kind] / least if kind in count else 1000 * least
            with new_process() as other:
                peak = other.submit(peak_mb, name, options, folder).result()
            rows[name] |= {} if peak is None else {"peak_mb": peak}
            spacy = rows.pop("spacy", spacy)
            for key, row in rows.items():
                yield key, row | ({"times_spacy": row["tag"] / spacy["tag"]} if spacy else {})
        if spacy:
            yield "spacy", spacy | {"times_spacy": 1.0}


def calls_of(name: str, options: Options, folder: str, test: list[list[str]], single: list[list[str]]) -> Calls:
    """Train a model for a moment, and return what is timed of it and of its export."""
    trainer = fitted(name, options, folder)
    calls: Calls = {(name, "train"): partial(update, trainer, batches_of(trainer))}
    if options.train:
        calls[name, "trainer"] = partial(epoch_seconds, trainer)
    taggers: dict[str, Any] = {name: Tagger(trainer.model, trainer.processing_class)}
    if options.onnx:
        taggers[f"{name} onnx"] = exported_tagger(trainer, f"{folder}/{name}/onnx")
    for key, tagger in taggers.items():
        calls[key, "tag"] = partial(tagger, test)
        calls[key, "sentence_ms"] = partial(single_seconds, tagger, single)
    return calls


def best_seconds(calls: Calls, options: Options) -> dict[tuple[str, str], float]:
    """The best time of every call; rounds alternate, so that other load on the machine affects calls equally."""
    best: dict[tuple[str, str], float] = {}
    # Time a GPU's computation, not only the launch of its kernels.
    synchronise = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for number in range(options.rounds + 1):
        for key, call in calls.items():
            synchronise()
            start = time.perf_counter()
            result = call()
            synchronise()
            elapsed = result if isinstance(result, float) else time.perf_counter() - start
            if number:  # The first round warms up.
                best[key] = min(elapsed, best.get(key, elapsed))
    return best


def new_process() -> ProcessPoolExecutor:
    """Return an executor of one new process."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


# --- Models ----------------------------------------------------------------------------------------------------------

#: Options that disable everything that is not timed.
QUIET = {
    "eval_strategy": "no",
    "save_strategy": "no",
    "load_best_model_at_end": False,
    "num_train_epochs": 1,
    "disable_tqdm": True,
}
#: Options of a recipe that are reset: steps that are not timed, and files that are not read.
RESET = ("average_epochs", "early_stopping", "vectors", "composed", "vectors_as", "most_frequent_vectors")


def fitted(name: str, options: Options, folder: str) -> TaggerTrainer:
    """Return the Trainer of a recipe or a model with some sentences, after `UPDATES` updates."""
    values: dict[str, Any] = {**QUIET, "dataset": options.dataset, "data_dir": options.data_dir}
    values |= {"output_dir": f"{folder}/{name}", "use_cpu": options.device == "cpu"}
    if name in CONTESTANTS:
        model_type, fields = CONTESTANTS[name]
        run, training, config_fields = arguments_of({**values, "model_type": model_type, **fields})
    else:
        values |= dict.fromkeys(RESET)
        values |= {"context": options.context} if options.context else {}
        run, training, config_fields = arguments_of(values, name)
    run.recipe = name  # no options by the size of the corpus
    trainer = prepare(run, training, config_fields).trainer
    count = min(options.sentences, len(trainer.train_dataset))
    trainer.train_dataset = trainer.train_dataset.select(range(count))
    trainer.create_optimizer()
    update(trainer, islice(cycle(batches_of(trainer)), UPDATES))
    return trainer


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
    trainer.model.eval()  # for the calls that tag


def epoch_seconds(trainer: TaggerTrainer) -> float:
    """Train for an epoch; return the time in seconds."""
    with contextlib.redirect_stdout(io.StringIO()):  # the losses
        seconds = trainer.train().metrics["train_runtime"]
    trainer.model.eval()
    return seconds


def exported_tagger(trainer: TaggerTrainer, folder: str) -> OnnxTagger:
    """Export the model into a folder, and load it."""
    from ..export.onnx import export_onnx

    Tagger(trainer.model, trainer.processing_class).save_pretrained(folder)
    export_onnx(folder, folder)
    return OnnxTagger.from_pretrained(folder)


def single_seconds(tagger: Callable[[list[list[str]]], Any], sentences: list[list[str]]) -> float:
    """Return the median time in seconds for sentences that are tagged one by one."""
    seconds = []
    for words in sentences:
        start = time.perf_counter()
        tagger([words])
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def peak_mb(name: str, options: Options, folder: str) -> float | None:
    """Train and tag with a model; return the peak memory of this process in MB; None if the system does not tell."""
    trainer = fitted(name, options, folder)
    Tagger(trainer.model, trainer.processing_class)(trainer.train_dataset["tokens"][:])
    if options.device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")  # of Linux
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024 if status.exists() else None


# --- spaCy -----------------------------------------------------------------------------------------------------------

# These functions run in a separate process.

_pipeline: Any = None
_examples: list[Any] = []


def prepare_spacy(sentences: Sentences) -> None:
    """Create spaCy's default NER for CPUs, and train it for `UPDATES` updates."""
    global _pipeline
    import spacy
    from spacy.training import Example, iob_to_biluo

    _pipeline = spacy.blank("en")
    _pipeline.add_pipe("ner")
    _examples.extend(
        Example.from_dict(_document(words), {"words": words, "entities": iob_to_biluo(tags)})
        for words, tags in sentences
    )
    _pipeline.initialize(lambda: _examples)
    spacy_update(UPDATES)


def spacy_update(most: int | None = None) -> None:
    """Update spaCy's NER once for each batch of the sentences."""
    from spacy.util import minibatch

    for batch in islice(minibatch(_examples, BATCH), most):
        _pipeline.update(batch)


def spacy_tag_seconds(sentences: list[list[str]]) -> float:
    """Return the time in seconds from words to entities, with one or two processes, whichever is faster."""
    seconds = []
    for processes in (1, 2):
        start = time.perf_counter()
        docs = (_document(words) for words in sentences)
        for doc in _pipeline.pipe(docs, batch_size=256, n_process=processes):
            _entities(doc)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def spacy_single_seconds(sentences: list[list[str]]) -> float:
    """Return the median time in seconds for sentences that are tagged one by one."""
    return single_seconds(lambda batch: _entities(_pipeline(_document(batch[0]))), sentences)


def _document(words: list[str]) -> Any:
    from spacy.tokens import Doc

    return Doc(_pipeline.vocab, words=words)


def _entities(doc: Any) -> list[tuple[str, str, int, int]]:
    return [(entity.label_, entity.text, entity.start_char, entity.end_char) for entity in doc.ents]
