"""The runtime of exported models: words like the tokenizer's, entities like Tagger's, a session of ONNX Runtime."""

import ast
import json
import random
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_encoders as tiny
import torch
import torch.nn.functional as F
from conftest import ARCHITECTURES, LABELS, SENTENCES, build_model, with_decoders
from random_texts import DECODERS, GIVEN, TEXTS, lively_model
from tokenizer_oracle import GIVEN as ODD_GIVEN
from tokenizer_oracle import TEXTS as ODD_TEXTS
from tokenizers import AddedToken

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.export.bundle import runtime_code
from hf_xorner.export.runtime import OnnxTagger, read_lookup

ALL_OUTPUTS = ("labels", "probabilities", "path_log_probs")


# --- Words -----------------------------------------------------------------------------------------------------------

OPTIONS = {
    "lower": {"casing": "lower", "max_word_chars": 5},
    "zero": {"digits": "zero", "fallback": ["lower"], "max_word_chars": 3, "min_char_count": 2},
    "wordpiece": {"pieces": tiny.pieces_of(tiny.bert_tokenizer()), "max_word_pieces": 3},
    "byte-level": {"pieces": tiny.pieces_of(tiny.roberta_tokenizer()), "max_word_pieces": 12},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_saved_tokenizer_gives_the_same_words_without_transformers(name, tmp_path):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS[name])
    tokenizer.add_tokens(["zeus!", AddedToken("xx", lstrip=True, single_word=True), "İ"])
    tokenizer.save_pretrained(tmp_path)
    path = tmp_path / "tokenizer.json"  # may ask for padding and truncation
    content = json.loads(path.read_text(encoding="utf-8"))
    content["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    path.write_text(json.dumps(content), encoding="utf-8")
    lookup = read_lookup(tmp_path)
    for items, given_words in ((ODD_TEXTS, False), (ODD_GIVEN, True), ([tiny.ODD_WORDS], True), ([], False)):
        expected, found = tokenizer.words_of(items, given_words), lookup.words_of(items, given_words)
        for column, other in zip(found, expected, strict=True):
            assert np.array_equal(column, other)


# --- Entities --------------------------------------------------------------------------------------------------------


def _zeroed(values, mask):
    """Return the ids (B, T, …) of words as they are right-padded."""
    values[mask == 0] = 0
    return values


class TorchSession:
    """A model of PyTorch in place of a session of ONNX Runtime."""

    def __init__(self, model, *, char_width="chars", piece_width="pieces"):
        self.model = model
        batch = ["batch", "words"]
        self.shapes = {"input_ids": ["distinct"], "char_ids": ["distinct", char_width]}
        if model.config.max_word_pieces:
            self.shapes["piece_ids"] = ["distinct", piece_width]
        self.shapes |= {"word_index": batch, "attention_mask": batch}
        self.fed = []

    def get_inputs(self):
        return [SimpleNamespace(name=name, shape=shape) for name, shape in self.shapes.items()]

    def get_outputs(self):
        return [SimpleNamespace(name=name) for name in ALL_OUTPUTS]

    def get_providers(self):
        return ["TorchProvider"]

    @torch.inference_mode()
    def run(self, names, inputs):
        self.fed.append({name: values.shape for name, values in inputs.items()})
        assert inputs.keys() == self.shapes.keys()
        assert {values.dtype for values in inputs.values()} == {np.dtype(np.int64)}
        assert (np.diff(inputs["attention_mask"]) <= 0).all()  # right-padded
        tensors = {name: torch.from_numpy(values) for name, values in inputs.items()}
        mask, index = tensors.pop("attention_mask"), tensors.pop("word_index")
        assert len(tensors["input_ids"]) == len(index[mask == 1].unique())
        tensors = {name: _zeroed(values[index], mask) for name, values in tensors.items()}
        for name in ("char_ids", "piece_ids"):
            if name in tensors:
                width = self.model.config.max_word_chars if name == "char_ids" else self.model.config.max_word_pieces
                tensors[name] = F.pad(tensors[name], (0, width - tensors[name].shape[2]))
        output = self.model(**tensors, attention_mask=mask, output_path_log_probs=True)
        probability, label = output.logits.softmax(-1).max(-1)
        values = {"labels": label, "probabilities": probability, "path_log_probs": output.path_log_probs}
        return [values[name].numpy() for name in names]


def load(tokenizer, model, folder, threads=1, **options):
    """Return an OnnxTagger of a tokenizer, with a model of PyTorch."""
    tokenizer.save_pretrained(folder)
    session = TorchSession(model, **options)
    return OnnxTagger(session, read_lookup(folder), model.config.labels, threads)


def assert_same_entities(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.text == other.text
        assert [entity[:-1] for entity in one] == [entity[:-1] for entity in other]
        assert [entity.score for entity in one] == pytest.approx([entity.score for entity in other], abs=1e-5)


@pytest.fixture(scope="module", params=with_decoders(ARCHITECTURES, DECODERS), ids="-".join)
def taggers(request, tokenizer, tmp_path_factory):
    """An OnnxTagger and a Tagger of one model."""
    kind, decoder = request.param
    model = lively_model(kind, tokenizer, decoder)
    return load(tokenizer, model, tmp_path_factory.mktemp("tagger")), Tagger(model, tokenizer)


@pytest.mark.parametrize("batch_size", [1, 7, 128])
def test_entities_match_those_of_tagger(taggers, batch_size):
    tagger, reference = taggers
    items = [*TEXTS, *GIVEN, "", [], " ", ("Ann",), *ODD_TEXTS[:8]]
    random.Random(0).shuffle(items)
    expected = reference.tag(items)
    assert sum(map(len, expected)) > 20
    assert_same_entities(tagger.tag(items, batch_size), expected)
    assert_same_entities(list(tagger.stream(iter(items), batch_size)), expected)
    assert_same_entities([tagger(item) for item in items], expected)


def test_annotations_and_labels_match_those_of_tagger(taggers):
    tagger, reference = taggers
    for items in (TEXTS, GIVEN):
        for one, other in zip(tagger.annotate(items, 5), reference.annotate(items, 5), strict=True):
            assert np.array_equal(one.places, other.places)
            assert np.array_equal(one.labels, other.labels)
            assert_same_entities([one.entities], [other.entities])
    for one, other in zip(tagger.label(GIVEN, 5), reference.label(GIVEN, 5), strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], abs=1e-5)


@pytest.mark.parametrize("width", ["pieces", 12])
def test_pieces_are_fed_to_a_model_that_reads_them(tmp_path, width):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS["byte-level"])
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf", composed_dim=6)
    tagger = load(tokenizer, model, tmp_path, piece_width=width)
    for batch_size in (1, 5, 128):
        assert_same_entities(tagger.tag([*TEXTS, *GIVEN], batch_size), Tagger(model, tokenizer).tag([*TEXTS, *GIVEN]))
    tagger.session.fed.clear()
    sentences = [["Ann", "internationally"], ["x"], [""]]
    tagger.tag(sentences, 1)
    rows = [tokenizer(words, is_split_into_words=True)["piece_ids"] for words in sentences]
    most = [max(1, *(sum(piece != 0 for piece in row) for row in one)) for one in rows]
    assert most[0] > most[1]
    assert [shapes["piece_ids"][-1] for shapes in tagger.session.fed] == ([12] * 3 if width == 12 else most)


def test_pieces_are_not_fed_to_a_model_that_does_not_read_them(tmp_path):
    tokenizer = WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS["wordpiece"])
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf")
    tagger = load(tokenizer, model, tmp_path)
    del tagger.session.shapes["piece_ids"]
    tagger = OnnxTagger(tagger.session, tagger.tokenizer, LABELS)
    assert_same_entities(tagger.tag(TEXTS), Tagger(model, tokenizer).tag(TEXTS))
    assert all("piece_ids" not in shapes for shapes in tagger.session.fed)


@pytest.mark.parametrize("char_width", ["chars", None, 10])
def test_characters_are_cut_to_the_longest_word_unless_their_number_is_fixed(tokenizer, tmp_path, char_width):
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf")
    tagger = load(tokenizer, model, tmp_path, char_width=char_width)
    items = [["Ann", "saw", ""], [""], ["New York", "internationally"], ["me"]]
    assert_same_entities(tagger.tag(items, 1), Tagger(model, tokenizer).tag(items))
    widths = [shapes["char_ids"][1] for shapes in tagger.session.fed]
    assert widths == ([10] * 4 if char_width == 10 else [3, 10, 1, 2])


def test_batches_hold_sentences_of_similar_length_and_few_long_ones(tokenizer, tmp_path):
    tagger = load(tokenizer, build_model("bilstm-cnn", tokenizer), tmp_path)
    tagger.tag([["Ann"] * size for size in (1, 100, 2, 99, 3, 0, 500)], 4)
    shapes = [shapes["word_index"] for shapes in tagger.session.fed]
    assert shapes == [(1, 500), (1, 100), (1, 99), (3, 3)]
    assert {shapes["input_ids"] for shapes in tagger.session.fed} == {(1,)}


@pytest.mark.parametrize("least", [0.6, {"PER": 0.9, "LOC": 0.3}])
def test_entities_with_a_lower_score_are_left_out_as_by_tagger(tokenizer, tmp_path, least):
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf")
    tagger, reference = load(tokenizer, model, tmp_path), Tagger(model, tokenizer)
    expected = reference.tag(TEXTS, min_score=least)
    assert 0 < sum(map(len, expected)) < sum(map(len, reference.tag(TEXTS)))
    assert_same_entities(tagger.tag(TEXTS, min_score=least), expected)
    set_once = OnnxTagger(tagger.session, tagger.tokenizer, LABELS, min_score=least)
    assert_same_entities([set_once(text) for text in TEXTS], expected)


@pytest.mark.parametrize("threads", [2, 5])
def test_results_do_not_depend_on_threads(tokenizer, tmp_path, threads):
    model = lively_model("cross-bilstm-cnn", tokenizer, "crf")
    alone, together = load(tokenizer, model, tmp_path), load(tokenizer, model, tmp_path, threads)
    items = [*TEXTS, *GIVEN] * 4
    assert together.tag(items, 4) == alone.tag(items, 4)


def test_an_error_in_a_thread_is_raised(tokenizer, tmp_path, monkeypatch):
    tagger = load(tokenizer, build_model("bilstm-cnn", tokenizer), tmp_path, threads=2)
    monkeypatch.setattr(tagger, "score", lambda inputs, of_spans: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tagger.tag(TEXTS, 1)


# --- A session of ONNX Runtime ---------------------------------------------------------------------------------------


def stub_graph(path, *, pieces=0, char_width="chars", words="words", outputs=ALL_OUTPUTS):
    """Save a graph whose outputs are simple functions of word ids and of the sum of character ids."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    shape = ["batch", words]
    inputs = {"input_ids": ["distinct"], "char_ids": ["distinct", char_width]}
    inputs |= {"word_index": shape, "attention_mask": shape}
    if pieces:
        inputs["piece_ids"] = ["distinct", pieces]
    names = ["each_input_ids", "each_char_ids"]
    nodes = [
        *(helper.make_node("Gather", [name.removeprefix("each_"), "word_index"], [name]) for name in names),
        helper.make_node("Mod", [names[0], "count"], ["labels"]),
        helper.make_node("ReduceSum", [names[1], "last"], ["sums"], keepdims=0),
        helper.make_node("Cast", ["sums"], ["sum"], to=types.FLOAT),
        helper.make_node("Div", ["sum", "thousand"], ["probabilities"]),
        helper.make_node("Neg", ["probabilities"], ["negative"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=types.FLOAT),
        helper.make_node("Neg", ["mask"], ["minus_one"]),
        helper.make_node("Unsqueeze", ["negative", "last"], ["first_column"]),
        helper.make_node("Unsqueeze", ["minus_one", "last"], ["second_column"]),
        helper.make_node("Concat", ["first_column", "second_column"], ["path_log_probs"], axis=2),
    ]
    constants = [
        helper.make_tensor("count", types.INT64, [], [len(LABELS)]),
        helper.make_tensor("last", types.INT64, [1], [2]),
        helper.make_tensor("thousand", types.FLOAT, [], [1000.0]),
    ]
    given_outputs = {
        "labels": helper.make_tensor_value_info("labels", types.INT64, shape),
        "probabilities": helper.make_tensor_value_info("probabilities", types.FLOAT, shape),
        "path_log_probs": helper.make_tensor_value_info("path_log_probs", types.FLOAT, [*shape, 2]),
    }
    graph = helper.make_graph(
        nodes,
        "stub",
        [helper.make_tensor_value_info(name, types.INT64, size) for name, size in inputs.items()],
        [given_outputs[name] for name in outputs],
        constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


@pytest.fixture
def folder(tokenizer, tmp_path):
    """An exported folder with a stub in place of the model."""
    pytest.importorskip("onnxruntime")
    build_model("bilstm-cnn", tokenizer).config.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    stub_graph(tmp_path / "model.onnx")
    return tmp_path


@pytest.mark.parametrize("char_width", ["chars", 10])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_a_graph_is_run_on_batches_of_any_shape(folder, tokenizer, char_width, threads):
    stub_graph(folder / "model.onnx", char_width=char_width)
    tagger = OnnxTagger.from_pretrained(folder, threads=threads)
    for batch_size in (1, 3, 128):
        found = list(tagger.label(GIVEN, batch_size))
        for words, (labels, probabilities) in zip(GIVEN, found, strict=True):
            output = tokenizer(words, is_split_into_words=True)
            assert labels == [LABELS[index % len(LABELS)] for index in output["input_ids"]]
            assert probabilities == pytest.approx([sum(row) / 1000 for row in output["char_ids"]], abs=1e-6)
    for entities, words in zip(tagger.tag(GIVEN, 3), GIVEN, strict=True):
        sums = [sum(row) / 1000 for row in tokenizer(words, is_split_into_words=True)["char_ids"]]
        for entity in entities:
            assert entity.score == pytest.approx(
                np.exp(-sums[entity.word_start] - (entity.word_end - entity.word_start - 1)), abs=1e-6
            )


def test_representation_names_types_and_provider(folder):
    assert repr(OnnxTagger.from_pretrained(folder)) == "OnnxTagger(CPUExecutionProvider, types: PER, LOC, GOD)"


def test_the_config_may_hold_a_least_score(folder, caplog):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"min_score": 0.9}))
    assert OnnxTagger.from_pretrained(folder, min_score=0).min_score == 0
    assert not caplog.records
    assert OnnxTagger.from_pretrained(folder).min_score == 0.9
    assert "Entities with a score below 0.9 are left out" in caplog.text


def test_a_model_may_have_another_name(folder):
    (folder / "model.onnx").rename(folder / "small.onnx")
    assert OnnxTagger.from_pretrained(str(folder), "small.onnx").tag(TEXTS)


@pytest.mark.parametrize(
    "name", ["model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "piece_tokenizer.json"]
)
def test_a_missing_file_is_named(folder, name):
    WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS["wordpiece"]).save_pretrained(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"^{name} is missing in {folder}; .*\.$"):
        OnnxTagger.from_pretrained(folder)


@pytest.mark.parametrize(
    "name", ["model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "piece_tokenizer.json"]
)
@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"{}"])
def test_a_broken_file_is_named(folder, name, content):
    WordCharTokenizer.from_corpus(SENTENCES, **OPTIONS["wordpiece"]).save_pretrained(folder)
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)^(?=.*{name}).*; (copy it|export the model) again\.$"):
        OnnxTagger.from_pretrained(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"casing": None}, "lacks 'casing'"),
        ({"casing": "upper"}, "casing 'upper' is unknown"),
        ({"digits": "drop"}, "digits 'drop' is unknown"),
        ({"fallback": ["upper"]}, "fallback 'upper' is unknown"),
        ({"max_word_chars": "20"}, "lacks 'max_word_chars'"),
    ],
)
def test_broken_policies_are_named(folder, fields, message):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(ValueError, match=message):
        OnnxTagger.from_pretrained(folder)


@pytest.mark.parametrize("labels", [["O"], {"-1": "O", "0": "B-PER"}, {"1": "O"}, {"0": 1}], ids=str)
def test_labels_that_are_not_numbered_from_0_are_refused(folder, labels):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": labels}))
    with pytest.raises(ValueError, match=r"config\.json"):
        OnnxTagger.from_pretrained(folder)


@pytest.mark.parametrize(
    ("label", "probability", "message"),
    [
        (-1, 0.0, "labels that its config.json does not number"),
        (len(LABELS), 0.0, "labels that its config.json does not number"),
        (1, np.nan, "probabilities that are not numbers"),
    ],
)
def test_nonsense_of_a_graph_is_refused(folder, label, probability, message):
    tagger = OnnxTagger.from_pretrained(folder)

    def run(outputs, inputs):
        labels = np.full(inputs["word_index"].shape, label)
        width = (2,) if "path_log_probs" in outputs else ()
        return labels, np.full((*labels.shape, *width), probability, dtype=np.float32)

    tagger.session = SimpleNamespace(run=run)
    with pytest.raises(ValueError, match=message):
        tagger("Ann met Zeus")
    with pytest.raises(ValueError, match=message):
        list(tagger.label([["Ann"], ["Zeus", "met"]], 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"pieces": 3},
            r"reads .*, input_ids, piece_ids, word_index and its tokenizer gives .*, input_ids, word_index",
        ),
        ({"char_width": 20}, r"reads char_ids of shape \(distinct, 20\) and its tokenizer gives .*10\)"),
        ({"words": 8}, r"reads word_index of shape \(batch, 8\) and its tokenizer gives \(batch, words\)"),
        ({"outputs": ALL_OUTPUTS[:2]}, "gives no path_log_probs"),
    ],
)
def test_a_graph_that_does_not_fit_the_tokenizer_is_refused(folder, options, message):
    stub_graph(folder / "model.onnx", **options)
    with pytest.raises(ValueError, match=message):
        OnnxTagger.from_pretrained(folder)


@pytest.fixture(scope="module")
def tagger(tokenizer, tmp_path_factory):
    return load(tokenizer, build_model("bilstm-cnn", tokenizer), tmp_path_factory.mktemp("tagger"))


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (None, TypeError, "Text 40 is a NoneType"),
        (b"Ann", TypeError, "Text 40 is a bytes"),
        (["Ann", 3], ValueError, "list of words.*text 40"),
        (["Ann", ["Ann"]], ValueError, "list of words.*text 40"),
        ("Ann \ud800", ValueError, r"Text 40 holds a lone surrogate, U\+D800, at character 4"),
        (["Ann", "\ud800"], ValueError, "Text 40 holds a lone surrogate"),
    ],
)
def test_an_invalid_item_is_reported_by_its_position(tagger, item, error, message):
    with pytest.raises(error, match=message):
        tagger.tag([*(["Ann"] * 40), item, "Ann"], 1)


def test_calls_refuse_what_they_do_not_read(tagger):
    with pytest.raises(TypeError, match=r"tagger\(text\)"):
        tagger.tag("Ann Smith")
    with pytest.raises(TypeError, match="annotate"):
        tagger.annotate("Ann Smith")
    with pytest.raises(TypeError, match=r"label\(\) reads lists of words"):
        list(tagger.label(["Ann Smith"]))
    with pytest.raises(ValueError, match="batch_size=0"):
        tagger.tag(["Ann"], 0)
    with pytest.raises(ValueError, match="batch_size=0"):
        tagger.label([["Ann"]], 0)


# --- Alone -----------------------------------------------------------------------------------------------------------

NEEDED = {"numpy", "onnxruntime", "tokenizers"}


def test_the_file_imports_only_what_it_needs():
    tree = ast.parse(runtime_code())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any(node.level for node in imports)
    tops = {name.split(".")[0] for name in [*names, *(node.module for node in imports)]}
    assert tops - set(sys.stdlib_module_names) == NEEDED


def test_names_of_the_joined_modules_do_not_collide():
    nodes = [node for node in ast.parse(runtime_code()).body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [getattr(node, "name", None) or ast.unparse(getattr(node, "targets", [node])[0]) for node in nodes]
    assert len(set(names)) == len(names)


ALONE = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {"numpy", "onnxruntime", "tokenizers", "onnx_tagger"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
folder = sys.argv[1]
sys.path.insert(0, folder)
from onnx_tagger import OnnxTagger

tagger = OnnxTagger.from_pretrained(folder)
print(tagger(sys.argv[2]))
assert not {"torch", "transformers", "hf_xorner"} & sys.modules.keys()
"""


def test_a_copy_runs_where_nothing_else_is_installed(folder):
    (folder / "onnx_tagger.py").write_text(runtime_code(), encoding="utf-8")
    text = "Ann Smith met Zeus in New York ."
    command = [sys.executable, "-c", ALONE, folder, text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    expected = OnnxTagger.from_pretrained(folder)(text)
    assert expected
    assert done.stdout == f"{expected}\n"
