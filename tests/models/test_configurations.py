"""A config with a value that cannot work raises an error that names the field."""

import pytest
import tiny_encoders as tiny

from hf_xorner.registration import CONFIGS

ENCODER = {"context_encoder": tiny.bert().config.to_dict(), "context_layers": [1], "max_word_pieces": 5}
WRONG = [
    ("bilstm-cnn", {"decoder": "beam"}, "decoder='beam' is unknown to BiLstmCnnConfig; choose one of 'softmax', 'crf'"),
    ("bilstm-cnn", {"loss_reduction": "mean"}, "loss_reduction='mean'"),
    ("bilstm-cnn", {"malformed_spans": "keep"}, "malformed_spans='keep'"),
    ("bilstm-cnn", {"unknown_word": "zero"}, "unknown_word='zero'"),
    ("bilstm-cnn", {"dropout_masks": "word"}, "dropout_masks='word'"),
    ("bilstm-cnn", {"dropout": 1.0}, "dropout=1.0"),
    ("bilstm-cnn", {"char_types": "..U"}, "char_types has 3 letters for char_vocab_size=6"),
    ("bilstm-cnn", {"char_types": "..Uldx"}, "char_types may hold only the letters '.UldpNn'"),
    ("bilstm-cnn", {"max_word_chars": 2}, "max_word_chars=2"),
    ("bilstm-cnn", {"singleton_dropout": 1.5}, "singleton_dropout=1.5"),
    ("bilstm-cnn", {"vocab_size": 8, "trained_vocab_size": 99}, "trained_vocab_size=99 does not fit vocab_size=8"),
    ("bilstm-cnn", {"composed_dim": 3}, "build it with pieces="),
    ("bilstm-cnn", {**ENCODER, "max_word_pieces": 0}, "build it with pieces="),
    ("bilstm-cnn", {**ENCODER, "context_layers": []}, "context_layers=[]: the encoder has the layers 0 to 3"),
    ("bilstm-cnn", {**ENCODER, "context_layers": (1, 4)}, "context_layers=[1, 4]: the encoder has the layers 0 to 3"),
    ("bilstm-cnn", {**ENCODER, "context_layers": [-1]}, "context_layers=[-1]"),
    ("bilstm-cnn", {**ENCODER, "context_mix": "max"}, "context_mix='max'"),
    (
        "bilstm-cnn",
        {**ENCODER, "context_window": 10, "context_overlap": 8, "context_prefix": [2], "context_suffix": [3]},
        "context_overlap=8 must be smaller than the 8 pieces",
    ),
    ("bilstm-cnn", {**ENCODER, "context_overlap": -1}, "context_overlap=-1"),
    ("att-bilstm-cnn", {"attention_window": 8, "attention_overlap": 8}, "attention_overlap=8"),
    ("att-bilstm-cnn", {"attention_window": 8, "attention_overlap": -1}, "attention_overlap=-1"),
    ("att-bilstm-cnn", {"attention_initializer": "heads"}, "attention_initializer='heads'"),
    ("lstm-crf", {"cell": "peephole"}, "cell='peephole' is unknown to LstmCrfConfig"),
    ("lstm-crf", {"char_lstm_cell": "gru"}, "char_lstm_cell='gru'"),
    ("lstm-crf", {"char_features": "rnn"}, "char_features='rnn'"),
    ("lstm-crf", {"feature_dropout": 1.0}, "feature_dropout=1.0"),
    ("lstm-crf", {"crf_boundaries": "end"}, "crf_boundaries='end'"),
    ("lstm-crf", {"initializer": "zeros"}, "initializer='zeros'"),
    ("cnn-lstm-crf", {"encoder": "gru"}, "encoder='gru' is unknown to CnnLstmCrfConfig; choose one of 'lstm', 'rnn'"),
    ("cnn-lstm-crf", {"dropout": -0.1}, "dropout=-0.1"),
    ("cnn-lstm-crf", {"char_dropout": 1.5}, "char_dropout=1.5"),
    ("cnn-lstm-crf", {"char_activation": "relu"}, "char_activation='relu'"),
    ("cnn-lstm-crf", {"char_pads": "ones"}, "char_pads='ones'"),
    ("cnn-lstm-crf", {"char_windows": "centered"}, "char_windows='centered'"),
    ("cnn-lstm-crf", {"crf_boundaries": "none"}, 'crf_emissions=False needs crf_boundaries="start" or "both"'),
    ("grn", {"char_widths": (3, 5)}, 'char_windows="centred" needs char_padding=2'),
    ("cnn-lstm-crf", {"attention_overlap": 512}, "attention_overlap=512 must be smaller than attention_window=512"),
    ("cnn-lstm-crf", {"char_widths": (5, 9), "max_word_chars": 4}, "max_word_chars=4"),
    ("grn", {"relation": "attention"}, "relation='attention'"),
    ("grn", {"context_widths": (1, 4)}, "context_widths=(1, 4)"),
    ("grn", {"context_widths": (0,)}, "context_widths=(0,)"),
    ("grn", {"dropout": 1.0}, "dropout=1.0"),
    ("id-cnn", {"filter_width": 2}, "filter_width=2"),
    ("id-cnn", {"iterations": 0}, "iterations=0"),
    ("id-cnn", {"dilations": ()}, "dilations=()"),
    ("id-cnn", {"dilations": (1, 0)}, "dilations=(1, 0)"),
    ("id-cnn", {"dropout": -0.1}, "dropout=-0.1"),
    ("stack-lstm", {"composition": "mean"}, "composition='mean'"),
    ("stack-lstm", {"outside": "nothing"}, "outside='nothing'"),
    ("stack-lstm", {"outside": "word"}, 'outside="word" needs composition="guarded"'),
    ("stack-lstm", {"dropout": 1.0}, "dropout=1.0"),
    ("stack-lstm", {"num_hidden_layers": 0}, "num_hidden_layers=0"),
]


@pytest.mark.parametrize(("model_type", "fields", "fact"), WRONG)
def test_invalid_values_raise_and_name_the_field(model_type, fields, fact):
    with pytest.raises(ValueError) as error:
        CONFIGS[model_type](**fields)
    assert fact in str(error.value)
    assert "\n" not in str(error.value)
