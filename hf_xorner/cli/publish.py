"""`hf-xorner publish`: check a model, and upload it to the Hub."""

from collections.abc import Sequence
from dataclasses import dataclass

from huggingface_hub.utils import validate_repo_id

from ..hub import Checked, publish
from ..hub.space import write_space
from ..hub.upload import MAIN, check_with_card
from ..options import option, read_options

EXAMPLES = (
    "hf-xorner publish my_tagger --repo_id me/my-tagger --dry_run",
    "hf-xorner publish my_tagger --repo_id me/my-tagger --private --tag v1",
)
DESCRIPTION = (
    "A model that hf-xorner train wrote gets a card if it has none. Before the upload, the model is loaded in a new "
    "process without this package, and the code in its folder is compared with this package's code. The token is read "
    "from `hf auth login` or HF_TOKEN. --space publishes nothing, and writes the handler of an Inference Endpoint and "
    "a Space."
)


@dataclass
class Options:
    """The options of publishing."""

    model: str = option(help="The folder of the model.", positional=True)
    repo_id: str = option(help="The repository, owner/name.", aliases=("--repo",))
    dry_run: bool = option(False, "Check, show what would be uploaded, and stop.")
    private: bool | None = option(None, "Create a private repository.")
    revision: str = option(MAIN, "The branch.")
    tag: str | None = option(None, "A git tag for the commit, such as v1.")
    overwrite: bool = option(False, "Replace the model in the repository.")
    commit_message: str = option("Publish the model", "The message of the commit.")
    onnx: bool = option(
        False, "Also publish model.onnx and onnx_tagger.py, written by `hf-xorner export MODEL --output MODEL`."
    )
    space: str | None = option(None, "Only write an endpoint's handler and a Space into a new folder.")


def run(words: Sequence[str]) -> None:
    """Publish or check a model, or write a Space for it, and print a report."""
    options = read_options(Options, words)
    validate_repo_id(options.repo_id)
    if options.dry_run:
        print("\n".join(plan(check_with_card(options.model, options.repo_id, onnx=options.onnx), options)))
    elif options.space is not None:
        revision = options.tag or options.revision
        for path in write_space(options.model, options.repo_id, options.space, revision=revision):
            print(f"written: {path}")
    else:
        arguments = {name: value for name, value in vars(options).items() if name not in ("model", "dry_run", "space")}
        print(f"published as {publish(options.model, **arguments).commit_url}")


def plan(checked: Checked, options: Options) -> list[str]:
    """Return the report of a dry run: files, repository, files left out, and example sentences with their entities."""
    sizes = [(checked.folder / name).stat().st_size for name in checked.names]
    width = max(map(len, checked.names))
    lines = [f"{name:<{width}} {size:>14,}" for name, size in zip(checked.names, sizes, strict=True)]
    tag = f", tag {options.tag}" if options.tag else ""
    lines.append(f"{len(sizes)} files, {sum(sizes):,} bytes for {options.repo_id}, branch {options.revision}{tag}")
    if checked.excluded:
        lines.append(f"not published: {', '.join(checked.excluded)}")
    for sentence, entities in checked.tagged:
        listed = ", ".join(f"{kind} {sentence[start:end]!r}" for kind, start, end in entities)
        lines.append(f"tagged without this package: {sentence} [{listed}]")
    return [*lines, "dry run: nothing was uploaded"]
