"""The files of an Inference Endpoint and of a Space for a model."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path

import yaml
from huggingface_hub.utils import validate_repo_id

from ..files import write_whole
from .checks import CONFIG, TRANSFORMERS, example_sentences, handler_files
from .upload import MAIN

#: The releases that the files were written for; the lower bounds are those of pyproject.toml.
TORCH, GRADIO = "torch>=2.6", "gradio>=6.20,<7"
#: The release that the page was tested with in a browser, and that a Space runs.
TESTED_GRADIO = "6.31.0"


def write_space(folder: str | Path, repo_id: str, target: str | Path, *, revision: str = MAIN) -> list[Path]:
    """Write the handler and the Space of a model, without using the network.

    Args:
        folder: The model's folder; the Space has the example sentences of its card.
        repo_id: The model's repository, `owner/name`, which may not exist yet.
        target: The folder for `model/`, for the model's repository, and `space/`, for the Space's repository.
        revision: The branch or tag that the Space loads.

    Returns:
        The files, in order.

    Raises:
        ValueError: If the name is invalid, there is no model, or the target exists; then nothing is written.
    """
    validate_repo_id(repo_id)
    if not (Path(folder) / CONFIG).is_file():
        raise ValueError(f"{folder} has no {CONFIG}; name the folder of a trained model.")
    if os.path.lexists(target):
        raise ValueError(f"{target} exists; remove it, or name another folder.")
    examples = "".join(f"    {example!r},\n" for example in example_sentences(Path(folder)))
    header = {
        "title": repo_id.rpartition("/")[2],
        "colorFrom": "indigo",
        "colorTo": "blue",
        "sdk": "gradio",
        "sdk_version": TESTED_GRADIO,
        "app_file": "app.py",
        "models": [repo_id],
        "short_description": "Named entities of a text",
    }
    package = files(__package__)
    readme = (package / "space_readme.md").read_text(encoding="utf-8").replace("OWNER/NAME", repo_id)
    app = (package / "space_files" / "app.py.template").read_text(encoding="utf-8")
    constants = f"NAME = {repo_id!r}\nREVISION = {revision!r}\nEXAMPLES = [\n{examples}]\n\n"
    texts = {
        **{f"model/{name}": text for name, text in handler_files().items()},
        "space/README.md": f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n{readme}",
        "space/app.py": re.sub(r"^NAME = .*?\n\n", lambda _: constants, app, count=1, flags=re.MULTILINE | re.DOTALL),
        "space/requirements.txt": f"{GRADIO}\n{TORCH}\n{TRANSFORMERS}\n",
    }
    return [write_whole(Path(target) / name, text) for name, text in texts.items()]
