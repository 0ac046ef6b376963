"""Models built on the meta device, offloaded, dispatched or moved give unchanged results."""

import copy
from itertools import cycle

import helpers
import pytest
import tiny_encoders
import torch
from accelerate import cpu_offload, init_empty_weights, load_checkpoint_and_dispatch
from conftest import ARCHITECTURES, TAG_SCORING, build_model
from transformers import AutoModelForTokenClassification

from hf_xorner import WordCharTokenizer

OFFLOADABLE = [kind for kind in ARCHITECTURES if kind in TAG_SCORING]


def built(variant, tokenizer):
    fields = {"static_dim": 3} if variant == "lstm-crf" else {}
    return build_model(variant, tokenizer, **helpers.DECODERS["barred crf"], **fields)


def assert_computes_the_same(moved, model):
    batch = helpers.labelled_batch(model)
    output, expected = moved(**batch), model(**batch)
    assert output.logits.device.type == "cpu"
    torch.testing.assert_close(output.logits, expected.logits)
    torch.testing.assert_close(output.loss, expected.loss)


@pytest.mark.parametrize(("kind", "include_buffers"), list(zip(ARCHITECTURES, cycle([False, True]))))
def test_models_built_on_the_meta_device_can_be_loaded(kind, include_buffers, tokenizer, tmp_path):
    model = built(kind, tokenizer)
    model.save_pretrained(tmp_path)
    with init_empty_weights(include_buffers=include_buffers):
        empty = type(model)(copy.deepcopy(model.config))
    assert {parameter.device.type for parameter in empty.parameters()} == {"meta"}
    loaded = load_checkpoint_and_dispatch(empty, str(tmp_path / "model.safetensors"), device_map={"": "cpu"})
    assert_computes_the_same(loaded.eval(), model)


@pytest.mark.parametrize(("kind", "on_disk"), list(zip(OFFLOADABLE, cycle(["features", "decoder"]))))
def test_a_device_map_can_offload_any_part_of_a_model_that_can_be_saved(kind, on_disk, tokenizer, tmp_path):
    model = built(kind, tokenizer)
    model.save_pretrained(tmp_path / "model")
    placed = {part: "disk" if part == on_disk else "cpu" for part in ("features", "encoder", "classifier", "decoder")}
    loaded = AutoModelForTokenClassification.from_pretrained(
        tmp_path / "model", device_map=placed, offload_folder=tmp_path / "offloaded"
    )
    assert_computes_the_same(loaded, model)
    loaded.save_pretrained(tmp_path / "again")
    assert_computes_the_same(AutoModelForTokenClassification.from_pretrained(tmp_path / "again"), model)


def test_a_stack_lstm_refuses_to_be_offloaded(tokenizer):
    model = build_model("stack-lstm", tokenizer)
    batch = helpers.labelled_batch(model)
    with pytest.raises(ValueError, match="can be neither offloaded nor run on the meta device"):
        cpu_offload(model, torch.device("cpu"))(**batch)


def test_a_model_with_an_encoder_refuses_to_run_on_the_meta_device():
    pieces = tiny_encoders.pieces_of(tiny_encoders.bert_tokenizer())
    tokenizer = WordCharTokenizer.from_corpus([["Ann", "saw", "Oslo"]], pieces=pieces)
    fields = tiny_encoders.context_fields(tiny_encoders.bert(), pieces)
    model = build_model("bilstm-cnn", tokenizer, **fields).to("meta")
    batch = tokenizer("Ann saw", return_tensors="pt").to("meta")
    with pytest.raises(ValueError, match="does not run on the meta device"):
        model(**batch)
