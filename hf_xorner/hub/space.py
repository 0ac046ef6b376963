"""The files of an Inference Endpoint and of a Space for a model."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import yaml

from ..training.model_files import CONFIG
from .checks import TRANSFORMERS, handler_files, widget_sentences
from .loading import INVENTED_SENTENCE
from .publish import MAIN, check_names, write_files

#: The releases that the files were written for; the lower bounds are those of pyproject.toml.
TORCH, GRADIO = "torch>=2.6", "gradio>=6.20,<7"
#: The release that the page was tested with in a browser, and that a Space runs.
TESTED_GRADIO = "6.31.0"


def write_space(folder: str | Path, repo_id: str, target: str | Path, *, revision: str = MAIN) -> list[Path]:
    """Write the handler and the Space of a model, without using the network.

    Args:
        folder: The model's folder; the example sentences of its card become those of the Space.
        repo_id: The model's repository, `owner/name`, which need not exist yet.
        target: Where to write `model/`, for the model's repository, and `space/`, for that of the Space.
        revision: The branch or tag that the Space loads.

    Returns:
        The files, in order.

    Raises:
        ValueError: If a name is invalid, there is no model, or the target exists; then nothing is written.
    """
    check_names(repo_id, revision)
    folder, target = Path(folder), Path(target)
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder} has no {CONFIG}, so there is no model in it; name the folder of a saved model.")
    examples = "".join(f"    {example!r},\n" for example in widget_sentences(folder) or [INVENTED_SENTENCE])
    header = {
        "title": repo_id.partition("/")[2],
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
    texts: dict[str, Path | str] = {
        **{f"model/{name}": text for name, text in handler_files().items()},
        "space/README.md": f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n{readme}",
        "space/app.py": re.sub(r"^NAME = .*?\n\n", lambda _: constants, app, count=1, flags=re.MULTILINE | re.DOTALL),
        "space/requirements.txt": f"{GRADIO}\n{TORCH}\n{TRANSFORMERS}\n",
    }
    write_files(target, texts)
    return [target / name for name in texts]
