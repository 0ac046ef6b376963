"""Read and write files of predictions: token, gold tag and predicted tag."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..files import read_text, replacing


class Predictions(NamedTuple):
    """The content of a file of predictions, by sentence."""

    tokens: list[list[str]]
    gold: list[list[str]]
    predicted: list[list[str]]


def read_predictions(path: str | Path) -> Predictions:
    """Read a file of predictions.

    Every line holds a token, its gold tag and its predicted tag, separated by TABs; other blanks belong to the token. A
    line that is empty, or only has blanks and TABs, ends a sentence. A byte-order mark at the beginning of the file is
    ignored.

    Args:
        path: A file in UTF-8, plain or compressed by gzip.

    Raises:
        DataError: If a line does not have three columns, a column is empty, a tag has blanks around it, or the file has
            no sentence.
    """
    path = Path(path)
    predictions = Predictions([], [], [])
    rows: list[list[str]] = []
    for number, line in enumerate([*read_text(path, "utf-8-sig").split("\n"), ""], start=1):
        line = line.rstrip("\r")
        if line.strip(" \t"):
            row = line.split("\t")
            if len(row) != 3 or "" in row or any(tag != tag.strip() for tag in row[1:]):
                raise DataError(
                    f"{path}:{number}: {line[:60]!r}; expected a token, its gold tag and its predicted tag, "
                    "separated by TABs, without blanks around the tags."
                )
            rows.append(row)
        elif rows:
            for column, values in zip(predictions, zip(*rows, strict=True), strict=True):
                column.append(list(values))
            rows = []
    if not predictions.tokens:
        raise DataError(f"{path}:1: the file holds no sentence; expected lines of token, gold tag and predicted tag.")
    return predictions


def write_predictions(
    path: str | Path, tokens: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> None:
    """Write a file of predictions, as `read_predictions` reads it.

    Sentences without words are left out, since the format cannot represent them. The folder is created if necessary.

    Args:
        path: The file, which is replaced if it exists.
        tokens: The words of each sentence.
        gold: The gold tag of each word.
        predicted: The predicted tag of each word.

    Raises:
        DataError: For a token that the format cannot represent.
    """
    path = Path(path)
    with replacing(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for number, sentence in enumerate(zip(tokens, gold, predicted, strict=True)):
            for row in zip(*sentence, strict=True):
                line = "\t".join(row)
                if line.count("\t") != 2 or "\n" in line or not row[0]:
                    raise DataError(
                        f"{path}: sentence {number} (counted from 0) has the token {row[0]!r}, which lines of "
                        "columns separated by TABs cannot hold; remove it from the data."
                    )
                file.write(f"{line}\n")
            if len(sentence[0]):
                file.write("\n")
