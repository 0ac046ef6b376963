"""Decoders: losses, paths and posteriors from scores."""

from types import SimpleNamespace

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import references as ref
import torch

from hf_xorner.models.decoders import build_decoder
from hf_xorner.models.tags import TagSpace

LABELS = ["O", "B-PER", "I-PER", "B-GOD"]
INNER = ref.inner_tags(LABELS)  # O B I E S of PER and S of GOD
LENGTHS = torch.tensor([4, 0, 1, 3, 2])
STATE_SIZE = 3


def build(
    decoder="crf", constrained=False, seed=0, dtype=torch.float64, conditioned=False, boundaries="both", temperature=1.0
):
    """A decoder with random weights, and scores for it."""
    config = SimpleNamespace(
        decoder=decoder,
        constrain_transitions=constrained,
        conditioned_transitions=conditioned,
        crf_boundaries=boundaries,
        score_temperature=temperature,
        initializer="normal",
    )
    built = build_decoder(config, TagSpace(LABELS), STATE_SIZE).to(dtype)
    torch.manual_seed(seed)
    if decoder == "crf":
        built.reset_parameters()
        for parameter in built.parameters():
            torch.nn.init.normal_(parameter)
    return built, 3 * torch.randn(len(LENGTHS), int(LENGTHS.max()), len(INNER), dtype=dtype)


def encoder_states(dtype=torch.float64):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(len(LENGTHS), int(LENGTHS.max()), STATE_SIZE, dtype=torch.float64, generator=generator).to(dtype)


def chain_of(decoder):
    """The weights in the form of the references, without constraints."""
    return [getattr(decoder, name).detach().double().numpy() for name in ("transitions", "start", "end")]


def sentences(scores):
    for number, length in enumerate(LENGTHS.tolist()):
        if length:
            yield number, length, scores[number, :length].detach().double().numpy()


def well_formed(path):
    """Whether every word of the path is O or lies within a well-formed entity."""
    tags = [INNER[tag] for tag in path]
    covered = sum(last - first for _, first, last in ref.spans_strict(tags))
    return covered == sum(tag != "O" for tag in tags)


def possible_paths(scores, chain):
    """All paths that BIOES allows, and their scores."""
    paths, totals = ref.enumerate_paths(scores, *chain)
    possible = np.array([well_formed(path) for path in paths])
    return paths[possible], totals[possible]


def after_the_end(values):
    return torch.arange(values.shape[1]) >= LENGTHS.unsqueeze(1)


@pytest.mark.parametrize("seed", range(2))
def test_constrained_decoding_matches_enumeration_of_valid_paths(seed):
    decoder, scores = build(constrained=True, seed=seed)
    path, log_probs, _ = decoder(scores, LENGTHS)
    for number, length, alone in sentences(scores):
        paths, totals = possible_paths(alone, chain_of(decoder))
        shares = np.exp(totals - ref.log_sum_exp(totals))
        marginals = [[shares[paths[:, t] == tag].sum() for tag in range(len(INNER))] for t in range(length)]
        assert path[number, :length].tolist() == paths[np.argmax(totals)].tolist()
        helpers.close(log_probs[number, :length].exp(), marginals, 1e-10)


def test_forbidden_transitions_are_never_decoded_in_float32():
    decoder, _ = build(constrained=True, dtype=torch.float32)
    scores = 8 * torch.randn(400, 9, len(INNER))
    lengths = torch.randint(1, 10, (400,))
    path, log_probs, _ = decoder(scores, lengths)
    assert all(well_formed(tags[:length]) for tags, length in zip(path.tolist(), lengths.tolist(), strict=True))
    helpers.close(log_probs.exp().sum(-1), np.ones(log_probs.shape[:2]), 1e-5)
    free, _ = build(constrained=False, dtype=torch.float32)
    assert not all(well_formed(tags) for tags in free(scores, lengths)[0].tolist())


# --- Transition scores ------------------------------------------------------------------------------------------------


def conditioned_chain(decoder, number, length, with_start=True, with_end=False):
    """ψ's bigram scores from the weights (ma2016, section 2.3): transitions (T, K, K), start and end."""
    size = len(INNER)
    states = encoder_states()[number, :length].numpy()
    weight, bias = (values.detach().double().numpy() for values in (decoder.pairs.weight, decoder.pairs.bias))
    transitions = np.zeros((length, size, size))
    for t in range(length):
        for before in range(size):
            for after in range(size):
                row = before * size + after
                transitions[t, before, after] = weight[row] @ states[t] + bias[row]
    start = end = np.zeros(size)
    if with_start:
        weight, bias = (values.detach().double().numpy() for values in (decoder.starts.weight, decoder.starts.bias))
        start = weight @ states[0] + bias
    if with_end:
        end = decoder.end.detach().double().numpy()
    return transitions, start, end


@pytest.mark.parametrize("boundaries", ["both", "start", "none"])
def test_conditioned_transitions_are_scored_from_the_words(boundaries):
    decoder, scores = build(conditioned=True, boundaries=boundaries)
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2])
    decoded = decoder(scores, LENGTHS, encoder_states())
    losses = decoder.negative_log_likelihood(scores, gold, LENGTHS, encoder_states())
    for number, length, alone in sentences(scores):
        chain = conditioned_chain(decoder, number, length, boundaries != "none", boundaries == "both")
        paths, shares = oracle.probabilities(alone, *chain)
        assert decoded.path[number, :length].tolist() == paths[0].tolist()
        helpers.close(decoded.log_probs[number, :length].exp(), oracle.counts(alone, *chain)[0], 1e-10)
        place = (paths == gold[number, :length].numpy()).all(1)
        helpers.close(losses[number], -np.log(shares[place].sum()), 1e-8)
    assert losses[LENGTHS == 0].tolist() == [0]
