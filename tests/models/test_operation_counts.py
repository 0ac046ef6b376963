"""Operations of a batch of 32 sentences of 40 words, as a GPU runs them: the host that launches them is the limit.

Counted on the meta device, without views. The fused recurrence counts as one operation in each direction of the pass,
as it is one call of cuDNN.
"""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForTokenClassification

from hf_xorner.models import recurrent

SENTENCES, WORDS, CHARACTERS = 32, 40, 12
LABELS = ["O", *(f"{prefix}-{kind}" for kind in ("PER", "LOC", "ORG", "MISC") for prefix in "BI")]
VIEWS = {
    *("alias", "as_strided", "detach", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes"),
    *("squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "_unsafe_view", "lift_fresh"),
}

#: By architecture: tagging, and a training step with masks that the batch shares. A step of `lstm-crf` takes ten
#: operations for each word, as its cell with peepholes is not one of cuDNN's.
MOST = {
    "bilstm-cnn": (119, 235),
    "cross-bilstm-cnn": (120, 237),
    "att-bilstm-cnn": (141, 277),
    "cnn-lstm-crf": (147, 231),
    "grn": (180, 304),
    "id-cnn": (99, 200),
}


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))

    def number(self):
        return sum(count for name, count in self.names.items() if name not in VIEWS)


class FusedRecurrence(torch.autograd.Function):
    """Stands for cuDNN, which the meta device lacks: it would step through the words."""

    @staticmethod
    def forward(ctx, inputs, size, *weights):
        ctx.save_for_backward(inputs, *weights)
        return inputs.new_empty(*inputs.shape[:-1], size * (len(weights) // 4))

    @staticmethod
    def backward(ctx, gradient):
        inputs, *weights = ctx.saved_tensors
        sizes = [values.numel() for values in (inputs, *weights)]
        inputs, *weights = (
            part.view(values.shape)
            for part, values in zip(gradient.new_empty(sum(sizes)).split(sizes), (inputs, *weights), strict=True)
        )
        return inputs, None, *weights


@pytest.mark.parametrize("model_type", MOST)
def test_number_of_operations(model_type, monkeypatch):
    monkeypatch.setattr(
        recurrent,
        "fused_recurrence",
        lambda inputs, weights: FusedRecurrence.apply(inputs, weights[1].shape[1], *weights),
    )
    fields = {"vocab_size": 500, "char_vocab_size": 60, "max_word_chars": CHARACTERS}
    if "bilstm-cnn" in model_type:
        fields["dropout_masks"] = "batch"
    names = dict(enumerate(LABELS))
    config = AutoConfig.for_model(model_type, id2label=names, label2id={name: i for i, name in names.items()}, **fields)
    model = AutoModelForTokenClassification.from_config(config).to("meta").eval()
    words = torch.ones(SENTENCES, WORDS, dtype=torch.long, device="meta")
    batch = {"input_ids": words, "attention_mask": words, "char_ids": words.unsqueeze(2).expand(-1, -1, CHARACTERS)}
    with torch.no_grad():
        model(**batch)  # tables that are made once
        with Operations() as tagging:
            model(**batch)
    model.train()
    with Operations() as training:
        model(**batch, labels=words, num_items_in_batch=torch.tensor(8.0, device="meta")).loss.backward()
    assert tagging.number() <= MOST[model_type][0]
    assert training.number() <= MOST[model_type][1]
