"""`hf-xorner benchmark`: tokens per second of tagging and training, and floors measured in the same run."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import math
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, TrainerCallback, pipeline

from .. import CrossBiLstmCnnConfig, StackLstmConfig, Tagger, WordCharTokenizer, load_corpus
from ..corpora.assemble import words_and_tags
from ..export.runtime import OnnxTagger
from ..models.transitions import OUT
from ..options import option, read_options
from ..registration import CONFIGS
from ..training import TaggerTrainer, TaggingCollator, prepare
from ..training.arguments import arguments_of
from ..training.recipes import read_recipe, recipe_names
from .export import onnx_needed

STANDARD = {"cell": "standard", "char_lstm_cell": "standard"}
CHEN2019 = {"conditioned_transitions": False}
#: A CRF whose transitions are numbers, as in other libraries, above one LSTM layer.
SMALL = {"conditioned_transitions": False, "char_dim": 50, "char_filters": 50, "hidden_size": 100}

#: Architecture and fields of what can be measured, by name.
CONTESTANTS: dict[str, tuple[str, dict]] = {name: (name, {}) for name in CONFIGS} | {
    "lstm-crf/standard": ("lstm-crf", STANDARD),
    "lstm-crf/softmax": ("lstm-crf", {"decoder": "softmax"}),
    "cnn-lstm-crf/small": ("cnn-lstm-crf", SMALL),
    "cnn-lstm-crf/brnn": ("cnn-lstm-crf", {"encoder": "rnn", "char_features": "none", "decoder": "softmax"}),
    "cnn-lstm-crf/blstm": ("cnn-lstm-crf", {"char_features": "none", "decoder": "softmax"}),
    "cnn-lstm-crf/blstm-cnn": ("cnn-lstm-crf", {"decoder": "softmax"}),
    "cnn-lstm-crf/chen2019": ("cnn-lstm-crf", CHEN2019),
    "cnn-lstm-crf/attention": ("cnn-lstm-crf", {**CHEN2019, "self_attention": True}),
    "grn/dfn": ("grn", {"relation": "direct"}),
    "grn/gattn": ("grn", {"relation": "scalar_gate"}),
    "grn/no-relation": ("grn", {"relation": "none"}),
    "grn/no-context": ("grn", {"context_widths": (), "relation": "gated"}),
    "grn/branch-3": ("grn", {"context_widths": (3,)}),
    "id-cnn/crf": ("id-cnn", {"decoder": "crf"}),
    "id-cnn/once": ("id-cnn", {"iterations": 1}),
    "stack-lstm/standard": ("stack-lstm", STANDARD),
}

EXAMPLES = (
    "hf-xorner benchmark",
    "hf-xorner benchmark cross-bilstm-cnn grn --device cpu --json figures.json",
    "hf-xorner benchmark --against spacy --dataset conll2003 --data_dir conll2003",
    "hf-xorner benchmark bilstm-cnn li2020/table1/cross --train --sentences 640",
)
DESCRIPTION = (
    "Machines are noisy: compare figures of one run. The rounds of all models alternate, and the best one counts. The "
    "floors are what no BiLSTM tagger of these sizes can beat: a bare two-layer bidirectional nn.LSTM(364 -> 100) over "
    "the same batches (forward and backward for training, forward alone for tagging), and the stock pipeline around a "
    "model that costs nothing. --train times an epoch of the Trainer and one of a bare loop: forward, backward and a "
    "step of the same optimizer on the same model, over batches of the same size that were encoded before. Trained "
    "vectors of the same size replace pretrained ones."
)

#: What `--against spacy` measures by default.
COMPARED = ("cnn-lstm-crf/small", "bilstm-cnn", "lstm-crf", "cnn-lstm-crf", "grn", "stack-lstm")
#: Sentences that are tagged one by one.
SINGLE = 300
SENTENCES, TRAIN_BATCH, TAG_BATCH, PIPELINE_BATCH = 1280, 32, 64, 32
#: Updates of a model, and of spaCy's, before they are timed, after which they find entities.
UPDATES = 100
FLOOR_INPUT, FLOOR_HIDDEN = 364, 100

#: Words of each sentence, and their tags in IOB2.
Sentences = list[tuple[list[str], list[str]]]
#: Calls to be timed, by model and kind of work; a call that times itself returns its seconds.
Calls = dict[tuple[str, str], Callable[[], object]]


@dataclass
class Options:
    """The options of a benchmark."""

    models: list[str] = option(
        [],
        "Architectures, their variants such as grn/dfn, or with --train recipes; all: all variants. By default the "
        "architectures.",
        positional=True,
    )
    train: bool = option(False, "Time training epochs of the Trainer and of bare loops.")
    against: str | None = option(
        None,
        "spacy: compare with spaCy's NER, tagging the corpus' whole test split, or with --train an epoch.",
        choices=("spacy",),
    )
    onnx: bool = option(
        False,
        "With --against, also measure the ONNX export of each model, and how long a new process takes from its start "
        "to the first entity.",
    )
    dataset: str = option("xor", "The corpus whose training split is used.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    context: str | None = option(None, "The encoder of recipes that read one: a folder or owner/name.")
    sentences: int | None = option(
        None, f"Number of sentences; by default {SENTENCES}, against spaCy all.", bounds=(1, math.inf)
    )
    rounds: int = option(5, "Number of rounds.", bounds=(1, math.inf))
    device: str = option("cpu", "The device: cpu, cuda, …")
    json: str | None = option(None, "Write the figures to this JSON file.")


def run(words: Sequence[str]) -> None:
    """Measure, and print a table."""
    options = read_options(Options, words)
    names = options.models or list(COMPARED if options.against and not options.train else CONFIGS)
    names = list(CONTESTANTS) if names == ["all"] else names
    known = [*CONTESTANTS, *(recipe_names() if options.train else [])]
    if unknown := set(names) - set(known):
        raise ValueError(f"{', '.join(sorted(unknown))} is unknown; choose among {', '.join(known)}.")
    if options.onnx and not (options.against and not options.train):
        raise ValueError("--onnx has no effect without --against spacy; leave it out.")
    kind = time_training if options.train else against_spacy if options.against else time_with_floors
    with onnx_needed() if options.onnx else contextlib.nullcontext():
        figures = kind(names, options)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


# --- Models and floors -----------------------------------------------------------------------------------------------


class Material(NamedTuple):
    """The sentences that are trained on and tagged, with what models of them need.

    Attributes:
        sentences: The words of each sentence.
        labels: The labels of the corpus.
        tokenizers: Tokenizers by the characters of a word that they give.
    """

    sentences: list[list[str]]
    labels: list[str]
    tokenizers: dict[int, WordCharTokenizer]


class FreeModel(nn.Module):
    """Labels everything alike, at no cost: what is left of the pipeline's time is the pipeline's own."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.dtype = config, torch.float32
        self.device = torch.device("cpu")
        self.__class__.__name__ = "CrossBiLstmCnnForTokenClassification"

    def can_generate(self) -> bool:
        """Return False; every pipeline asks."""
        return False

    def forward(self, input_ids: torch.Tensor, **_: Any) -> dict:
        """Scores that are all zero."""
        return {"logits": torch.zeros(*input_ids.shape, self.config.num_labels)}


def batches(sentences: list, size: int) -> Iterator[list]:
    """Consecutive batches."""
    return (sentences[start : start + size] for start in range(0, len(sentences), size))


def synchronise(device: str) -> None:
    """Wait for a GPU, so that its work is timed and not its launching."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def floors(sentences: list, device: str, config: Any) -> dict[str, Callable[[], object]]:
    """The three floors, as calls to be timed."""
    lstm = nn.LSTM(FLOOR_INPUT, FLOOR_HIDDEN, num_layers=2, bidirectional=True, batch_first=True).to(device)
    longest_first = sorted(sentences, key=len, reverse=True)

    def features(batch: list) -> torch.Tensor:
        return torch.randn(len(batch), max(map(len, batch)), FLOOR_INPUT, device=device)

    to_train = [features(batch) for batch in batches(sentences, TRAIN_BATCH)]
    to_tag = [features(batch) for batch in batches(longest_first, TAG_BATCH)]
    return {
        "train": lambda: [lstm(batch)[0].sum().backward() for batch in to_train],
        "tag": torch.inference_mode()(lambda: [lstm(batch) for batch in to_tag]),
    }


@torch.no_grad()
def bias_to_outside(model: Any) -> None:
    """Favour what leaves words outside.

    Untrained weights find entities everywhere, and the pipeline would spend its time on listing them; the free model
    finds none.
    """
    if isinstance(model.config, StackLstmConfig):
        model.decoder.scorer.classifier.bias[OUT] = 10.0
        return
    # The classifier's, or those of pairs with O and of the start with it.
    outside = model.tags.inner_tags.index("O")
    layers = (model.decoder.pairs, model.decoder.starts) if model.config.pairs_only else (model.classifier,)
    for layer in layers:
        layer.bias.view(-1, len(model.tags.inner_tags))[:, outside] = 10.0


def contestant(name: str, material: Material, device: str) -> dict[str, Callable[[], object]]:
    """Return the training and the tagging of an untrained model as calls to be timed."""
    model_type, fields = CONTESTANTS[name]
    sentences, labels, tokenizers = material
    tokenizer = tokenizers[CONFIGS[model_type].max_word_chars]
    config = CONFIGS[model_type](**tokenizer.model_fields(), id2label=dict(enumerate(labels)), **fields)
    model = AutoModelForTokenClassification.from_config(config).to(device)
    bias_to_outside(model)
    collate = TaggingCollator(tokenizer)
    generator = torch.Generator().manual_seed(0)

    def example(words: list[str]) -> dict:
        return {"tokens": words, "ner_tags": torch.randint(len(labels), (len(words),), generator=generator).tolist()}

    to_train = [collate([example(words) for words in batch]) for batch in batches(sentences, TRAIN_BATCH)]
    to_train = [{key: value.to(device) for key, value in batch.items()} for batch in to_train]
    tagger = Tagger(model, tokenizer)

    def train() -> None:
        model.train()
        for batch in to_train:
            model.zero_grad()
            model(**batch).loss.backward()

    def tag() -> None:
        model.eval()
        tagger.tag(sentences, batch_size=TAG_BATCH)

    return {"train": train, "tag": tag, "pipeline": pipeline_over(model, tokenizer, sentences, device)}


def pipeline_over(model: Any, tokenizer: Any, sentences: list, device: str) -> Callable[[], object]:
    """The stock pipeline over texts, as a call to be timed."""
    ner = pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple", device=device)
    texts = [" ".join(words) for words in sentences]

    def run() -> None:
        model.eval()
        ner(texts, batch_size=PIPELINE_BATCH)

    return run


def best_seconds(calls: Calls, rounds: int, device: str) -> dict[tuple[str, str], float]:
    """The best time of every call; rounds alternate, so that a busy moment of the machine hits all alike."""
    best: dict[tuple[str, str], float] = {}
    for number in range(rounds + 1):
        for key, call in calls.items():
            synchronise(device)
            start = time.perf_counter()
            own = call()
            synchronise(device)
            elapsed = own if isinstance(own, float) else time.perf_counter() - start
            if number:  # The first round warms up.
                best[key] = min(elapsed, best.get(key, elapsed))
    return best


def own_peak_mb() -> float:
    """Peak memory of this process, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux counts into ru_maxrss what the process that started this one held at that time.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_mb(name: str, options: Options) -> float:
    """Return the peak memory of a new process that trains and tags the model once, in MB."""
    program = (
        "import sys, torch; from hf_xorner.cli.benchmark import Options, contestant, load_material, own_peak_mb\n"
        "name, dataset, data_dir, sentences, device = sys.argv[1:]\n"
        "calls = contestant(name, load_material(dataset, data_dir or None, int(sentences)), device)\n"
        "calls['train'](), calls['tag']()\n"
        "print(torch.cuda.max_memory_allocated() / 2**20 if device.startswith('cuda') else own_peak_mb())"
    )
    sentences = str(options.sentences or SENTENCES)
    words = [name, options.dataset, options.data_dir or "", sentences, options.device]
    done = subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def load_material(dataset: str, data_dir: str | None, sentences: int) -> Material:
    """Return the first training sentences of a corpus, and tokenizers for them."""
    train = load_corpus(dataset, data_dir)["train"]
    words = train["tokens"][:]
    widths = {config.max_word_chars for config in CONFIGS.values()}
    tokenizers = {width: WordCharTokenizer.from_corpus(words, max_word_chars=width) for width in widths}
    return Material(words[:sentences], train.features["ner_tags"].feature.names, tokenizers)


def measure(names: Iterable[str], material: Material, rounds: int, device: str) -> dict[str, Any]:
    """Return tokens per second of the floors and of each model, by kind of work."""
    sentences, labels, tokenizers = material
    config = SimpleNamespace(num_labels=len(labels))
    calls: Calls = {("floor", kind): call for kind, call in floors(sentences, device, config).items()}
    tokenizer = tokenizers[CrossBiLstmCnnConfig.max_word_chars]
    free = CrossBiLstmCnnConfig(**tokenizer.model_fields(), id2label=dict(enumerate(labels)))
    calls["floor", "pipeline"] = pipeline_over(FreeModel(free), tokenizer, sentences, device)
    for name in names:
        for kind, call in contestant(name, material, device).items():
            calls[name, kind] = call
    tokens = sum(map(len, sentences))
    figures: dict[str, Any] = {"floor": {}, "models": {}}
    for (name, kind), seconds in best_seconds(calls, rounds, device).items():
        row = figures["floor"] if name == "floor" else figures["models"].setdefault(name, {})
        row[kind] = round(tokens / seconds, 1)
    return figures


def time_with_floors(names: list[str], options: Options) -> dict[str, Any]:
    """Measure models and floors, and print a table."""
    material = load_material(options.dataset, options.data_dir, options.sentences or SENTENCES)
    figures = measure(names, material, options.rounds, options.device)
    for name, row in figures["models"].items():
        row["peak_mb"] = round(peak_mb(name, options), 1)
    tokens = sum(map(len, material.sentences))
    threads = torch.get_num_threads()
    print(f"tokens per second on {options.device}, {threads} threads ({options.dataset}, {tokens} tokens)")
    print(f"{'':<24}{'train':>16}{'tag':>18}{'pipeline':>18}{'peak MB':>10}")
    for name, row in [("floor", figures["floor"]), *figures["models"].items()]:
        cells = "".join(f"{row[k]:>10.0f} {row[k] / figures['floor'][k]:>6.2f}" for k in ("train", "tag", "pipeline"))
        print(f"{name:<24}{cells}{row.get('peak_mb', ''):>10}")
    return figures


# --- Training --------------------------------------------------------------------------------------------------------

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


class EpochClock(TrainerCallback):
    """Measures training from the beginning of its first epoch to its end."""

    seconds = 0.0

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        """Start."""
        self.started = time.perf_counter()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Stop."""
        self.seconds = time.perf_counter() - self.started


def trainer_for(name: str, options: Options, folder: str) -> tuple[TaggerTrainer, float]:
    """Return the Trainer of a recipe or a model over some sentences, and the ratio of all words to theirs."""
    values: dict[str, Any] = {**QUIET, "dataset": options.dataset, "data_dir": options.data_dir}
    values |= {"output_dir": folder, "use_cpu": options.device == "cpu"}
    recipe = None if name in CONTESTANTS else name
    if recipe:
        values |= dict.fromkeys(TAKEN_BACK)
        if "context" in read_recipe(recipe).options:
            if options.context is None:
                raise ValueError(f"{name} reads an encoder's states; name the encoder by --context.")
            values["context"] = options.context
    else:
        model_type, fields = CONTESTANTS[name]
        values |= {"model_type": model_type, **fields}
    run, training, config_fields = arguments_of(values, recipe)
    run.given = None  # the defaults, whatever the size of the corpus
    with contextlib.redirect_stdout(io.StringIO()):
        trainer = prepare(run, training, config_fields).trainer
    whole = trainer.train_dataset
    trainer.train_dataset = whole.select(range(min(options.sentences or SENTENCES, len(whole))))
    counts = [sum(map(len, split["tokens"])) for split in (whole, trainer.train_dataset)]
    return trainer, counts[0] / counts[1]


def epochs_of(trainer: TaggerTrainer) -> Calls:
    """Return an epoch of the Trainer and one of a bare loop over the same sentences."""
    model, device = trainer.model, trainer.args.device
    optimizer = trainer.create_optimizer()
    collate = TaggingCollator(trainer.processing_class)
    loader = DataLoader(
        trainer.train_dataset, trainer.args.per_device_train_batch_size, shuffle=True, collate_fn=collate
    )
    encoded = [{key: value.to(device) for key, value in batch.items()} for batch in loader]
    clock = EpochClock()
    trainer.add_callback(clock)

    def bare() -> None:
        model.train()
        for batch in encoded:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    def by_trainer() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
        return clock.seconds

    return {("", "bare"): bare, ("", "trainer"): by_trainer}


def time_training(names: list[str], options: Options) -> list[dict[str, Any]]:
    """Measure an epoch of each model, and print a table; times are extrapolated to the whole training split."""
    threads = torch.get_num_threads()
    print(f"seconds of an epoch of {options.dataset} on {options.device}, {threads} threads")
    print(
        f"{'':<44}{'bare loop':>10}{'Trainer':>10}{'overhead':>10}"
        + f"{'spaCy':>10}{'x spaCy':>10}" * bool(options.against)
    )
    rows = []
    with process_with_spacy() if options.against else contextlib.nullcontext() as process:
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                trainer, factor = trainer_for(name, options, folder)
                best = best_seconds(epochs_of(trainer), options.rounds, options.device)
            bare, own = best["", "bare"], best["", "trainer"]
            row = {"name": name, "bare": bare * factor, "trainer": own * factor, "overhead": own / bare - 1}
            line = f"{name:<44}{row['bare']:>10.2f}{row['trainer']:>10.2f}{row['overhead']:>10.1%}"
            if process:
                spacy = process.submit(spacy_epoch_seconds, sentences_of(trainer.train_dataset)).result()
                row |= {"spacy": spacy * factor, "share_of_spacy": own / spacy}
                line += f"{row['spacy']:>10.2f}{row['share_of_spacy']:>10.2f}"
            print(line, flush=True)
            rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    return rows


# --- Tagging, with spaCy ---------------------------------------------------------------------------------------------


def against_spacy(names: list[str], options: Options) -> dict[str, Any]:
    """Measure words per second, words in and entities out, and single sentences with spaCy's; print a table."""
    corpus = load_corpus(options.dataset, options.data_dir)
    train = sentences_of(corpus["train"])
    test = [words for words, _ in sentences_of(corpus["test"])[: options.sentences]]
    with process_with_spacy() as process:

        def in_spacy(function: Callable[..., Any], *arguments: Any) -> Any:
            return process.submit(function, *arguments).result()

        version = in_spacy(prepare_spacy, train)
        taggers: dict[str, Any] = {}
        starts: dict[str, tuple[float, float]] = {}
        for name in names:
            taggers[name] = fitted(name, train, options.device)
            if options.onnx:
                with tempfile.TemporaryDirectory() as folder:
                    taggers[f"{name} onnx"], starts[f"{name} onnx"] = exported(taggers[name], folder, test[0])
        calls: Calls = {("spacy", str(count)): partial(in_spacy, spacy_tag_seconds, test, count) for count in (1, 2)}
        calls |= {(name, "tag"): partial(tagger.tag, test) for name, tagger in taggers.items()}
        seconds = best_seconds(calls, options.rounds, options.device)
        single = test[:: -(-len(test) // SINGLE)]
        one = {name: partial(single_seconds, tagger, single) for name, tagger in taggers.items()}
        one["spacy"] = partial(in_spacy, spacy_single_seconds, single)
        medians = [{name: median(call()) for name, call in one.items()} for _ in range(options.rounds)]
    tokens = sum(map(len, test))
    print(
        f"tagging {tokens} words of {options.dataset} on {options.device}, {torch.get_num_threads()} threads, with "
        f"spaCy {version} at its better of one and two processes; a sentence a call: median"
    )
    print(f"{'':<24}{'words/s':>10}{'x spaCy':>10}{'a sentence':>14}" + f"{'start':>10}{'peak MB':>10}" * bool(starts))
    rows: dict[str, Any] = {}
    for name in ("spacy", *taggers):
        taken = min(value for (owner, _), value in seconds.items() if owner == name)
        row = {"words_per_second": tokens / taken, "p50_ms": 1000 * min(each[name] for each in medians)}
        rows[name] = row
        ratio = row["words_per_second"] / rows["spacy"]["words_per_second"]
        line = f"{name:<24}{row['words_per_second']:>10.0f}{ratio:>10.2f}{row['p50_ms']:>11.2f} ms"
        if name in starts:
            row["start_s"], row["start_peak_mb"] = starts[name]
            line += f"{row['start_s']:>8.2f} s{row['start_peak_mb']:>10.0f}"
        print(line)
    return rows


#: Tags a sentence in a new process; `seconds` is the time since it was started.
START = """
import sys, time
from pathlib import Path
from onnx_tagger import OnnxTagger
OnnxTagger.from_pretrained(".")(sys.argv[2:])
seconds = time.time() - float(sys.argv[1])
"""


def exported(tagger: Tagger, folder: str, sentence: list[str]) -> tuple[OnnxTagger, tuple[float, float]]:
    """Export a tagger; also return how many seconds and MB a new process takes to tag a sentence with the export."""
    from ..export.onnx import export_onnx

    tagger.save_pretrained(folder)
    export_onnx(folder, folder)
    program = START + inspect.getsource(own_peak_mb) + "print(seconds, own_peak_mb())"
    best = (float("inf"), float("inf"))
    for _ in range(3):
        command = [sys.executable, "-c", program, str(time.time()), *sentence]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        seconds, peak = map(float, done.stdout.split())
        best = min(best, (seconds, peak))
    return OnnxTagger.from_pretrained(folder), best


def sentences_of(split: Any) -> Sentences:
    """Return words and tags of each sentence."""
    return list(zip(*words_and_tags(split), strict=True))


def fitted(name: str, sentences: Sentences, device: str) -> Tagger:
    """A tagger that was trained for as many updates as spaCy's, after which it finds entities."""
    model_type, fields = CONTESTANTS[name]
    tokenizer = WordCharTokenizer.from_corpus(
        [words for words, _ in sentences], max_word_chars=CONFIGS[model_type].max_word_chars
    )
    labels = sorted({tag for _, tags in sentences for tag in tags}, key=lambda tag: (tag != "O", tag))
    config = CONFIGS[model_type](**tokenizer.model_fields(), id2label=dict(enumerate(labels)), **fields)
    torch.manual_seed(0)
    model = AutoModelForTokenClassification.from_config(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    collate = TaggingCollator(tokenizer)
    for batch in islice(batches(sentences, TRAIN_BATCH), UPDATES):
        examples = [{"tokens": words, "ner_tags": [labels.index(tag) for tag in tags]} for words, tags in batch]
        model(**{key: value.to(device) for key, value in collate(examples).items()}).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return Tagger(model, tokenizer)


def single_seconds(tagger: Callable[[list[str]], Any], sentences: list[list[str]]) -> list[float]:
    """Return the seconds of each sentence that is tagged by itself."""
    seconds = []
    for words in sentences:
        start = time.perf_counter()
        tagger(words)
        seconds.append(time.perf_counter() - start)
    return seconds


# These functions run in a process of their own.

_pipeline: Any = None


def process_with_spacy() -> ProcessPoolExecutor:
    """Return an executor of one new process.

    Raises:
        ValueError: If spaCy is not installed.
    """
    if find_spec("spacy") is None:
        raise ValueError('--against spacy needs spaCy: pip install "hf_xorner[spacy]".')
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def prepare_spacy(sentences: Sentences) -> str:
    """Train spaCy's default NER for CPUs for a few updates, for the functions below; return spaCy's version."""
    global _pipeline
    import spacy
    from spacy.util import minibatch

    _pipeline = spacy.blank("en")
    _pipeline.add_pipe("ner")
    examples = _examples(_pipeline, sentences[: UPDATES * TRAIN_BATCH])
    optimizer = _pipeline.initialize(lambda: examples)
    for batch in minibatch(examples, TRAIN_BATCH):
        _pipeline.update(batch, sgd=optimizer)
    return spacy.__version__


def spacy_tag_seconds(sentences: list[list[str]], processes: int) -> float:
    """Return the seconds from words to entities."""
    start = time.perf_counter()
    docs = (_document(_pipeline, words) for words in sentences)
    for doc in _pipeline.pipe(docs, batch_size=256, n_process=processes):
        _entities(doc)
    return time.perf_counter() - start


def spacy_single_seconds(sentences: list[list[str]]) -> list[float]:
    """Return the seconds of each sentence that is tagged by itself."""
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
    return begun[2] - begun[1]


def _examples(nlp: Any, sentences: Sentences) -> list[Any]:
    from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo

    examples = []
    for words, tags in sentences:
        gold = _document(nlp, words)
        gold.ents = biluo_tags_to_spans(gold, iob_to_biluo(tags))
        examples.append(Example(_document(nlp, words), gold))
    return examples


def _document(nlp: Any, words: list[str]) -> Any:
    from spacy.tokens import Doc

    return Doc(nlp.vocab, words=words)


def _entities(doc: Any) -> list[tuple[str, str, int, int]]:
    return [(entity.label_, entity.text, entity.start_char, entity.end_char) for entity in doc.ents]
