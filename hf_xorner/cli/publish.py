"""`hf-xorner publish`: check a model, upload it in one commit, and compare what arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import Any

from ..hub import Checked, ModelFile, check_folder, publish
from ..hub.checks import sentences_of
from ..hub.publish import ANSWER_WITHIN, MAIN, check_names, copy_model
from ..hub.space import write_space
from ..options import option, read_options

EXAMPLES = (
    "hf-xorner publish my_tagger --repo_id me/my-tagger --dry_run",
    "hf-xorner publish my_tagger --repo_id me/my-tagger --private --tag v1",
)
DESCRIPTION = (
    "Everything is checked before anything is uploaded: that the model loads without this package, the card, the code "
    "beside the weights, and that no file contains a secret of a known form, a folder of this machine or a sentence "
    "of the corpus. The token is that of `hf auth login` or HF_TOKEN. --to copies the files into a folder instead; "
    "--space publishes nothing, and writes the handler of an Inference Endpoint and a Space."
)


@dataclass(kw_only=True)
class Options:
    """The options of publishing."""

    model: str = option(help="The folder of the model.", positional=True)
    repo_id: str | None = option(None, "The repository, owner/name.", aliases=("--repo",))
    to: str | None = option(None, "A new folder to copy the files to, in place of the Hub.")
    weights: bool = option(True, "With --to: whether to copy more than card and config.")
    dry_run: bool = option(False, "Check, show what would be uploaded, and stop.")
    private: bool | None = option(None, "Whether only its owner can see the repository.")
    revision: str = option(MAIN, "The branch.")
    tag: str | None = option(None, "A name for the commit, such as v1.")
    overwrite: bool = option(False, "Replace the model in the repository.")
    commit_message: str = option("Publish the model", "What the commit says.")
    no_card: bool = option(False, "Publish without a model card.")
    onnx: bool = option(
        False,
        "Also publish model.onnx and onnx_tagger.py, which `hf-xorner export MODEL_DIR --output MODEL_DIR` writes.",
    )
    dataset: str | None = option(
        None, "The corpus of which no sentence may be published; by default that of facts.json, if at hand."
    )
    data_dir: str | None = option(None, "Where the files of a named corpus lie.")
    max_file_mb: float = option(5000, "How large a file may be, in millions of bytes.")
    space: str | None = option(None, "Publish nothing: write an endpoint's handler and a Space into a new folder.")
    answer_within: float = option(ANSWER_WITHIN, "Seconds to wait for the Hub's first answer.")


#: What has a meaning only where a model goes to the Hub, and what only where it is checked.
ONLINE = {"dry_run", "private", "commit_message", "answer_within"}
CHECKED = {"no_card", "onnx", "dataset", "data_dir", "max_file_mb"}
#: What has no meaning beside each of the options that say where to.
MEANINGLESS = {
    "space": ONLINE | CHECKED | {"to", "weights", "overwrite"},
    "to": ONLINE | {"revision", "tag", "overwrite"},
    "repo_id": {"weights"},
}


def run(words: Sequence[str]) -> None:
    """Publish, and print where."""
    options = read_options(Options, words)
    print(publish_folder(options, options.model))


def publish_folder(options: Options, folder: str) -> str:
    """Publish, copy or check a folder as the options say, and return a report."""
    if (options.repo_id is None) == (options.to is None):
        raise ValueError("say where the model goes: to the Hub by --repo_id OWNER/NAME, or into a folder by --to.")
    way = "space" if options.space is not None else "repo_id" if options.to is None else "to"
    told = [one.name for one in fields(options) if getattr(options, one.name) != one.default]
    if given := [f"--{name}" for name in told if name in MEANINGLESS[way]]:
        raise ValueError(f"leave out {', '.join(given)}, of no use beside --{way}.")
    if options.space is not None:
        return "\n".join(written(options, folder, options.space))
    sentences = sentences_of(folder, options.dataset, options.data_dir)
    wanted: dict[str, Any] = {
        "card": not options.no_card,
        "onnx": options.onnx,
        "max_file_mb": options.max_file_mb,
        "sentences": sentences,
    }
    if options.to is not None:
        files = copy_model(check_folder(folder, **wanted), options.to, weights=options.weights)
        return f"{options.to}: {total(files)}"
    assert options.repo_id is not None
    if options.dry_run:
        check_names(options.repo_id, options.revision, options.tag)
        return "\n".join(plan(check_folder(folder, **wanted), options))
    done = publish(
        folder,
        options.repo_id,
        private=options.private,
        revision=options.revision,
        tag=options.tag,
        overwrite=options.overwrite,
        commit_message=options.commit_message,
        answer_within=options.answer_within,
        **wanted,
    )
    tag = f" and the tag {done.tag}" if done.tag else ""
    return (
        f"{done.url}: {total(done.files)} as commit {done.commit} on {done.revision}{tag}, each read back and compared"
    )


def written(options: Options, folder: str, target: str) -> list[str]:
    """Write the handler and the Space, and return a report with the next steps."""
    assert options.repo_id is not None
    paths = write_space(folder, options.repo_id, target, revision=options.tag or options.revision)
    model, space = paths[0].parent, paths[-1].parent
    return [
        *(f"written: {path}" for path in paths),
        f"{model}: for an Inference Endpoint; copy both files into {folder} and publish the model with them",
        f"{space}: a Space; try it, and publish it:",
        f"  MODEL={quote(str(Path(folder).resolve()))} python {quote(str(space / 'app.py'))}",
        f"  hf upload {options.repo_id}-space {quote(str(space))} . --repo-type space",
        "nothing was published",
    ]


def plan(checked: Checked, options: Options) -> list[str]:
    """Return the report of a dry run: files, repository, files left out, and example sentences with their entities."""
    width = max(len(file.name) for file in checked.files)
    lines = [f"{file.name:<{width}} {file.size:>14,} {file.sha256}" for file in checked.files]
    seen = {None: "as its owner has set it", True: "private", False: "public"}[options.private]
    tag = f", tag {options.tag}" if options.tag else ""
    lines.append(f"{total(checked.files)} for {options.repo_id}, branch {options.revision}{tag}, seen: {seen}")
    if checked.left:
        lines.append(f"left here: {', '.join(checked.left)}")
    for sentence, entities in checked.tagged:
        found = ", ".join(f"{kind} {sentence[start:end]!r}" for kind, start, end in entities)
        lines.append(f"tagged without this package: {sentence} [{found}]")
    return [*lines, "dry run: nothing was uploaded"]


def total(files: Sequence[ModelFile]) -> str:
    """Return the number of files and their total size, as text."""
    return f"{len(files)} files, {sum(file.size for file in files):,} bytes"
