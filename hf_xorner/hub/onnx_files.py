"""The ONNX files of a published model, checked against the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import first_line
from ..export.bundle import runtime_code
from ..export.runtime import GRAPH_FILE, RUNTIME_FILE, OnnxTagger
from .loading import Tagged


def faults_of_onnx(folder: Path, tagged: Sequence[Tagged]) -> list[str]:
    """Return a sentence for everything that is wrong with `model.onnx` and `onnx_tagger.py`.

    Args:
        folder: The model's folder.
        tagged: Example sentences with the entities that the model finds.
    """
    if missing := [name for name in (GRAPH_FILE, RUNTIME_FILE) if not (folder / name).is_file()]:
        return [
            f"{folder} has no {missing[0]}; write it by `hf-xorner export {folder} --output {folder}`, or leave out "
            "--onnx."
        ]
    if (folder / RUNTIME_FILE).read_bytes() != runtime_code().encode():
        return [f"{RUNTIME_FILE} is not the file of this version of the package; export the model again."]
    try:
        tagger = OnnxTagger.from_pretrained(folder, threads=1, min_score=0)
        found = [[(one.label, one.start, one.end) for one in tagger(sentence)] for sentence, _ in tagged]
    except ValueError as error:
        return [first_line(error)]
    return [
        f"model.onnx finds other entities than the model in {sentence!r}; export the model again, without --quantize."
        for entities, (sentence, expected) in zip(found, tagged, strict=True)
        if entities != expected
    ]


def text_of_graph(path: Path) -> str:
    """The names and notes in an ONNX file, without its weights."""
    try:
        import onnx
    except ImportError:
        raise ImportError("publishing ONNX files needs onnx: pip install 'hf_xorner[onnx]'.") from None
    try:
        model = onnx.load(path)
    # What protobuf raises has no type of its own.
    except Exception as error:
        raise ValueError(f"it is not an ONNX model: {first_line(error)}") from None
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
    return model.SerializeToString().decode("utf-8", "replace")
