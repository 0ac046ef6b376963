"""Options: each is one field of a dataclass, from which the command line and its help are generated."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, field, fields
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

from transformers import HfArgumentParser
from transformers.hf_argparser import string_to_bool

from .errors import UsageError

Options = TypeVar("Options")
#: The options and the function of subcommands, by name.
Commands = dict[str, tuple[type, Callable[[Any], None]]]

#: Values that may follow a switch, as in `--overwrite true`.
TRUTH_VALUES = {"true", "false", "yes", "no", "t", "f", "y", "n", "1", "0"}


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    group: str | None = None,
    bounds: tuple[float, float] | None = None,
    choices: Sequence[str] | None = None,
    aliases: Sequence[str] = (),
    positional: bool = False,
    without_value: Any = None,
) -> Any:
    """Return a field of a dataclass for an option.

    Args:
        default: The default; without one, the option is required.
        help: A sentence for ``--help``.
        group: The heading of the option in ``--help``. If some options of a command have one, the others are only
            listed by ``--help-all``.
        bounds: The least and the greatest value; the greatest may be infinite.
        choices: The allowed values; also None if it is the default.
        aliases: Other names on the command line, such as ``--lr``.
        positional: True for a positional argument of the command line.
        without_value: The value of the option if none follows it on the command line.
    """
    metadata: dict[str, Any] = {"help": help, "group": group, "bounds": bounds, "positional": positional}
    metadata |= {"choices": choices} if choices else {}
    metadata |= {"aliases": list(aliases)} if aliases else {}
    metadata |= {"nargs": "?", "const": without_value} if without_value else {}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def check_values(options: Any) -> None:
    """Raise a ValueError for a value of an `option` of a wrong kind, out of bounds or choices, or an empty string."""
    for entry in fields(options):
        value, metadata = getattr(options, entry.name), entry.metadata
        if value is None or "bounds" not in metadata:
            continue
        if value == "":
            raise ValueError(f"{entry.name} is empty; give it a value, or leave the option out.")
        if isinstance(entry.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{entry.name}={value!r} must be true or false.")
        choices, bounds = metadata.get("choices"), metadata["bounds"]
        if choices and value not in choices:
            raise ValueError(f"{entry.name}={value!r} is unknown; choose one of {', '.join(choices)}.")
        values = value if isinstance(value, list) else [value]
        numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in values)
        if bounds and not (numbers and all(bounds[0] <= each <= bounds[1] for each in values)):
            most = f" to {bounds[1]}" if math.isfinite(bounds[1]) else " up"
            raise ValueError(f"{entry.name}={value!r} must be a number from {bounds[0]}{most}.")


class Parser(HfArgumentParser):
    """Parses words into the fields of dataclasses. Its errors are one sentence, without the usage of all options."""

    def __init__(self, *dataclasses: Any) -> None:
        #: The positional arguments by name: the action, and the names and settings passed to `add_argument`.
        self.named: dict[str, tuple[argparse.Action, tuple[Any, ...], dict[str, Any]]] = {}
        super().__init__(dataclasses, allow_abbrev=False, add_help=False)

    def add_argument(self, *names: Any, **settings: Any) -> Any:
        """Add an argument; `group`, `bounds` and `positional` are described in `option`."""
        group, positional = settings.pop("group", None), settings.pop("positional", False)
        from_option = "bounds" in settings
        if from_option:
            del settings["bounds"]
            settings.pop("choices", None)  # checked by `check_values`
        if settings.get("nargs") == "+" and "default" in settings:
            settings["nargs"] = "*"
        if settings.get("type") is string_to_bool:
            settings |= {"nargs": "?", "const": True}
        final = dict(settings)
        if positional and not final.pop("required", False):
            final.setdefault("nargs", "?")
        action = super().add_argument(*([names[0].removeprefix("--")] if positional else names), **final)
        action.group, action.from_option = group, from_option
        if positional:
            self.named[action.dest] = action, names, settings
        return action

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words. Positional arguments may be in any position, or given by name.

        A word after a switch is its value only if it is a truth value.
        """
        words = list(sys.argv[1:] if args is None else args)
        for action, names, settings in self.named.values():
            if not {word.partition("=")[0] for word in words}.isdisjoint(names):
                self._remove_action(action)
                self.add_argument(*names, **settings)
        switches = {
            name
            for action in self._actions
            if action.const is True and action.nargs == "?"
            for name in action.option_strings
        }
        for index, word in enumerate(words):
            if word in switches and "".join(words[index + 1 : index + 2]).lower() not in TRUTH_VALUES:
                words[index] = f"{word}=true"
        return self.parse_intermixed_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise the error."""
        raise UsageError(f"{message}; --help shows examples and options.")


def full_names(options: Mapping[str, Any], *kinds: type) -> dict[str, Any]:
    """Return options by the names of their fields; aliases of the command line, such as ``lr``, are replaced."""
    names = {
        alias.removeprefix("--"): entry.name
        for kind in kinds
        for entry in fields(kind)
        for alias in entry.metadata.get("aliases", ())
    }
    return {names.get(name, name): value for name, value in options.items()}


def check_known(options: Iterable[str], known: Collection[str], owner: str) -> None:
    """Raise a ValueError for an option that is not known, with the nearest known one.

    Args:
        options: The names of the options.
        known: The names of the known ones.
        owner: What has these options, for the message, such as a function.
    """
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(sorted(known)[:20])}, …"
            raise ValueError(f"{name!r} is not an option of {owner}; {hint}")


def read_options(kind: type[Options], words: Sequence[str]) -> Options:
    """Return the options of a command line, with checked values."""
    options = kind(**vars(Parser(kind).parse_args(words)))
    check_values(options)
    return options


def run_command(commands: Commands, words: Sequence[str]) -> None:
    """Run a subcommand: the first word is its name, the others are its options."""
    kind, run = commands[words[0]]
    run(read_options(kind, words[1:]))


def number_by_label(words: Sequence[str], option: str) -> float | dict[str, float]:
    """Read one number, or numbers by label such as ``PER=0.9 LOC=0.8``, from the command line."""
    with suppress(ValueError):
        if len(words) == 1 and "=" not in words[0]:
            return float(words[0])
        numbers = {label: float(number) for label, _, number in (word.rpartition("=") for word in words)}
        if "" not in numbers:
            return numbers
    text = " ".join(words)
    raise ValueError(f"{option} {text!r} is not a number; give a number, or one for each label: PER=0.9 LOC=0.8.")
