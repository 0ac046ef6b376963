"""`hf-xorner export`: write a model as ONNX, to run without PyTorch, or as a page that tags in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..options import option, read_options

EXAMPLES = (
    "hf-xorner export my_tagger --output my_tagger_onnx",
    "hf-xorner export my_tagger --output my_tagger_onnx --quantize int8",
    "hf-xorner export my_tagger --to web --output site",
    "hf-xorner export my_tagger --to package --name my_ner --output dist",
)


DESCRIPTION = (
    "Write a model as one ONNX graph, from the ids of words and characters to labels and their "
    "probabilities, with its tokenizer and onnx_tagger.py, which tags with numpy, onnxruntime and tokenizers "
    "alone. The graph gives the labels that the model gives. `--to web` writes a static page that tags "
    "in the browser, with the npm packages onnxruntime-web and, for models that read an encoder's pieces, "
    "@huggingface/tokenizers, which must be installed. `--to package` writes a wheel: pip installs it with numpy, "
    "onnxruntime and tokenizers alone, `import my_ner; my_ner.tag(text)` tags, and so does the command my-ner."
)


@dataclass
class Options:
    """The options of an export."""

    model: str = option(help="The folder of a model, or owner/name on the Hub.", positional=True)
    output: str = option(help="The folder to write to.")
    to: str = option("onnx", "What to write: onnx, web or package.", choices=("onnx", "web", "package"))
    name: str | None = option(None, "The name of the package, such as my_ner.")
    version: str = option("1.0", "The version of the package.")
    node_modules: str | None = option(
        None, "The folder of that name with the npm packages; by default in the current folder or above it."
    )
    quantize: str | None = option(
        None,
        "int8 or fp16: save weights in 8 or 16 bits; computations are in 32 bits. int8: about a quarter of the size of "
        "32 bits, and few other labels.",
        choices=("int8", "fp16"),
    )


def run(words: Sequence[str]) -> None:
    """Export the model, and print the files."""
    options = read_options(Options, words)
    output = Path(options.output)
    precision = options.quantize or "fp32"
    if options.to == "web":
        from ..export.web import export_page

        written = export_page(options.model, output, precision, options.node_modules)
    elif options.to == "package":
        from ..export.package import export_package

        written = export_package(options.model, output, options.name, options.version, precision)
    else:
        from ..export.onnx import export_onnx

        written = export_onnx(options.model, output, precision)
    for path in written:
        print(f"written: {path} ({path.stat().st_size / 1e6:.1f} MB)")
