"""From scores to losses, paths and posteriors: what a decoder adds to the arithmetic of crf.py."""

from types import SimpleNamespace

import helpers
import numpy as np
import pytest
import references as ref
import torch

from hf_xorner.models.decoders import build_decoder
from hf_xorner.models.tags import IGNORED, TagSpace

LABELS = ["O", "B-PER", "I-PER", "B-GOD"]
INNER = ref.inner_tags(LABELS)  # O B I E S of PER and S of GOD
LENGTHS = torch.tensor([4, 0, 1, 3, 2])


def build(decoder="crf", constrained=False, seed=0, dtype=torch.float64):
    """A decoder with random weights, and scores for it."""
    config = SimpleNamespace(decoder=decoder, constrain_transitions=constrained)
    built = build_decoder(config, TagSpace(LABELS)).to(dtype)
    torch.manual_seed(seed)
    if decoder == "crf":
        built.reset_parameters()
        for parameter in built.parameters():
            torch.nn.init.normal_(parameter)
    return built, 3 * torch.randn(len(LENGTHS), int(LENGTHS.max()), len(INNER), dtype=dtype)


def chain_of(decoder):
    """The weights as the references want them, without regard to what is barred."""
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
    """What BIOES allows among all paths, and the scores of those paths."""
    paths, totals = ref.enumerate_paths(scores, *chain)
    possible = np.array([well_formed(path) for path in paths])
    return paths[possible], totals[possible]


def test_softmax_decides_word_by_word():
    decoder, scores = build("softmax")
    path, log_probs = decoder(scores, LENGTHS)
    for number, length, alone in sentences(scores):
        assert path[number, :length].tolist() == alone.argmax(-1).tolist()
        helpers.close(log_probs[number, :length], ref.softmax_log_probs(alone), 1e-12)


def test_softmax_loss_is_the_cross_entropy_of_the_labelled_words():
    decoder, scores = build("softmax")
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2])
    gold[:, 1] = IGNORED
    losses = decoder.negative_log_likelihood(scores, gold.masked_fill(after_the_end(gold), IGNORED), LENGTHS)
    for number, length, alone in sentences(scores):
        log_probs = ref.softmax_log_probs(alone)
        expected = -sum(log_probs[t, gold[number, t]] for t in range(length) if t != 1)
        helpers.close(losses[number], expected, 1e-12)
    assert losses[LENGTHS == 0].tolist() == [0]


def after_the_end(values):
    return torch.arange(values.shape[1]) >= LENGTHS.unsqueeze(1)


@pytest.mark.parametrize("seed", range(2))
def test_crf_decides_over_all_paths(seed):
    decoder, scores = build(seed=seed)
    path, log_probs = decoder(scores, LENGTHS)
    for number, length, alone in sentences(scores):
        assert path[number, :length].tolist() == ref.best_path(alone, *chain_of(decoder))
        helpers.close(log_probs[number, :length].exp(), ref.marginals(alone, *chain_of(decoder)), 1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_crf_loss_is_minus_the_log_likelihood(seed):
    decoder, scores = build(seed=seed)
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2])
    losses = decoder.negative_log_likelihood(scores, gold.masked_fill(after_the_end(gold), IGNORED), LENGTHS)
    for number, length, alone in sentences(scores):
        expected = -ref.log_likelihood(alone, *chain_of(decoder), gold[number, :length].tolist())
        helpers.close(losses[number], expected, 1e-10)
    assert losses[LENGTHS == 0].tolist() == [0]


@pytest.mark.parametrize("unlabelled", [[0], [1], [1, 2], [3], [0, 1, 2, 3]])
def test_crf_sums_over_the_tags_of_words_without_label(unlabelled):
    decoder, scores = build()
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2]).masked_fill_(
        torch.isin(torch.arange(scores.shape[1]), torch.tensor(unlabelled)), IGNORED
    )
    losses = decoder.negative_log_likelihood(scores, gold.masked_fill(after_the_end(gold), IGNORED), LENGTHS)
    for number, length, alone in sentences(scores):
        labels = gold[number, :length].numpy()
        allowed = (labels[:, None] == np.arange(len(INNER))) | (labels[:, None] == IGNORED)
        helpers.close(losses[number], -ref.log_likelihood_of_set(alone, *chain_of(decoder), allowed), 1e-10)


def test_gradients_of_the_loss_reach_every_weight_also_through_unlabelled_words():
    decoder, scores = build()
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2])
    gold[:, 1] = IGNORED
    gold = gold.masked_fill(after_the_end(gold), IGNORED)
    leaves = [scores.requires_grad_(), *decoder.parameters()]  # gradcheck moves the weights where they lie
    assert torch.autograd.gradcheck(lambda *_: decoder.negative_log_likelihood(scores, gold, LENGTHS), leaves)


@pytest.mark.parametrize("seed", range(2))
def test_barred_transitions_are_no_paths(seed):
    decoder, scores = build(constrained=True, seed=seed)
    path, log_probs = decoder(scores, LENGTHS)
    for number, length, alone in sentences(scores):
        paths, totals = possible_paths(alone, chain_of(decoder))
        shares = np.exp(totals - ref.log_sum_exp(totals))
        marginals = [[shares[paths[:, t] == tag].sum() for tag in range(len(INNER))] for t in range(length)]
        assert path[number, :length].tolist() == paths[np.argmax(totals)].tolist()
        helpers.close(log_probs[number, :length].exp(), marginals, 1e-10)


def test_the_loss_knows_what_is_barred():
    decoder, scores = build(constrained=True)
    for number, length, alone in sentences(scores):
        paths, totals = possible_paths(alone, chain_of(decoder))
        for gold, total in list(zip(paths, totals, strict=True))[:: max(1, len(paths) // 5)]:
            loss = decoder.negative_log_likelihood(
                scores[number : number + 1, :length], torch.from_numpy(gold)[None], LENGTHS[number : number + 1]
            )
            helpers.close(loss, [ref.log_sum_exp(totals) - total], 1e-8)


def test_barred_transitions_are_never_decoded_in_float32():
    decoder, _ = build(constrained=True, dtype=torch.float32)
    scores = 8 * torch.randn(400, 9, len(INNER))
    lengths = torch.randint(1, 10, (400,))
    path, log_probs = decoder(scores, lengths)
    assert all(well_formed(tags[:length]) for tags, length in zip(path.tolist(), lengths.tolist(), strict=True))
    helpers.close(log_probs.exp().sum(-1), np.ones(log_probs.shape[:2]), 1e-5)
    free, _ = build(constrained=False, dtype=torch.float32)
    assert not all(well_formed(tags) for tags in free(scores, lengths)[0].tolist())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_narrow_model_still_decodes_in_float32(dtype):
    decoder, scores = build(constrained=True, dtype=dtype)
    wide, _ = build(constrained=True, dtype=torch.float32)
    wide.load_state_dict(decoder.state_dict())
    scores = scores.float()
    gold = torch.zeros(scores.shape[:2], dtype=torch.long)
    assert torch.equal(decoder(scores, LENGTHS)[1], wide(scores, LENGTHS)[1])
    loss = decoder.negative_log_likelihood(scores, gold, LENGTHS)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, wide.negative_log_likelihood(scores, gold, LENGTHS))


def test_a_fresh_crf_has_no_preference():
    decoder, _ = build()
    decoder.reset_parameters()
    assert not any(parameter.any() for parameter in decoder.parameters())
