"""Check that a model can be published: its files, its code, and that it works without this package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..export import runtime_code
from ..export.runtime import RUNTIME_FILE, OnnxTagger
from ..files import CARD_FILE, FACTS_FILE, GRAPH_FILE
from ..loading import load_config, load_tokenizer, read_card

CONFIG = "config.json"

#: The files of a model without its description, as patterns of `fnmatch`; never pickles of a checkpoint.
MODEL_FILES = (
    *(CONFIG, "model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "tokenizer_config.json"),
    *("tokenizer.json", "piece_tokenizer.json", "special_tokens_map.json", "added_tokens.json", FACTS_FILE),
    *sorted(path.name for path in files("hf_xorner.models").iterdir() if path.name.endswith(".py")),
)
#: The card, its pictures and the license.
DESCRIPTION = (CARD_FILE, "LICENSE", "*.png", "*.svg", "*.jpg", "*.jpeg", "*.gif", "*.webp")

#: The code of an Inference Endpoint, and the packages that are installed for it.
HANDLER, HANDLER_REQUIREMENTS = "handler.py", "requirements.txt"
#: The releases that the handler was written for; the lower bound is that of pyproject.toml.
TRANSFORMERS = "transformers>=5.12,<6"
#: Invented names, for models whose card has no example.
INVENTED_SENTENCE = "Zorvan Quellmar met Ines Tarrow at the Averill Institute in Port Lindow on Tuesday ."

_TAG = """
import json, sys
from transformers import pipeline
ner = pipeline("ner", model="model", trust_remote_code=True, aggregation_strategy="simple")
tagged = [[sentence, ner(sentence)] for sentence in json.loads(sys.stdin.read())]
print()
print(json.dumps([
    [sentence, [[entity["entity_group"], entity["start"], entity["end"]] for entity in entities]]
    for sentence, entities in tagged
]))
"""


class Checked(NamedTuple):
    """A folder that can be published.

    Attributes:
        folder: The folder.
        names: The files of the model, sorted.
        excluded: Everything else in the folder, which is not published; folders end in a slash.
        tagged: Example sentences with type, start and end of the entities that the model finds.
    """

    folder: Path
    names: list[str]
    excluded: list[str]
    tagged: list[tuple[str, list[list]]]


def check_folder(folder: str | Path, *, onnx: bool = False) -> Checked:
    """Check that a model can be published, without using the network.

    The model is loaded in a new process without this package, from the files that would be published, and tags the
    example sentences of its card.

    Args:
        folder: The output of `save_pretrained` or a Trainer.
        onnx: Also publish `model.onnx` and `onnx_tagger.py`.

    Raises:
        ValueError: If it cannot be published.
    """
    folder = Path(folder)
    names = published_files(folder, onnx=onnx)
    text = run_without_package(_TAG, folder, names, json.dumps(example_sentences(folder)))
    tagged = [(sentence, entities) for sentence, entities in json.loads(text.splitlines()[-1])]
    if onnx:
        tagger = OnnxTagger.from_pretrained(folder, threads=1, min_score=0)
        for sentence, entities in tagged:
            if [[entity.label, entity.start, entity.end] for entity in tagger(sentence)] != entities:
                raise ValueError(
                    f"{GRAPH_FILE} finds other entities than the model in {sentence!r}; export the model again, "
                    "without --quantize."
                )
    excluded = [f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir() if path.name not in names]
    return Checked(folder, names, sorted(excluded), tagged)


def published_files(folder: Path, *, onnx: bool = False) -> list[str]:
    """Return the sorted names of the published files, after a check of links, of the settings and of the code.

    Raises:
        ValueError: If there is no model, a file is a link out of the folder, or code differs from this package's.
    """
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder} has no {CONFIG}; name the folder of a trained model.")
    load_config(str(folder))
    load_tokenizer(str(folder))
    code = {path.name: path.read_bytes() for path in files("hf_xorner.models").iterdir() if path.name.endswith(".py")}
    code |= {name: text.encode() for name, text in handler_files().items()}
    patterns = (*MODEL_FILES, *DESCRIPTION)
    names = [path.name for path in folder.iterdir() if any(fnmatchcase(path.name, pattern) for pattern in patterns)]
    if (folder / HANDLER).is_file():
        names += [HANDLER, HANDLER_REQUIREMENTS]
    if onnx:
        names += [GRAPH_FILE, RUNTIME_FILE]
        code[RUNTIME_FILE] = runtime_code().encode()
    for name in names:
        path = (folder / name).resolve()
        if folder.resolve() not in path.parents:
            raise ValueError(f"{folder / name} is a link out of the folder, to {path}; replace it by a copy.")
        if not path.is_file():
            raise ValueError(f"{folder / name} does not exist; write it by `hf-xorner export` or `publish --space`.")
        if name in code and path.read_bytes() != code[name]:
            raise ValueError(f"{folder / name} differs from this version of the package; write it again.")
    return sorted(names)


def handler_files() -> dict[str, str]:
    """Return the content of an Inference Endpoint's files, by name."""
    template = files(__package__) / "space_files" / f"{HANDLER}.template"
    return {HANDLER: template.read_text(encoding="utf-8"), HANDLER_REQUIREMENTS: f"{TRANSFORMERS}\n"}


def example_sentences(folder: Path) -> list[str]:
    """Return the example sentences of the card, or an invented one."""
    card = read_card(folder)
    widget = card.data.get("widget") if card else None
    texts = (str(item["text"]) for item in widget or () if isinstance(item, dict) and "text" in item)
    return list(texts) or [INVENTED_SENTENCE]


def run_without_package(code: str, folder: Path, names: Sequence[str], text: str = "") -> str:
    """Run Python code in a new process, offline and without this package, and return its standard output.

    Args:
        code: The code, which reads copies of the files in the folder `model`.
        folder: The model's folder.
        names: The files.
        text: The standard input.

    Raises:
        ValueError: If the process fails.
    """
    with TemporaryDirectory() as scratch:
        home = Path(scratch)
        (home / "model").mkdir()
        for name in names:
            shutil.copyfile(folder / name, home / "model" / name)
        environment = {"HF_HOME": scratch, "HF_MODULES_CACHE": str(home / "modules"), "HF_HUB_OFFLINE": "1"}
        process = subprocess.run(
            [sys.executable, "-c", f"import sys\nsys.modules['hf_xorner'] = None\n{code}"],
            input=text,
            cwd=scratch,
            env={**os.environ, **environment, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
        )
    if process.returncode:
        reason = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise ValueError(f"{folder} does not work in a process without this package ({reason}); save it again.")
    return process.stdout
