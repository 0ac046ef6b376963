"""Run a model as its users will: in a new process without this package, offline, from the published files alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import first_line

#: Invented names, for models whose card has no example.
INVENTED_SENTENCE = "Zorvan Quellmar met Ines Tarrow at the Averill Institute in Port Lindow on Tuesday ."

#: Reads the model's folder and sentences, and writes its answer to a file, since code of the model may print.
_TAG = """
import json, math, os, runpy, sys
folder, sentences = json.loads(sys.stdin.read())
try:
    from transformers import pipeline
    ner = pipeline("ner", model=folder, trust_remote_code=True, aggregation_strategy="simple")
    found = [ner(sentence) for sentence in sentences]
    every = [ner(sentence, aggregation_strategy="none", ignore_labels=[]) for sentence in sentences]
    if not all(math.isfinite(word["score"]) for words in every for word in words):
        raise ValueError("its scores are not finite numbers")
    entities = [[(one["entity_group"], one["start"], one["end"]) for one in entities] for entities in found]
    answer = {"module": type(ner.model).__module__, "entities": entities}
    handler = os.path.join(folder, "handler.py")
    if os.path.isfile(handler):
        try:
            json.dumps(runpy.run_path(handler)["EndpointHandler"](folder)({"inputs": sentences[0]}))
        except Exception as error:
            raise ValueError("its handler.py fails on an endpoint's request: " + repr(error)) from None
except Exception as error:
    answer = {"error": f"{type(error).__name__}: {error}"}
with open("answer.json", "w") as file:
    json.dump(answer, file)
"""


class Tagged(NamedTuple):
    """A sentence, and the entities found in it: type, start, end."""

    sentence: str
    entities: list[tuple[str, int, int]]


def run_offline(code: str, folder: Path, text: str = "", seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python code in a new process without network, tokens or caches.

    Args:
        code: The code.
        folder: An empty folder to run it in.
        text: The standard input.
        seconds: The time limit.

    Raises:
        ValueError: If it takes longer.
    """
    home = folder / "home"
    own = {"HF_HOME": str(home), "HF_MODULES_CACHE": str(home / "modules"), "HF_HUB_OFFLINE": "1"}
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
    }
    try:
        return subprocess.run(
            [sys.executable, "-c", code],
            input=text,
            cwd=folder,
            env={**inherited, **own, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"it does not load and tag within {seconds:.0f} seconds") from None


def last_error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a process wrote to standard error."""
    return (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]


def tag_in_new_process(folder: Path, names: Sequence[str], sentences: Sequence[str]) -> list[Tagged]:
    """Tag sentences in a new process that sees only the named files, and runs the code among them.

    Args:
        folder: The model's folder.
        names: The files that would be published.
        sentences: The sentences.

    Raises:
        ValueError: If the model cannot be loaded or used.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy, place = Path(scratch) / "model", Path(scratch) / "work"
        place.mkdir()
        for name in names:
            _link(folder / name, copy / name)
        done = run_offline(_TAG, place, json.dumps([str(copy), list(sentences)]))
        if not (place / "answer.json").is_file():
            raise ValueError(f"the process ended with code {done.returncode} ({last_error(done)})")
        answer = json.loads((place / "answer.json").read_text())
    if "error" in answer:
        raise ValueError(first_line(ValueError(answer["error"].replace(str(copy), folder.name))))
    if answer["module"].partition(".")[0] == "hf_xorner":
        raise ValueError("it is loaded by this package, not by the code beside it")
    return [
        Tagged(sentence, [tuple(entity) for entity in found])
        for sentence, found in zip(sentences, answer["entities"], strict=True)
    ]


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(source.resolve())
    except OSError:  # Windows allows links to administrators only.
        shutil.copyfile(source, target)
