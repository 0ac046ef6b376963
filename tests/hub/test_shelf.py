"""A model exported to a folder: the Hub's files, with or without weights; files of the user are kept."""

import hashlib
import os
import shutil
import subprocess

import pytest
from conftest import build_model
from transformers import AutoConfig, AutoTokenizer, pipeline

from hf_xorner.hub import check_folder
from hf_xorner.hub.publish import MANIFEST, shelve, write_files

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


def read_folder(folder):
    """The content of the files in a folder, by their paths, without the manifest."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_folder_has_the_files_of_the_hub(checked, tmp_path):
    files = shelve(checked, tmp_path / "shelf" / "tagger")
    there = read_folder(tmp_path / "shelf" / "tagger")
    assert there == {
        name: content for name, content in read_folder(checked.folder).items() if name != "training_args.bin"
    }
    assert [file.name for file in files] == sorted(there)
    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["tagger"]
    ner = pipeline("ner", model=str(tmp_path / "shelf" / "tagger"))
    assert ner(TEXT) == pipeline("ner", model=str(checked.folder))(TEXT)


def test_file_permissions_follow_the_umask(checked, tmp_path):
    shelve(checked, tmp_path / "tagger")
    mask = os.umask(0)
    os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "tagger").iterdir()} == {0o666 & ~mask}


def test_without_weights_code_is_left_out(checked, tmp_path):
    files = shelve(checked, tmp_path / "tagger", weights=False)
    names = {"README.md", "config.json", "learning_curve.png", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in files} == set(read_folder(tmp_path / "tagger")) == names
    assert AutoConfig.from_pretrained(tmp_path / "tagger").model_type == "grn"
    assert AutoTokenizer.from_pretrained(tmp_path / "tagger").tokenize(TEXT) == TEXT.split()


def test_a_folder_that_exists_is_refused_unless_overwritten(checked, tmp_path):
    (tmp_path / "tagger").mkdir()
    with pytest.raises(ValueError, match=r"tagger exists; .* --overwrite true\.$"):
        shelve(checked, tmp_path / "tagger")
    assert read_folder(tmp_path / "tagger") == {}
    shelve(checked, tmp_path / "tagger", overwrite=True)
    assert "config.json" in read_folder(tmp_path / "tagger")


def test_overwriting_replaces_own_files_and_keeps_all_others(checked, tmp_path):
    target = tmp_path / "tagger"
    shelve(checked, target)
    (target / "mine").mkdir()
    (target / "mine" / "notes.txt").write_text("mine")
    (target / ".hidden").write_text("mine")
    shelve(checked, target, weights=False, overwrite=True)
    own = {"README.md", "config.json", "learning_curve.png", "tokenizer.json", "tokenizer_config.json"}
    assert read_folder(target).keys() == own | {"mine/notes.txt", ".hidden"}
    assert not [path for path in target.iterdir() if path.name.startswith(".hf_xorner-")]
    shelve(checked, target, overwrite=True)
    assert read_folder(target).keys() == read_folder(checked.folder).keys() - {"training_args.bin"} | {
        "mine/notes.txt",
        ".hidden",
    }


def test_the_manifest_is_readable_by_sha256sum(checked, tmp_path):
    shelve(checked, tmp_path / "tagger")
    lines = (tmp_path / "tagger" / MANIFEST).read_text().splitlines()
    there = read_folder(tmp_path / "tagger").items()
    assert sorted(lines) == sorted(f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in there)
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "-c", "--strict", "--quiet", MANIFEST], cwd=tmp_path / "tagger", check=True)


@pytest.mark.parametrize("how", ["source", "parent", "inside", "link", "link to the parent"])
def test_overlapping_source_and_target_are_refused(checked, tmp_path, how):
    folder = shutil.copytree(checked.folder, tmp_path / "runs" / "tagger")
    (tmp_path / "runs" / "other.txt").write_text("mine")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "up").symlink_to(tmp_path / "runs")
    target = {
        "source": folder,
        "parent": tmp_path / "runs",
        "inside": folder / "copy",
        "link": tmp_path / "link",
        "link to the parent": tmp_path / "up",
    }[how]
    before = read_folder(tmp_path)
    with pytest.raises(ValueError, match=r"overlaps with the model's folder .*\.$"):
        shelve(checked._replace(folder=folder), target, overwrite=True)
    assert read_folder(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, how) for name in ("README.md", "plots/a.svg") for how in ("foreign", "changed", "folder", "link")),
        *(("plots/a.svg", how) for how in ("folder is a link", "folder is a file")),
    ],
)
def test_conflicting_user_files_are_refused(tmp_path, name, how):
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    files = {"README.md": "new", "plots/a.svg": "new"}
    path = target / name
    elsewhere.mkdir()
    (elsewhere / path.name).write_text("old")
    if how == "changed":
        write_files(target, dict.fromkeys(files, "old"), tmp_path / "model")
        path.write_text("mine")
    elif how == "folder":
        path.mkdir(parents=True)
    elif how.startswith("folder is"):
        target.mkdir()
        path.parent.symlink_to(elsewhere) if how.endswith("link") else path.parent.write_text("mine")
    else:
        path.parent.mkdir(parents=True)
        path.symlink_to(elsewhere / path.name) if how == "link" else path.write_text("mine")
    before = read_folder(tmp_path)
    with pytest.raises(ValueError, match=rf"target/{name} .*move .*\.$"):
        write_files(target, files, tmp_path / "model", overwrite=True)
    assert read_folder(tmp_path) == before


def test_identical_user_files_do_not_conflict(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "a.txt").write_text("same")
    write_files(tmp_path / "target", {"a.txt": "same", "b.txt": "new"}, tmp_path / "model", overwrite=True)
    assert read_folder(tmp_path / "target") == {"a.txt": b"same", "b.txt": b"new"}


@pytest.mark.parametrize(
    "manifest",
    [b"no hash", b"0" * 64 + b" x", b"\xff", b"0" * 64 + b"  ../secret.txt", b"0" * 64 + b"  /secret.txt"],
)
def test_an_invalid_manifest_is_refused(tmp_path, manifest):
    (tmp_path / "target").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    digest = hashlib.sha256(b"secret").hexdigest().encode()
    (tmp_path / "target" / MANIFEST).write_bytes(manifest.replace(b"0" * 64 + b"  ", digest + b"  "))
    with pytest.raises(ValueError, match=rf"{MANIFEST} is not a manifest"):
        write_files(tmp_path / "target", {"a.txt": "a"}, tmp_path / "model", overwrite=True)
    assert (tmp_path / "secret.txt").exists()


def test_edited_stale_files_are_kept(tmp_path):
    write_files(tmp_path / "target", {"a.txt": "a", "b.txt": "b"}, tmp_path / "model")
    (tmp_path / "target" / "b.txt").write_text("mine")
    write_files(tmp_path / "target", {"a.txt": "new"}, tmp_path / "model", overwrite=True)
    assert read_folder(tmp_path / "target") == {"a.txt": b"new", "b.txt": b"mine"}


OLD = {"README.md": "old card", "config.json": "old config", "handler.py": "old", "model.safetensors": "old weights"}
NEW = {"README.md": "new card", "config.json": "new config", "model.safetensors": "new weights", "plots/a.svg": "new"}


def encoded(files):
    return {name: text.encode() for name, text in files.items()}


@pytest.mark.parametrize("count", range(10))
def test_a_failed_rename_is_rolled_back(tmp_path, monkeypatch, count):
    target = tmp_path / "target"
    write_files(target, OLD, tmp_path / "model")
    (target / "notes.txt").write_text("mine")
    rename, calls = os.replace, []

    def fail(source, place):
        if len(calls) == count:
            calls.append(None)
            raise OSError(28, "No space left on device")
        calls.append(None)
        rename(source, place)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_files(target, NEW, tmp_path / "model", overwrite=True)
    kept = OLD if count < 9 else NEW
    assert read_folder(target) == encoded(kept) | {"notes.txt": b"mine"}
    monkeypatch.undo()
    write_files(target, NEW, tmp_path / "model", overwrite=True)
    assert read_folder(target) == encoded(NEW) | {"notes.txt": b"mine"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed half-way")
@pytest.mark.parametrize("count", range(11))
def test_a_killed_process_loses_no_files(tmp_path, count):
    """After any number of renames the user's file and both sets of files exist, and no mixture is a loadable model."""
    target = tmp_path / "target"
    write_files(target, OLD, tmp_path / "model")
    (target / "notes.txt").write_text("mine")
    if (child := os.fork()) == 0:
        rename, calls = os.replace, []

        def last(source, place):
            if len(calls) == count:
                os._exit(9)
            calls.append(None)
            rename(source, place)

        os.replace = last
        write_files(target, NEW, tmp_path / "model", overwrite=True)
        os._exit(0)
    assert (os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0) == (count == 10)
    there = read_folder(target)
    assert there["notes.txt"] == b"mine"
    inside = {path: content for path, content in there.items() if not path.startswith(".hf_xorner-")}
    if count < 10:
        assert {*encoded(OLD).values(), *encoded(NEW).values()} <= set(there.values())
    if "config.json" in inside:
        assert inside in ({**encoded(files), "notes.txt": b"mine"} for files in (OLD, NEW))
    write_files(target, NEW, tmp_path / "model", overwrite=True)
    inside = {path: content for path, content in read_folder(target).items() if not path.startswith(".hf_xorner-")}
    assert inside == encoded(NEW) | {"notes.txt": b"mine"}


def test_a_failed_copy_keeps_the_old_files(checked, tmp_path, monkeypatch):
    (tmp_path / "tagger").mkdir()
    (tmp_path / "tagger" / "mine").touch()
    copy = shutil.copyfile

    def fail(source, target):
        if source.name == "tokenizer.json":
            raise OSError(28, "No space left on device")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", fail)
    for name in ("tagger", "other"):
        with pytest.raises(OSError, match="No space left"):
            shelve(checked, tmp_path / name, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["tagger"]
    assert [path.name for path in (tmp_path / "tagger").iterdir()] == ["mine"]


def test_a_source_that_changes_after_the_check_is_refused(checked, tmp_path):
    folder = shutil.copytree(checked.folder, tmp_path / "source")
    (folder / "README.md").write_text("another card")
    with pytest.raises(ValueError, match=r"README\.md changed in .*source"):
        shelve(checked._replace(folder=folder), tmp_path / "tagger")
    assert not (tmp_path / "tagger").exists()


def test_a_target_that_is_a_file_is_refused(checked, tmp_path):
    (tmp_path / "tagger").write_text("mine")
    with pytest.raises(ValueError, match="tagger is a file; name a folder"):
        shelve(checked, tmp_path / "tagger", overwrite=True)
    assert (tmp_path / "tagger").read_text() == "mine"


def test_the_script_writes_the_folder(checked, script, tmp_path):
    code, out, errors = script("publish.py", checked.folder, "--to", "here", "--weights", "false")
    assert (code, errors) == (0, "")
    assert out.startswith("here: 5 files, ")
    assert out.endswith(" bytes, without weights, as the Hub would have it\n")
    for wrong in ([], ["--to", "there", "--repo_id", "me/tagger"]):
        code, out, errors = script("publish.py", checked.folder, *wrong)
        assert (code, out) == (1, "")
        assert errors.startswith("hf-xorner publish: say where the model goes")
    assert not (tmp_path / "there").exists()


def test_links_out_of_the_folder_are_refused(checked, script, tmp_path):
    folder = shutil.copytree(checked.folder, tmp_path / "source")
    (tmp_path / "key").write_text("private")
    (folder / "LICENSE").symlink_to(tmp_path / "key")
    for way in (["--to", "there"], ["--repo_id", "me/tagger", "--dry_run", "true"]):
        code, out, errors = script("publish.py", folder, *way)
        assert (code, out) == (1, "")
        assert errors.startswith("hf-xorner publish: LICENSE lies outside of ")
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
def test_the_script_refuses_options_that_do_not_apply(checked, script, tmp_path, way, useless, named):
    code, out, errors = script("publish.py", checked.folder, *way, *useless)
    assert (code, out) == (1, "")
    assert errors.startswith(f"hf-xorner publish: leave out {named}, of no use beside --")
    assert not (tmp_path / "there").exists()
