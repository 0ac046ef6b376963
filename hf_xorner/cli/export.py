"""`hf-xorner export`: write a model as ONNX, to run without PyTorch, or as a page that tags in the browser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .parser import Parser

EXAMPLES = (
    "hf-xorner export my_tagger --output my_tagger_onnx",
    "hf-xorner export my_tagger --output my_tagger_onnx --quantize int8",
    "hf-xorner export my_tagger --to web --output site",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner export`."""
    parser = Parser(
        prog="hf-xorner export",
        description="Write a model as one ONNX graph, from the ids of words and characters to labels and their "
        "probabilities, with its tokenizer and onnx_tagger.py, which tags with numpy, onnxruntime and tokenizers "
        "alone. The graph gives the labels that the model gives. `--to web` writes a static page that tags "
        "in the browser, with the npm packages onnxruntime-web and, for models that read an encoder's pieces, "
        "@huggingface/tokenizers, which must be installed.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="MODEL", help="The folder of a model, or owner/name on the Hub.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="The folder to write to.")
    parser.add_argument("--to", choices=("onnx", "web"), default="onnx", help="What to write.")
    parser.add_argument(
        "--node_modules",
        metavar="DIR",
        help="The folder of that name with the npm packages; by default in the current folder or above it.",
    )
    parser.add_argument(
        "--quantize",
        choices=("int8", "fp16"),
        help="Save weights in 8 or 16 bits; computations are in 32 bits. int8: about a quarter of the size of 32 bits, "
        "and few other labels.",
    )
    return parser


@contextmanager
def onnx_needed() -> Iterator[None]:
    """Say which extra to install if a package of it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("onnx", "onnxscript"):
            raise
        raise ImportError(f"export needs the package {error.name}; run: pip install 'hf_xorner[onnx]'.") from None


def run(words: Sequence[str]) -> None:
    """Export the model, and print the files."""
    options = parser().parse_args(words)
    precision = options.quantize or "fp32"
    with onnx_needed():
        if options.to == "web":
            from ..export.web import export_page

            written = export_page(options.model, options.output, precision, options.node_modules)
        else:
            from ..export.onnx import export_onnx

            written = export_onnx(options.model, options.output, precision)
    for path in written:
        print(f"written: {path} ({path.stat().st_size / 1e6:.1f} MB)")
