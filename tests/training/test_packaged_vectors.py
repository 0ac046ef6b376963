"""`--vectors auto`: the vectors of English word pieces that the package has."""

import pytest
import runs
import torch

from hf_xorner import Tagger
from hf_xorner.training.arguments import parse
from hf_xorner.vectors.distill import START


def test_the_model_has_the_pieces_of_the_package(towns, tmp_path):
    run = runs.ready(towns, tmp_path / "out", model_type="bilstm-cnn", hidden_size=4, max_steps=1, vectors="auto")
    assert run.facts["inputs"]["vectors"]["name"] == START
    run.train()
    model, source = (Tagger.from_pretrained(name) for name in (tmp_path / "out", START))
    assert (model.model.config.composed_bits, model.model.config.word_dim) == (4, 0)
    words = [["Oslo", "unbelievably", "zeus", "isn't", "Qx7"]]
    vectors = [
        tagger.model.features.composed(tagger.tokenizer(words, is_split_into_words=True, return_tensors="pt").piece_ids)
        for tagger in (model, source)
    ]
    torch.testing.assert_close(*vectors)
    assert vectors[0].abs().sum(-1).min() > 0


def test_options_of_other_vectors_are_refused():
    for option, value in {"composed": "folder", "vectors_as": "tuned", "most_frequent_vectors": 10}.items():
        with pytest.raises(ValueError, match=f"{option} cannot be combined with vectors=auto"):
            parse(runs.words_of(vectors="auto", **{option: value}))
