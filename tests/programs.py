"""Parts that the transcriptions of the authors' programs share (models/test_program_*.py, reference_stack_lstm.py)."""

import references as ref
import torch

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TAGS = ref.inner_tags(LABELS)
SIZES = {"vocab_size": 12, "char_vocab_size": 15, "max_word_chars": 6, "word_dim": 5, "char_dim": 4, "char_filters": 3}
EXACT = {"rtol": 0, "atol": 1e-12}


def drawn(shapes, seed=0, scale=0.5):
    """Random weights by name, leaves of a graph."""
    generator = torch.Generator().manual_seed(seed)
    weights = {name: scale * torch.randn(*s, generator=generator, dtype=torch.float64) for name, s in shapes.items()}
    return {name: values.requires_grad_() for name, values in weights.items()}


def gradients_of(weights):
    """The gradients of weights by name."""
    return {name: torch.zeros_like(value) if value.grad is None else value.grad for name, value in weights.items()}


def carry(model, weights):
    """Set the weights of a model in float64; all must be given."""
    names = dict(model.double().named_parameters())
    assert weights.keys() == names.keys()
    with torch.no_grad():
        for name, values in weights.items():
            assert names[name].shape == values.shape, name
            names[name].copy_(values)
    return model


def assert_gradients_match(model, gradients):
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], msg=name, **EXACT)


def gold_tags(rows):
    """The numbers of the inner tags of sentences with labels."""
    return [[TAGS.index(tag) for tag in ref.to_inner([LABELS[label] for label in row["labels"]])] for row in rows]


def convolution(rows, kernel, bias, dilation=1):
    """Filters (F, width, d) centred on each of the rows (n, d), `dilation` apart, zeros beyond both ends: (n, F)."""
    width = kernel.shape[1]
    responses = []
    for centre in range(len(rows)):
        response = bias
        for offset in range(width):
            row = centre + (offset - width // 2) * dilation
            if 0 <= row < len(rows):
                response = response + kernel[:, offset] @ rows[row]
        responses.append(response)
    return torch.stack(responses)
