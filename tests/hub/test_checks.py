"""The checks before publishing: which files are published, and which folders are refused."""

import json
import shutil

import pytest
from conftest import ARCHITECTURES, SENTENCES, build_model

from hf_xorner import Tagger
from hf_xorner.export.onnx import export_onnx
from hf_xorner.hub import check_folder
from hf_xorner.hub.checks import example_sentences

pytest_plugins = "fake_hub"

TEXT = " ".join(SENTENCES[0])


@pytest.fixture
def unloaded(monkeypatch):
    """Start no process; return the names of the files that it would have loaded."""
    loaded = []

    def run(code, folder, names, text):
        loaded.append(names)
        return json.dumps([[sentence, []] for sentence in json.loads(text)])

    monkeypatch.setattr("hf_xorner.hub.checks.run_without_package", run)
    return loaded


@pytest.mark.slow  # the start of Python and of transformers
def test_the_model_works_in_a_process_as_users_start_it(folder):
    ((sentence, entities),) = check_folder(folder).tagged
    assert sentence == TEXT
    assert entities == [[entity.label, entity.start, entity.end] for entity in Tagger.from_pretrained(folder)(TEXT)]


def test_a_model_that_does_not_work_without_the_package_is_refused(folder, forked_offline):
    (folder / "word_ids.py").unlink()
    with pytest.raises(ValueError, match="does not work in a process without this package"):
        check_folder(folder)


def test_only_the_files_of_the_model_are_published(folder, unloaded):
    names = sorted(path.name for path in folder.iterdir())
    assert check_folder(folder)[1:3] == (names, [])
    others = ["training_args.bin", "optimizer.pt", "notes.txt", "secret.py", "pytorch_model.bin", "trainer_state.json"]
    others += [".env", "model.pkl", "model.safetensors.bak", "requirements.txt"]
    for name in others:
        (folder / name).write_bytes(b"x")
    (folder / "checkpoint-7").mkdir()
    shutil.copyfile(folder / "model.safetensors", folder / "checkpoint-7" / "model.safetensors")
    (folder / "curve.png").write_bytes(b"x")
    checked = check_folder(folder)
    assert checked.names == sorted([*names, "curve.png"])
    assert checked.excluded == sorted([*others, "checkpoint-7/"])


def test_everything_that_an_architecture_saves_is_published(tokenizer, tmp_path, unloaded):
    for kind in ARCHITECTURES:
        Tagger(build_model(kind, tokenizer), tokenizer).save_pretrained(tmp_path / kind)
        assert check_folder(tmp_path / kind).names == sorted(path.name for path in (tmp_path / kind).iterdir())


def test_code_that_differs_is_not_run(folder, unloaded):
    for name in ("modeling_tagger.py", "handler.py"):
        with (folder / name).open("a") as file:
            file.write("print()\n")
        (folder / "requirements.txt").write_text("x")
        with pytest.raises(ValueError, match=rf"{name} differs from this version"):
            check_folder(folder)
        (folder / name).unlink()
    assert unloaded == []


def test_links_out_of_the_folder_are_refused(folder, unloaded, tmp_path):
    for name in ("LICENSE", "a.png", "config.json", "README.md", "tags.py"):
        elsewhere, path = tmp_path / name, folder / name
        content = path.read_bytes() if path.exists() else None
        elsewhere.write_bytes(content or b"private")
        path.unlink(missing_ok=True)
        path.symlink_to(elsewhere)
        with pytest.raises(ValueError, match=f"{name} is a link out of the folder"):
            check_folder(folder)
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    assert unloaded == []
    (tmp_path / "link").symlink_to(folder)
    (folder / "LICENSE").symlink_to("README.md")
    assert "LICENSE" in check_folder(tmp_path / "link").names


def test_a_folder_without_a_model_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=r"has no config\.json"):
            check_folder(folder)


def test_examples_are_those_of_the_card(folder):
    assert example_sentences(folder) == [TEXT]
    for header in ("license: mit", "widget: []", "widget: [Ann met Zeus.]"):
        (folder / "README.md").write_text(f"---\n{header}\n---\n")
        assert "Zorvan Quellmar" in example_sentences(folder)[0]
    for header in ("- a", "a: [", "model-index: [3]", "a: &x [1]\nb: [*x, *x]"):
        (folder / "README.md").write_text(f"---\n{header}\n---\n")
        with pytest.raises(ValueError, match=r"README\.md: the metadata cannot be read"):
            example_sentences(folder)


def test_an_export_is_published_if_it_finds_the_entities_of_the_model(folder, tokenizer, tmp_path, monkeypatch):
    tagger = Tagger.from_pretrained(folder, min_score=0)
    text = " ".join(SENTENCES[0])
    entities = [[entity.label, entity.start, entity.end] for entity in tagger(text)]
    assert entities
    monkeypatch.setattr("hf_xorner.hub.checks.run_without_package", lambda *_: json.dumps([[text, entities]]))
    with pytest.raises(ValueError, match=r"model\.onnx does not exist"):
        check_folder(folder, onnx=True)
    export_onnx(folder, folder)
    assert set(check_folder(folder, onnx=True).names) - set(check_folder(folder).names) == {
        "model.onnx",
        "onnx_tagger.py",
    }
    other = Tagger(build_model("cross-bilstm-cnn", tokenizer, seed=5), tokenizer)
    other.save_pretrained(tmp_path / "other")
    export_onnx(tmp_path / "other", tmp_path / "other")
    shutil.copyfile(tmp_path / "other" / "model.onnx", folder / "model.onnx")
    with pytest.raises(ValueError, match=r"model\.onnx finds other entities than the model"):
        check_folder(folder, onnx=True)
    (folder / "onnx_tagger.py").write_text("print()")
    with pytest.raises(ValueError, match=r"onnx_tagger\.py differs from this version"):
        check_folder(folder, onnx=True)
