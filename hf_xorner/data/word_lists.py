"""The words that vectors are wanted for: those of a list, or of a corpus."""

from collections.abc import Iterable
from pathlib import Path

from ..errors import DataError
from ..models.tokenization_word_char import FALLBACKS, fold
from .batches import TOKENS
from .corpora import load_corpus
from .files import TABLE_SUFFIXES, suffix_of
from .textfile import BYTE_ORDER_MARK, open_text


def read_words(source: str | Path, data_dir: str | Path | None = None) -> list[str]:
    """Return the distinct words of a list or of a corpus, in the order in which they occur first.

    Args:
        source: A file with a word a line, plain or compressed by gzip, or a corpus as `hf_xorner.data.load_corpus`
            takes it, whose splits are all read. A file is a list if its first line is one field.
        data_dir: Where the files of a named corpus lie.

    Raises:
        DataError: If the source holds no word, or cannot be read.
    """
    path = Path(source).expanduser()
    if path.is_file() and suffix_of(path) not in TABLE_SUFFIXES and _is_list(path):
        with open_text(path) as file:
            words = (line.rstrip("\r\n") for line in file.read().removeprefix(BYTE_ORDER_MARK).split("\n"))
            return list(dict.fromkeys(word for word in words if word))
    found: dict[str, None] = {}
    for split in load_corpus(source, data_dir).values():
        # Column by column: a row at a time takes several times as long.
        for batch in split.select_columns([TOKENS]).with_format("arrow").iter(100_000):
            found.update(dict.fromkeys(batch.column(TOKENS).combine_chunks().flatten().to_pylist()))
    if not found:
        raise DataError(f"{source}: there is no word; name a list of words, or a corpus.")
    return list(found)


def _is_list(path: Path) -> bool:
    """Tell a list of words from columns and from JSON by the first line that is not empty."""
    with open_text(path) as file:
        line = next((line for line in file if line.strip(f"\r\n{BYTE_ORDER_MARK}")), "").rstrip("\r\n")
    return bool(line) and not any(blank in line for blank in " \t") and not line.startswith('{"')


def with_foldings(words: Iterable[str]) -> set[str]:
    """Return words with all forms that a tokenizer may look them up by; see `WordCharTokenizer.forms`.

    Args:
        words: Words as they are spelt.
    """
    spelt = set(words)
    return spelt.union(*({fold(word, *policies) for word in spelt} for policies in FALLBACKS.values()))
