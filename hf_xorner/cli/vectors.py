"""`hf-xorner vectors`: convert, join or distill word vectors, or measure their coverage of a corpus."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from tqdm import tqdm
from transformers.hf_argparser import string_to_bool

from ..corpora import load_corpus
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS
from ..vectors.distill import DIM, FILES, Reduction, compose, encode_words, read_encoder, write_composition
from ..vectors.formats import VECTOR_FILES, Vectors, check_targets, read_vectors, split_member, write_vectors
from ..vectors.lookup import coverage_of, join, read_words, with_foldings
from .parser import Parser

EXAMPLES = (
    "hf-xorner vectors convert glove.6B.zip:glove.6B.100d.txt --output glove/ --vocab my_corpus/",
    "hf-xorner vectors join distilled/ glove.6B.100d.txt --fallback lower --output both/",
    "hf-xorner vectors coverage glove.6B.100d.txt --vocab my_corpus/ --fallback lower",
    "hf-xorner vectors distill --encoder some/encoder --vocab my_corpus/ --output distilled/",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner vectors`."""
    parser = Parser(
        prog="hf-xorner vectors",
        description="SOURCE is a path, archive.zip:member, or owner/name:file on the Hub: text of GloVe, word2vec or "
        "fastText (.vec), plain, gzip or in a zip archive, or the folder that one of these commands wrote.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (command_run, add_options) in COMMANDS.items():
        summary = command_run.__doc__ or ""
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        add_options(command)
    return parser


def add_flag(command: argparse.ArgumentParser, name: str, default: bool | None, help: str) -> None:
    """Add an option that is true or false, and true if it stands alone."""
    command.add_argument(name, type=string_to_bool, nargs="?", const=True, default=default, help=help)


def add_source(command: argparse.ArgumentParser) -> None:
    """Add the source of vectors."""
    command.add_argument("source", metavar="SOURCE", help="A path, archive.zip:member, or owner/name:file on the Hub.")


def add_output(command: argparse.ArgumentParser) -> None:
    """Add the folder to write, and how."""
    command.add_argument("--output", required=True, help="The folder to write.")
    add_flag(command, "--half", False, "Write 16-bit floats, half the size.")
    add_flag(command, "--overwrite", False, "Replace files that exist.")


def add_fallback(command: argparse.ArgumentParser) -> None:
    """Add what says how words are looked up that are not there as they are spelt."""
    command.add_argument(
        "--fallback", nargs="*", default=[], help=f"Further forms to look a word up by: {', '.join(FALLBACKS)}."
    )


def add_convert_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `convert`."""
    add_source(command)
    command.add_argument("--most_frequent", type=int, help="Words to keep from the beginning of the file.")
    command.add_argument(
        "--vocab",
        help="Words to keep, as spelt, in lower case, and so with digits zeroed: a file with a word a line, or a "
        "corpus. With --most_frequent too, a word is kept for either reason.",
    )
    command.add_argument("--data_dir", help="Where the files of a corpus lie that is named.")
    add_output(command)


def convert(options: argparse.Namespace) -> str:
    """Write the vectors of a file as safetensors, all of them or those of some words."""
    inputs = [str(split_member(options.source)[0]), *([options.vocab] if options.vocab else [])]
    check_targets(options.output, VECTOR_FILES, options.overwrite, inputs)
    wanted = with_foldings(read_words(options.vocab, options.data_dir)) if options.vocab else None
    vectors = read_vectors(options.source, wanted, options.most_frequent)
    summary = f"kept: {len(vectors):,} words of dimension {vectors.dim:,}, {vectors.duplicates:,} duplicates left out"
    return write(vectors, options, summary)


def write(vectors: Vectors, options: argparse.Namespace, summary: str) -> str:
    """Write vectors and return the lines to print."""
    vectors.matrix = vectors.matrix.astype(np.float16 if options.half else np.float32, copy=False)
    written = write_vectors(vectors, options.output, options.overwrite)
    return "\n".join([summary, *(f"written: {path}" for path in written)])


def add_join_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `join`."""
    command.add_argument("sources", metavar="SOURCE", nargs="+", help="Each as in the other commands.")
    add_fallback(command)
    add_output(command)


def join_sources(options: argparse.Namespace) -> str:
    """Write the vectors of several files side by side, each on the same scale, with zeros where one lacks a word."""
    inputs = [str(split_member(source)[0]) for source in options.sources]
    check_targets(options.output, VECTOR_FILES, options.overwrite, inputs)
    tables = [read_vectors(source) for source in options.sources]
    joined = join(tables, options.fallback)
    dims = " + ".join(str(table.dim) for table in tables)
    return write(joined, options, f"joined: {len(joined):,} words of dimension {dims}")


def add_coverage_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `coverage`."""
    add_source(command)
    command.add_argument("--vocab", required=True, help="The corpus whose words are looked up.")
    command.add_argument("--data_dir", help="Where the files of a corpus lie that is named.")
    add_fallback(command)


def coverage(options: argparse.Namespace) -> str:
    """Print the share of a corpus that has a vector, by step of the look-up."""
    corpus = load_corpus(options.vocab, options.data_dir)
    sentences = {name: split["tokens"][:] for name, split in corpus.items()}
    words = {word for split in sentences.values() for sentence in split for word in sentence}
    vectors = read_vectors(options.source, with_foldings(words))
    tokenizer = WordCharTokenizer.from_corpus([], vector_words=vectors.words, fallback=options.fallback)
    shares = {name: coverage_of(tokenizer, vectors.words, split) for name, split in sentences.items()}
    return "\n\n".join(f"{name}\n{share}" for name, share in shares.items())


def add_distill_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `distill`."""
    command.add_argument("--encoder", required=True, help="An encoder of transformers: a folder, or a Hub repository.")
    command.add_argument("--vocab", required=True, help="The words: a file with a word a line, or a corpus.")
    add_flag(command, "--composed", False, "Write a vector a subword piece, of which any word is composed.")
    command.add_argument("--dim", type=int, default=DIM, help="Principal components that are kept.")
    command.add_argument(
        "--layers", type=int, nargs="+", help="Hidden states that are averaged, 0 the first; by default from 2 on."
    )
    command.add_argument("--data_dir", help="Where the files of a corpus lie that is named.")
    add_output(command)


def distill(options: argparse.Namespace) -> str:
    """Distil vectors of words, or of the pieces that any word is composed of, and write them."""
    names = FILES if options.composed else VECTOR_FILES
    check_targets(options.output, names, options.overwrite, [options.encoder, options.vocab])
    words = read_words(options.vocab, options.data_dir)
    encoder = read_encoder(options.encoder)
    progress = partial(tqdm, desc="encoding", disable=not sys.stderr.isatty())
    if not options.composed:
        states = encode_words(words, encoder, options.layers, progress)
        vectors = Vectors(words, Reduction.of(states, options.dim)(states))
        return write(vectors, options, f"distilled: {len(words):,} words of dimension {options.dim:,}")
    composition = compose(words, encoder, options.dim, options.layers, progress)
    if options.half:
        composition = composition._replace(vectors=composition.vectors.astype(np.float16))
    written = write_composition(composition, options.output, options.overwrite)
    summary = f"distilled: {len(composition.vectors):,} pieces of dimension {options.dim:,}"
    return "\n".join([summary, *(f"written: {path}" for path in written)])


Run = Callable[[argparse.Namespace], str]
AddOptions = Callable[[argparse.ArgumentParser], None]

COMMANDS: dict[str, tuple[Run, AddOptions]] = {
    "convert": (convert, add_convert_options),
    "join": (join_sources, add_join_options),
    "coverage": (coverage, add_coverage_options),
    "distill": (distill, add_distill_options),
}


def run(words: Sequence[str]) -> None:
    """Run one of the commands."""
    options = parser().parse_args(words)
    print(COMMANDS[options.command][0](options))
