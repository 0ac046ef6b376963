"""`hf-xorner vectors`: inspect, convert, join, cover or distill word vectors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm
from transformers.hf_argparser import string_to_bool

from ..corpora import load_corpus
from ..corpora.source import AUTO
from ..files import check_apart
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS
from ..vectors.distill import (
    DIM,
    Reduction,
    check_composition_target,
    compose,
    encode_words,
    read_encoder,
    write_composition,
)
from ..vectors.formats import VECTOR_FORMATS, Vectors, VectorSummary, inspect_vectors, read_vectors
from ..vectors.lookup import coverage_of, join, read_words, with_foldings
from ..vectors.sources import Progress
from ..vectors.tensors import files_of
from ..vectors.write import check_target, write_vectors
from .parser import Parser

MEBIBYTE = 1 << 20
FORMATS = ", ".join(VECTOR_FORMATS)


EXAMPLES = (
    "hf-xorner vectors inspect glove.6B.100d.txt",
    "hf-xorner vectors convert glove.6B.zip:glove.6B.100d.txt --to safetensors --output glove/ --vocab my_corpus/",
    "hf-xorner vectors join distilled/ glove.6B.100d.txt --fallback lower --output both/",
    "hf-xorner vectors coverage glove.6B.100d.txt --vocab my_corpus/ --fallback lower",
    "hf-xorner vectors distill --encoder some/encoder --vocab my_corpus/ --output distilled/",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner vectors`."""
    parser = Parser(
        prog="hf-xorner vectors",
        description="SOURCE is a path, archive.zip:part, or owner/name:file on the Hub: GloVe text, word2vec text or "
        "binary, fastText .vec, each plain, gzip or in a zip archive, or safetensors with a vocabulary beside it.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (command_run, add_options) in COMMANDS.items():
        summary = command_run.__doc__ or ""
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        add_options(command)
        add_flag(command, "--progress", None, "Show a progress bar; by default only on a terminal.")
    return parser


def add_flag(command: argparse.ArgumentParser, name: str, default: bool | None, help: str) -> None:
    """Add an option that is true or false, and true if it stands alone."""
    command.add_argument(name, type=string_to_bool, nargs="?", const=True, default=default, help=help)


def add_source(command: argparse.ArgumentParser) -> None:
    """Add what says which vectors are read."""
    command.add_argument("source", metavar="SOURCE", help="A path, archive.zip:part, or owner/name:file on the Hub.")
    command.add_argument("--format", default=AUTO, help=f"The format of the source, if told: {FORMATS}.")


def add_fallback(command: argparse.ArgumentParser) -> None:
    """Add what says how words are looked up that are not there as they are spelt."""
    command.add_argument(
        "--fallback", nargs="*", default=[], help=f"Further forms to look a word up by: {', '.join(FALLBACKS)}."
    )


def add_inspect_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `inspect`."""
    add_source(command)
    command.add_argument("--json", type=Path, help="Where to write the figures.")


def inspect(options: argparse.Namespace) -> str:
    """Say what a file of vectors holds."""
    with progress_bar("reading", options.progress) as on_progress:
        found = inspect_vectors(options.source, options.format, on_progress)
    if options.json:
        check_apart(options.json, *files_of(options.source))
        options.json.write_text(json.dumps(asdict(found), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return summary_table(found)


def summary_table(found: VectorSummary) -> str:
    """Lay out what a file of vectors holds, a line each."""
    numbers = found.words * found.dim
    rows = {
        "source": found.source,
        "format": found.format,
        "words": f"{found.words:,}",
        "dimension": f"{found.dim:,}",
        "duplicates": f"{found.duplicates:,}",
        "not UTF-8": f"{found.undecodable:,}",
        "first words": " ".join(map(repr, found.first)),
        "norms": ", ".join(f"{name} {norm:.4g}" for name, norm in found.norms.items()),
        "as float32": f"{numbers * np.dtype(np.float32).itemsize / MEBIBYTE:,.1f} MiB",
        "as float16": f"{numbers * np.dtype(np.float16).itemsize / MEBIBYTE:,.1f} MiB",
    }
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name.ljust(width)}{value}".rstrip() for name, value in rows.items())


def add_convert_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `convert`."""
    add_source(command)
    command.add_argument("--to", required=True, help=f"The format to write: {FORMATS}.")
    command.add_argument("--output", required=True, help="The file to write; for safetensors, the folder.")
    command.add_argument("--most_frequent", type=int, help="Words to keep from the beginning of the file.")
    command.add_argument(
        "--vocab",
        help="Words to keep, as spelt, in lower case, and so with digits zeroed: a file with a word a line, or a "
        "corpus. With --most_frequent too, a word is kept for either reason.",
    )
    command.add_argument("--data_dir", help="Where the files of a corpus lie that is named.")
    add_flag(command, "--half", False, "Keep 16-bit floats: half the size as safetensors.")
    add_flag(command, "--overwrite", False, "Replace files that exist.")


def convert(options: argparse.Namespace) -> str:
    """Write the vectors of a file in another format, all of them or those of some words."""
    vocab = [options.vocab] if options.vocab else []
    check_target(options.output, options.to, options.overwrite, [*files_of(options.source), *vocab])
    wanted = with_foldings(read_words(options.vocab, options.data_dir)) if options.vocab else None
    dtype = np.float16 if options.half else np.float32
    with progress_bar("reading", options.progress) as on_progress:
        vectors = read_vectors(options.source, wanted, options.most_frequent, dtype, options.format, on_progress)
    written = write_vectors(vectors, options.output, options.to, options.overwrite)
    kept = f"kept: {len(vectors):,} words of dimension {vectors.dim:,}, {vectors.duplicates:,} duplicates left out"
    return "\n".join([kept, *(f"written: {path}" for path in written)])


def add_join_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `join`."""
    command.add_argument("sources", metavar="SOURCE", nargs="+", help="Each as elsewhere; of any format.")
    command.add_argument("--output", required=True, help="The file to write; for safetensors, the folder.")
    command.add_argument("--to", default="safetensors", help=f"The format to write: {FORMATS}.")
    add_fallback(command)
    add_flag(command, "--half", False, "Keep 16-bit floats: half the size as safetensors.")
    add_flag(command, "--overwrite", False, "Replace files that exist.")


def join_sources(options: argparse.Namespace) -> str:
    """Write the vectors of several files side by side, each on the same scale, with zeros where one lacks a word."""
    inputs = [path for source in options.sources for path in files_of(source)]
    check_target(options.output, options.to, options.overwrite, inputs)
    tables = []
    for source in options.sources:
        with progress_bar("reading", options.progress) as on_progress:
            tables.append(read_vectors(source, on_progress=on_progress))
    joined = join(tables, options.fallback)
    joined.matrix = joined.matrix.astype(np.float16 if options.half else np.float32)
    written = write_vectors(joined, options.output, options.to, options.overwrite)
    kept = f"joined: {len(joined):,} words of dimension {' + '.join(str(table.dim) for table in tables)}"
    return "\n".join([kept, *(f"written: {path}" for path in written)])


def add_coverage_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `coverage`."""
    add_source(command)
    command.add_argument("--vocab", required=True, help="The corpus whose words are looked up.")
    command.add_argument("--data_dir", help="Where the files of a corpus lie that is named.")
    add_fallback(command)


def coverage(options: argparse.Namespace) -> str:
    """Say what part of a corpus has a vector, and by which step of the look-up."""
    corpus = load_corpus(options.vocab, options.data_dir)
    sentences = {name: split["tokens"][:] for name, split in corpus.items()}
    words = {word for split in sentences.values() for sentence in split for word in sentence}
    with progress_bar("reading", options.progress) as on_progress:
        vectors = read_vectors(options.source, with_foldings(words), format=options.format, on_progress=on_progress)
    tokenizer = WordCharTokenizer.from_corpus([], vector_words=vectors.words, fallback=options.fallback)
    found = {name: coverage_of(tokenizer, vectors.words, split) for name, split in sentences.items()}
    return "\n\n".join(f"{name}\n{share}" for name, share in found.items())


def add_distill_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `distill`."""
    command.add_argument("--encoder", required=True, help="An encoder of transformers: a folder, or a Hub repository.")
    command.add_argument("--vocab", required=True, help="The words: a file with a word a line, or a corpus.")
    command.add_argument("--output", required=True, help="The file to write; for safetensors, the folder.")
    command.add_argument("--to", default="safetensors", help=f"The format to write: {FORMATS}.")
    add_flag(command, "--composed", False, "Write a vector a subword piece, of which any word is composed.")
    command.add_argument("--dim", type=int, default=DIM, help="Principal components that are kept.")
    command.add_argument(
        "--layers", type=int, nargs="+", help="Hidden states that are averaged, 0 the first; by default from 2 on."
    )
    command.add_argument("--data_dir", help="Where the files of a corpus lie that is named.")
    add_flag(command, "--half", False, "Keep 16-bit floats: half the size as safetensors.")
    add_flag(command, "--overwrite", False, "Replace files that exist.")


def distill(options: argparse.Namespace) -> str:
    """Distil vectors of words, or of the pieces that any word is composed of, and write them."""
    inputs = [options.encoder, options.vocab]
    if options.composed:
        check_composition_target(options.output, options.overwrite, inputs)
    else:
        check_target(options.output, options.to, options.overwrite, inputs)
    words = read_words(options.vocab, options.data_dir)
    encoder = read_encoder(options.encoder)
    with_bar = sys.stderr.isatty() if options.progress is None else options.progress
    progress = partial(tqdm, desc="encoding") if with_bar else iter
    dtype = np.float16 if options.half else np.float32
    if options.composed:
        found = compose(words, encoder, options.dim, options.layers, progress)
        written = write_composition(
            found._replace(vectors=found.vectors.astype(dtype)), options.output, options.overwrite
        )
        what = f"{len(found.vectors):,} pieces"
    else:
        states = encode_words(words, encoder, options.layers, progress)
        matrix = Reduction.of(states, options.dim)(states).astype(dtype)
        written = write_vectors(Vectors(words, matrix), options.output, options.to, options.overwrite)
        what = f"{len(words):,} words"
    kept = f"distilled: {what} of dimension {options.dim:,}"
    return "\n".join([kept, *(f"written: {path}" for path in written)])


@contextmanager
def progress_bar(what: str, asked: bool | None) -> Iterator[Progress | None]:
    """Give what draws a bar of bytes on the error stream, or None where it is not to be drawn.

    Args:
        what: What is being done.
        asked: Whether it is to be drawn; None for on a terminal only.
    """
    if not (sys.stderr.isatty() if asked is None else asked):
        yield None
        return
    with tqdm(desc=what, unit="B", unit_scale=True, file=sys.stderr) as bar:

        def on_progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield on_progress


Run = Callable[[argparse.Namespace], str]
AddOptions = Callable[[argparse.ArgumentParser], None]

COMMANDS: dict[str, tuple[Run, AddOptions]] = {
    "inspect": (inspect, add_inspect_options),
    "convert": (convert, add_convert_options),
    "join": (join_sources, add_join_options),
    "coverage": (coverage, add_coverage_options),
    "distill": (distill, add_distill_options),
}


def run(words: Sequence[str]) -> None:
    """Run one of the commands."""
    options = parser().parse_args(words)
    print(COMMANDS[options.command][0](options))
