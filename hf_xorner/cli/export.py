"""`hf-xorner export`: export a model to ONNX, a web page or a Python package, to run without PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..files import expanded
from ..options import option, read_options

EXAMPLES = (
    "hf-xorner export my_tagger --output my_tagger_onnx",
    "hf-xorner export my_tagger --output my_tagger_onnx --quantize int8",
    "hf-xorner export my_tagger --to web --output site",
    "hf-xorner export my_tagger --to package --name my_ner --output dist",
)


DESCRIPTION = (
    "Write a model as one ONNX graph, from the ids of words and characters to labels and their probabilities, with its "
    "tokenizer and onnx_tagger.py, which only needs numpy, onnxruntime and tokenizers. The labels are those of the "
    "model. `--to web` writes a static page that tags in the browser; it needs the npm packages onnxruntime-web and, "
    "for models with an encoder's pieces, @huggingface/tokenizers. `--to package` writes a wheel, which pip installs "
    "with numpy, onnxruntime and tokenizers only; `import my_ner; my_ner.tag(text)` and the command my-ner tag texts."
)


@dataclass
class Options:
    """The options of an export."""

    model: str = option(
        help="The folder of a model, owner/name on the Hub, english, english-open or multilingual.", positional=True
    )
    output: str = option(help="The folder to write to.")
    to: str = option("onnx", "The kind of export: onnx, web or package.", choices=("onnx", "web", "package"))
    name: str | None = option(None, "The name of the package, such as my_ner.")
    version: str | None = option(None, "The version of the package; by default 1.0.")
    node_modules: str | None = option(
        None, "The folder node_modules with the npm packages; by default in the current folder or one above it."
    )
    quantize: str | None = option(
        None,
        '"int8" or "fp16": save weights in 8 or 16 bits; computations are in 32 bits. With int8, weights of 32 bits '
        "take a quarter of their size (vectors in 4 bits stay as they are), and few labels differ.",
        choices=("int8", "fp16"),
    )


def run(words: Sequence[str]) -> None:
    """Export the model, and print the files."""
    options = read_options(Options, words)
    for name, kind in (("name", "package"), ("version", "package"), ("node_modules", "web")):
        if getattr(options, name) is not None and options.to != kind:
            raise ValueError(f"{name} is an option of the {kind}: add --to {kind}, or leave {name} out.")
    output = expanded(options.output)
    precision = options.quantize or "fp32"
    if options.to == "web":
        from ..export.web import export_page

        written = export_page(options.model, output, precision, options.node_modules)
    elif options.to == "package":
        from ..export.package import export_package

        written = export_package(options.model, output, options.name, options.version or "1.0", precision)
    else:
        from ..export.onnx import export_onnx

        written = export_onnx(options.model, output, precision)
    for path in written:
        print(f"written: {path} ({path.stat().st_size / 1e6:.1f} MB)")
