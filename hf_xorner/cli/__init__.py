"""The `hf-xorner` command: finds the subcommand, answers `--help`, and checks option names before torch loads."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from importlib import import_module
from typing import Any, NoReturn

from .options import COMMANDS, UsageError, check_options, help_of, overview


def main(command: str | None = None, words: list[str] | None = None) -> None:
    """Run a subcommand.

    Args:
        command: The subcommand; by default the first word of the command line.
        words: Its options; by default the rest of the command line.
    """
    words = sys.argv[1:] if words is None else words
    if command is None:
        if not words or words[0] in ("-h", "--help"):
            print(overview())
            return
        if words[0] == "--version":
            from .. import __version__

            print(__version__)
            return
        command, *words = words
    try:
        if text := help_of(command, words):
            print(text)
            return
        words = check_options(command, words)
        import_module("..registration", __name__)
        import_module("huggingface_hub").set_client_factory(_hub_client)
        # A word or a label that the terminal cannot encode must not end a run.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        # Progress bars are for terminals.
        bars = nullcontext() if sys.stderr.isatty() else import_module("..loading", __name__).without_bars()
        with bars:
            import_module(f".{command}", __name__).run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output, such as head, has closed it. Python would report the same once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UsageError as error:
        fail(command, error, 2)
    except (ValueError, OSError, ImportError) as error:
        fail(command, error)


def _hub_client() -> Any:
    """Return the client of the Hub; few commands need it, and the package of its module takes seconds to import."""
    return import_module("..hub.connection", __name__).client()


def fail(command: str, error: Exception | str, code: int = 1) -> NoReturn:
    """Print an error after the name of the subcommand, and exit."""
    name = f"hf-xorner {command}" if command in COMMANDS else "hf-xorner"
    print("\n".join(f"{name}: {line}" for line in str(error).splitlines()), file=sys.stderr)
    sys.exit(code)
