"""`hf-xorner vectors`: inspect, convert, join, cover or distill word vectors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ..corpora import load_corpus
from ..corpora.source import AUTO
from ..files import check_apart
from ..models.tokenization_word_char import FALLBACKS, WordCharTokenizer
from ..options import option, run_command
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

FORMATS = ", ".join(VECTOR_FORMATS)
SOURCE = "A path, archive.zip:part, or owner/name:file on the Hub."
EXAMPLES = (
    "hf-xorner vectors inspect glove.6B.100d.txt",
    "hf-xorner vectors convert glove.6B.zip:glove.6B.100d.txt --to safetensors --output glove/ --vocab my_corpus/",
    "hf-xorner vectors join distilled/ glove.6B.100d.txt --fallback lower --output both/",
    "hf-xorner vectors coverage glove.6B.100d.txt --dataset my_corpus/ --fallback lower",
    "hf-xorner vectors distill --encoder some/encoder --vocab my_corpus/ --output distilled/",
)
DESCRIPTION = (
    "SOURCE is a path, archive.zip:part, or owner/name:file on the Hub: GloVe text, word2vec text or binary, fastText "
    ".vec, each plain, gzip or in a zip archive, or safetensors with their vocabulary."
)


@dataclass(kw_only=True)
class InspectOptions:
    """The options of `inspect`."""

    source: str = option(help=SOURCE, positional=True)
    format: str = option(AUTO, f"The format of the source: {FORMATS}.")
    json: str | None = option(None, "Write the figures to this JSON file.")


@dataclass(kw_only=True)
class _WritingOptions:
    """The options of what writes vectors."""

    output: str = option(help="The file to write; for safetensors, the folder.")
    to: str = option("safetensors", f"The format to write: {FORMATS}.")
    half: bool = option(False, "Keep 16-bit floats: half the size as safetensors.")
    overwrite: bool = option(False, "Replace files that exist.")


@dataclass(kw_only=True)
class ConvertOptions(_WritingOptions):
    """The options of `convert`."""

    source: str = option(help=SOURCE, positional=True)
    format: str = option(AUTO, f"The format of the source: {FORMATS}.")
    most_frequent: int | None = option(None, "Words to keep from the beginning of the file.", bounds=(1, math.inf))
    vocab: str | None = option(
        None,
        "Words to keep, as spelt, in lower case, and so with digits zeroed: a file with a word a line, or a corpus. "
        "With --most_frequent too, a word is kept for either reason.",
    )
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")


@dataclass(kw_only=True)
class JoinOptions(_WritingOptions):
    """The options of `join`."""

    sources: list[str] = option(help=SOURCE, positional=True)
    fallback: list[str] = option([], f"Further forms to look a word up by: {', '.join(FALLBACKS)}.")


@dataclass(kw_only=True)
class CoverageOptions:
    """The options of `coverage`."""

    source: str = option(help=SOURCE, positional=True)
    format: str = option(AUTO, f"The format of the source: {FORMATS}.")
    dataset: str = option(help="The corpus whose words are looked up.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    fallback: list[str] = option([], f"Further forms to look a word up by: {', '.join(FALLBACKS)}.")


@dataclass(kw_only=True)
class DistillOptions(_WritingOptions):
    """The options of `distill`."""

    encoder: str = option(help="An encoder of transformers: a folder, or a Hub repository.")
    vocab: str = option(help="The words: a file with a word a line, or a corpus.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    composed: bool = option(False, "Write a vector a subword piece, of which any word is composed.")
    dim: int = option(DIM, "Principal components that are kept.", bounds=(1, math.inf))
    layers: list[int] = option([], "Hidden states that are averaged, 0 the first; by default from 2 on.")


def inspect(options: InspectOptions) -> None:
    """Say what a file of vectors holds."""
    with progress_bar() as on_progress:
        summary = inspect_vectors(options.source, options.format, on_progress)
    if options.json:
        check_apart(options.json, *files_of(options.source))
        text = json.dumps(asdict(summary), indent=2, ensure_ascii=False)
        Path(options.json).write_text(f"{text}\n", encoding="utf-8")
    print(summary_table(summary))


def summary_table(summary: VectorSummary) -> str:
    """Return a line for each property of a file of vectors."""
    mebibytes = summary.words * summary.dim * np.dtype(np.float32).itemsize / (1 << 20)
    rows = {
        "source": summary.source,
        "format": summary.format,
        "words": f"{summary.words:,}",
        "dimension": f"{summary.dim:,}",
        "duplicates": f"{summary.duplicates:,}",
        "not UTF-8": f"{summary.undecodable:,}",
        "first words": " ".join(map(repr, summary.first)),
        "norms": ", ".join(f"{name} {norm:.4g}" for name, norm in summary.norms.items()),
        "as float32": f"{mebibytes:,.1f} MiB",
        "as float16": f"{mebibytes / 2:,.1f} MiB",
    }
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name.ljust(width)}{value}".rstrip() for name, value in rows.items())


def convert(options: ConvertOptions) -> None:
    """Write the vectors of a file in another format, all of them or those of some words."""
    vocab = [options.vocab] if options.vocab else []
    check_target(options.output, options.to, options.overwrite, [*files_of(options.source), *vocab])
    wanted = with_foldings(read_words(options.vocab, options.data_dir)) if options.vocab else None
    dtype = np.float16 if options.half else np.float32
    with progress_bar() as on_progress:
        vectors = read_vectors(options.source, wanted, options.most_frequent, dtype, options.format, on_progress)
    written = write_vectors(vectors, options.output, options.to, options.overwrite)
    print(f"kept: {len(vectors):,} words of dimension {vectors.dim:,}, {vectors.duplicates:,} duplicates left out")
    print_files(written)


def join_sources(options: JoinOptions) -> None:
    """Write the vectors of several files side by side, each on the same scale, with zeros where one lacks a word."""
    inputs = [path for source in options.sources for path in files_of(source)]
    check_target(options.output, options.to, options.overwrite, inputs)
    tables = []
    for source in options.sources:
        with progress_bar() as on_progress:
            tables.append(read_vectors(source, on_progress=on_progress))
    joined = join(tables, options.fallback)
    joined.matrix = joined.matrix.astype(np.float16 if options.half else np.float32)
    written = write_vectors(joined, options.output, options.to, options.overwrite)
    print(f"joined: {len(joined):,} words of dimension {' + '.join(str(table.dim) for table in tables)}")
    print_files(written)


def coverage(options: CoverageOptions) -> None:
    """Say what part of a corpus has a vector, and by which step of the look-up."""
    corpus = load_corpus(options.dataset, options.data_dir)
    sentences = {name: split["tokens"][:] for name, split in corpus.items()}
    words = {word for split in sentences.values() for sentence in split for word in sentence}
    with progress_bar() as on_progress:
        vectors = read_vectors(options.source, with_foldings(words), format=options.format, on_progress=on_progress)
    tokenizer = WordCharTokenizer.from_corpus([], vector_words=vectors.words, fallback=options.fallback)
    shares = (f"{name}\n{coverage_of(tokenizer, vectors.words, split)}" for name, split in sentences.items())
    print("\n\n".join(shares))


def distill(options: DistillOptions) -> None:
    """Distil vectors of words, or of the pieces that any word is composed of, and write them."""
    inputs = [options.encoder, options.vocab]
    if options.composed:
        check_composition_target(options.output, options.overwrite, inputs)
    else:
        check_target(options.output, options.to, options.overwrite, inputs)
    words = read_words(options.vocab, options.data_dir)
    encoder = read_encoder(options.encoder)
    progress = partial(tqdm, desc="encoding", disable=None)
    dtype = np.float16 if options.half else np.float32
    layers = options.layers or None
    if options.composed:
        composition = compose(words, encoder, options.dim, layers, progress)
        composition = composition._replace(vectors=composition.vectors.astype(dtype))
        written = write_composition(composition, options.output, options.overwrite)
        kind = f"{len(composition.vectors):,} pieces"
    else:
        states = encode_words(words, encoder, layers, progress)
        matrix = Reduction.of(states, options.dim)(states).astype(dtype)
        written = write_vectors(Vectors(words, matrix), options.output, options.to, options.overwrite)
        kind = f"{len(words):,} words"
    print(f"distilled: {kind} of dimension {options.dim:,}")
    print_files(written)


def print_files(paths: Sequence[Path]) -> None:
    """Print the names of written files."""
    for path in paths:
        print(f"written: {path}")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a function that draws a bar of bytes, in a terminal."""
    with tqdm(desc="reading", unit="B", unit_scale=True, disable=None) as bar:

        def on_progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield on_progress


COMMANDS = {
    "inspect": (InspectOptions, inspect),
    "convert": (ConvertOptions, convert),
    "join": (JoinOptions, join_sources),
    "coverage": (CoverageOptions, coverage),
    "distill": (DistillOptions, distill),
}


def run(words: Sequence[str]) -> None:
    """Run one of the commands."""
    run_command(COMMANDS, words)
