"""Models saved by version 0.1.0 load and give the same results.

`saved_models` has tiny models with random weights: every architecture, decoder and kind of word features, each with the
texts and words that were tagged, the entities and the logits. Do not write the files again: a change that breaks them
breaks published models.
"""

import json

import pytest
import torch
from conftest import ARCHITECTURES, REPOSITORY
from safetensors.torch import load_file

from hf_xorner import Tagger

FOLDERS = sorted((REPOSITORY / "tests" / "saved_models").iterdir())


def test_every_architecture_of_version_0_1_0_is_covered():
    kinds = {json.loads((folder / "config.json").read_text())["model_type"] for folder in FOLDERS}
    assert kinds <= set(ARCHITECTURES)
    assert len(kinds) == 8


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_saved_models_give_the_same_results(folder):
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    items, given = expected["items"], expected["given"]  # texts, then lists of words
    tagger = Tagger.from_pretrained(str(folder))
    found = [[list(entity[:6]) for entity in entities] for entities in tagger.tag(items)]
    assert found == [[entity[:6] for entity in entities] for entities in expected["entities"]]
    encoded = tagger.tokenizer(items[given:], is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = tagger.model(**encoded).logits
    torch.testing.assert_close(logits, load_file(folder / "expected.safetensors")["logits"], rtol=0, atol=1e-5)
