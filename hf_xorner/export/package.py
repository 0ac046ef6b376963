"""A wheel of a model: a Python package that tags texts without PyTorch."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from email.message import EmailMessage
from email.policy import EmailPolicy
from importlib.metadata import requires
from importlib.resources import files
from pathlib import Path

from packaging.version import Version

from ..files import model_folder, write_whole
from ..loading import read_card
from . import MODULES, runtime_code
from .onnx import exported_files

_NAME = re.compile("[a-z][a-z0-9_]*")
_WHEEL = "Wheel-Version: 1.0\nGenerator: hf_xorner\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def export_package(
    source: str, output: str | Path, name: str | None, version: str = "1.0", precision: str = "fp32"
) -> list[Path]:
    """Write a saved tagger as a wheel, with a function `tag` and a command.

    Args:
        source: The model's folder, or its repository on the Hub.
        output: The folder to write to.
        name: The name of the package; the command has hyphens in place of underscores.
        version: The version of the package.
        precision: See `onnx_model`.

    Returns:
        The wheel.

    Raises:
        ValueError: If the name or the version is invalid.
    """
    if not name or not _NAME.fullmatch(name):
        raise ValueError(
            f"--to package needs a name such as my_ner, not {name!r}: letters a to z, digits and underscores."
        )
    version = str(Version(version))
    contents = {f"{name}/{file}": content for file, content in exported_files(source, precision).items()}
    contents[f"{name}/__init__.py"] = runtime_code((*MODULES, "export/installed.py")).encode()
    contents[f"{name}/py.typed"] = b""
    info = f"{name}-{version}.dist-info"
    contents[f"{info}/METADATA"] = _metadata(source, name, version).encode()
    contents[f"{info}/WHEEL"] = _WHEEL.encode()
    contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name.replace('_', '-')} = {name}:main\n".encode()
    record = [f"{file},sha256={_digest(content)},{len(content)}\n" for file, content in contents.items()]
    contents[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            # The earliest date of ZIP files, so that the same model results in the same bytes.
            archive.writestr(zipfile.ZipInfo(file, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return [write_whole(Path(output) / f"{name}-{version}-py3-none-any.whl", wheel.getvalue())]


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _metadata(source: str, name: str, version: str) -> str:
    """The content of METADATA: the fields for pip, and the model's card."""
    card = read_card(model_folder(source), ignore_metadata_errors=True)
    # Of the requirements of this package, those of the runtime.
    requirements = (requirement.partition(";")[0] for requirement in requires("hf_xorner") or ())
    needed = [requirement for requirement in requirements if re.match(r"(numpy|onnxruntime|tokenizers)\b", requirement)]
    # Raises for a value with a line break, which would be read as another field.
    message = EmailMessage(EmailPolicy(utf8=True, max_line_length=None))
    message["Metadata-Version"] = "2.1"
    message["Name"] = name
    message["Version"] = version
    message["Summary"] = "A tagger for words in text, by ONNX Runtime"
    if card and (license := card.data.get("license")):
        known = (files(__package__) / "licenses.txt").read_text(encoding="utf-8").split()  # the ids on the Hub
        message["License"] = license if license in known else "other"
    message["Requires-Python"] = ">=3.11"
    for requirement in needed:
        message["Requires-Dist"] = requirement
    message["Description-Content-Type"] = "text/markdown"
    message.set_payload(f"{card.text.strip() if card else ''}\n")
    return message.as_string()
