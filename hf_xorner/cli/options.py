"""Option names and help texts of every subcommand, read from help.json without importing torch.

`write_help` writes help.json again from the parsers of the subcommands (`make help`); a test compares the two.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

#: The subcommands and what they do.
COMMANDS = {
    "train": "Train a tagger, score it and save it.",
    "distill": "Train a small tagger with larger ones as teachers.",
    "evaluate": "Score a model or any system's predictions.",
    "tag": "Tag a file, a folder, a Hub dataset or standard input.",
    "data": "Count or convert a corpus.",
    "vectors": "Inspect, convert, join or distill word vectors.",
    "card": "Write a model card.",
    "publish": "Check a model and publish it on the Hub.",
    "export": "Export a model to ONNX, to run without PyTorch.",
    "reproduce": "Run a table of a paper again.",
    "analyze": "Run a proof or an analysis of a paper.",
    "benchmark": "Measure tokens per second.",
    "epochs": "Time a training epoch.",
}

#: Short names that people expect, and the options they stand for, where the subcommand has no option of that name.
SHORT_NAMES = {
    "batch": "per_device_train_batch_size",
    "batch_size": "per_device_train_batch_size",
    "bs": "per_device_train_batch_size",
    "checkpoint": "resume_from_checkpoint",
    "corpus": "dataset",
    "data": "dataset",
    "decay": "weight_decay",
    "embeddings": "vectors",
    "encoder": "context",
    "epochs": "num_train_epochs",
    "hidden": "hidden_size",
    "licence": "license",
    "lr": "learning_rate",
    "model": "model_type",
    "model_name": "model_name_or_path",
    "out": "output_dir",
    "output": "output_dir",
    "patience": "early_stopping",
    "repo": "repo_id",
    "resume": "resume_from_checkpoint",
    "steps": "max_steps",
}
_HELP = {"-h", "--help"}


class UsageError(ValueError):
    """Raised for a command line that cannot be read; ends with exit code 2."""


def overview() -> str:
    """Return the help of `hf-xorner` itself."""
    width = max(map(len, COMMANDS)) + 2
    commands = "\n".join(f"  {name:<{width}}{summary}" for name, summary in COMMANDS.items())
    return (
        "usage: hf-xorner COMMAND [options]\n\nTrain, score, use and publish taggers for named entities.\n\n"
        f"{commands}\n\nhf-xorner COMMAND --help shows examples and options; --version prints the version."
    )


def help_of(command: str, words: Sequence[str]) -> str | None:
    """Return the help that the words ask for, or None; raises for an unknown command."""
    known = _known(command, words)
    for word in words:
        if word == "--help-all":
            return known["help_all"]
        if word in _HELP:
            return known["help"]
    return None


def check_options(command: str, words: Sequence[str]) -> list[str]:
    """Return the words with short and hyphenated option names written out; raises for an unknown option."""
    known = _known(command, words)["options"]
    checked = []
    for word in words:
        match = re.fullmatch(r"--([A-Za-z][\w-]*)(=.*)?", word, re.DOTALL)
        if match is None:
            checked.append(word)
            continue
        given = match[1].replace("-", "_")
        name = given if given in known else SHORT_NAMES.get(given)
        if name not in known:
            near = get_close_matches(given, [*known, *(short for short in SHORT_NAMES if SHORT_NAMES[short] in known)])
            if near:
                meaning = "" if near[0] in known else f" ({SHORT_NAMES[near[0]]})"
                raise UsageError(f"unknown option --{match[1]}; did you mean --{near[0]}{meaning}?")
            raise UsageError(f"unknown option --{match[1]}; hf-xorner {command} --help-all lists all options.")
        checked.append(f"--{name}{match[2] or ''}")
    return checked


def _known(command: str, words: Sequence[str]) -> dict[str, Any]:
    """Return what help.json holds of a command, or of its own subcommand if the first word names one."""
    if command not in COMMANDS:
        near = get_close_matches(command, COMMANDS, n=1)
        raise UsageError(f"unknown command {command!r}; " + (f"did you mean {near[0]!r}?" if near else "see --help."))
    return _read().get(f"{command} {words[0]}" if words else command) or _read()[command]


@cache
def _read() -> dict[str, Any]:
    return json.loads((files(__package__) / "help.json").read_text(encoding="utf-8"))


# --- Writing help.json -----------------------------------------------------------------------------------------------


def generate() -> dict[str, Any]:
    """Return the content of help.json, from the parsers of the subcommands."""
    described: dict[str, Any] = {}
    for command in COMMANDS:
        module = import_module(f".{command}", __package__)
        parser = module.parser()
        described[command] = _described(command, parser, module.EXAMPLES, getattr(module, "GROUPS", {}))
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, below in action.choices.items():
                    examples = [example for example in module.EXAMPLES if f" {name} " in example]
                    described[f"{command} {name}"] = _described(f"{command} {name}", below, examples, {})
    return described


def _described(
    command: str, parser: argparse.ArgumentParser, examples: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    options: dict[str, argparse.Action] = {}
    strings: list[str] = []
    for action in parser._actions:
        if action.option_strings and action.dest != "help":
            strings += action.option_strings
            options.setdefault(action.dest, action)  # --x comes before --no_x
    positional = [action for action in parser._actions if not action.option_strings]
    shown = {name: action for name, action in options.items() if action.help != argparse.SUPPRESS}
    head = [f"usage: hf-xorner {command}{''.join(f' {_place(action)}' for action in positional)} [options]", ""]
    head += [*_wrapped((parser.description or "").strip(), 0), "", "examples:", *(f"  {line}" for line in examples), ""]
    for action in positional:
        if isinstance(action, argparse._SubParsersAction):
            head += ["commands:", *(f"  {choice.dest:<12}{choice.help}" for choice in action._choices_actions), ""]
        elif action.help:
            head += [*_entry(_place(action).strip(" []"), action.help), ""]
    rest = {"options": [name for name in shown if not any(name in group for group in groups.values())]}
    short = [*_listed(groups, shown), "--help-all lists all options."] if groups else _listed(rest, shown)
    return {
        "help": "\n".join([*head, *short]),
        "help_all": "\n".join([*head, *_listed({**groups, **rest}, shown)]),
        "options": sorted({string.removeprefix("--").replace("-", "_") for string in strings}),
    }


def _listed(groups: Mapping[str, Sequence[str]], actions: dict[str, argparse.Action]) -> Iterator[str]:
    for title, names in groups.items():
        if names:
            yield f"{title}:"
        for name in names:
            text = re.sub(r" \(default:.*\)$", "", actions[name].help or "")
            default = _plain(actions[name].default)
            yield from _entry(f"--{name}", f"{text} (default: {default})" if default else text)
        yield ""


def _plain(value: Any) -> str:
    """Return a default as it is written on the command line; empty for none."""
    if value is None or value is argparse.SUPPRESS:
        return ""
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "value", value))


def _entry(name: str, text: str) -> list[str]:
    return [f"  {name}", *_wrapped(text % () if "%%" in text else text, 6)]


def _wrapped(text: str, indent: int) -> list[str]:
    paragraphs = re.split(r"\n\s*\n", text)
    pad = " " * indent
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [*([""] if lines else []), *textwrap.wrap(paragraph, 100, initial_indent=pad, subsequent_indent=pad)]
    return lines


def _place(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else "COMMAND" if action.choices else action.dest.upper()
    return f"[{name}]" if action.nargs in ("?", "*") else f"{name} …" if action.nargs == "+" else name


def write_help() -> None:
    """Write help.json again."""
    text = json.dumps(generate(), indent=1, ensure_ascii=False)
    Path(__file__).with_name("help.json").write_text(f"{text}\n", encoding="utf-8")
