"""`hf-xorner epochs`: time an epoch of the Trainer beside one of a bare loop, for recipes and architectures."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import TrainerCallback

from ..registration import CONFIGS
from ..training import TaggerTrainer, TaggingCollator, parse, prepare
from ..training.recipes import read_recipe, recipe_names
from .benchmark import CONTESTANTS, sentences_of
from .parser import Parser
from .spacy_speed import epoch_seconds, process_with_spacy

EXAMPLES = (
    "hf-xorner epochs cross-bilstm-cnn grn --sentences 640",
    "hf-xorner epochs recipes --dataset wnut17 conll2003 --json epochs.json",
    "hf-xorner epochs bilstm-cnn cnn-lstm-crf/small --dataset conll2003 --sentences 14041 --against spacy",
)
DESCRIPTION = (
    "A NAME is a recipe, an architecture or variant of `hf-xorner benchmark` (with the defaults of `hf-xorner train`), "
    "or `recipes` for all recipes of the package; by default all architectures are timed. The bare loop is the least "
    "that training can cost: forward, "
    "backward and a step of the same optimizer on the same model, over batches of the same size that were encoded "
    "before. Their rounds alternate; the best of each counts. The time of the whole split is extrapolated from the "
    "words that were timed. Trained vectors of the same size replace pretrained ones. Recipes that read an encoder "
    "need --context."
)

#: Options that switch off what is not timed.
QUIET = {
    "eval_strategy": "no",
    "save_strategy": "no",
    "load_best_model_at_end": "false",
    "num_train_epochs": "1",
    "disable_tqdm": "true",
}
#: Options of a recipe that are taken back: what is not timed, and files that are not read.
TAKEN_BACK = ("average_epochs", "early_stopping", "vectors", "composed", "vectors_as", "most_frequent_vectors")
#: In what recipes of equal epochs may differ.
INDIFFERENT = ("dataset", "fallback", "learning_rate", "lr_scheduler_type", "epoch_decay", *QUIET, *TAKEN_BACK)


class EpochClock(TrainerCallback):
    """Notes how long training took, from its first epoch's beginning to its end."""

    seconds = 0.0

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        """Start."""
        self.started = time.perf_counter()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Stop."""
        self.seconds = time.perf_counter() - self.started


def trainer_of(name: str, dataset: str, options: argparse.Namespace, folder: str) -> tuple[TaggerTrainer, float]:
    """The trainer of a recipe or an architecture over some sentences, and how many times more words the split has."""
    recipe = recipe_of(name)
    told = {**QUIET, "dataset": dataset, "output_dir": folder, "use_cpu": str(options.device == "cpu").lower()}
    told |= {option: "null" for option in TAKEN_BACK if option in recipe}
    if options.data_dir:
        told["data_dir"] = options.data_dir
    if "context" in recipe:
        if options.context is None:
            raise ValueError("it reads an encoder's states; name the encoder by --context.")
        told["context"] = options.context
    source = name
    if name in CONTESTANTS:
        model_type, fields = CONTESTANTS[name]
        source = str(Path(folder, "recipe.yaml"))
        Path(source).write_text(json.dumps({"model_type": model_type, **fields}), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        words = [source, *(word for option in told for word in (f"--{option}", told[option]))]
        trainer = prepare(*parse(words)).trainer
    whole = trainer.train_dataset
    trainer.train_dataset = whole.select(range(min(options.sentences, len(whole))))
    counts = [sum(map(len, split["tokens"])) for split in (whole, trainer.train_dataset)]
    return trainer, counts[0] / counts[1]


def recipe_of(name: str) -> dict:
    """The options of a recipe; of an architecture or a variant, none."""
    return {} if name in CONTESTANTS else read_recipe(name).options


def epochs(trainer: TaggerTrainer) -> dict[str, Callable[[], float]]:
    """An epoch of the Trainer's and one of a bare loop over the same sentences, as calls that say their seconds."""
    model, device = trainer.model, trainer.args.device
    optimizer = trainer.create_optimizer()
    collate = TaggingCollator(trainer.processing_class)
    loader = DataLoader(
        trainer.train_dataset, trainer.args.per_device_train_batch_size, shuffle=True, collate_fn=collate
    )
    encoded = [{key: value.to(device) for key, value in batch.items()} for batch in loader]
    clock = EpochClock()
    trainer.add_callback(clock)

    def synchronise() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    def bare() -> float:
        model.train()
        synchronise()
        start = time.perf_counter()
        for batch in encoded:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        synchronise()
        return time.perf_counter() - start

    def by_trainer() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
        return clock.seconds

    return {"bare": bare, "trainer": by_trainer}


def timed(trainer: TaggerTrainer, rounds: int) -> dict[str, float]:
    """The best seconds of the Trainer and of the bare loop."""
    seconds: dict[str, list[float]] = {"bare": [], "trainer": []}
    calls = epochs(trainer)
    for number, (kind, call) in product(range(rounds + 1), calls.items()):
        taken = call()
        if number:  # The first round warms up.
            seconds[kind].append(taken)
    return {kind: min(all_of_it) for kind, all_of_it in seconds.items()}


def distinct(names: list[str]) -> dict[str, list[str]]:
    """Names of which each stands for those that differ from it in their corpus alone."""
    groups: dict[str, list[str]] = {}
    for name in names:
        differing = {option: value for option, value in recipe_of(name).items() if option not in INDIFFERENT}
        groups.setdefault(json.dumps(differing or name, sort_keys=True), []).append(name)
    return {group[0]: group for group in groups.values()}


def measure(options: argparse.Namespace, names: list[str], spacy: ProcessPoolExecutor | None) -> list[dict]:
    """Time each of the names on each corpus, beside spaCy if there is a process with it, and print as it goes."""
    print(
        f"seconds of an epoch on {options.device}, {torch.get_num_threads()} threads, best of {options.rounds} rounds"
    )
    more = f"{'spaCy':>10}{'x spaCy':>10}" if spacy else ""
    print(f"{'':<44}{'corpus':<12}{'bare loop':>10}{'Trainer':>10}{'overhead':>10}{more}", flush=True)
    rows: list[dict] = []
    for (name, same), dataset in product(distinct(names).items(), options.dataset):
        row: dict = {"name": name, "same": same[1:], "dataset": dataset}
        with tempfile.TemporaryDirectory() as folder:
            try:
                trainer, factor = trainer_of(name, dataset, options, folder)
            except ValueError as error:
                row["missing"] = str(error)
                print(f"{name:<44}{dataset:<12}{error}", flush=True)
                rows.append(row)
                continue
            seconds = timed(trainer, options.rounds)
            # The second epoch; the first is slower.
            theirs = spacy.submit(epoch_seconds, sentences_of(trainer.train_dataset)).result()[1] if spacy else None
        row |= {kind: round(taken * factor, 3) for kind, taken in seconds.items()}
        row["overhead"] = round(seconds["trainer"] / seconds["bare"] - 1, 4)
        line = f"{name:<44}{dataset:<12}{row['bare']:>10.2f}{row['trainer']:>10.2f}{row['overhead']:>10.1%}"
        if theirs is not None:
            row |= {"spacy": round(theirs * factor, 3), "share_of_spacy": round(seconds["trainer"] / theirs, 4)}
            line += f"{row['spacy']:>10.2f}{row['share_of_spacy']:>10.2f}"
        print(line, flush=True)
        rows.append(row)
    return rows


def fault_of(options: argparse.Namespace) -> str | None:
    """Return what is wrong with the options, or None."""
    for name in ("sentences", "rounds"):
        if getattr(options, name) < 1:
            return f"{name}={getattr(options, name)} must be a whole number from 1 up."
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    devices = ["cpu", *([accelerator.type] if accelerator else [])]
    if options.device not in devices:
        return f"device={options.device!r} is not available; choose one of {', '.join(devices)}."
    if options.json and not os.access(options.json.parent, os.W_OK):
        return f"{options.json} cannot be written; name a file in a folder that can be."
    return None


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner epochs`."""
    parser = Parser(prog="hf-xorner epochs", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Recipes and architectures, or `recipes` for all.")
    parser.add_argument("--dataset", nargs="+", default=["xor"], help="Corpora whose training split is used.")
    parser.add_argument("--data_dir", help="The folder of the files of a named corpus.")
    parser.add_argument("--context", help="The encoder of recipes that read one: a folder or owner/name.")
    parser.add_argument("--sentences", type=int, default=640, help="Number of sentences that are timed.")
    parser.add_argument("--rounds", type=int, default=3, help="Number of rounds.")
    parser.add_argument(
        "--against", choices=("spacy",), help="Also time the second epoch of spaCy's NER on the same sentences."
    )
    parser.add_argument("--device", default="cpu", help="The device: cpu, cuda, …")
    parser.add_argument("--json", type=Path, help="Write the figures to this file.")
    return parser


def run(words: Sequence[str]) -> None:
    """Measure, and print a table."""
    options = parser().parse_args(words)
    known = recipe_names()
    names = known if options.names == ["recipes"] else options.names or list(CONFIGS)
    if unknown := set(names) - set(known) - set(CONTESTANTS):
        raise ValueError(f"{', '.join(sorted(unknown))} is neither a recipe nor an architecture.")
    if fault := fault_of(options):
        raise ValueError(fault)
    with process_with_spacy() if options.against else contextlib.nullcontext() as spacy:
        rows = measure(options, names, spacy)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
