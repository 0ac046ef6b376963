"""Decoders: losses, paths and posteriors from scores."""

from types import SimpleNamespace

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import reference_encoders
import references as ref
import torch

from hf_xorner.models.decoders import build_decoder
from hf_xorner.models.tags import TagSpace

LABELS = ["O", "B-PER", "I-PER", "B-GOD"]
INNER = ref.inner_tags(LABELS)  # O B I E S of PER and S of GOD
LENGTHS = torch.tensor([4, 0, 1, 3, 2])
STATE_SIZE = 3


def build(seed=0, constrained=False, conditioned=False, boundaries="both"):
    """A CRF with random weights, and scores for it."""
    config = SimpleNamespace(
        decoder="crf",
        constrain_transitions=constrained,
        conditioned_transitions=conditioned,
        crf_boundaries=boundaries,
        score_temperature=1.0,
        initializer="normal",
    )
    decoder = build_decoder(config, TagSpace(LABELS), STATE_SIZE).double()
    torch.manual_seed(seed)
    decoder.reset_parameters()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    return decoder, 3 * torch.randn(len(LENGTHS), int(LENGTHS.max()), len(INNER), dtype=torch.float64)


def encoder_states():
    generator = torch.Generator().manual_seed(5)
    return torch.randn(len(LENGTHS), int(LENGTHS.max()), STATE_SIZE, dtype=torch.float64, generator=generator)


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
    """All paths that BIOES allows, the best first, and their scores."""
    paths, totals = oracle.all_paths(scores, *chain)
    possible = np.array([well_formed(path) for path in paths])
    return paths[possible], totals[possible]


@pytest.mark.parametrize("seed", range(2))
def test_constrained_decoding_matches_enumeration_of_valid_paths(seed):
    decoder, scores = build(seed, constrained=True)
    path, log_probs, _ = decoder(scores, LENGTHS, encoder_states())
    for number, length, alone in sentences(scores):
        paths, totals = possible_paths(alone, chain_of(decoder))
        shares = np.exp(totals - oracle.log_sum_exp(totals))
        marginals = [[shares[paths[:, t] == tag].sum() for tag in range(len(INNER))] for t in range(length)]
        assert path[number, :length].tolist() == paths[0].tolist()
        helpers.close(log_probs[number, :length].exp(), marginals, 1e-10)


@pytest.mark.parametrize("boundaries", ["both", "start", "none"])
def test_conditioned_transitions_are_scored_from_the_words(boundaries):
    decoder, scores = build(conditioned=True, boundaries=boundaries)
    weights = {f"decoder.{name}": values.numpy() for name, values in decoder.state_dict().items()}
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2])
    decoded = decoder(scores, LENGTHS, encoder_states())
    losses = decoder.negative_log_likelihood(scores, gold, LENGTHS, encoder_states())
    for number, length, alone in sentences(scores):
        chain = reference_encoders.crf(weights, encoder_states()[number, :length].numpy())
        paths, shares = oracle.probabilities(alone, *chain)
        assert decoded.path[number, :length].tolist() == paths[0].tolist()
        helpers.close(decoded.log_probs[number, :length].exp(), oracle.counts(alone, *chain)[0], 1e-10)
        place = (paths == gold[number, :length].numpy()).all(1)
        helpers.close(losses[number], -np.log(shares[place].sum()), 1e-8)
    assert losses[LENGTHS == 0].tolist() == [0]
