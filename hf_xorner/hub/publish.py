"""Publish a model on the Hub in one checked commit, or copy it into a folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_session, hf_hub_url
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, validate_repo_id

from ..export.runtime import GRAPH_FILE, RUNTIME_FILE
from ..training.model_files import (
    CARD,
    CONFIG,
    HANDLER,
    HANDLER_REQUIREMENTS,
    MODEL_FILES,
    PICTURES,
    TOKENIZER_CONFIG,
    matches,
    travelling_modules,
)
from .checks import Checked, ModelFile, check_folder
from .connection import SILENCE, limited, patiently, reach, reason_of

MAIN = "main"
ANSWER_WITHIN = 1.8

# Every repository has this file from the beginning.
_INITIAL = {".gitattributes"}
# Files of an earlier model, besides its code, that must not be mixed with those of a new one.
_REPLACED = (*(name for name in MODEL_FILES if name not in (CARD, "LICENSE", *PICTURES)), GRAPH_FILE, RUNTIME_FILE)
_REFERENCE = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$|/$|\.$))[A-Za-z0-9_][\w./+-]*")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


# --- Into a folder ---------------------------------------------------------------------------------------------------


def copy_model(checked: Checked, target: str | Path, *, weights: bool = True) -> list[ModelFile]:
    """Copy the files that would be published into a new folder.

    Args:
        checked: The model's folder.
        target: The folder to write.
        weights: Whether to copy all files; without them, only the card, its pictures and the config.

    Returns:
        The copied files.

    Raises:
        ValueError: If the folder exists.
    """
    described = (CARD, CONFIG, *PICTURES)
    copied = [file for file in checked.files if weights or matches(file.name, described)]
    write_files(Path(target), {file.name: checked.folder / file.name for file in copied})
    return copied


def write_files(target: Path, sources: Mapping[str, Path | str]) -> None:
    """Write files into a new folder.

    Args:
        target: The folder.
        sources: By path in the folder, the file to copy or the text to write.

    Raises:
        ValueError: If the folder exists.
    """
    if os.path.lexists(target):
        raise ValueError(f"{target} exists; remove it, or name another folder.")
    for name, source in sources.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, str):
            path.write_text(source, encoding="utf-8", newline="\n")
        else:
            shutil.copyfile(source, path)  # without the mode: safetensors makes weights readable for their owner only


# --- To the Hub ------------------------------------------------------------------------------------------------------


class Published(NamedTuple):
    """A published model: the repository's address, the commit, its branch and tag, and the files."""

    url: str
    commit: str
    revision: str
    tag: str | None
    files: list[ModelFile]


class Standing(NamedTuple):
    """The state of a repository.

    Attributes:
        private: Whether it is private.
        head: The last commit of the branch; None if there is no such branch.
        files: The files of that commit.
    """

    private: bool
    head: str | None
    files: set[str]


def publish(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str = MAIN,
    tag: str | None = None,
    overwrite: bool = False,
    commit_message: str = "Publish the model",
    card: bool = True,
    onnx: bool = False,
    max_file_mb: float = 5000,
    sentences: Iterable[Sequence[str]] = (),
    api: HfApi | None = None,
    answer_within: float = ANSWER_WITHIN,
) -> Published:
    """Check a model's folder, upload the model's files in one commit, and compare what arrived with what was sent.

    Overwriting removes, in the same commit, the files of the earlier model that this one does not have: config, weights
    with their shards and index, tokenizer, facts, the modules of its config and tokenizer with those that they import,
    and `handler.py` with its requirements. All other files stay.

    Args:
        folder: The output of `save_pretrained` or a Trainer.
        repo_id: The repository, `owner/name`; it is created if needed.
        private: Whether the repository is private; by default as its owner has set it.
        revision: The branch.
        tag: A tag for the commit, set after the comparison.
        overwrite: Whether the branch may have files.
        commit_message: The commit's message.
        card: Whether a model card is required.
        onnx: Whether the files of an export to ONNX are published, too.
        max_file_mb: The size limit of a file, in millions of bytes.
        sentences: The words of each sentence that no file may contain.
        api: The client; by default one with the user's token.
        answer_within: Seconds to wait for the Hub's first answer.

    Raises:
        Unfit: If the folder is not fit to be published.
        ValueError: If publishing failed; the message says what the repository holds.
    """
    api = api or HfApi()
    before = ready_to_publish(
        repo_id, private=private, revision=revision, tag=tag, overwrite=overwrite, api=api, answer_within=answer_within
    )
    checked = check_folder(folder, card=card, onnx=onnx, max_file_mb=max_file_mb, sentences=sentences)
    with limited(SILENCE):
        with _explained("nothing was published"):
            before = _prepare(api, repo_id, private, revision, before)
            stale = _files_of_earlier_model(api, repo_id, before) - {file.name for file in checked.files}
        with _explained(lambda: _state(api, repo_id, revision, before)):
            commit = patiently(lambda: _upload(api, repo_id, revision, checked, commit_message, before, stale))
        there = f"{repo_id} holds commit {commit[:10]} on {revision}"
        with _explained(f"{there}, which was not compared with what was sent"):
            differing = [
                file.name
                for file in checked.files
                if patiently(partial(_sha256, api, repo_id, commit, file.name)) != file.sha256
            ]
        if differing:
            raise ValueError(
                f"{there}, but {', '.join(differing)} came back with another hash than was sent; nobody should use "
                "that commit, so delete it or the repository, and publish again."
            )
        if tag is not None:
            with _explained(f"{there}, all of the model, but without the tag {tag}"):
                patiently(lambda: api.create_tag(repo_id, tag=tag, revision=commit, exist_ok=True))
    return Published(f"{api.endpoint}/{repo_id}", commit, revision, tag, checked.files)


def ready_to_publish(
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str = MAIN,
    tag: str | None = None,
    overwrite: bool = False,
    api: HfApi | None = None,
    answer_within: float = ANSWER_WITHIN,
) -> Standing | None:
    """Check names, Hub, token and repository before there is a model to publish; the arguments are those of `publish`.

    Returns:
        The state of the repository; None if it does not exist.

    Raises:
        ValueError: If a model could not be published.
    """
    api = api or HfApi()
    check_names(repo_id, revision, tag)
    user = reach(api, answer_within)
    token = (user.get("auth") or {}).get("accessToken") or {}
    if token.get("role") == "read":
        raise ValueError(f"the token of {user['name']} is read-only; log in with one that has write access.")
    with limited(SILENCE), _explained("nothing was published"):
        before = _standing(api, repo_id, revision, tag)
    if before is None:
        return None
    if private and not before.private:
        raise ValueError(f"{repo_id} is public; make it private in its settings first, or name another repository.")
    if count := len(before.files - _INITIAL) * (not overwrite):
        raise ValueError(f"{repo_id} holds {count} files on {revision}; name another one, or add --overwrite true.")
    return before


def check_names(repo_id: str, revision: str = MAIN, tag: str | None = None) -> None:
    """Check the form of names.

    Raises:
        ValueError: If one is invalid.
    """
    try:
        validate_repo_id(repo_id)
        if not repo_id.isascii():  # Older clients allow any letter.
            raise HFValidationError("its letters must be those of English")
    except HFValidationError as error:
        raise ValueError(f"repo_id={repo_id!r} is not a valid name ({' '.join(str(error).split())}).") from None
    if "/" not in repo_id:
        raise ValueError(f"repo_id={repo_id!r} has no owner; give owner/name.")
    for option, name in (("revision", revision), ("tag", tag)):
        if name is not None and (not _REFERENCE.fullmatch(name) or _COMMIT.fullmatch(name)):
            raise ValueError(f"{option}={name!r} is not a valid name; use letters, digits, '.', '-', '_' and '/'.")


def _standing(api: HfApi, repo_id: str, revision: str, tag: str | None) -> Standing | None:
    try:
        info = patiently(lambda: api.model_info(repo_id))
    except RepositoryNotFoundError:
        return None
    refs = patiently(lambda: api.list_repo_refs(repo_id))
    tags = {one.name: one.target_commit for one in refs.tags}
    if tag in tags:
        raise ValueError(f"{repo_id} has a tag {tag} already, at {tags[tag][:10]}; choose another one")
    if revision in tags:
        raise ValueError(f"{revision} is a tag of {repo_id}, which cannot be moved; name a branch")
    head = {one.name: one.target_commit for one in refs.branches}.get(revision)
    files = patiently(lambda: api.list_repo_files(repo_id, revision=head)) if head else ()
    return Standing(bool(info.private), head, set(files))


def _prepare(api: HfApi, repo_id: str, private: bool | None, revision: str, before: Standing | None) -> Standing:
    """Create the repository and the branch if needed."""
    if before is None:
        patiently(lambda: api.create_repo(repo_id, private=private, exist_ok=True))
    if before is None or before.head is None:
        if revision != MAIN:
            patiently(lambda: api.create_branch(repo_id, branch=revision, exist_ok=True))
        before = _standing(api, repo_id, revision, None)
    if before is None or before.head is None:
        raise ValueError(f"{repo_id} has no branch {revision}, though it was created")
    if private and not before.private:
        raise ValueError(f"{repo_id} was to be private, and is public")
    return before


def _upload(
    api: HfApi, repo_id: str, revision: str, checked: Checked, message: str, before: Standing, stale: set[str]
) -> str:
    """Commit the files of the model and the removal of stale ones, and return the commit.

    A retry makes the operations anew, so that the client notices what has arrived before, even the whole commit.
    """
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationAdd(file.name, str(checked.folder / file.name)) for file in checked.files
    ]
    gone = stale & set(api.list_repo_files(repo_id, revision=revision)) if stale else ()
    operations += [CommitOperationDelete(name) for name in sorted(gone)]
    return api.create_commit(
        repo_id, operations, commit_message=message, revision=revision, parent_commit=before.head
    ).oid


def _files_of_earlier_model(api: HfApi, repo_id: str, before: Standing) -> set[str]:
    """Return the files of a branch that belong to the model there; see `publish`."""
    names = {name for name in before.files if "/" not in name}
    found = {name for name in names if matches(name, _REPLACED)}
    if HANDLER in names:
        found |= {HANDLER, HANDLER_REQUIREMENTS}
    modules = {name for name in names if name.endswith(".py")}
    with TemporaryDirectory() as scratch:
        for name in names & {CONFIG, TOKENIZER_CONFIG, *modules} if modules else ():
            (Path(scratch) / name).write_bytes(patiently(partial(_content, api, repo_id, str(before.head), name)))
        found |= {f"{module}.py" for module in travelling_modules(Path(scratch))}
    return found & names


def _state(api: HfApi, repo_id: str, revision: str, before: Standing) -> str:
    """Describe the repository after a commit that failed."""
    try:
        now = api.model_info(repo_id, revision=revision).sha
    except Exception:
        return f"the state of {repo_id} is unknown"
    if now != before.head:
        return f"{repo_id} has another commit now, {str(now)[:10]}; look at it"
    return f"nothing was published: {repo_id} {'holds what it held' if before.files - _INITIAL else 'is empty'}"


def _sha256(api: HfApi, repo_id: str, commit: str, name: str) -> str:
    digest = hashlib.sha256()
    for chunk in _download(api, repo_id, commit, name):
        digest.update(chunk)
    return digest.hexdigest()


def _content(api: HfApi, repo_id: str, commit: str, name: str) -> bytes:
    return b"".join(_download(api, repo_id, commit, name))


def _download(api: HfApi, repo_id: str, commit: str, name: str) -> Iterator[bytes]:
    """Yield a file in chunks; the client's own download might answer from its caches."""
    url = hf_hub_url(repo_id, name, revision=commit, endpoint=api.endpoint)
    with get_session().stream("GET", url, headers=build_hf_headers(token=api.token)) as answer:
        hf_raise_for_status(answer)
        yield from answer.iter_bytes()


@contextmanager
def _explained(state: str | Callable[[], str]) -> Iterator[None]:
    """Raise errors as one sentence with the state of the repository."""
    try:
        yield
    # Besides errors of the Hub and the connection there are those of Xet, which have no common type.
    except Exception as error:
        raise ValueError(f"{reason_of(error)}; {state if isinstance(state, str) else state()}.") from error
