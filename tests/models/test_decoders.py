"""Decoders: losses, paths and posteriors from scores."""

from types import SimpleNamespace

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import references as ref
import torch
from conftest import SENTENCES, build_model
from transformers import AutoModelForTokenClassification

from hf_xorner.models.decoders import build_decoder
from hf_xorner.models.tags import IGNORED, TagSpace

LABELS = ["O", "B-PER", "I-PER", "B-GOD"]
INNER = ref.inner_tags(LABELS)  # O B I E S of PER and S of GOD
LENGTHS = torch.tensor([4, 0, 1, 3, 2])
STATE_SIZE = 3


def build(decoder="crf", constrained=False, seed=0, dtype=torch.float64, conditioned=False, boundaries="both"):
    """A decoder with random weights, and scores for it."""
    config = SimpleNamespace(
        decoder=decoder,
        constrain_transitions=constrained,
        conditioned_transitions=conditioned,
        crf_boundaries=boundaries,
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


def test_softmax_decodes_each_word_independently():
    decoder, scores = build("softmax")
    path, log_probs, _ = decoder(scores, LENGTHS)
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
def test_constrained_decoding_matches_enumeration_of_valid_paths(seed):
    decoder, scores = build(constrained=True, seed=seed)
    path, log_probs, _ = decoder(scores, LENGTHS)
    for number, length, alone in sentences(scores):
        paths, totals = possible_paths(alone, chain_of(decoder))
        shares = np.exp(totals - ref.log_sum_exp(totals))
        marginals = [[shares[paths[:, t] == tag].sum() for tag in range(len(INNER))] for t in range(length)]
        assert path[number, :length].tolist() == paths[np.argmax(totals)].tolist()
        helpers.close(log_probs[number, :length].exp(), marginals, 1e-10)


def test_constrained_loss_sums_over_valid_paths_only():
    decoder, scores = build(constrained=True)
    for number, length, alone in sentences(scores):
        paths, totals = possible_paths(alone, chain_of(decoder))
        for gold, total in list(zip(paths, totals, strict=True))[:: max(1, len(paths) // 5)]:
            loss = decoder.negative_log_likelihood(
                scores[number : number + 1, :length], torch.from_numpy(gold)[None], LENGTHS[number : number + 1]
            )
            helpers.close(loss, [ref.log_sum_exp(totals) - total], 1e-8)


def test_forbidden_transitions_are_never_decoded_in_float32():
    decoder, _ = build(constrained=True, dtype=torch.float32)
    scores = 8 * torch.randn(400, 9, len(INNER))
    lengths = torch.randint(1, 10, (400,))
    path, log_probs, _ = decoder(scores, lengths)
    assert all(well_formed(tags[:length]) for tags, length in zip(path.tolist(), lengths.tolist(), strict=True))
    helpers.close(log_probs.exp().sum(-1), np.ones(log_probs.shape[:2]), 1e-5)
    free, _ = build(constrained=False, dtype=torch.float32)
    assert not all(well_formed(tags) for tags in free(scores, lengths)[0].tolist())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_models_decode_in_float32(dtype):
    decoder, scores = build(constrained=True, dtype=dtype)
    wide, _ = build(constrained=True, dtype=torch.float32)
    wide.load_state_dict(decoder.state_dict())
    scores = scores.float()
    gold = torch.zeros(scores.shape[:2], dtype=torch.long)
    for value, expected in zip(decoder(scores, LENGTHS), wide(scores, LENGTHS), strict=True):
        assert torch.equal(value, expected)
    loss = decoder.negative_log_likelihood(scores, gold, LENGTHS)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, wide.negative_log_likelihood(scores, gold, LENGTHS))


def test_a_new_crf_scores_all_transitions_equally():
    decoder, _ = build()
    decoder.reset_parameters()
    assert not any(parameter.any() for parameter in decoder.parameters())


# --- Transition scores ------------------------------------------------------------------------------------------------


def test_boundary_scores_are_configurable():
    names = {"transitions", "start", "end"}
    for boundaries, missing in (("both", set()), ("start", {"end"}), ("none", {"start", "end"})):
        decoder, scores = build(boundaries=boundaries)
        assert {name for name, _ in decoder.named_parameters()} == names - missing
        chain = [
            getattr(decoder, name) if name not in missing else torch.zeros(len(INNER)) for name in names_in_order()
        ]
        path, log_probs, _ = decoder(scores, LENGTHS)
        for number, length, alone in sentences(scores):
            weights = [weight.detach().double().numpy() for weight in chain]
            assert path[number, :length].tolist() == ref.best_path(alone, *weights)
            helpers.close(log_probs[number, :length].exp(), ref.marginals(alone, *weights), 1e-10)


def names_in_order():
    return "transitions", "start", "end"


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


def test_conditioned_transitions_pass_gradients_to_the_states():
    decoder, scores = build(conditioned=True)
    gold = torch.randint(0, len(INNER), LENGTHS.shape + scores.shape[1:2])
    gold[:, 2] = IGNORED
    states = encoder_states().requires_grad_()
    leaves = [scores.requires_grad_(), states, decoder.starts.weight, decoder.pairs.bias, decoder.end]
    assert torch.autograd.gradcheck(lambda *_: decoder.negative_log_likelihood(scores, gold, LENGTHS, states), leaves)


def test_forbidden_conditioned_transitions_are_never_decoded():
    decoder, scores = build(conditioned=True, constrained=True)
    path = decoder(scores, LENGTHS, encoder_states()).path
    assert all(well_formed(tags[:length]) for tags, length in zip(path.tolist(), LENGTHS.tolist(), strict=True))
    free, _ = build(conditioned=True)
    path = free(scores, LENGTHS, encoder_states()).path
    assert not all(well_formed(tags[:length]) for tags, length in zip(path.tolist(), LENGTHS.tolist(), strict=True))


def test_conditioned_transitions_require_states():
    decoder, scores = build(conditioned=True)
    with pytest.raises(ValueError, match="give the encoder's states as well"):
        decoder(scores, LENGTHS)


# --- Span probabilities -----------------------------------------------------------------------------------------------

EVERY = [("softmax", False), ("crf", False), ("crf", True)]


def chain_and_scores(kind, conditioned):
    """A decoder, scores, and the chain of each sentence for the oracle."""
    decoder, scores = build(kind, conditioned=conditioned)

    def chain(number, length):
        if conditioned:
            return conditioned_chain(decoder, number, length, with_end=True)
        size = len(INNER)
        return chain_of(decoder) if kind == "crf" else (np.zeros((size, size)), np.zeros(size), np.zeros(size))

    return decoder, scores, chain


@pytest.mark.parametrize(("kind", "conditioned"), EVERY)
def test_span_probabilities_match_enumeration_of_paths(kind, conditioned):
    decoder, scores, chain = chain_and_scores(kind, conditioned)
    decoded = decoder(scores, LENGTHS, encoder_states())
    spans = [
        (row, begin, end)
        for row, length in enumerate(LENGTHS.tolist())
        for end in range(1, length + 1)
        for begin in range(end)
    ]
    steps = decoded.path_log_probs
    for number, length, alone in sentences(scores):
        paths, shares = oracle.probabilities(alone, *chain(number, length))
        path = decoded.path[number, :length].numpy()
        for row, begin, end in spans:
            if row == number:
                expected = shares[(paths[:, begin:end] == path[begin:end]).all(1)].sum()
                added = steps[row, begin, 0] + steps[row, begin + 1 : end, 1].sum()
                helpers.close(added.exp(), expected, 1e-10)


@pytest.mark.parametrize(("kind", "conditioned"), EVERY)
def test_states_are_accepted_by_every_decoder_and_batches_may_be_empty(kind, conditioned):
    decoder, scores = build(kind, conditioned=conditioned)
    for rows, time in ((0, 4), (5, 0)):
        path = torch.zeros(rows, time, dtype=torch.long)
        states, lengths = encoder_states()[:rows, :time], LENGTHS[:rows].clamp(max=time)
        decoded = decoder(scores[:rows, :time], lengths, states)
        shapes = [tuple(value.shape) for value in decoded]
        assert shapes == [(rows, time), (rows, time, len(INNER)), (rows, time, 2)]
        loss = decoder.negative_log_likelihood(scores[:rows, :time], path, lengths, states)
        assert loss.tolist() == [0] * rows


# --- Saving -----------------------------------------------------------------------------------------------------------


#: Moves among O, B I E S of two types and S of a third one, and starts and ends, that BIOES does not allow: behind each
#: of the six tags that leave no chunk open the four I and E, behind each of the four others all but two; I, E; B, I.
BARRED = [6 * 4 + 4 * 8, 4, 4]


@pytest.mark.parametrize("conditioned", [False, True])
def test_transition_constraints_are_restored_after_loading(tokenizer, tmp_path, conditioned):
    """Constraints follow from the config and the labels; they are not stored with the weights."""
    fields = {"constrain_transitions": True, "conditioned_transitions": conditioned, "crf_boundaries": "start"}
    model = build_model("bilstm-cnn", tokenizer, decoder="crf", **fields)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path)
    for name, value in fields.items():
        assert getattr(loaded.config, name) == value
    for decoder in (model.decoder, loaded.decoder):
        states = torch.zeros(1, 2, model.encoder.output_size)
        _, transitions, start, end = decoder.chain(torch.zeros(1, 2, model.tags.num_inner), states)
        barred = [transitions.view(-1, *transitions.shape[-2:])[-1], start.view(-1, start.shape[-1])[0], end]
        assert [int((scores == -torch.inf).sum()) for scores in barred] == BARRED
    batch = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt")
    assert torch.equal(loaded(**batch).logits, model(**batch).logits)
