"""A model laid out in a folder: what the Hub would have, all of it or without weights, and nothing by halves."""

import os
import shutil

import pytest
from conftest import build_model
from transformers import AutoConfig, AutoTokenizer, pipeline

from hf_xorner.hub import check_folder
from hf_xorner.hub.shelf import shelve

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


def held(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_files_of_the_hub_lie_there(checked, tmp_path):
    files = shelve(checked, tmp_path / "shelf" / "tagger")
    there = held(tmp_path / "shelf" / "tagger")
    assert there == {name: content for name, content in held(checked.folder).items() if name != "training_args.bin"}
    assert [file.name for file in files] == sorted(there)
    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["tagger"]
    ner = pipeline("ner", model=str(tmp_path / "shelf" / "tagger"))
    assert ner(TEXT) == pipeline("ner", model=str(checked.folder))(TEXT)


def test_all_may_read_them(checked, tmp_path):
    shelve(checked, tmp_path / "tagger")
    mask = os.umask(0)
    os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "tagger").iterdir()} == {0o666 & ~mask}


def test_without_weights_there_is_no_code_either(checked, tmp_path):
    files = shelve(checked, tmp_path / "tagger", weights=False)
    names = {"README.md", "config.json", "learning_curve.png", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in files} == set(held(tmp_path / "tagger")) == names
    assert AutoConfig.from_pretrained(tmp_path / "tagger").model_type == "grn"
    assert AutoTokenizer.from_pretrained(tmp_path / "tagger").tokenize(TEXT) == TEXT.split()


def test_what_is_there_stays_unless_it_is_said(checked, tmp_path):
    (tmp_path / "tagger").mkdir()
    (tmp_path / "tagger" / "mine").touch()
    with pytest.raises(ValueError, match=r"tagger exists; name another folder, or say --overwrite true\.$"):
        shelve(checked, tmp_path / "tagger")
    assert list(held(tmp_path / "tagger")) == ["mine"]
    shelve(checked, tmp_path / "tagger", weights=False, overwrite=True)
    assert "mine" not in held(tmp_path / "tagger")
    with pytest.raises(ValueError, match="is the folder of the model itself"):
        shelve(checked, checked.folder, overwrite=True)


def test_a_copy_that_fails_leaves_what_was_there(checked, tmp_path, monkeypatch):
    (tmp_path / "tagger").mkdir()
    (tmp_path / "tagger" / "mine").touch()
    copy = shutil.copyfile

    def fail(source, target):
        if source.name == "tokenizer.json":
            raise OSError(28, "No space left on device")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", fail)
    with pytest.raises(OSError, match="No space left"):
        shelve(checked, tmp_path / "tagger", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["tagger"]
    assert list(held(tmp_path / "tagger")) == ["mine"]


def test_the_script_lays_a_model_out(checked, script, tmp_path):
    code, out, errors = script("publish.py", checked.folder, "--to", "here", "--weights", "false")
    assert (code, errors) == (0, "")
    assert out.startswith("here: 5 files, ")
    assert out.endswith(" bytes, without weights, as the Hub would have it\n")
    for wrong in ([], ["--to", "there", "--repo_id", "me/tagger"]):
        code, out, errors = script("publish.py", checked.folder, *wrong)
        assert (code, out) == (1, "")
        assert errors.startswith("publish.py: say where the model goes")
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("way", "useless", "named"),
    [
        (["--to", "there"], ["--private", "true", "--tag", "v1"], "--private, --tag"),
        (["--to", "there"], ["--dry_run", "true"], "--dry_run"),
        (["--to", "there"], ["--revision", "next"], "--revision"),
        (["--repo_id", "me/tagger"], ["--weights", "false"], "--weights"),
        (["--repo_id", "me/tagger", "--space", "there"], ["--no_card", "true"], "--no_card"),
        (["--repo_id", "me/tagger", "--space", "there"], ["--private", "false"], "--private"),
        (["--space", "there", "--to", "here"], [], "--to"),
    ],
)
def test_the_script_refuses_what_it_has_no_use_for(checked, script, tmp_path, way, useless, named):
    code, out, errors = script("publish.py", checked.folder, *way, *useless)
    assert (code, out) == (1, "")
    assert errors.startswith(f"publish.py: leave out {named}, of no use beside --")
    assert not (tmp_path / "there").exists()
