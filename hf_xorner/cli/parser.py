"""Argument parsers whose errors are one sentence, without the list of all options."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from transformers import HfArgumentParser

from .options import UsageError


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises a UsageError."""

    def error(self, message: str) -> NoReturn:
        """Raise the error."""
        raise UsageError(f"{message}; --help shows examples and options.")


class DataclassParser(HfArgumentParser, Parser):
    """The same for options that are the fields of dataclasses."""

    def __init__(self, dataclass_types: Any, **options: Any) -> None:
        super().__init__(dataclass_types, **options)
