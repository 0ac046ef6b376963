"""Greedy search turns actions into label probabilities."""

import helpers
import pytest
import torch
from reference_stack_lstm import StackLstmProgram
from test_stack_lstm import LABEL_SETS, LENGTHS


def local_posterior(program, words):
    """Probability of every public label of each word along the greedy actions."""
    actions, log_probs, _ = program.parse(words)
    choices = [{name: value.exp().item() for name, value in row.items()} for row in log_probs]
    names = ["O", *(f"B-{kind}" for kind in program.types)] if program.chunked else program.types
    of_words, depth, arrived = [], 0, None
    for step, (action, p) in enumerate(zip(actions, choices, strict=True)):
        if arrived is None:
            arrived = (p, depth > 0)  # actions that were valid when the word was first in the buffer
        if action.startswith("REDUCE"):
            depth = 0
            continue
        label = dict.fromkeys(program.labels, 0.0)
        first, was_open = arrived
        end = next((later for later in range(step, len(actions)) if actions[later].startswith("REDUCE")), None)
        at_end = reductions(choices[end]) if end is not None else {}
        closed = 1.0
        if was_open:
            kinds = at_end if depth else reductions(first)  # still open: its type is decided at its end
            kinds = shares({kind: share for kind, share in kinds.items() if program.many(kind)})
            for kind, share in kinds.items():
                label[f"I-{kind}"] += first.get("SHIFT", 0.0) * share
            closed -= first.get("SHIFT", 0.0)
        if depth:  # the chunk continued, so the alternatives are unknown
            for name in names:
                label[name] += closed / len(names)
        else:
            if program.chunked:
                label["O"] += closed * p.get("OUT", 0.0)
            kinds = at_end if action == "SHIFT" else dict.fromkeys(program.types, 1 / len(program.types))
            for kind, share in kinds.items():
                label[f"B-{kind}" if program.chunked else kind] += closed * p.get("SHIFT", 0.0) * share
        of_words.append([label[name] for name in program.labels])
        depth += action == "SHIFT"
        arrived = None
    return of_words


def reductions(p):
    return shares({name[len("REDUCE(") : -1]: value for name, value in p.items() if name.startswith("REDUCE")})


def shares(weights):
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@torch.no_grad()
@pytest.mark.parametrize("labels", LABEL_SETS.values(), ids=LABEL_SETS)
def test_label_and_chunk_probabilities_are_those_of_the_actions(labels):
    lengths, longer = torch.tensor(LENGTHS), 0
    for seed in range(3):
        program = StackLstmProgram(labels, seed=seed)
        model = program.model()
        shape = (len(LENGTHS), max(LENGTHS) + 1, model.encoder.output_size)
        words = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
        decoded = model.decoder(None, lengths, words)
        probabilities = model.tags.to_public_log_probs(decoded.log_probs).exp()
        path = model.tags.to_public_path(decoded.path, torch.arange(words.shape[1]) < lengths.unsqueeze(1))
        for row, length in enumerate(LENGTHS):
            actions, choices, chunks = program.parse(words[row, :length])
            assert [labels[label] for label in path[row, :length]] == program.tags(chunks, length)
            if length:
                helpers.close(probabilities[row, :length], local_posterior(program, words[row, :length]), 1e-9)
                helpers.close(probabilities[row, :length].sum(-1), torch.ones(length).numpy(), 1e-9)
            done = iter([of_step[action].item() for of_step, action in zip(choices, actions, strict=True)])
            for kind, chunk in chunks:
                expected = sum(next(done) for _ in range(len(chunk) + bool(kind)))
                log_probs = decoded.path_log_probs[row]
                helpers.close(log_probs[chunk[0], 0] + log_probs[chunk[1:], 1].sum(), expected, 1e-9)
                longer += len(chunk) > 1
    assert longer > 5 or not any(map(program.many, program.types))
