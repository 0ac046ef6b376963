"""ONNX graphs give the labels and probabilities of PyTorch, for every architecture, decoder, length and batch."""

import json
import shutil
import sys
from itertools import cycle, product

import helpers
import numpy as np
import onnx
import onnxruntime
import pytest
import tiny_encoders as tiny
import torch
from conftest import ARCHITECTURES, REPOSITORY, SENTENCES, VARIANTS, build_model, in_turn

from hf_xorner import Tagger, WordCharTokenizer, load_corpus
from hf_xorner.cli import main
from hf_xorner.export.graph import Graph
from hf_xorner.export.onnx import export_onnx, onnx_model

BATCHES = ((1,), (3, 1, 2), (120, 7, 64), (5,) * 7)
OTHER_LABELS = {
    "plain": ["NOUN", "VERB", "X"],
    "single words only": ["O", "B-DAY", "B-PER"],
    "unordered": ["I-PER", "B-LOC", "O", "B-PER", "I-LOC", "B-GOD"],
}
BERT = tiny.pieces_of(tiny.bert_tokenizer())
WITH_PIECES = WordCharTokenizer.from_corpus(SENTENCES, pieces=BERT, max_word_pieces=3, max_word_chars=6)
WITH_VECTORS = WordCharTokenizer.from_corpus(SENTENCES, vector_words=["saw", "rome", "lima"], max_word_chars=10)
#: Fields of word features: name -> (tokenizer, architecture, fields).
FEATURES = {
    "frozen vectors and trained ones": (WITH_VECTORS, "bilstm-cnn", {"static_dim": 4}),
    "frozen vectors alone": (WITH_VECTORS, "bilstm-cnn", {"word_dim": 0, "static_dim": 4, "static_bits": 16}),
    "frozen vectors in 8 bits": (WITH_VECTORS, "lstm-crf", {"word_dim": 0, "static_dim": 4, "static_bits": 8}),
    "frozen vectors in 4 bits": (WITH_VECTORS, "grn", {"word_dim": 0, "static_dim": 5, "static_bits": 4}),
    "composed vectors in 4 bits": (WITH_PIECES, "lstm-crf", {"composed_dim": 5, "composed_bits": 4, "word_dim": 0}),
    "composed vectors in 8 bits": (WITH_PIECES, "grn", {"composed_dim": 5, "composed_bits": 8, "word_dim": 0}),
    "tuned vectors": (WITH_VECTORS, "lstm-crf", {"pretrained_words": True, "shape_dim": 3}),
    "composed vectors": (WITH_PIECES, "cross-bilstm-cnn", {"composed_dim": 5}),
    "half composed vectors": (WITH_PIECES, "id-cnn", {"composed_dim": 5, "composed_bits": 16, "word_dim": 0}),
    "pieces without use": (WITH_PIECES, "grn", {}),
}


def session_of(model, precision="fp32"):
    """Return an ONNX Runtime session of one thread for a tagger, or for what was exported of it."""
    exported = model if isinstance(model, onnx.ModelProto) else onnx_model(model, precision)
    onnx.checker.check_model(exported, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(exported.SerializeToString(), options, ["CPUExecutionProvider"])


def run(session, batch):
    """Run a batch of padded sentences, of which the graph reads the distinct words."""
    columns = {"input_ids": batch["input_ids"].unsqueeze(-1), "char_ids": batch["char_ids"]}
    if any(entry.name == "piece_ids" for entry in session.get_inputs()):
        columns["piece_ids"] = batch["piece_ids"]
    widths = [values.shape[-1] for values in columns.values()]
    rows, index = torch.cat([*columns.values()], -1).flatten(0, 1).unique(dim=0, return_inverse=True)
    inputs = dict(zip(columns, rows.split(widths, 1), strict=True))
    inputs |= {"input_ids": inputs["input_ids"].squeeze(1), "word_index": index.view(batch["input_ids"].shape)}
    inputs["attention_mask"] = batch["attention_mask"]
    return session.run(None, {name: values.numpy() for name, values in inputs.items()})


@torch.no_grad()
def expected(model, batch):
    """Return the labels and the path's log probabilities."""
    output = model(**batch, output_path_log_probs=True)
    return output.logits.argmax(-1).numpy(), output.path_log_probs.numpy()


def assert_equal(outputs, wanted, batch):
    words = batch["attention_mask"].bool().numpy()
    np.testing.assert_array_equal(outputs[0][words], wanted[0][words])
    np.testing.assert_allclose(outputs[1][words], wanted[1][words], rtol=1e-4, atol=1e-3)


def batch_of(model, lengths, seed=0):
    """Return random sentences; all words, and padding as well, have random pieces."""
    config, generator = model.config, torch.Generator().manual_seed(seed)
    batch = helpers.pad(helpers.random_sentences(config, lengths, seed))
    if config.max_word_pieces:
        shape = (*batch["input_ids"].shape, config.max_word_pieces)
        ids = torch.randint(1, config.piece_vocab_size + 1, shape, generator=generator)
        counts = torch.randint(0, config.max_word_pieces + 1, (*shape[:2], 1), generator=generator)
        batch["piece_ids"] = ids.masked_fill(torch.arange(config.max_word_pieces) >= counts, 0)
    return batch


def assert_graph_matches(model, batches=BATCHES, exported=None):
    session = session_of(exported or model)
    for seed, lengths in enumerate(batches):
        batch = batch_of(model, lengths, seed)
        assert_equal(run(session, batch), expected(model, batch), batch)
    return session


# --- Equal results ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "decoder"), in_turn(VARIANTS, helpers.DECODERS), ids=str)
def test_every_variant_and_decoder_matches_pytorch(kind, decoder, tokenizer):
    assert_graph_matches(build_model(kind, tokenizer, score_temperature=1.4, **helpers.DECODERS[decoder]))


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "grn all windows"])
def test_columns_behind_the_longest_word_can_be_cut_off(kind, tokenizer):
    model = build_model(kind, tokenizer)
    session = session_of(model)
    batch = batch_of(model, (6, 2))
    for longest in (1, 4):
        batch["char_ids"][..., longest:] = 0
        narrow = {**batch, "char_ids": batch["char_ids"][..., :longest]}
        assert_equal(run(session, narrow), expected(model, batch), batch)


@pytest.mark.parametrize(
    ("kind", "labels", "malformed_spans"),
    [
        (*pair, spans)
        for pair, spans in zip(
            product(["bilstm-cnn", "lstm-crf", "stack-lstm"], OTHER_LABELS), cycle(["drop", "repair"])
        )
    ],
    ids="-".join,
)
def test_every_kind_of_labels_matches_pytorch(kind, labels, malformed_spans, tokenizer):
    scheme = "iob2" if labels == "unordered" and kind != "stack-lstm" else "bioes"
    model = build_model(
        kind, tokenizer, labels=OTHER_LABELS[labels], malformed_spans=malformed_spans, tag_scheme=scheme
    )
    assert_graph_matches(model, ((1,), (40, 13, 2)))


@pytest.mark.parametrize("name", FEATURES)
def test_all_features_of_words_match_pytorch(name):
    tokenizer, kind, fields = FEATURES[name]
    model = build_model(kind, tokenizer, **fields)
    if model.features.static is not None:
        ids = torch.tensor(tokenizer.convert_tokens_to_ids(["saw", "rome", "lima"]))
        model.features.static.fill(ids, torch.arange(3.0 * model.config.static_dim).view(3, -1) / 8)
    if model.features.composed is not None:
        dim, generator = model.config.composed_dim, torch.Generator().manual_seed(1)
        shapes = (BERT.size, dim), (dim, 3 * dim), (dim,)
        model.features.composed.fill(*(2 * torch.randn(shape, generator=generator) for shape in shapes))
    session = assert_graph_matches(model, ((1,), (20, 5)))
    assert ("piece_ids" in [entry.name for entry in session.get_inputs()]) == bool(model.config.composed_dim)


@pytest.mark.parametrize("window", [3, 7])
def test_attention_in_windows_matches_pytorch(window, tokenizer):
    fields = {"attention_window": window, "attention_overlap": window // 2}
    assert_graph_matches(build_model("att-bilstm-cnn", tokenizer, **fields), ((1,), (7, 3), (60, 21, 22, 8, 1)))


@pytest.mark.parametrize("kind", ["lstm-crf", "cnn-lstm-crf"])
def test_huge_transition_scores_match_pytorch(kind, tokenizer):
    model = build_model(kind, tokenizer, decoder="crf", constrain_transitions=True)
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.mul_(200)
    assert_graph_matches(model, ((1,), (50, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["roberta", "bert", "gpt2"])
def test_contextual_models_match_pytorch(encoder):
    pieces = tiny.pieces_of(getattr(tiny, f"{encoder}_tokenizer")())
    tokenizer = WordCharTokenizer.from_corpus(tiny.SENTENCES, pieces=pieces, max_word_pieces=5, max_word_chars=6)
    model = build_model("grn", tokenizer, **tiny.context_fields(getattr(tiny, encoder)(), pieces))
    exported = onnx_model(model)
    assert_graph_matches(model, ((1,), (3, 1, 2), (40, 7, 24)), exported)
    assert b"site-packages" not in exported.SerializeToString()  # no paths of this machine


# --- Precisions ------------------------------------------------------------------------------------------------------


def test_weights_are_saved_in_eight_bits_by_rows():
    weight = torch.randn(40, 50, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 40).unsqueeze(1)
    graph = Graph("int8")
    outputs = {"all": (graph.weight(weight), "float32", [40, 50])}
    outputs["rows"] = (graph.rows(weight, graph.value([3, 39])), "float32", [2, 50])
    model = graph.model({}, outputs)
    assert len(model.SerializeToString()) < 2 * (40 * 50 + 40 * 4) + 1000
    whole, rows = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {})
    step = weight.abs().amax(1, keepdim=True).numpy() / 127
    assert (np.abs(whole - weight.numpy()) <= 0.501 * step).all()
    np.testing.assert_array_equal(rows, whole[[3, 39]])


@pytest.mark.parametrize(("precision", "share", "tolerance"), [("fp16", 0.55, 0.01), ("int8", 0.35, 0.1)])
@pytest.mark.parametrize("kind", ["cross-bilstm-cnn", "lstm-crf", "cnn-lstm-crf attention"])
def test_quantised_graphs_are_smaller_and_give_close_probabilities(kind, precision, share, tolerance, tokenizer):
    model = build_model(kind, tokenizer, hidden_size=64, spread=0.1)
    exact, small = onnx_model(model).ByteSize(), onnx_model(model, precision).ByteSize()
    nodes = sum(node.ByteSize() for node in onnx_model(model).graph.node)
    assert small - nodes < share * (exact - nodes) + 0.2 * nodes
    batch = batch_of(model, (30, 4))
    outputs, wanted = run(session_of(model, precision), batch), expected(model, batch)
    words = batch["attention_mask"].bool().numpy() & (outputs[0] == wanted[0])
    assert words.sum() >= 0.9 * 34
    assert np.abs(outputs[1] - wanted[1])[words].mean() < tolerance


# --- The command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tokenizer, tmp_path):
    """A saved model."""
    Tagger(build_model("lstm-crf", tokenizer), tokenizer).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_the_command_writes_graph_config_and_tokenizer(saved, tmp_path, capsys):
    output = tmp_path / "deep" / "onnx"
    main("export", [str(saved), "--output", str(output)])
    names = sorted(path.name for path in output.iterdir())
    assert [name for name in names if name != "onnx_tagger.py"] == [
        *("config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json")
    ]
    assert all(f"written: {output / name} (" in capsys.readouterr().out for name in names[:1])
    for name in ("config.json", "tokenizer.json"):
        assert json.loads((output / name).read_text()) == json.loads((saved / name).read_text())
    tagger = Tagger.from_pretrained(str(saved))
    batch = batch_of(tagger.model, (4, 2))
    session = onnxruntime.InferenceSession(output / "model.onnx")
    assert_equal(run(session, batch), expected(tagger.model, batch), batch)


def test_an_export_into_the_folder_of_the_model_leaves_its_files(saved):
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    export_onnx(str(saved), saved, "int8")
    after = {path.name: path.read_bytes() for path in saved.iterdir()}
    assert before.items() <= after.items()
    assert set(after) - set(before) <= {"model.onnx", "onnx_tagger.py"}


def test_an_export_into_the_folder_of_another_model_is_refused(saved, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="holds the weights of another model"):
        export_onnx(str(saved), shutil.copytree(saved, tmp_path / "other"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (tmp_path / "mine", "~/mine"):
        with pytest.raises(ValueError, match=r"mine.config\.json exists"):
            export_onnx(str(saved), folder)
    export_onnx(str(saved), tmp_path / "new")
    assert export_onnx(str(saved), tmp_path / "new", "int8")


def failure(arguments, capsys):
    """Return the one line that a failing command prints."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main("export", [str(argument) for argument in arguments])
    assert stop.value.code in (1, 2)
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_faults_are_one_sentence(saved, tmp_path, capsys):
    assert "--output is missing" in failure([saved], capsys)
    assert "int4" in failure([saved, "--output", tmp_path / "a", "--quantize", "int4"], capsys)
    assert "cannot be loaded" in failure([tmp_path / "nothing", "--output", tmp_path / "a"], capsys)
    assert not (tmp_path / "a").exists()


def test_a_missing_extra_is_named(saved, tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("hf_xorner.export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    line = failure([saved, "--output", tmp_path / "a"], capsys)
    assert "onnx" in line and line.endswith("; run: pip install 'hf_xorner[onnx]'")


# --- The shipped model -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_shipped_model_gives_the_labels_of_tagger_on_wnut17(corpora):
    tagger = Tagger.from_pretrained(str(REPOSITORY / "model_cards" / "english-ner-small"))
    sentences = load_corpus("wnut17", data_dir=str(corpora / "wnut17"))["test"]["tokens"]
    wanted = [annotation.labels for annotation in tagger.annotate(sentences)]
    words = tagger.tokenizer.words_of(sentences, True)
    names = np.array(tagger.model.config.labels)
    sizes = {}
    for precision, least in (("fp32", 1.0), ("fp16", 0.999), ("int8", 0.997)):
        exported = onnx_model(tagger.model, precision)
        session, sizes[precision] = session_of(exported), exported.ByteSize()
        labels_of_words = np.empty(len(words.row), dtype=names.dtype)
        for inputs, mask, index in tagger.batches(words, 64):
            labels = run(session, {**inputs, "attention_mask": mask.long()})[0]
            labels_of_words[index.numpy()] = names[labels[mask.numpy()]]
        assert np.mean(labels_of_words == np.concatenate(wanted)) >= least, precision
    # The vectors of words and pieces are in 4 bits in each of them, and the other weights were saved in 16.
    assert sizes["int8"] < sizes["fp16"] == sizes["fp32"] <= 10e6
