"""A model as a stranger meets it: in a new process without this package, offline, from the published files alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import first_line

#: Names that nobody bears, for models whose card shows no sentence to try.
INVENTED_SENTENCE = "Zorvan Quellmar met Ines Tarrow at the Averill Institute in Port Lindow on Tuesday ."

#: What the process runs. It is told a folder and sentences, and answers in one line.
_STRANGER = """
import json, math, os, runpy, sys
folder, sentences = json.loads(sys.stdin.read())
try:
    from transformers import pipeline
    ner = pipeline("ner", model=folder, trust_remote_code=True, aggregation_strategy="simple")
    found = [ner(sentence) for sentence in sentences]
    every = [ner(sentence, aggregation_strategy="none", ignore_labels=[]) for sentence in sentences]
    if not all(math.isfinite(word["score"]) for words in every for word in words):
        raise ValueError("its scores are no numbers")
    entities = [[(one["entity_group"], one["start"], one["end"]) for one in entities] for entities in found]
    answer = {"home": type(ner.model).__module__, "entities": entities}
    handler = os.path.join(folder, "handler.py")
    if os.path.isfile(handler):
        try:
            json.dumps(runpy.run_path(handler)["EndpointHandler"](folder)({"inputs": sentences[0]}))
        except Exception as error:
            raise ValueError("its handler.py, asked as an endpoint asks it, fails: " + repr(error)) from None
except Exception as error:
    answer = {"error": f"{type(error).__name__}: {error}"}
print("\\n" + json.dumps(answer))
"""


class Tagged(NamedTuple):
    """What a stranger's process found in one sentence: (type, start, end) of each entity."""

    sentence: str
    entities: list[tuple[str, int, int]]


def tag_as_stranger(folder: Path, names: Sequence[str], sentences: Sequence[str], seconds: float = 300) -> list[Tagged]:
    """Tag sentences in a new process that has no more than the named files, and runs the code that travels with them.

    Args:
        folder: Where the model lies.
        names: The files that others will have.
        sentences: What to tag.
        seconds: How long that may take.

    Raises:
        ValueError: If the model cannot be loaded or used so.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "model"
        for name in names:
            _place(folder / name, copy / name)
        home = Path(scratch) / "home"
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(home),
            "HF_MODULES_CACHE": str(home / "modules"),
        }
        for token in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            environment.pop(token, None)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _STRANGER],
                input=json.dumps([str(copy), list(sentences)]),
                cwd=scratch,
                env=environment,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"it does not load and tag within {seconds:.0f} seconds") from None
    answer = _answer_of(done)
    if "error" in answer:
        raise ValueError(first_line(ValueError(answer["error"].replace(str(copy), folder.name))))
    if answer["home"].partition(".")[0] == "hf_xorner":
        raise ValueError("it is loaded by this package, and not by the code beside it")
    return [
        Tagged(one, [tuple(entity) for entity in found])
        for one, found in zip(sentences, answer["entities"], strict=True)
    ]


def _answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    lines = done.stdout.strip().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (IndexError, ValueError, TypeError):
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return {"error": f"the process ended with code {done.returncode} ({last})"}


def _place(source: Path, target: Path) -> None:
    """Have a file in another place, without a copy where that can be."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, target)
