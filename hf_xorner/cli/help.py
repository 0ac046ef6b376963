"""The names and help texts of all options, read from help.json without importing torch.

`make help` generates help.json from the options of the subcommands by `write_help`; a test compares the two.
"""

import argparse
import json
import re
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import UsageError

#: The subcommands.
COMMANDS = (
    *("train", "evaluate", "tag", "data", "vectors"),
    *("card", "publish", "export", "reproduce", "analyze", "benchmark"),
)


def overview() -> str:
    """Return the help of `hf-xorner` itself."""
    width = max(map(len, COMMANDS)) + 2
    commands = "\n".join(f"  {name:<{width}}{read_help()[name]['summary']}" for name in COMMANDS)
    return (
        "usage: hf-xorner COMMAND [options]\n\nTrain, score, use and publish taggers for named entities.\n\n"
        f"{commands}\n\nhf-xorner COMMAND --help shows examples and options; --version prints the version."
    )


def help_of(command: str, words: Sequence[str]) -> str | None:
    """Return the help text if the words contain a help option, else None; raises UsageError for an unknown command."""
    entry, name = _entry(command, words)
    requested = {"-h", "--help", "--help-all"} & set(words)
    if not requested:
        return None
    groups = entry["groups"]
    default_groups = {title: options for title, options in groups.items() if title != "options"} or groups
    shown = groups if "--help-all" in requested else default_groups
    lines = [
        f"usage: hf-xorner {' '.join([name, *entry['positional']])} [options]",
        "",
        *_wrapped(entry["about"], 0),
        "",
    ]
    lines += ["examples:", *(f"  {line}" for line in entry["examples"])]
    for title, options in {"": entry["positional"], "commands": entry["commands"], **shown}.items():
        lines += ["", *([f"{title}:"] if title else [])] if options else []
        for option, text in options.items():
            lines += [f"  {option}", *_wrapped(text, 6)]
    return "\n".join([*lines, *(["", "--help-all lists all options."] if shown != groups else [])])


def _wrapped(text: str, indent: int) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(text, 100, initial_indent=pad, subsequent_indent=pad)


def check_options(command: str, words: Sequence[str]) -> list[str]:
    """Replace aliases by the full names of options; raises UsageError for an unknown command or option."""
    entry, command = _entry(command, words)
    if entry["commands"] and entry["default"] and words:
        near = [] if Path(words[0]).exists() else get_close_matches(words[0], entry["commands"], n=1)
        if near:
            raise UsageError(f"unknown command {words[0]!r}; did you mean {near[0]!r}?")
        return check_options(command, [entry["default"], *words])
    if entry["commands"]:
        raise UsageError(f"name a command: {', '.join(entry['commands'])}; --help shows examples.")
    names = {name.removeprefix("--") for group in entry["groups"].values() for name in group} | entry["aliases"].keys()
    checked: list[str] = []
    for word in words:
        match = re.fullmatch(r"--([A-Za-z][\w-]*)(=.*)?", word, re.DOTALL)
        if match is None:
            checked.append(word)
            continue
        name = match[1].replace("-", "_")
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean --{near[0]}?" if near else f"hf-xorner {command} --help-all lists all options."
            raise UsageError(f"unknown option --{match[1]}; {hint}")
        checked.append(f"--{entry['aliases'].get(name, name)}{match[2] or ''}")
    named = {word.partition("=")[0] for word in checked}
    needed = [name.split()[0].lower() for name in entry["positional"] if name[0] != "["]
    needed = [name for name in needed if f"--{name}" not in named]
    # Other words may be values of options.
    # The first word of `data stats` and the like is not an argument.
    positional = sum(not word.startswith("--") for word in (checked[1:] if " " in command else checked))
    missing = [*needed[positional:], *(name for name in entry["required"] if name not in named)]
    if missing:
        raise UsageError(f"{', '.join(missing)} is missing; --help shows examples and options.")
    return checked


def _entry(command: str, words: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return the entry of help.json and its name: of the command, or of its subcommand if the first word names one."""
    if command not in COMMANDS:
        near = get_close_matches(command, COMMANDS, n=1)
        raise UsageError(f"unknown command {command!r}; " + (f"did you mean {near[0]!r}?" if near else "see --help."))
    entries = read_help()
    name = f"{command} {words[0]}" if words and f"{command} {words[0]}" in entries else command
    return entries[name], name


@cache
def read_help() -> dict[str, Any]:
    """Return the help of each command."""
    return json.loads((files(__package__) / "help.json").read_text(encoding="utf-8"))


# --- Writing help.json -----------------------------------------------------------------------------------------------


def generate() -> dict[str, Any]:
    """Generate the content of help.json from the options of the subcommands."""
    from ..options import Parser  # imports transformers

    entries: dict[str, Any] = {}
    for command in COMMANDS:
        module = import_module(f".{command}", __package__)
        summary = str(module.__doc__).partition(": ")[2]
        entries[command] = {
            "summary": summary[0].upper() + summary[1:],
            "about": module.DESCRIPTION,
            "examples": list(module.EXAMPLES),
        }
        commands = getattr(module, "COMMANDS", {})
        parser = module.parser() if hasattr(module, "parser") else Parser(*([] if commands else [module.Options]))
        entries[command] |= _described(parser)
        entries[command]["commands"] = {name: run.__doc__ for name, (_, run) in commands.items()}
        entries[command]["default"] = getattr(module, "DEFAULT", None)
        for name, (options, run) in commands.items():
            examples = [example for example in module.EXAMPLES if f" {name} " in example]
            entries[f"{command} {name}"] = {"about": run.__doc__, "examples": examples, **_described(Parser(options))}
    return entries


def _described(parser: Any) -> dict[str, Any]:
    """Return the positional arguments of a parser, its options by group, and the aliases of its options."""
    entry: dict[str, Any] = {"positional": {}, "groups": {}, "aliases": {}, "commands": {}}
    entry["required"] = [f"--{action.dest}" for action in parser._actions if action.option_strings and action.required]
    names: set[str] = set()
    for action in parser._actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest.upper())
            name = {"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}.get(str(action.nargs), name)
            entry["positional"][name] = action.help or ""
            aliases = parser.named[action.dest][1] if action.dest in parser.named else ()
            entry["aliases"] |= dict.fromkeys((alias.removeprefix("--") for alias in aliases), action.dest)
        elif action.dest != "help" and action.help != argparse.SUPPRESS:
            aliases = {string.removeprefix("--").replace("-", "_") for string in action.option_strings} - {action.dest}
            if action.dest in names:  # --no_x, after --x
                entry["aliases"] |= {alias: alias for alias in aliases}
                continue
            names.add(action.dest)
            entry["aliases"] |= dict.fromkeys(sorted(aliases), action.dest)
            group = entry["groups"].setdefault(getattr(action, "group", None) or "options", {})
            group[f"--{action.dest}"] = _text(action)
    return entry


def _text(action: argparse.Action) -> str:
    """Return an option's help with its default; for options of other packages, only the first sentence."""
    text = " ".join((action.help or "").replace("%%", "%").split())
    if not getattr(action, "from_option", False):
        text = re.split(r"(?<=[.)])\s", text)[0]
    default = action.default
    if default in (None, "", []) or default is argparse.SUPPRESS or "by default" in text.lower():
        return text
    default = " ".join(map(str, default)) if isinstance(default, (list, tuple)) else getattr(default, "value", default)
    return f"{text} (default: {str(default).lower() if isinstance(default, bool) else default})"


def write_help() -> None:
    """Generate help.json."""
    text = json.dumps(generate(), indent=1, ensure_ascii=False)
    Path(__file__).with_name("help.json").write_text(f"{text}\n", encoding="utf-8")
