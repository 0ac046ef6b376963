"""`hf-xorner tag`: tag a text, a file, a folder, a Hub dataset or standard input as a stream."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from .. import __version__
from ..errors import UsageError
from ..export.runtime import OnnxTagger
from ..files import GRAPH_FILE
from ..options import option, read_options
from ..tagging import STDIN, TaggingOptions, tag_source

EXAMPLES = (
    'hf-xorner tag "Imran Vale flew to Oslo."',
    "hf-xorner tag texts.txt --model my_tagger --output entities.jsonl",
    "zcat corpus.conll.gz | hf-xorner tag - --model my_tagger --input_format conll",
    "hf-xorner tag texts.txt --redact --output redacted.txt",
)


DESCRIPTION = (
    "Tag a text, or texts (one per line), CoNLL columns, JSON (one object per line, or an array), CSV, Parquet or any "
    "other format that `hf-xorner data` reads, also compressed by gzip: a file, a folder of files, - for standard "
    "input, or owner/name on the Hub. An argument that contains a blank and is not the name of a file is a text. "
    "Records are written in order; a terminal shows texts with their entities in colour. An output is called "
    "NAME.partial until it is complete. A folder of inputs becomes a folder of outputs; a second run writes those that "
    "are missing."
)


@dataclass(kw_only=True)
class Options(TaggingOptions):
    """The options of tagging, with the source."""

    source: str | None = option(
        None,
        "A text with a space, a file, a folder, or owner/name on the Hub; by default, and for -, standard input.",
        positional=True,
    )


def run(words: Sequence[str]) -> None:
    """Tag the source, and print a summary."""
    start = time.monotonic()
    options = read_options(Options, words)
    if options.source is None and sys.stdin.isatty():
        raise UsageError("name a text, a file or a folder; --help shows examples.")
    tally = tag_source(options.source or STDIN, options, _exported(options))
    if tally.faults:
        print(f"hf-xorner tag: {tally.faults} records are bad; the first: {tally.first_fault}", file=sys.stderr)
    if options.output:
        figures = f"{tally.records:,} records, {tally.words:,} words, {time.monotonic() - start:.1f} s"
        print(f"written: {options.output} ({figures})")


def _exported(options: Options) -> OnnxTagger | None:
    """Return the ONNX tagger of an exported folder, or of the installed package of the English model, if possible."""
    folder = _english_package() if options.model is None else Path(options.model)
    # A folder with weights may have an outdated graph.
    exported = folder and (folder / GRAPH_FILE).is_file() and not (folder / "model.safetensors").is_file()
    usable = not options.device and find_spec("onnxruntime")
    if options.model and exported and not usable:
        raise ValueError(f"{folder} is an ONNX export; install hf_xorner[onnx], and leave out device.")
    if not folder or not exported or not usable:
        return None
    return OnnxTagger.from_pretrained(folder, min_score=options.least_score())


def _english_package() -> Path | None:
    """Return the folder of the package `english_ner` if it is installed in this version."""
    try:
        spec = find_spec("english_ner") if version("english_ner") == __version__ else None
    except PackageNotFoundError:
        return None
    return Path(spec.origin).parent if spec and spec.origin else None
