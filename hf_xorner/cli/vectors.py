"""`hf-xorner vectors`: convert, join or distil word vectors, or print their coverage of a corpus."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from tqdm import tqdm

from ..corpora.load import load_corpus, read_words
from ..errors import DataError
from ..loading import moved
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS
from ..options import Commands, option, run_command
from ..vectors.distill import DIM, FILES, Reduction, compose, encode_words, read_encoder, write_composition
from ..vectors.formats import VECTOR_FILES, Vectors, check_targets, read_vectors, split_member, write_vectors
from ..vectors.lookup import coverage_of, join, with_foldings

SOURCE = "A path, archive.zip:member, or owner/name:file on the Hub."
EXAMPLES = (
    "hf-xorner vectors convert glove.6B.zip:glove.6B.100d.txt --output glove/ --vocab my_corpus/",
    "hf-xorner vectors join distilled/ glove.6B.100d.txt --fallback lower --output both/",
    "hf-xorner vectors coverage glove.6B.100d.txt --dataset my_corpus/ --fallback lower",
    "hf-xorner vectors distill --encoder some/encoder --vocab my_corpus/ --output distilled/",
)
DESCRIPTION = (
    "SOURCE is a path, archive.zip:member, or owner/name:file on the Hub: text of GloVe, word2vec or fastText (.vec), "
    "plain, gzip or in a zip archive, or a folder written by one of these commands."
)


@dataclass(kw_only=True)
class _WritingOptions:
    """The options of commands that write vectors."""

    output: str = option(help="The folder to write.")
    half: bool = option(False, "Write 16-bit floats, half the size.")
    overwrite: bool = option(False, "Replace files that exist.")


@dataclass(kw_only=True)
class ConvertOptions(_WritingOptions):
    """The options of `convert`."""

    source: str = option(help=SOURCE, positional=True)
    most_frequent: int | None = option(None, "Keep this many words from the start of the file.", bounds=(1, math.inf))
    vocab: str | None = option(
        None,
        "Keep these words, also in lower case and with digits as 0: a file with one word per line, or a corpus. "
        "With --most_frequent, both sets of words are kept.",
    )
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")


@dataclass(kw_only=True)
class JoinOptions(_WritingOptions):
    """The options of `join`."""

    sources: list[str] = option(help=SOURCE, positional=True)
    fallback: list[str] = option([], f"Forms in which unknown words are looked up: {', '.join(FALLBACKS)}.")


@dataclass(kw_only=True)
class CoverageOptions:
    """The options of `coverage`."""

    source: str = option(help=SOURCE, positional=True)
    dataset: str = option(help="The corpus whose words are looked up.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    fallback: list[str] = option([], f"Forms in which unknown words are looked up: {', '.join(FALLBACKS)}.")


@dataclass(kw_only=True)
class DistillOptions(_WritingOptions):
    """The options of `distill`."""

    encoder: str = option(help="An encoder of transformers: a folder, or owner/name on the Hub.")
    vocab: str = option(help="The words: a file with one word per line, or a corpus.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    composed: bool = option(False, "Write a vector for each subword piece, from which any word is composed.")
    dim: int = option(DIM, "Number of principal components.", bounds=(1, math.inf))
    layers: list[int] = option([], "Numbers of the averaged hidden states, from 0; by default from 2 on.")
    device: str = option("cpu", "The device of the encoder, such as cuda.")


def convert(options: ConvertOptions) -> None:
    """Write the vectors of a file, or of some of its words, as safetensors."""
    inputs = [str(split_member(options.source)[0]), *([options.vocab] if options.vocab else [])]
    check_targets(options.output, VECTOR_FILES, options.overwrite, inputs)
    wanted = with_foldings(read_words(options.vocab, options.data_dir)) if options.vocab else None
    vectors = read_vectors(options.source, wanted, options.most_frequent)
    if not len(vectors):
        raise DataError(f"{options.source}: has none of the words of {options.vocab}.")
    print(f"kept: {len(vectors):,} words of dimension {vectors.dim:,}, {vectors.duplicates:,} duplicates left out")
    write(vectors, options)


def join_sources(options: JoinOptions) -> None:
    """Concatenate the vectors of several files on the same scale, with zeros for words that a file does not have."""
    inputs = [str(split_member(source)[0]) for source in options.sources]
    check_targets(options.output, VECTOR_FILES, options.overwrite, inputs)
    tables = [read_vectors(source) for source in options.sources]
    joined = join(tables, options.fallback)
    print(f"joined: {len(joined):,} words of dimension {' + '.join(str(table.dim) for table in tables)}")
    write(joined, options)


def coverage(options: CoverageOptions) -> None:
    """Print the share of a corpus' words that have a vector, by step of the look-up."""
    corpus = load_corpus(options.dataset, options.data_dir)
    sentences = {name: split["tokens"][:] for name, split in corpus.items()}
    words = {word for split in sentences.values() for sentence in split for word in sentence}
    vectors = read_vectors(options.source, with_foldings(words))
    tokenizer = WordCharTokenizer.from_corpus([], fallback=options.fallback)
    shares = (f"{name}\n{coverage_of(tokenizer, vectors.words, split)}" for name, split in sentences.items())
    print("\n\n".join(shares))


def distill(options: DistillOptions) -> None:
    """Distil vectors of words, or of subword pieces from which any word is composed, and write them."""
    names = FILES if options.composed else VECTOR_FILES
    check_targets(options.output, names, options.overwrite, [options.encoder, options.vocab])
    words = read_words(options.vocab, options.data_dir)
    encoder = read_encoder(options.encoder)
    most = encoder.model.config.hidden_size
    if options.dim > most:
        raise ValueError(f"dim={options.dim}: the encoder's vectors have {most} dimensions; give 1 to {most}.")
    moved(encoder.model, options.device)
    progress = partial(tqdm, desc="encoding", disable=None)
    layers = options.layers or None
    if not options.composed:
        states = encode_words(words, encoder, layers, progress)
        print(f"distilled: {len(words):,} words of dimension {options.dim:,}")
        write(Vectors(words, Reduction.of(states, options.dim)(states)), options)
        return
    composition = compose(words, encoder, options.dim, layers, progress)
    if options.half:
        composition = composition._replace(vectors=composition.vectors.astype(np.float16))
    print(f"distilled: {len(composition.vectors):,} pieces of dimension {options.dim:,}")
    for path in write_composition(composition, options.output, options.overwrite):
        print(f"written: {path}")


def write(vectors: Vectors, options: _WritingOptions) -> None:
    """Write vectors, and print the names of the files."""
    vectors.matrix = vectors.matrix.astype(np.float16 if options.half else np.float32, copy=False)
    for path in write_vectors(vectors, options.output, options.overwrite):
        print(f"written: {path}")


COMMANDS: Commands = {
    "convert": (ConvertOptions, convert),
    "join": (JoinOptions, join_sources),
    "coverage": (CoverageOptions, coverage),
    "distill": (DistillOptions, distill),
}


def run(words: Sequence[str]) -> None:
    """Run one of the commands."""
    run_command(COMMANDS, words)
