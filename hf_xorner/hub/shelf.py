"""A folder as the Hub would have it: the files of a model that is fit to be published, laid out beside others."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from ..training.model_files import WEIGHTS, matches, travelling_modules
from .checks import WEIGHTS_INDEX, Checked, ModelFile


def shelve(checked: Checked, target: str | Path, *, weights: bool = True, overwrite: bool = False) -> list[ModelFile]:
    """Copy what would be published into a folder, which is there as a whole or not at all.

    Without its weights, a model is its card, its config and its tokenizer: what it was and how to have it again, as the
    facts beside it hold the command and the weights' hash. The code that travels with weights stays away with them.

    Args:
        checked: What `check_folder` found fit.
        target: The folder.
        weights: Whether to lay out the weights, and the code that reads them.
        overwrite: Whether to take the place of a folder that exists.

    Returns:
        The files that lie there.

    Raises:
        ValueError: If the folder exists, or is the model's own.
    """
    target = Path(target)
    if target.resolve() == checked.folder.resolve():
        raise ValueError(f"{target} is the folder of the model itself; name another one.")
    if target.exists() and not overwrite:
        raise ValueError(f"{target} exists; name another folder, or say --overwrite true.")
    code = {f"{module}.py" for module in travelling_modules(checked.folder)}
    files = [
        file
        for file in checked.files
        if weights or not (matches(file.name, WEIGHTS) or file.name == WEIGHTS_INDEX or file.name in code)
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        new = Path(scratch) / "new"
        for file in files:
            (new / file.name).parent.mkdir(parents=True, exist_ok=True)
            # The bytes alone: weights are written readable for their owner only.
            shutil.copyfile(checked.folder / file.name, new / file.name)
        if target.exists():
            os.replace(target, Path(scratch) / "old")
        os.replace(new, target)
    return files
