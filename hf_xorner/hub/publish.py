"""Publishing: checks, one commit, and a look at what the Hub has got of it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    get_session,
    hf_hub_url,
)
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, validate_repo_id

from ..files import sha256_of
from ..training.model_files import (
    CARD,
    CONFIG,
    HANDLER,
    HANDLER_REQUIREMENTS,
    MODEL_FILES,
    PICTURES,
    TOKENIZER_CONFIG,
    WEIGHTS,
    matches,
    travelling_modules,
)
from .checks import WEIGHTS_INDEX, Checked, ModelFile, check_folder
from .connection import SILENCE, limited, patiently, reach, reason_of

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
    return regular and (name, sha256_of(path)) in known


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
    return sha256_of(path)


_Answer = TypeVar("_Answer")

MAIN = "main"
ANSWER_WITHIN = 1.8

#: What every repository holds from its beginning.
NOTHING = {".gitattributes"}
#: The files of an earlier model, besides its code: left behind, they would be taken for parts of this one.
REPLACED = tuple(name for name in MODEL_FILES if name not in (CARD, "LICENSE", *PICTURES))

_REFERENCE = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$|/$|\.$))[A-Za-z0-9_][\w./+-]*")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class Published(NamedTuple):
    """What stands on the Hub: the repository's address, the commit, its branch and tag, and the files."""

    url: str
    commit: str
    revision: str
    tag: str | None
    files: list[ModelFile]


class Standing(NamedTuple):
    """What stands in a repository before.

    Attributes:
        private: Whether only some can see it.
        head: The commit at the end of the branch; None where there is no such branch.
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
    max_file_mb: float = 5000,
    sentences: Iterable[Sequence[str]] = (),
    api: HfApi | None = None,
    answer_within: float = ANSWER_WITHIN,
) -> Published:
    """Check a model's folder, upload the model's files in one commit, and compare what arrived with what was sent.

    An overwriting call removes, in the same commit, the files of the earlier model that this one does not have: config,
    weights with their shards and index, tokenizer, facts, the modules that its config and tokenizer name with those
    that these import, and `handler.py` with its requirements. All other files stay: the card, the licence, pictures,
    Python that the model does not use, `.gitattributes`, and everything in folders.

    Args:
        folder: What `save_pretrained` or a Trainer wrote.
        repo_id: The repository, `owner/name`; it is created where it is not there.
        private: Whether the repository is to be seen by its owner alone; by default as the owner has set it.
        revision: The branch.
        tag: A name for the commit, given when all has arrived.
        overwrite: Whether the branch may hold files already.
        commit_message: What the commit says.
        card: Whether a model card must be there.
        max_file_mb: How large a file may be, in millions of bytes.
        sentences: The words of each sentence that must stand in no file.
        api: The client; by default one with the token that the user is logged in with.
        answer_within: Seconds to wait for the Hub's first answer.

    Raises:
        Unfit: If the folder is not fit to be published.
        ValueError: If it could not be published; then either nothing is, or it is said what.
    """
    api = api or HfApi()
    before = ready_to_publish(
        repo_id, private=private, revision=revision, tag=tag, overwrite=overwrite, api=api, answer_within=answer_within
    )
    checked = check_folder(folder, card=card, max_file_mb=max_file_mb, sentences=sentences)
    with limited(SILENCE):
        before = _prepare(api, repo_id, private, revision, before)
        commit = _upload(api, repo_id, revision, checked, commit_message, before)
        _compare(api, repo_id, revision, commit, checked)
        if tag is not None:
            done = f"{repo_id} holds the model as commit {commit[:10]}, all of it, but without the tag {tag}"
            _or_say(done, lambda: patiently(lambda: api.create_tag(repo_id, tag=tag, revision=commit, exist_ok=True)))
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
    """Check that a model could be published, before there is one: names, the Hub, the token, and what stands there.

    Args:
        repo_id: The repository, `owner/name`.
        private: Whether it is to be seen by its owner alone.
        revision: The branch.
        tag: A name for the commit to come.
        overwrite: Whether to publish over what stands there.
        api: The client; by default one with the token that the user is logged in with.
        answer_within: Seconds to wait for the Hub's first answer.

    Returns:
        What stands in the repository; None where there is no such repository.

    Raises:
        ValueError: If it could not be published.
    """
    api = api or HfApi()
    check_names(repo_id, revision, tag)
    user = reach(api, answer_within)
    token = (user.get("auth") or {}).get("accessToken") or {}
    if token.get("role") == "read":
        raise ValueError(f"the token of {user['name']} may only read; log in with one that may write.")
    with limited(SILENCE):
        before = _or_say("nothing was published", lambda: _standing(api, repo_id, revision, tag))
    if before is None:
        return None
    if private and not before.private:
        raise ValueError(f"{repo_id} can be seen by all; make it private in its settings first, or name another one.")
    if before.files - NOTHING and not overwrite:
        raise ValueError(
            f"{repo_id} holds {len(before.files - NOTHING)} files on {revision}; name another one, or say "
            "--overwrite true."
        )
    return before


def check_names(repo_id: str, revision: str = MAIN, tag: str | None = None) -> None:
    """Check names for their form.

    Raises:
        ValueError: If one is none.
    """
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise ValueError(f"repo_id={repo_id!r} is no name of a repository ({' '.join(str(error).split())}).") from None
    if "/" not in repo_id:
        raise ValueError(f"repo_id={repo_id!r} lacks its owner; give owner/name.")
    if not repo_id.isascii():  # Older clients take every letter for one.
        raise ValueError(f"repo_id={repo_id!r} is no name of a repository (its letters must be those of English).")
    for option, name in (("revision", revision), ("tag", tag)):
        if name is not None and (not _REFERENCE.fullmatch(name) or _COMMIT.fullmatch(name)):
            raise ValueError(f"{option}={name!r} is no name for it; take letters, digits, '.', '-', '_' and '/'.")


def _standing(api: HfApi, repo_id: str, revision: str, tag: str | None) -> Standing | None:
    try:
        info = patiently(lambda: api.model_info(repo_id))
    except RepositoryNotFoundError:
        return None
    refs = patiently(lambda: api.list_repo_refs(repo_id))
    tags = {one.name: one.target_commit for one in refs.tags}
    if tag in tags:
        raise ValueError(f"{repo_id} has a tag {tag} already, at {tags[tag][:10]}; choose another one.")
    if revision in tags:
        raise ValueError(f"{revision} is a tag of {repo_id}, which stays where it is; name a branch.")
    head = {one.name: one.target_commit for one in refs.branches}.get(revision)
    return Standing(bool(info.private), head, _files_at(api, repo_id, head) if head else set())


def _files_at(api: HfApi, repo_id: str, commit: str) -> set[str]:
    return patiently(lambda: set(api.list_repo_files(repo_id, revision=commit)))


def _prepare(api: HfApi, repo_id: str, private: bool | None, revision: str, before: Standing | None) -> Standing:
    """Have the repository and the branch be there."""

    def prepare() -> Standing:
        if before is None:
            patiently(lambda: api.create_repo(repo_id, private=private, exist_ok=True))
        if before is None or before.head is None:
            if revision != MAIN:
                patiently(lambda: api.create_branch(repo_id, branch=revision, exist_ok=True))
            found = _standing(api, repo_id, revision, None)
        else:
            found = before
        if found is None or found.head is None:
            raise ValueError(f"{repo_id} has no branch {revision}, though it was to be created")
        if private and not found.private:
            raise ValueError(f"{repo_id} was to be private, and is not")
        return found

    return _or_say("nothing was published", prepare)


def _upload(api: HfApi, repo_id: str, revision: str, checked: Checked, commit_message: str, before: Standing) -> str:
    """Upload the files of the model in one commit, which removes those of an earlier model, and return the commit."""
    earlier = _or_say("nothing was published", lambda: _files_of_earlier_model(api, repo_id, before))
    stale = earlier - {file.name for file in checked.files}

    def upload() -> str:
        # Made anew for each try: the client then sees what has arrived before, be it the whole commit.
        gone = stale & _files_at(api, repo_id, revision)
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(file.name, str(checked.folder / file.name)) for file in checked.files
        ]
        operations += [CommitOperationDelete(name) for name in sorted(gone)]
        return api.create_commit(
            repo_id, operations, commit_message=commit_message, revision=revision, parent_commit=before.head
        ).oid

    return _or_say(lambda: _state(api, repo_id, revision, before), lambda: patiently(upload))


def _files_of_earlier_model(api: HfApi, repo_id: str, before: Standing) -> set[str]:
    """Return the files of a branch that publishing would take for parts of the model there; see `publish`."""
    assert before.head is not None
    names = {name for name in before.files if "/" not in name}
    found = {name for name in names if matches(name, REPLACED)}
    if HANDLER in names:
        found |= {HANDLER, HANDLER_REQUIREMENTS}
    modules = {name for name in names if name.endswith(".py")}
    if modules:
        with TemporaryDirectory() as scratch:
            for name in names & {CONFIG, TOKENIZER_CONFIG, *modules}:
                content = patiently(lambda name=name: b"".join(_download(api, repo_id, before.head, name)))  # type: ignore[misc]
                (Path(scratch) / name).write_bytes(content)
            found |= {f"{module}.py" for module in travelling_modules(Path(scratch))}
    return found & names


def _state(api: HfApi, repo_id: str, revision: str, before: Standing) -> str:
    """What stands on the Hub after a commit that failed."""
    try:
        now = api.model_info(repo_id, revision=revision).sha
    except Exception:
        return f"what {repo_id} holds now cannot be asked"
    if now != before.head:
        return f"{repo_id} has another commit now, {str(now)[:10]}; look at it"
    return f"nothing was published: {repo_id} {'holds what it held' if before.files - NOTHING else 'is empty'}"


def _compare(api: HfApi, repo_id: str, revision: str, commit: str, checked: Checked) -> None:
    """Read every file back by its commit, and refuse what differs."""
    there = f"{repo_id} holds commit {commit[:10]} on {revision}"
    differing = _or_say(
        f"{there}, which was not compared with what was sent",
        lambda: [
            file.name
            for file in checked.files
            if patiently(lambda name=file.name: _sha256(api, repo_id, commit, name)) != file.sha256  # type: ignore[misc]
        ],
    )
    if differing:
        raise ValueError(
            f"{there}, but {', '.join(differing)} came back with another hash than was sent; nobody should use that "
            "commit, so delete it or the repository, and publish again."
        )


def _sha256(api: HfApi, repo_id: str, commit: str, name: str) -> str:
    """Return the hash of the bytes that the Hub sends of a file."""
    found = hashlib.sha256()
    for piece in _download(api, repo_id, commit, name):
        found.update(piece)
    return found.hexdigest()


def _download(api: HfApi, repo_id: str, commit: str, name: str) -> Iterator[bytes]:
    url = hf_hub_url(repo_id, name, revision=commit, endpoint=api.endpoint)
    with get_session().stream("GET", url, headers=build_hf_headers(token=api.token)) as answer:
        hf_raise_for_status(answer)
        yield from answer.iter_bytes()


def _or_say(state: str | Callable[[], str], call: Callable[[], _Answer]) -> _Answer:
    """Call, and if that fails, say why and what stands on the Hub."""
    try:
        return call()
    # Besides the Hub's answers and the line's faults, those of Xet have no common type.
    except Exception as error:
        stands = state if isinstance(state, str) else state()
        raise ValueError(f"{reason_of(error)}; {stands}.") from error
