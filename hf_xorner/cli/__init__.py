"""The `hf-xorner` command: finds the subcommand, answers `--help`, and checks option names before torch loads."""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from ..errors import UsageError
from ..safety import visible
from .help import COMMANDS, check_options, help_of, overview

#: The extras of this package that install optional packages.
EXTRAS = {"gliner": "gliner", "matplotlib": "plots", "scipy": "papers", "spacy": "spacy"} | dict.fromkeys(
    ("onnx", "onnxruntime", "onnxscript"), "onnx"
)


def main(command: str | None = None, words: list[str] | None = None) -> None:
    """Run a subcommand.

    Args:
        command: The subcommand; by default the first word of the command line.
        words: Its options; by default the rest of the command line.
    """
    # Otherwise, a file that is opened later takes the number of a closed stream, and messages are written into it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    words = sys.argv[1:] if words is None else words
    if command is None:
        command, *words = words or ["--help"]
    try:
        _run(command, words)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)  # The reader of the output, such as head, has closed it.
    except KeyboardInterrupt:
        fail(command, "interrupted.", 130)
    except UsageError as error:
        fail(command, error, 2)
    except ImportError as error:
        extra = EXTRAS.get(str(error.name).partition(".")[0])
        fail(command, f"{error}; run: pip install 'hf_xorner[{extra}]'" if extra else error)
    except (ValueError, OSError) as error:
        fail(command, error)


def _run(command: str, words: list[str]) -> None:
    if command in ("-h", "--help"):
        print(overview())
        return
    if command == "--version":
        print(import_module("..", __name__).__version__)
        return
    if text := help_of(command, words):
        print(text)
        return
    words = check_options(command, words)
    if sys.stdout.isatty():
        write = sys.stdout.write
        sys.stdout.write = lambda text: write(visible(text))  # type: ignore[method-assign]
    # Otherwise, a character that the terminal cannot encode would end the run.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if not sys.stderr.isatty():
        _hide_bars()
    import_module(f".{command}", __name__).run(words)


def _hide_bars() -> None:
    """Disable progress bars outside of terminals; libraries read these variables when they are imported."""
    os.environ |= {"HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    if "transformers" in sys.modules:
        import_module("transformers.utils.logging").disable_progress_bar()


def _discard(stream: Any) -> None:
    """Discard the buffer of a stream; otherwise Python reports at exit that it cannot be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(command: str, error: Exception | str, code: int = 1) -> NoReturn:
    """Print an error after the name of the subcommand, and exit."""
    name = f"hf-xorner {command}" if command in COMMANDS else "hf-xorner"
    sentence = visible("\n".join(f"{name}: {line}" for line in str(error).splitlines()))
    for stream, text in ((sys.stdout, ""), (sys.stderr, f"{sentence}\n")):
        try:
            print(text, end="", file=stream, flush=True)
        except OSError:
            _discard(stream)
    sys.exit(code)
