"""Publish a model on the Hub."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import CommitInfo, HfApi

from ..export.runtime import RUNTIME_FILE
from ..files import CARD_FILE, FACTS_FILE, GRAPH_FILE
from ..training.facts import read_facts
from .card import write_card
from .checks import CONFIG, HANDLER, MODEL_FILES, Checked, check_folder

MAIN = "main"


def publish(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str = MAIN,
    tag: str | None = None,
    overwrite: bool = False,
    commit_message: str = "Publish the model",
    onnx: bool = False,
    api: HfApi | None = None,
) -> CommitInfo:
    """Check a model's folder, and upload the model's files.

    Overwriting deletes files of the earlier model that this one does not have: config, weights, tokenizer, facts, code
    and ONNX files. All other files are kept.

    Args:
        folder: The output of `save_pretrained` or a Trainer.
        repo_id: The repository, `owner/name`; it is created if needed.
        private: True for a private repository; by default, the owner's setting applies.
        revision: The branch; it is created from `main` if needed.
        tag: A tag for the commit.
        overwrite: Replace a model on the branch.
        commit_message: The commit's message.
        onnx: Also publish the files of an export to ONNX.
        api: The client; by default one with the user's token.

    Raises:
        ValueError: If the model cannot be published.
    """
    api = api or HfApi()
    checked = check_with_card(folder, repo_id, onnx=onnx)
    prepare_repository(repo_id, private=private, revision=revision, tag=tag, overwrite=overwrite, api=api)
    with _errors_as_sentences(api):
        commit = api.upload_folder(
            repo_id=repo_id,
            folder_path=checked.folder,
            revision=revision,
            commit_message=commit_message,
            allow_patterns=[glob.escape(name) for name in checked.names],
            delete_patterns=[*MODEL_FILES, HANDLER, GRAPH_FILE, RUNTIME_FILE] if overwrite else None,
        )
        if tag is not None:
            api.create_tag(repo_id, tag=tag, revision=commit.oid)
    return commit


def check_with_card(folder: str | Path, repo_id: str, *, onnx: bool = False) -> Checked:
    """Write the card if there is none, and check that a model can be published; see `check_folder`.

    Raises:
        ValueError: If the model cannot be published, or the card is that of an earlier training.
    """
    card = Path(folder) / CARD_FILE
    if (Path(folder) / FACTS_FILE).exists():
        if not card.exists():
            write_card(folder, name=repo_id)
        text = card.read_text(encoding="utf-8")
        if "SHA-256 of `model.safetensors`" in text and read_facts(folder)["model"]["sha256"] not in text:
            raise ValueError(f"{card} describes other weights; write it again by `hf-xorner card --overwrite`.")
    return check_folder(folder, onnx=onnx)


def prepare_repository(
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str = MAIN,
    tag: str | None = None,
    overwrite: bool = False,
    api: HfApi,
) -> None:
    """Create the repository and the branch if needed; the arguments are those of `publish`.

    Raises:
        ValueError: If the model could not be published there.
    """
    with _errors_as_sentences(api):
        api.create_repo(repo_id, private=private, exist_ok=True)
        if revision != MAIN:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        info = api.model_info(repo_id, revision=revision)
        if tag and tag in [ref.name for ref in api.list_repo_refs(repo_id).tags]:
            raise ValueError(f"{repo_id} has a tag {tag} already; choose another one.")
    if private and not info.private:
        raise ValueError(f"{repo_id} is public; make it private in its settings first, or name another repository.")
    if not overwrite and any(file.rfilename == CONFIG for file in info.siblings or ()):
        raise ValueError(f"{repo_id} has a model on {revision}; name another repository, or add --overwrite.")


@contextmanager
def _errors_as_sentences(api: HfApi) -> Iterator[None]:
    """Convert errors to a ValueError of one line; those of the Hub, the connection and Xet have no common type."""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        # Errors of a connection do not name the host.
        raise ValueError(text if "://" in text else f"{api.endpoint}: {text}") from error
