"""A model copied to a folder: the files of the Hub, or only the card, its pictures and the config."""

import os
import shutil

import pytest
from conftest import build_model
from transformers import AutoConfig, pipeline

from hf_xorner.hub import check_folder
from hf_xorner.hub.publish import copy_model

pytestmark = pytest.mark.usefixtures("forked_offline")

TEXT = "Ann met Zeus"
CARD = f"---\nlicense: mit\nwidget:\n- text: {TEXT}\n---\n# A tagger\n\n![](learning_curve.png)\n"


@pytest.fixture(scope="module")
def checked(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("trained") / "tagger"
    build_model("grn", tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    (folder / "learning_curve.png").write_bytes(b"\x89PNG")
    (folder / "training_args.bin").write_bytes(b"\x80")
    return check_folder(folder)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_has_the_files_of_the_hub(checked, tmp_path):
    target = tmp_path / "new" / "tagger"
    files = copy_model(checked, target)
    expected = {name: data for name, data in content(checked.folder).items() if name != "training_args.bin"}
    assert content(target) == expected
    assert [file.name for file in files] == sorted(expected)
    mask = os.umask(0)
    os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in target.iterdir()} == {0o666 & ~mask}
    assert pipeline("ner", model=str(target))(TEXT) == pipeline("ner", model=str(checked.folder))(TEXT)


def test_without_weights_the_card_and_the_config_are_left(checked, script, tmp_path):
    code, out, errors = script("publish.py", checked.folder, "--to", "here", "--weights", "false")
    assert (code, errors) == (0, "")
    assert out.startswith("here: 3 files, ")
    assert content(tmp_path / "here").keys() == {"README.md", "config.json", "learning_curve.png"}
    assert AutoConfig.from_pretrained(tmp_path / "here").model_type == "grn"


def test_an_existing_target_is_refused(checked, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "file", "link"):
        with pytest.raises(ValueError, match=f"{name} exists"):
            copy_model(checked, tmp_path / name)
    with pytest.raises(ValueError, match="exists"):
        copy_model(checked, checked.folder)
    assert content(tmp_path / "folder") == {}
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_links_out_of_the_folder_are_refused(checked, script, tmp_path):
    folder = shutil.copytree(checked.folder, tmp_path / "source")
    (tmp_path / "key").write_text("private")
    (folder / "LICENSE").symlink_to(tmp_path / "key")
    for way in (["--to", "there"], ["--repo_id", "me/tagger", "--dry_run", "true"]):
        code, out, errors = script("publish.py", folder, *way)
        assert (code, out) == (1, "")
        assert "LICENSE lies outside of " in errors
    assert not (tmp_path / "there").exists()


def test_options_that_do_not_apply_are_refused(checked, script, tmp_path):
    for options, name in (
        ([], "--repo_id"),
        (["--to", "there", "--repo_id", "me/tagger"], "--repo_id"),
        (["--to", "there", "--private", "true", "--tag", "v1"], "--private, --tag"),
        (["--to", "there", "--dry_run", "true"], "--dry_run"),
        (["--to", "there", "--overwrite", "true"], "--overwrite"),
        (["--repo_id", "me/tagger", "--weights", "false"], "--weights"),
        (["--repo_id", "me/tagger", "--space", "there", "--no_card", "true"], "--no_card"),
    ):
        code, out, errors = script("publish.py", checked.folder, *options)
        assert (code, out) == (1, "")
        assert name in errors
    assert not (tmp_path / "there").exists()
