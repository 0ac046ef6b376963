"""Publishing the files of an export to ONNX: what is checked, and what is refused."""

import onnx
import pytest
from conftest import SENTENCES, build_model

from hf_xorner import Tagger
from hf_xorner.export.onnx import export_onnx
from hf_xorner.hub.checks import Unfit, check_folder
from hf_xorner.hub.publish import shelve

ADDED = {"model.onnx", "onnx_tagger.py"}


@pytest.fixture
def folder(tmp_path, tokenizer, monkeypatch):
    """A saved model with its export; what its users would find is asked of `Tagger`."""
    tagger = Tagger(build_model("cross-bilstm-cnn", tokenizer), tokenizer)
    tagger.save_pretrained(tmp_path / "model")
    export_onnx(tmp_path / "model", tmp_path / "model")

    def tag(folder, names, sentences):
        return [(text, [(one.label, one.start, one.end) for one in tagger(text)]) for text in sentences]

    monkeypatch.setattr("hf_xorner.hub.checks.tag_in_new_process", tag)
    monkeypatch.setattr("hf_xorner.hub.checks.INVENTED_SENTENCE", " ".join(SENTENCES[0]))
    assert tagger(" ".join(SENTENCES[0]))
    return tmp_path / "model"


def fault(folder):
    with pytest.raises(Unfit) as error:
        check_folder(folder, card=False, onnx=True)
    (only,) = str(error.value).splitlines()
    return only


def test_an_export_is_published_if_asked_for(folder, tmp_path):
    without, having = (check_folder(folder, card=False, onnx=onnx) for onnx in (False, True))
    names = [{file.name for file in checked.files} for checked in (without, having)]
    assert names[1] - names[0] == ADDED and names[0] < names[1]
    assert set(without.left) >= ADDED
    shelve(having, tmp_path / "shelf")
    assert (tmp_path / "shelf" / "model.onnx").read_bytes() == (folder / "model.onnx").read_bytes()


@pytest.mark.parametrize("name", sorted(ADDED))
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert f"has no {name}; write it by `hf-xorner export {folder}" in fault(folder)


def test_code_of_others_is_refused(folder):
    (folder / "onnx_tagger.py").write_text("print()")
    assert fault(folder).startswith("onnx_tagger.py is not the file of this version of the package")


def test_a_graph_of_another_model_is_refused(folder, tokenizer, tmp_path):
    other = Tagger(build_model("cross-bilstm-cnn", tokenizer, seed=5), tokenizer)
    other.save_pretrained(tmp_path / "other")
    export_onnx(tmp_path / "other", tmp_path / "other")
    (folder / "model.onnx").write_bytes((tmp_path / "other" / "model.onnx").read_bytes())
    assert fault(folder).startswith("model.onnx finds other entities than the model in")


def test_a_broken_graph_is_named(folder):
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Unfit, match=r"model\.onnx cannot be read"):
        check_folder(folder, card=False, onnx=True)


def test_a_path_of_the_machine_in_a_graph_is_found(folder):
    graph = onnx.load(folder / "model.onnx")
    graph.doc_string = "made in /home/ann/models"
    onnx.save(graph, folder / "model.onnx")
    assert fault(folder).startswith("model.onnx: /home/ann is a path of one machine")
