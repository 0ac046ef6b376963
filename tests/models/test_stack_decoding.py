"""Greedy search takes the best actions, always finishes, and turns actions into label probabilities."""

import helpers
import pytest
import torch
from test_stack_lstm import LABEL_SETS, LENGTHS, VARIANTS, build, reference_of

from hf_xorner.models.modeling_stack_lstm import greedy_search
from hf_xorner.models.transitions import NO_ACTION, TransitionSystem


def words_of(model, lengths, seed=0):
    """Random vectors of words (B, T, d), in float64, and lengths (B,)."""
    torch.manual_seed(seed)
    words = torch.randn(len(lengths), max(lengths) + 1, model.encoder.output_size, dtype=torch.double)
    return words, torch.tensor(lengths)


def names_of(system, actions):
    """Actions (S,) as the reference names them."""
    names = [system.actions[action] for action in actions.tolist() if action != NO_ACTION]
    return [name.replace("REDUCE(", "REDUCE-").removesuffix(")") for name in names]


@torch.no_grad()
@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_greedy_search_takes_the_best_action_at_every_step(tokenizer, fields):
    for labels, seed in zip(LABEL_SETS.values(), range(3), strict=True):
        model = build(tokenizer, labels, seed, **fields).double()
        scorer, reference = model.decoder.scorer, reference_of(model)
        words, lengths = words_of(model, LENGTHS, seed)
        actions, log_probs = greedy_search(scorer, words, lengths)
        for row, length in enumerate(lengths.tolist()):
            expected, choices, _ = reference.greedy(words[row, :length])
            assert names_of(scorer.system, actions[row]) == expected
            for values, of_step in zip(log_probs[row], choices, strict=False):
                everything = [of_step.get(name, -torch.inf) for name in reference.actions]
                helpers.close(values.exp(), torch.tensor(everything).exp().numpy(), 1e-7)
        # Scores in one batch along these actions are the same.
        batched, sentence, step = scorer(words, lengths, actions)
        torch.testing.assert_close(log_probs[sentence, step], batched, rtol=0, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("liked", ["SHIFT", "OUT", "REDUCE(LOC)"])
def test_search_over_many_words_ends_in_a_finished_state(tokenizer, liked):
    model = build(tokenizer)
    scorer = model.decoder.scorer
    scorer.classifier.bias[scorer.system.actions.index(liked)] = 50
    words, lengths = words_of(model, (300, 1, 0))
    assert_finished(model, words.float(), lengths)


def assert_finished(model, words, lengths):
    actions, _ = greedy_search(model.decoder.scorer, words, lengths)
    system: TransitionSystem = model.decoder.scorer.system
    trace = system.trace(actions)
    valid = system.valid(trace.position, trace.depth, lengths.unsqueeze(1))
    present = actions >= 0
    assert valid[present].gather(1, actions[present].unsqueeze(1)).all()
    assert torch.equal(((actions == 0) | (actions == 1)).sum(1), lengths)
    opened = torch.where(actions == 0, 1, 0).cumsum(1)
    assert torch.equal(torch.where(actions >= 2, opened, 0).amax(1), opened[:, -1]), "words are left on the stack"


def local_posterior(reference, words):
    """Probability of every public label of each word along the greedy actions."""
    actions, log_probs, _ = reference.greedy(words)
    choices = [{name: value.exp().item() for name, value in row.items()} for row in log_probs]
    names = ["O", *(f"B-{kind}" for kind in reference.types)] if reference.chunked else reference.types
    of_words, depth, arrived = [], 0, None
    for step, (action, p) in enumerate(zip(actions, choices, strict=True)):
        if arrived is None:
            arrived = (p, depth > 0)  # actions that were valid when the word was first in the buffer
        if action.startswith("REDUCE"):
            depth = 0
            continue
        label = dict.fromkeys(reference.labels, 0.0)
        first, was_open = arrived
        end = next((later for later in range(step, len(actions)) if actions[later].startswith("REDUCE")), None)
        at_end = reductions(choices[end]) if end is not None else {}
        closed = 1.0
        if was_open:
            kinds = at_end if depth else reductions(first)  # still open: its type is decided at its end
            kinds = shares({kind: share for kind, share in kinds.items() if reference.many(kind)})
            for kind, share in kinds.items():
                label[f"I-{kind}"] += first.get("SHIFT", 0.0) * share
            closed -= first.get("SHIFT", 0.0)
        if depth:  # the chunk continued, so the alternatives are unknown
            for name in names:
                label[name] += closed / len(names)
        else:
            if reference.chunked:
                label["O"] += closed * p.get("OUT", 0.0)
            kinds = at_end if action == "SHIFT" else dict.fromkeys(reference.types, 1 / len(reference.types))
            for kind, share in kinds.items():
                label[f"B-{kind}" if reference.chunked else kind] += closed * p.get("SHIFT", 0.0) * share
        of_words.append([label[name] for name in reference.labels])
        depth += action == "SHIFT"
        arrived = None
    return of_words


def reductions(p):
    return shares({name.removeprefix("REDUCE-"): value for name, value in p.items() if name.startswith("REDUCE")})


def shares(weights):
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@torch.no_grad()
@pytest.mark.parametrize("labels", LABEL_SETS.values(), ids=LABEL_SETS)
def test_label_and_chunk_probabilities_are_those_of_the_actions(tokenizer, labels):
    for seed in range(3):
        model = build(tokenizer, labels, seed).double()
        reference = reference_of(model)
        words, lengths = words_of(model, LENGTHS, seed)
        decoded = model.decoder(None, lengths, words)
        probabilities = model.tags.to_public_log_probs(decoded.log_probs).exp()
        path = model.tags.to_public_path(decoded.path, torch.arange(words.shape[1]) < lengths.unsqueeze(1))
        for row, length in enumerate(lengths.tolist()):
            actions, choices, chunks = reference.greedy(words[row, :length])
            assert [labels[label] for label in path[row, :length]] == reference.tags(chunks, length)
            if length:
                helpers.close(probabilities[row, :length], local_posterior(reference, words[row, :length]), 1e-9)
                helpers.close(probabilities[row, :length].sum(-1), torch.ones(length).numpy(), 1e-9)
            done = iter([of_step[action].item() for of_step, action in zip(choices, actions, strict=True)])
            for kind, chunk in chunks:
                expected = sum(next(done) for _ in range(len(chunk) + bool(kind)))
                log_probs = decoded.path_log_probs[row]
                helpers.close(log_probs[chunk[0], 0] + log_probs[chunk[1:], 1].sum(), expected, 1e-9)
