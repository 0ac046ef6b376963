"""Publishing to a fake of the Hub's client: what is uploaded, deleted and refused."""

import inspect
import sys
from pathlib import Path

import pytest
from conftest import SENTENCES
from huggingface_hub import HfApi

from hf_xorner import Tagger
from hf_xorner.cli.train import where_to_publish
from hf_xorner.hub import prepare_repository, publish
from hf_xorner.training.arguments import parse

pytest_plugins = "fake_hub"

NAME, TEXT = "ann/tagger", " ".join(SENTENCES[0])


@pytest.fixture(autouse=True)
def left_here(folder):
    """Files of the folder that are not published."""
    (folder / "training_args.bin").write_bytes(b"a pickle")
    (folder / "a[1].png").write_bytes(b"a picture, which is published")
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3" / "model.safetensors").write_bytes(b"weights")


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".bin"}


def test_the_fake_has_the_signatures_of_the_client(hub):
    for name in ("create_repo", "create_branch", "model_info", "list_repo_refs", "upload_folder", "create_tag"):
        ours, theirs = (inspect.signature(getattr(client, name)).parameters for client in (hub, HfApi))
        assert ours.keys() <= theirs.keys()


def test_the_files_of_the_model_are_uploaded_and_tagged(hub, folder):
    commit = publish(folder, NAME, private=True, tag="v1", commit_message="First", api=hub)
    assert hub.files(NAME) == content(folder)
    assert hub.repositories[NAME].private
    assert hub.repositories[NAME].tags == {"v1": commit.oid}
    assert commit.title == "First"
    hub.calls.clear()
    with pytest.raises(ValueError, match="has a tag v1 already"):
        publish(folder, NAME, tag="v1", overwrite=True, api=hub)
    assert "upload_folder" not in hub.calls


def test_a_model_without_a_card_gets_one(hub, folder, monkeypatch):
    card = (folder / "README.md").read_text(encoding="utf-8")
    (folder / "README.md").unlink()
    (folder / "facts.json").write_text("{}")
    write = lambda path, name: (Path(path) / "README.md").write_text(card + name, encoding="utf-8")  # noqa: E731
    monkeypatch.setattr(sys.modules["hf_xorner.hub.upload"], "write_card", write)
    publish(folder, NAME, api=hub)
    assert hub.files(NAME)["README.md"] == (card + NAME).encode()


def test_the_card_of_an_earlier_training_is_refused(hub, folder):
    with (folder / "README.md").open("a") as card:
        card.write("SHA-256 of `model.safetensors`: `a1`\n")
    (folder / "facts.json").write_text('{"model": {"sha256": "a1"}}')
    publish(folder, NAME, api=hub)
    (folder / "facts.json").write_text('{"model": {"sha256": "b2"}}')
    with pytest.raises(ValueError, match="other weights"):
        publish(folder, NAME, overwrite=True, api=hub)


def test_overwriting_needs_the_option_and_only_deletes_the_earlier_model(hub, folder):
    publish(folder, NAME, api=hub)
    first = hub.files(NAME)
    with pytest.raises(ValueError, match="--overwrite"):
        publish(folder, NAME, api=hub)
    assert hub.files(NAME) == first
    old = ("model-00001-of-00002.safetensors", "model.safetensors.index.json", "piece_tokenizer.json", "facts.json")
    old += ("handler.py", "model.onnx", "onnx_tagger.py", "modeling_grn.py")
    kept = ("notes.txt", "LICENSE", "onnx/model.onnx", "old.png", "train.py", "a/tags.py", "requirements.txt")
    hub.repositories[NAME].branches["main"] |= dict.fromkeys([*old, *kept], b"x")
    with (folder / "README.md").open("a", encoding="utf-8") as file:
        file.write("second")
    publish(folder, NAME, overwrite=True, api=hub)
    assert hub.files(NAME) == {**content(folder), **dict.fromkeys(kept, b"x")}
    assert ".gitattributes" in hub.repositories[NAME].branches["main"]
    del hub.repositories[NAME].branches["main"]["config.json"]  # no model, so no option is needed
    hub.repositories[NAME].branches["main"] |= {"model.onnx": b"x"}
    publish(folder, NAME, api=hub)
    assert hub.files(NAME)["model.onnx"] == b"x"


def test_a_branch_leaves_the_others_as_they_are(hub, folder):
    prepare_repository(NAME, api=hub)
    publish(folder, NAME, revision="try/two", api=hub)
    assert hub.files(NAME) == {}
    assert hub.files(NAME, "try/two") == content(folder)


def test_a_private_model_is_not_uploaded_to_a_public_repository(hub, folder):
    hub.create_repo(NAME)
    with pytest.raises(ValueError, match="is public"):
        publish(folder, NAME, private=True, api=hub)
    assert hub.files(NAME) == {}


def test_a_refused_folder_is_not_uploaded(hub, folder):
    (folder / "tags.py").write_text("print()")
    with pytest.raises(ValueError, match=r"tags\.py"):
        publish(folder, NAME, api=hub)
    assert hub.calls == []


def test_errors_of_the_client_are_one_line_with_the_host(hub, folder):
    for name in ("create_repo", "upload_folder", "create_tag"):
        hub.failing = name
        with pytest.raises(ValueError, match=f"^https://hub.example: {name} failed$"):
            publish(folder, NAME, tag="v1", overwrite=True, api=hub)


# --- The command -----------------------------------------------------------------------------------


def test_a_dry_run_lists_the_files_and_calls_nothing(hub, script, folder, monkeypatch):
    monkeypatch.setattr(sys.modules[publish.__module__], "HfApi", None)
    code, out, errors = script("publish", folder, "--repo_id", NAME, "--dry_run", "--space", "space")
    assert code == 0 and not Path("space").exists(), errors
    assert {line.split()[0] for line in out.splitlines()} >= content(folder).keys()
    assert "not published: checkpoint-3/, training_args.bin" in out


def test_the_command_publishes_and_needs_a_repository(hub, script, folder, monkeypatch):
    monkeypatch.setattr(sys.modules[publish.__module__], "HfApi", lambda: hub)
    code, out, _ = script("publish", folder, "--repo_id", NAME)
    assert (code, out) == (0, f"published as https://hub/{NAME}\n")
    assert hub.files(NAME) == content(folder)
    assert "--repo_id" in script("publish", folder)[2]
    assert "'a b/c'" in script("publish", folder, "--repo_id", "a b/c", "--dry_run")[2]


def test_the_trainer_itself_publishes_nothing(hub, monkeypatch):
    monkeypatch.setattr("hf_xorner.cli.train.HfApi", lambda token: hub)
    _, training, _ = parse(["--push_to_hub", "true", "--hub_model_id", NAME])
    assert where_to_publish(training, False)["repo_id"] == NAME and training.push_to_hub is False


@pytest.mark.slow
def test_training_with_push_to_hub_publishes_the_model(hub, script, monkeypatch):
    monkeypatch.setattr("hf_xorner.cli.train.HfApi", lambda token: hub)
    options = ["--max_steps", "2", "--disable_tqdm", "true", "--push_to_hub", "true", "--hub_model_id", NAME]
    code, out, errors = script("train", *options)
    assert code == 0, errors
    assert f"published as https://hub/{NAME}" in out
    assert {"config.json", "model.safetensors", "facts.json"} <= hub.files(NAME).keys()
    code, _, errors = script("train", *options, "--output_dir", "other")
    assert code == 1 and "--overwrite" in errors and not Path("other").exists()  # before training


def test_a_tagger_is_pushed_with_its_card(hub, folder):
    Tagger.from_pretrained(folder).push_to_hub(NAME, api=hub)
    published = hub.files(NAME)
    assert published["README.md"] == (folder / "README.md").read_bytes()
    assert {"model.safetensors", "tokenizer.json", "modeling_tagger.py"} <= published.keys()
