"""Files for the places where people use a model: the handler of an Inference Endpoint, and a Space to try it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import yaml

from ..training.model_files import CONFIG
from .checks import TRANSFORMERS, handler_files, widget_sentences
from .loading import INVENTED_SENTENCE
from .publish import MAIN, check_names, write_files

#: What lies in which folder: what belongs into the model's repository, and what is a repository of its own.
MODEL_PART, SPACE_PART = "model", "space"
#: The manifest beside these two folders; see `write_files`.
SPACE_MANIFEST = ".hf_xorner_space.sha256"

#: The releases that the files were written for; the lower bounds are those of pyproject.toml.
TORCH, GRADIO = "torch>=2.6", "gradio>=6.20,<7"
#: What a Space runs: the release that the page was tried with in a browser.
TESTED_GRADIO = "6.31.0"

_ABOUT = """
Tags text with [`{name}`](https://huggingface.co/{name}), and shows what it found. Where the model has attention or
relations, choose a word to see which words it looks at.

To run it on your own machine:

```bash
pip install -r requirements.txt
python app.py
```

The environment variable `MODEL` names another repository, or a folder.
"""


def write_space(
    folder: str | Path, repo_id: str, target: str | Path, *, revision: str = MAIN, overwrite: bool = False
) -> list[Path]:
    """Write the handler and the Space of a model, without any network.

    Args:
        folder: The model's folder; the sentences that its card offers become the examples.
        repo_id: Where the model is, or will be, published: `owner/name`.
        target: Where to write: `model/` for the model's repository, `space/` for one of a Space; apart from `folder`.
        revision: The branch or tag of the model that the Space loads.
        overwrite: Whether files of an earlier call may be replaced, unless they were changed since: see `write_files`.

    Returns:
        The files, in order.

    Raises:
        ValueError: If a name is not valid, there is no model, or a file is in the way; then nothing is written.
    """
    check_names(repo_id, revision)
    folder, target = Path(folder), Path(target)
    if not (folder / CONFIG).is_file():
        raise ValueError(
            f"{folder} has no {CONFIG}, so there is no model in it; name the folder that one was saved in."
        )
    examples = widget_sentences(folder) or [INVENTED_SENTENCE]
    texts: dict[str, Path | str] = {
        **{f"{MODEL_PART}/{name}": text for name, text in handler_files().items()},
        f"{SPACE_PART}/README.md": _readme(repo_id),
        f"{SPACE_PART}/app.py": _app(repo_id, revision, examples),
        f"{SPACE_PART}/requirements.txt": f"{GRADIO}\n{TORCH}\n{TRANSFORMERS}\n",
    }
    write_files(target, texts, folder, overwrite, manifest=SPACE_MANIFEST)
    return [target / name for name in texts]


def _app(repo_id: str, revision: str, examples: list[str]) -> str:
    """The page's program, with what belongs to one model in the place of the template's."""
    listed = "".join(f"    {example!r},\n" for example in examples)
    values = {"NAME": repr(repo_id), "REVISION": repr(revision), "EXAMPLES": f"[\n{listed}]"}
    text = (files(__package__) / "space_files" / "app.py.template").read_text(encoding="utf-8")
    for name, value in values.items():
        line = f"{name} = {value}"
        text, count = re.subn(rf"^{name} = .*$", lambda _, line=line: line, text, flags=re.MULTILINE)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the template of app.py sets {name} {count} times, and not once.")
    return text


def _readme(repo_id: str) -> str:
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
    return f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n{_ABOUT.format(name=repo_id)}"
