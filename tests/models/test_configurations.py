"""A config with a value that cannot work raises an error that names the field."""

from typing import ClassVar

import pytest
import tiny_encoders as tiny

from hf_xorner import TaggerConfig
from hf_xorner.registration import CONFIGS

ENCODER = {"context_encoder": tiny.bert().config.to_dict(), "context_layers": [1], "max_word_pieces": 5}
WRONG = [
    ("bilstm-cnn", {"decoder": "beam"}, "decoder='beam' is unknown to BiLstmCnnConfig; choose one of 'softmax', 'crf'"),
    ("bilstm-cnn", {"hidden_size": "big"}, "hidden_size='big' must be from"),
    ("bilstm-cnn", {"char_widths": []}, "char_widths=[] must be"),
    ("bilstm-cnn", {"id2label": {1: "O", 2: "B-X"}}, "id2label has the ids [1, 2]; number the labels from 0"),
    ("bilstm-cnn", {"char_types": "..U"}, "char_types has 3 letters for char_vocab_size=6"),
    ("bilstm-cnn", {"composed_dim": 3}, "build it with pieces="),
    ("bilstm-cnn", {**ENCODER, "context_layers": []}, "context_layers=[]: the encoder has the layers 0 to 3"),
    ("bilstm-cnn", {**ENCODER, "context_layers": (1, 4)}, "context_layers=[1, 4]: the encoder has the layers 0 to 3"),
    (
        "bilstm-cnn",
        {**ENCODER, "context_window": 10, "context_overlap": 8, "context_prefix": [2], "context_suffix": [3]},
        "context_overlap=8 must be smaller than the 8 pieces",
    ),
    ("att-bilstm-cnn", {"attention_window": 8, "attention_overlap": 8}, "attention_overlap=8"),
    ("bilstm-cnn", {"dropout": None}, "dropout=None must be from"),
    ("bilstm-cnn", {"hidden_size": 100.0}, "hidden_size=100.0 must be from 1 to 16,384, and whole"),
    ("bilstm-cnn", {"casing_features": "false"}, "casing_features='false' must be true or false"),
    ("lstm-crf", {"cell": "peephole"}, "cell='peephole' is unknown to LstmCrfConfig"),
    ("cnn-lstm-crf", {"encoder": "gru"}, "encoder='gru' is unknown to CnnLstmCrfConfig; choose one of 'lstm', 'rnn'"),
    ("cnn-lstm-crf", {"crf_boundaries": "none"}, 'crf_emissions=False needs crf_boundaries="start" or "both"'),
    ("grn", {"relation": "attention"}, "relation='attention'"),
    ("grn", {"context_widths": (1, 4)}, "context_widths=(1, 4)"),
    ("id-cnn", {"dilations": (1, 0)}, "dilations=(1, 0)"),
    ("stack-lstm", {"tag_scheme": "iob2"}, "tag_scheme='iob2'"),
]


@pytest.mark.parametrize(("model_type", "fields", "fact"), WRONG)
def test_invalid_values_raise_and_name_the_field(model_type, fields, fact):
    with pytest.raises(ValueError) as error:
        CONFIGS[model_type](**fields)
    assert fact in str(error.value)
    assert "\n" not in str(error.value)


def test_a_config_class_declares_the_bounds_of_its_own_fields():
    class OwnConfig(TaggerConfig):
        model_type = "own"
        bounds: ClassVar = {"rank": (1, 8)}

        rank: int = 2
        alpha: float = 2.0  # without bounds

    assert OwnConfig(alpha=1e6).rank == 2
    for fields in ({"rank": 9}, {"rank": 2.0}, {"char_dropout": 1.0}):
        with pytest.raises(ValueError, match=f"{next(iter(fields))}=.* must be from"):
            OwnConfig(**fields)


def test_one_number_is_a_list_of_one():
    assert CONFIGS["grn"](char_widths=3, context_widths=5).context_widths == (5,)
