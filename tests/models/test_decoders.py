"""A constrained CRF decodes the best well-formed path, and its posterior is over well-formed paths alone."""

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import references as ref
import torch

from hf_xorner import TaggerConfig
from hf_xorner.models.decoders import CrfDecoder
from hf_xorner.models.tags import TagSpace

LABELS = ["O", "B-PER", "I-PER", "B-GOD"]
INNER = ref.inner_tags(LABELS)  # O B I E S of PER and S of GOD
LENGTHS = torch.tensor([4, 0, 1, 3, 2])


def well_formed(path):
    """Whether every word of the path is O or lies within a well-formed entity."""
    tags = [INNER[tag] for tag in path]
    covered = sum(last - first for _, first, last in ref.spans_strict(tags))
    return covered == sum(tag != "O" for tag in tags)


@torch.no_grad()
@pytest.mark.parametrize("seed", range(2))
def test_constrained_decoding_matches_enumeration_of_well_formed_paths(seed):
    torch.manual_seed(seed)
    decoder = CrfDecoder(TaggerConfig(constrain_transitions=True), TagSpace(LABELS)).double()
    for parameter in decoder.parameters():
        parameter.normal_()
    weights = [getattr(decoder, name).numpy() for name in ("transitions", "start", "end")]
    scores = 3 * torch.randn(len(LENGTHS), int(LENGTHS.max()), len(INNER), dtype=torch.float64)
    decoded = decoder.decode(scores, LENGTHS, scores)
    for row, length in enumerate(LENGTHS.tolist()):
        if length:
            paths, totals = oracle.all_paths(scores[row, :length].numpy(), *weights)
            possible = np.array([well_formed(path) for path in paths])
            paths, totals = paths[possible], totals[possible]
            shares = np.exp(totals - oracle.log_sum_exp(totals))
            marginals = [[shares[paths[:, t] == tag].sum() for tag in range(len(INNER))] for t in range(length)]
            assert decoded.path[row, :length].tolist() == paths[0].tolist()
            helpers.close(decoded.log_probs[row, :length].exp(), marginals, 1e-10)
