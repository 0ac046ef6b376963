"""`hf-xorner benchmark`: tokens per second of training and tagging, beside floors measured in the same run."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.resources import files
from itertools import islice
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoModelForTokenClassification, pipeline

from .. import CrossBiLstmCnnConfig, StackLstmConfig, Tagger, WordCharTokenizer, load_corpus
from ..corpora.assemble import words_and_tags
from ..entities import BaseTagger
from ..export.runtime import OnnxTagger
from ..models.transitions import OUT
from ..registration import CONFIGS
from ..training import TaggingCollator
from ..training.train import train
from . import spacy_speed
from .export import onnx_needed
from .parser import Parser
from .spacy_speed import process_with_spacy

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
    "hf-xorner benchmark --models cross-bilstm-cnn,grn --device cpu --json figures.json",
    "hf-xorner benchmark --against spacy --dataset conll2003 --data_dir conll2003",
)
DESCRIPTION = (
    "Machines are noisy: compare figures of one run. The floors are what no BiLSTM tagger of these sizes can beat: a "
    "bare two-layer bidirectional nn.LSTM(364 -> 100) over the same batches (forward and backward for training, "
    "forward alone for tagging), and the stock pipeline around a model that costs nothing. The rounds of all models "
    "alternate, and the best one counts."
)

#: What `--against spacy` measures by default.
COMPARED = ("cnn-lstm-crf/small", "bilstm-cnn", "lstm-crf", "cnn-lstm-crf", "grn", "stack-lstm")
#: Sentences that are tagged one by one.
SINGLE = 300
GUARDED = ("scores", "memory", "speed")
SENTENCES, TRAIN_BATCH, TAG_BATCH, PIPELINE_BATCH = 1280, 32, 64, 32
FLOOR_INPUT, FLOOR_HIDDEN = 364, 100


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


def best_seconds(calls: dict[tuple[str, str], Callable[[], object]], rounds: int, device: str) -> dict:
    """The best time of every call; rounds alternate, so that a busy moment of the machine hits all alike."""
    best: dict[tuple[str, str], float] = {}
    for number in range(rounds + 1):
        for key, call in calls.items():
            synchronise(device)
            start = time.perf_counter()
            call()
            synchronise(device)
            elapsed = time.perf_counter() - start
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


def peak_mb(name: str, device: str) -> float:
    """Peak memory of a process of its own that trains and tags the model once, in MB."""
    command = [sys.executable, "-m", "hf_xorner", "benchmark", "--models", name, "--device", device, "--measure_memory"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner benchmark`."""
    parser = Parser(prog="hf-xorner benchmark", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--models", help="Names, separated by commas, or all; by default the architectures.")
    parser.add_argument("--device", default="cpu", help="The device: cpu, cuda, …")
    parser.add_argument("--dataset", default="xor", help="The corpus whose training split is used.")
    parser.add_argument("--data_dir", help="The folder of the files of a named corpus.")
    parser.add_argument("--sentences", type=int, help="Number of sentences; by default 1280.")
    parser.add_argument("--rounds", type=int, default=5, help="Number of rounds.")
    parser.add_argument("--json", type=Path, help="Write the figures to this file.")
    parser.add_argument(
        "--guard",
        nargs="*",
        choices=GUARDED,
        help="Compare with stored bounds instead: the scores of two models trained on XOR, peak memory, and ratios of "
        "speed, which need a quiet machine. By default all of them.",
    )
    parser.add_argument(
        "--against",
        choices=("spacy",),
        help="Compare tagging with that of spaCy's NER instead, on the corpus' test split, whole by default.",
    )
    parser.add_argument(
        "--onnx",
        action="store_true",
        help="With --against, also measure what is exported of each model, and how long a new process takes from its "
        "start to the first entity.",
    )
    parser.add_argument("--measure_memory", action="store_true", help=argparse.SUPPRESS)
    return parser


def load_material(options: argparse.Namespace) -> Material:
    """Load the sentences that the options name."""
    train = load_corpus(options.dataset, options.data_dir)["train"]
    words = train["tokens"][:]
    widths = {config.max_word_chars for config in CONFIGS.values()}
    tokenizers = {width: WordCharTokenizer.from_corpus(words, max_word_chars=width) for width in widths}
    sentences = train.select(range(min(options.sentences or SENTENCES, len(train))))["tokens"][:]
    return Material(sentences, train.features["ner_tags"].feature.names, tokenizers)


def measure(names: Iterable[str], material: Material, rounds: int, device: str) -> dict[str, Any]:
    """Return tokens per second of the floors and of each model, by kind of work."""
    sentences, labels, tokenizers = material
    config = SimpleNamespace(num_labels=len(labels))
    calls: dict[tuple[str, str], Callable[[], object]] = {
        ("floor", kind): call for kind, call in floors(sentences, device, config).items()
    }
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


def run(words: Sequence[str]) -> None:
    """Measure and print a table, or compare with the stored bounds; exits with 1 if a bound is missed."""
    options = parser().parse_args(words)
    if options.guard is not None:
        sys.exit(guard(options.guard or GUARDED, options))
    default = COMPARED if options.against else tuple(CONFIGS)
    names = list(CONTESTANTS if options.models == "all" else options.models.split(",") if options.models else default)
    unknown = set(names) - set(CONTESTANTS)
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))} is unknown; choose among {', '.join(CONTESTANTS)}.")
    if options.onnx:
        if not options.against:
            raise ValueError("--onnx is of no use without --against spacy; add that, or leave it out.")
        with onnx_needed():
            import_module("..export.onnx", __package__)
    figures = against_spacy(names, options) if options.against else beside_floors(names, options)
    if figures and options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def beside_floors(names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Measure beside the floors, and print a table."""
    material = load_material(options)
    if options.measure_memory:
        one = contestant(names[0], material, options.device)
        one["train"](), one["tag"]()
        print(torch.cuda.max_memory_allocated() / 2**20 if options.device.startswith("cuda") else own_peak_mb())
        return {}
    figures = measure(names, material, options.rounds, options.device)
    for name, row in figures["models"].items():
        row["peak_mb"] = round(peak_mb(name, options.device), 1)
    tokens = sum(map(len, material.sentences))
    print(
        f"tokens per second on {options.device}, {torch.get_num_threads()} threads ({options.dataset}, {tokens} tokens)"
    )
    print(f"{'':<24}{'train':>16}{'tag':>18}{'pipeline':>18}{'peak MB':>10}")
    for name, row in [("floor", figures["floor"]), *figures["models"].items()]:
        cells = "".join(f"{row[k]:>10.0f} {row[k] / figures['floor'][k]:>6.2f}" for k in ("train", "tag", "pipeline"))
        print(f"{name:<24}{cells}{row.get('peak_mb', ''):>10}")
    return figures


# --- Beside spaCy ----------------------------------------------------------------------------------------------------


def against_spacy(names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Measure words per second, words in and entities out, and single sentences beside spaCy; print a table."""
    corpus = load_corpus(options.dataset, options.data_dir)
    train = sentences_of(corpus["train"])
    test = [words for words, _ in sentences_of(corpus["test"])[: options.sentences]]
    with process_with_spacy() as process:
        version = process.submit(spacy_speed.prepare, train).result()
        taggers: dict[str, Any] = {}
        starts: dict[str, tuple[float, float]] = {}
        for name in names:
            taggers[name] = fitted(name, train, options.device)
            if options.onnx:
                with tempfile.TemporaryDirectory() as folder:
                    taggers[f"{name} onnx"], starts[f"{name} onnx"] = exported(taggers[name], folder, test[0])

        def in_spacy(function: Callable[..., Any], *arguments: Any) -> Any:
            return process.submit(function, *arguments).result()

        many: dict[tuple[str, str], Callable[[], object]] = {
            ("spacy", str(count)): partial(in_spacy, spacy_speed.tag_seconds, test, count) for count in (1, 2)
        }
        many |= {(name, "tag"): partial(tagger.tag, test) for name, tagger in taggers.items()}
        seconds = best_seconds(many, options.rounds, options.device)
        single = test[:: -(-len(test) // SINGLE)]
        one = {name: partial(single_seconds, tagger, single) for name, tagger in taggers.items()}
        one["spacy"] = partial(in_spacy, spacy_speed.single_seconds, single)
        medians = [{name: median(call()) for name, call in one.items()} for _ in range(options.rounds)]
    rows: dict[str, Any] = {}
    tokens = sum(map(len, test))
    for name in ("spacy", *taggers):
        taken = min(value for (owner, _), value in seconds.items() if owner == name)
        rows[name] = {
            "words_per_second": round(tokens / taken, 1),
            "p50_ms": round(1000 * min(each[name] for each in medians), 3),
        }
        if name in starts:
            rows[name] |= {"start_s": round(starts[name][0], 3), "start_peak_mb": round(starts[name][1], 1)}
    print(
        f"tagging {tokens} words of {options.dataset} on {options.device}, {torch.get_num_threads()} threads, beside "
        f"spaCy {version} at its better of one and two processes; a sentence a call: median"
    )
    start = f"{'start':>10}{'peak MB':>10}" if starts else ""
    print(f"{'':<24}{'words/s':>10}{'x spaCy':>10}{'a sentence':>14}{start}")
    for name, row in rows.items():
        ratio = row["words_per_second"] / rows["spacy"]["words_per_second"]
        start = f"{row['start_s']:>8.2f} s{row['start_peak_mb']:>10.0f}" if name in starts else ""
        print(f"{name:<24}{row['words_per_second']:>10.0f}{ratio:>10.2f}{row['p50_ms']:>11.2f} ms{start}")
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


def sentences_of(split: Any) -> spacy_speed.Sentences:
    """Words and tags of each sentence."""
    return list(zip(*words_and_tags(split), strict=True))


def fitted(name: str, sentences: spacy_speed.Sentences, device: str) -> Tagger:
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
    for batch in islice(batches(sentences, TRAIN_BATCH), spacy_speed.UPDATES):
        examples = [{"tokens": words, "ner_tags": [labels.index(tag) for tag in tags]} for words, tags in batch]
        model(**{key: value.to(device) for key, value in collate(examples).items()}).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return Tagger(model, tokenizer)


def single_seconds(tagger: BaseTagger, sentences: list[list[str]]) -> list[float]:
    """The seconds of each sentence that is tagged by itself."""
    seconds = []
    for words in sentences:
        start = time.perf_counter()
        tagger(words)
        seconds.append(time.perf_counter() - start)
    return seconds


# --- Regression guard ------------------------------------------------------------------------------------------------


def guard(kinds: Iterable[str], options: argparse.Namespace) -> int:
    """Print each guarded figure beside its bound; return the number of those that miss it."""
    bounds = json.loads((files(__package__) / "bounds.json").read_text(encoding="utf-8"))
    missed = 0
    for name, figure, bound, within in guarded_figures(set(kinds), bounds, options):
        missed += not within
        print(f"{'ok    ' if within else 'MISSED'} {name}: {figure:.2f} (bound {bound})", flush=True)
    return missed


def guarded_figures(
    kinds: set[str], bounds: dict[str, Any], options: argparse.Namespace
) -> Iterator[tuple[str, float, float, bool]]:
    """Yield name, figure and bound of what is guarded, and whether the figure is within the bound."""
    for model_type, entry in bounds["scores"].items() if "scores" in kinds else ():
        f1 = trained_score(model_type, entry["epochs"])
        yield f"test F1 of {model_type}, {entry['epochs']} epochs on xor", f1, entry["f1"], f1 >= entry["f1"]
    for model_type, most in bounds["memory"].items() if "memory" in kinds else ():
        peak = peak_mb(model_type, "cpu")
        yield f"peak memory of {model_type} in MB", peak, most, peak <= most
    if "speed" in kinds:
        figures = measure(bounds["speed"], load_material(options), options.rounds, "cpu")
        for model_type, entry in bounds["speed"].items():
            for kind, least in entry.items():
                ratio = figures["models"][model_type][kind] / figures["floor"][kind]
                yield f"speed of {model_type}, {kind}, as a share of the floor", ratio, least, ratio >= least


def trained_score(model_type: str, epochs: int) -> float:
    """Train an architecture on the XOR corpus with a fixed seed on the CPU, and return its test F1 in percent."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        options: dict[str, Any] = {"num_train_epochs": epochs, "seed": 42, "use_cpu": True, "disable_tqdm": True}
        tagger = train("xor", model_type=model_type, output_dir=folder, **options)
    assert tagger.scores is not None
    return tagger.scores["test"]["f1"]
