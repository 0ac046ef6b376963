"""Labels that change after a model was built: renamed where the weights fit, refused elsewhere."""

import helpers
import pytest
from conftest import LABELS, build_model
from transformers import AutoModelForTokenClassification

from hf_xorner.registration import CONFIGS, MODELS

RENAMED = ["O", "B-person", "I-person", "B-place", "I-place", "B-deity"]
PLAIN = ["NOUN", "VERB", "DET", "ADJ", "ADV", "X"]


def set_labels(model, labels):
    """Set the labels as transformers' run_ner.py does."""
    model.config.label2id = {label: index for index, label in enumerate(labels)}
    model.config.id2label = dict(enumerate(labels))


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_pure_renaming_changes_names_only(kind, tokenizer, tmp_path):
    model = build_model(kind, tokenizer)
    batch = helpers.labelled_batch(model)
    before = model(**batch)
    set_labels(model, RENAMED)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path)
    for tagger in (model, loaded):
        after = tagger(**batch)
        helpers.close(after.logits, before.logits.detach(), 1e-6)
        helpers.close(after.loss, before.loss.detach(), 1e-5)
        assert tagger.tags.labels == RENAMED
    assert model.label_axes() == loaded.label_axes()


@pytest.mark.parametrize(
    "labels",
    [["O", "B-LOC", "I-LOC", "B-PER", "I-PER", "B-GOD"], [*LABELS, "I-GOD"], LABELS[:5], PLAIN],
    ids=["swapped", "one more", "one less", "plain"],
)
@pytest.mark.parametrize("kind", ["cnn-lstm-crf", "stack-lstm"])
def test_other_labels_are_refused_and_can_be_loaded(kind, labels, tokenizer, tmp_path):
    model = build_model(kind, tokenizer)
    model.save_pretrained(tmp_path / "before")
    batch = helpers.labelled_batch(model)
    set_labels(model, labels)
    for use in (lambda: model(**batch), lambda: model.save_pretrained(tmp_path / "refused")):
        with pytest.raises(ValueError, match="ignore_mismatched_sizes=True"):
            use()
    assert not (tmp_path / "refused").exists()

    names = {"id2label": model.config.id2label, "label2id": model.config.label2id}
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path / "before", **names, ignore_mismatched_sizes=True)
    batch["labels"] = batch["labels"].clamp(max=len(labels) - 1)
    assert loaded(**batch).loss.isfinite()
    loaded.save_pretrained(tmp_path / "after")
    again = AutoModelForTokenClassification.from_pretrained(tmp_path / "after")
    assert again.config.labels == labels
    helpers.close(again(**batch).logits, loaded(**batch).logits.detach(), 1e-6)


def test_labels_given_in_loading_keep_their_numbers(tokenizer, tmp_path):
    build_model("cnn-lstm-crf", tokenizer).save_pretrained(tmp_path)
    load = AutoModelForTokenClassification.from_pretrained
    assert load(tmp_path, id2label=dict(enumerate(RENAMED))).tags.labels == RENAMED
    assert CONFIGS["bilstm-cnn"].from_dict({}, id2label={0: "O", 1: "B-X"}).labels == ["O", "B-X"]
    with pytest.raises(ValueError, match=r"the weights have B-LOC as label 3; .* option types"):
        load(tmp_path, id2label=dict(enumerate(["O", "B-LOC", "I-LOC", "B-PER", "I-PER", "B-GOD"])))


def test_a_model_of_a_config_without_labels(tokenizer, tmp_path):
    config = CONFIGS["bilstm-cnn"](**tokenizer.model_fields(), num_labels=len(LABELS), word_dim=4, hidden_size=4)
    model = MODELS["bilstm-cnn"].load()(config)
    set_labels(model, LABELS)
    with pytest.raises(ValueError, match="build it from a config with these labels"):
        model.save_pretrained(tmp_path / "refused")
    set_labels(model, PLAIN)
    model.save_pretrained(tmp_path)
    assert AutoModelForTokenClassification.from_pretrained(tmp_path).tags.labels == PLAIN
