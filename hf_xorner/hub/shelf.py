"""Writing the files of a model, of an endpoint or of a Space into a folder, over nothing but what was so written."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..data.fingerprints import file_fingerprint
from ..training.model_files import CONFIG, WEIGHTS, matches, travelling_modules
from .checks import WEIGHTS_INDEX, Checked, ModelFile

#: The files that were written into a folder, in the form of `sha256sum`: `sha256sum -c .hf_xorner.sha256` compares.
MANIFEST = ".hf_xorner.sha256"

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def shelve(checked: Checked, target: str | Path, *, weights: bool = True, overwrite: bool = False) -> list[ModelFile]:
    """Copy what would be published into a folder; see `write_files` for what happens to the files that lie there.

    Without its weights, a model is its card, its config, its tokenizer and its facts, which hold the command that
    trains it again and the hash of the weights. The code beside the weights is then left out, too.

    Args:
        checked: A model's folder that is fit to be published.
        target: The folder.
        weights: Whether to copy the weights, and the code that reads them.
        overwrite: Whether the folder may exist.

    Returns:
        The files that were copied.

    Raises:
        ValueError: If the folder exists, is the model's own, or has a file in the way; then nothing is changed.
    """
    target = Path(target)
    if target.exists() and not overwrite:
        raise ValueError(f"{target} exists; name another folder, or say --overwrite true.")
    code = {f"{module}.py" for module in travelling_modules(checked.folder)}
    files = [
        file
        for file in checked.files
        if weights or not (matches(file.name, WEIGHTS) or file.name == WEIGHTS_INDEX or file.name in code)
    ]
    sources = {file.name: checked.folder / file.name for file in files}
    write_files(target, sources, checked.folder, overwrite, expected={file.name: file.sha256 for file in files})
    return files


def write_files(
    target: Path,
    sources: Mapping[str, Path | str],
    model: Path,
    overwrite: bool = False,
    *,
    manifest: str = MANIFEST,
    expected: Mapping[str, str] | None = None,
) -> None:
    """Write files into a folder, whose other files stay as they are.

    A manifest in the folder lists what was written. An overwriting call replaces the files that are as the manifest
    says, and removes those of them that it does not write again. Any other file in the way is the user's: the call is
    refused before anything is changed.

    A folder that does not exist yet appears as a whole, by one rename. In one that exists, the new files are first
    written into a temporary folder; then the old ones are renamed into that, and the new ones to their places. If a
    rename fails, all are taken back. If the process is killed in between, no file is lost: each old and each new one
    lies in its place or in the folder `.hf_xorner-*` inside the target, which may be deleted once the same call has
    completed the work. As `config.json` is the first to go and the last to come, a mixture of two models never loads.

    Args:
        target: The folder.
        sources: By its path in the folder, the file to copy or the text to write.
        model: The model's folder, which must lie apart.
        overwrite: Whether files that an earlier call wrote may be replaced.
        manifest: The name of the manifest.
        expected: The SHA-256 that files must have.

    Raises:
        ValueError: If the target is a file, is not apart from the model's folder or has a file in the way, or if a
            source has changed; then nothing is changed.
    """
    shown, target, model = target, Path(os.path.realpath(target)), model.resolve()
    if target == model or target in model.parents or model in target.parents:
        raise ValueError(f"{shown} is, holds or lies in the folder of the model, {model}; name a folder apart from it.")
    if target.exists() and not target.is_dir():
        raise ValueError(f"{shown} is a file; name a folder.")
    there = target.exists()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".hf_xorner-", dir=target if there else target.parent) as scratch:
        new = Path(scratch) / "new"
        digests = {name: _write(new / name, source) for name, source in sources.items()}
        if changed := [name for name, digest in (expected or {}).items() if digests[name] != digest]:
            raise ValueError(f"{', '.join(changed)} changed in {model} while it was being copied; try again.")
        if there:
            _replace(target, shown, Path(scratch), digests, overwrite, manifest)
        else:
            _write(new / manifest, _manifest_of(set(digests.items())))
            os.replace(new, target)


def _replace(
    target: Path, shown: Path, scratch: Path, digests: Mapping[str, str], overwrite: bool, manifest: str
) -> None:
    """Put the files in the folder `new` into the place of old ones, by renames that are taken back if one fails."""
    known, arriving = _read_manifest(target, shown, manifest), set(digests.items())
    for name in digests:
        if fault := _in_the_way(target, name, known | arriving, overwrite):
            raise ValueError(f"{shown / name} {fault}.")
    stale = {name for name, _ in known if overwrite and name not in digests and _is_known(target, name, known)}
    replaced = [name for name in {*digests, *stale} if (target / name).exists()]
    # Whichever of these files are in their places when the process is killed, the next call knows them.
    _write(scratch / "known", _manifest_of(known | arriving))
    os.replace(scratch / "known", target / manifest)
    moves = [(target / name, scratch / "old" / name) for name in sorted(replaced, key=lambda name: name != CONFIG)]
    moves += [(scratch / "new" / name, target / name) for name in sorted(digests, key=lambda name: name == CONFIG)]
    done: list[tuple[Path, Path]] = []
    try:
        for source, place in moves:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, place)
            done.append((source, place))
    except BaseException:
        for source, place in reversed(done):
            os.replace(place, source)
        raise
    _write(scratch / "known", _manifest_of(arriving))
    os.replace(scratch / "known", target / manifest)


def _in_the_way(target: Path, name: str, known: set[tuple[str, str]], overwrite: bool) -> str | None:
    """Return why a file cannot be written, in words that can follow its path; None if it can."""
    folders = [target.joinpath(*Path(name).parts[:count]) for count in range(1, len(Path(name).parts))]
    if any(folder.is_symlink() or (folder.exists() and not folder.is_dir()) for folder in folders):
        return "lies behind a link or a file; move that away, or name another folder"
    if not os.path.lexists(target / name):
        return None
    if not overwrite:
        return "would be overwritten; name another folder, or say --overwrite true"
    if not _is_known(target, name, known):
        return "was not written by an earlier call, or was changed since; move it away, or name another folder"
    return None


def _is_known(target: Path, name: str, known: set[tuple[str, str]]) -> bool:
    """Return whether a file is as a manifest says; links are not, nor what lies behind one."""
    path = target / name
    regular = path.is_file() and not path.is_symlink() and path.resolve() == target.joinpath(*Path(name).parts)
    return regular and (name, _digest(path)) in known


def _read_manifest(target: Path, shown: Path, manifest: str) -> set[tuple[str, str]]:
    """Return the name and the SHA-256 of each file that a manifest lists; none where there is no manifest."""
    path = target / manifest
    if not os.path.lexists(path):
        return set()
    try:
        found = [_LINE.fullmatch(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (OSError, ValueError):
        found = [None]
    pairs = {(one[2], one[1]) for one in found if one}
    inside = all(not Path(name).is_absolute() and ".." not in Path(name).parts for name, _ in pairs)
    if None in found or not inside or path.is_symlink():
        raise ValueError(f"{shown / manifest} is not a manifest that this package wrote; move it away.")
    return pairs


def _manifest_of(pairs: set[tuple[str, str]]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(pairs))


def _write(path: Path, source: Path | str) -> str:
    """Copy a file, or write a text, and return its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, str):
        path.write_text(source, encoding="utf-8", newline="\n")
    else:
        shutil.copyfile(source, path)  # the bytes alone: weights are written readable for their owner only
    return _digest(path)


def _digest(path: Path) -> str:
    return str(file_fingerprint(path)["sha256"])
