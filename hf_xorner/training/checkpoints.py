"""Folders that are there whole or not at all: checkpoints, with a manifest that tells damage, and the final model.

What is being written lies in a folder of its own inside the run's, and is renamed into place when all of it is on disk.
A process may be killed at any moment: what it leaves is cleared or completed by the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.utils import CONFIG_NAME

from ..errors import first_line
from ..files import LockedError, locked
from .errors import TrainingError

#: Where a run writes what is not complete. The Trainer uploads nothing whose name begins with an underscore.
UNFINISHED = "_unfinished"

#: A complete model on its way into the folder of its run.
_ARRIVING_MODEL = "_model"

MANIFEST = "manifest.json"

#: Held by the run that writes a folder.
LOCK = ".training.lock"

#: The ``bytes`` and the ``sha256`` of files, by their paths in a folder.
Manifest = dict[str, dict[str, Any]]

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")

_BLOCK = 1 << 20


@contextmanager
def folder_locked(folder: str | Path, arguments: TrainingArguments) -> Iterator[None]:
    """Keep other runs from writing a folder; see `hf_xorner.files.locked`.

    Args:
        folder: The folder, which is created if it does not exist.
        arguments: The arguments of the run, which tell which of its processes this one is.

    Raises:
        TrainingError: If another run writes the folder, or it cannot be written.
    """
    with ExitStack() as stack:
        try:
            str(folder).encode()  # the tokenizers library writes to no other path
            lock = locked(Path(folder) / LOCK, folder, arguments.process_index, arguments.world_size)
            stack.enter_context(lock)
        except LockedError as error:
            raise TrainingError(str(error)) from None
        except UnicodeEncodeError:
            raise TrainingError(f"output_dir={str(folder)!a} is not UTF-8; name another folder.") from None
        except OSError as error:
            raise TrainingError(
                f"output_dir={str(folder)!r} cannot be written ({error.strerror or first_line(error)}); name another "
                "folder."
            ) from None
        yield


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, those of the fewest steps first."""
    if not folder.is_dir():
        return []
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := _CHECKPOINT.fullmatch(path.name))]
    return [path for _, path in sorted(found) if path.is_dir()]


def publish(staged: Path, final: Path) -> None:
    """Give a checkpoint its manifest and its place, all of it being on disk by then.

    Args:
        staged: Where it was written, in the `UNFINISHED` folder of the run.
        final: Where it belongs; a checkpoint that is there already is replaced.
    """
    manifest = manifest_of(staged)
    (staged / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    _flush(staged)
    if final.exists():
        remove(final)
    os.replace(staged, final)
    _flush_file(final.parent)


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint, which vanishes at once: no half of it is ever found."""
    doomed = checkpoint.parent / UNFINISHED / f"removed-{checkpoint.name}"
    doomed.parent.mkdir(exist_ok=True)
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(checkpoint, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def rotate(folder: Path, limit: int | None, keep: Collection[Path]) -> None:
    """Remove the checkpoints of the fewest steps, until no more than a number are left.

    Args:
        folder: The folder of the run.
        limit: The number; None or 0 sets no limit.
        keep: What stays in any case: the newest, and the best.
    """
    if not limit or limit < 0:
        return
    checkpoints = checkpoints_in(folder)
    kept = {path.resolve() for path in keep}
    others = [path for path in checkpoints if path.resolve() not in kept]
    surplus = len(checkpoints) - max(limit, len(checkpoints) - len(others))
    for path in others[: max(surplus, 0)]:
        remove(path)


def fault_of(checkpoint: Path) -> str | None:
    """Return what is wrong with a checkpoint in words that can follow its name, or None if it is whole."""
    if not checkpoint.is_dir():
        return "is not there"
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
        entries: Manifest = {
            name: {"bytes": int(entry["bytes"]), "sha256": str(entry["sha256"])} for name, entry in manifest.items()
        }
    except FileNotFoundError:
        return f"has no {MANIFEST}"
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return f"has a damaged {MANIFEST}"
    return difference_from(checkpoint, entries)


def manifest_of(folder: Path) -> Manifest:
    """Return the size and the SHA-256 of every file of a folder."""
    files = _files_of(folder)
    return {name: {"bytes": path.stat().st_size, "sha256": _digest(path)} for name, path in files.items()}


def difference_from(folder: Path, manifest: Manifest) -> str | None:
    """Return how a folder's files differ from a manifest in words that can follow its name, or None if they do not."""
    for name, entry in manifest.items():
        path = folder / name
        if not path.is_file():
            return f"lacks {name}"
        if path.stat().st_size != entry["bytes"]:
            return f"has {path.stat().st_size:,} of the {entry['bytes']:,} bytes of {name}"
        if _digest(path) != entry["sha256"]:
            return f"has other bytes in {name} than were written"
    return None


def best_of(checkpoint: Path) -> Path | None:
    """Return the best checkpoint that another one knows of, where that is now, or None if it knows none."""
    best = json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["best_model_checkpoint"]
    if best is None:
        return None
    # The run may have been moved since.
    beside = checkpoint.parent / Path(best).name
    return beside if beside.is_dir() or not Path(best).is_dir() else Path(best)


def fault_in_resuming(checkpoint: Path, needs_best: bool) -> str | None:
    """Return why a run cannot be resumed from a checkpoint, as `fault_of` does, or None if it can.

    Args:
        checkpoint: The checkpoint.
        needs_best: Whether the run returns to its best checkpoint at the end.
    """
    fault = fault_of(checkpoint)
    if fault is None and not any(checkpoint.glob("rng_state*")):
        fault = "holds the model alone (save_only_model)"
    if fault is None and needs_best:
        best = best_of(checkpoint)
        fault_of_best = fault_of(best) if best else None
        fault = f"needs {best.name}, which {fault_of_best}" if best and fault_of_best else None
    return fault


def install_model(staged: Path, folder: Path) -> Manifest:
    """Move a model that was written aside into a folder, where no one ever finds half of it.

    Args:
        staged: Where it was written, in the `UNFINISHED` folder of the folder.
        folder: Where it belongs; files of the same names are replaced.

    Returns:
        What was written, to tell damage by.
    """
    _finish_installing(folder)
    _flush(staged)
    manifest = manifest_of(staged)
    os.replace(staged, folder / _ARRIVING_MODEL)
    _flush_file(folder)
    _finish_installing(folder)
    return manifest


def clear(folder: Path) -> None:
    """Remove what a killed process was writing, and complete the model that it was moving."""
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    _finish_installing(folder)


def tidy(folder: Path) -> None:
    """Remove the place for what is unfinished, if there is nothing in it."""
    with suppress(OSError):
        (folder / UNFINISHED).rmdir()


def _finish_installing(folder: Path) -> None:
    arriving = folder / _ARRIVING_MODEL
    if not arriving.is_dir():
        return
    files = _files_of(arriving)
    if CONFIG_NAME in files:
        # Without its config the old model is none; so is the new one, until this comes as the last of its files.
        (folder / CONFIG_NAME).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name == CONFIG_NAME):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name == CONFIG_NAME:
            _flush_file(folder)
        os.replace(files[name], folder / name)
    _flush_file(folder)
    shutil.rmtree(arriving)
    tidy(folder)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        _flush_file(new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def written_aside(staged: Path, what: str, needed: int) -> Iterator[None]:
    """Leave nothing half written, and say in one sentence why something could not be written.

    Args:
        staged: The folder that is written to.
        what: What is written, as the subject of the sentence.
        needed: About how many bytes that takes at least.

    Raises:
        TrainingError: If the disk is full, or cannot be written to.
    """
    try:
        yield
    except BaseException as error:
        folder = staged.parent.parent
        # Code, vocabularies and states take more than the tensors; how much, the last checkpoint shows.
        needed = max([needed, _size_of(staged), *map(_size_of, checkpoints_in(folder)[-1:])])
        shutil.rmtree(staged, ignore_errors=True)
        tidy(folder)
        reason = _why_not_written(error)
        if reason is None:
            raise
        there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
        free = shutil.disk_usage(there).free
        raise TrainingError(
            f"{what} could not be written to {folder} ({reason}): it needs about {_megabytes(needed)}, and "
            f"{_megabytes(free)} are free; nothing that was there is lost. Make room, and go on with "
            "--resume_from_checkpoint true."
        ) from error


def _why_not_written(error: BaseException) -> str | None:
    """Return the reason that an error of writing gives, or None if it is no such error."""
    if isinstance(error, OSError):
        return error.strerror or first_line(error)
    # Of the libraries in Rust, tokenizers raises no class of its own.
    if isinstance(error, SafetensorError) or (type(error) is Exception and "(os error " in str(error)):
        return first_line(error).rpartition("I/O error: ")[2].partition(" (os error ")[0]
    # What PyTorch says when a file that it writes is cut short is "unexpected pos".
    if isinstance(error, RuntimeError) and "inline_container" in str(error):
        return "a file was cut short"
    return None


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files_of(folder).values())


def _files_of(folder: Path) -> dict[str, Path]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in paths}


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _flush(folder: Path) -> None:
    """Have a folder and all that it holds written to the disk."""
    for path in (*folder.rglob("*"), folder):
        _flush_file(path)


def _flush_file(path: Path) -> None:
    if os.name == "nt":
        return  # Windows flushes what is open for writing alone.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
