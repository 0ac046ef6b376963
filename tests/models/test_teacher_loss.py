"""A teacher's pair posterior and the cross-entropy with it match enumeration of all paths, in value and gradient."""

import chain_oracle as oracle
import helpers
import numpy as np
import pytest
import torch
from conftest import LABELS, build_model, without_dropout
from test_crf import IDS, KINDS, LENGTHS, each_sentence, random_chain, way  # noqa: F401

from hf_xorner import TaggerConfig
from hf_xorner.models.crf import Chain, cross_entropy, pair_posterior
from hf_xorner.models.decoders import CrfDecoder, SoftmaxDecoder
from hf_xorner.models.tags import TagSpace

MODELS = [("cnn-lstm-crf", {}), ("cnn-lstm-crf", {"conditioned_transitions": False}), ("bilstm-cnn", {})]
MODELS += [("lstm-crf", {"constrain_transitions": True}), ("grn", {})]


def enumerated_pairs(sentence):
    """The probability of each pair of tags at each word, (T, K, K), over all paths."""
    paths, shares = oracle.probabilities(*sentence)
    time, tags = sentence[0].shape
    pairs = np.zeros((time, tags, tags))
    np.add.at(pairs[0, 0], paths[:, 0], shares)
    for t in range(1, time):
        np.add.at(pairs[t], (paths[:, t - 1], paths[:, t]), shares)
    return pairs


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_pair_posterior_matches_enumeration(kind):
    chain = random_chain(*kind)
    pairs = pair_posterior(chain, LENGTHS)
    for row, length, sentence in each_sentence(chain):
        helpers.close(pairs[row, :length], enumerated_pairs(sentence), 1e-10)
        assert not pairs[row, length:].any()
    assert not pairs[LENGTHS == 0].any()


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_cross_entropy_matches_enumeration(kind):
    name, tags, seed, barred = kind
    student, teacher = random_chain(name, tags, seed, barred), random_chain(name, tags, seed + 100, False)
    if barred:  # Paths that the student forbids have no share of the teacher.
        teacher = Chain(*(t.masked_fill(s == -torch.inf, -torch.inf) for t, s in zip(teacher, student, strict=True)))
    losses = cross_entropy(student, LENGTHS, pair_posterior(teacher, LENGTHS))
    for row, length, sentence in each_sentence(student):
        paths, shares = oracle.probabilities(*oracle.alone(teacher, row, length))
        total = oracle.log_sum_exp(oracle.all_paths(*sentence)[1])
        mean = sum(share * oracle.score_of(*sentence, path) for path, share in zip(paths, shares, strict=True))
        helpers.close(losses[row], total - mean, 1e-9)
    assert not losses[LENGTHS == 0].any()


def pairs_of(model, batch):
    """The pair posterior of a model for a batch padded on the right."""
    lengths = batch["attention_mask"].sum(1)
    with torch.no_grad():
        encoded = model.encode(batch["input_ids"], batch["char_ids"], lengths)
        return model.decoder.pair_posterior(model.score(encoded.states), lengths, encoded.states)


@pytest.fixture(params=MODELS, ids=str)
def student_and_teacher(request, tokenizer):
    variant, fields = request.param
    fields = without_dropout(variant) | fields
    return [build_model(variant, tokenizer, seed=seed, **fields).double() for seed in range(2)]


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_of_that_of_labels_and_that_of_the_teacher(student_and_teacher):
    student, teacher = student_and_teacher
    batch = helpers.labelled_batch(student)
    pairs = pairs_of(teacher, batch)
    of_labels, mixed, of_teacher = (
        student(**batch, teacher_pairs=pairs, teacher_weight=weight).loss for weight in (0.0, 0.25, 1.0)
    )
    helpers.close(of_labels, student(**batch).loss, 1e-9)
    helpers.close(mixed, 0.75 * of_labels + 0.25 * of_teacher, 1e-9)
    # Text without labels has the teacher's part alone.
    unlabelled = batch | {"labels": torch.full_like(batch["labels"], helpers.IGNORED)}
    helpers.close(student(**unlabelled, teacher_pairs=pairs, teacher_weight=1.0).loss, of_teacher, 1e-9)


def test_a_model_is_the_best_student_of_itself(student_and_teacher):
    model, _ = student_and_teacher
    batch = helpers.labelled_batch(model)
    model(**batch, teacher_pairs=pairs_of(model, batch), teacher_weight=1.0).loss.backward()
    assert all(weight.grad is None or weight.grad.abs().max() < 1e-8 for weight in model.parameters())


@pytest.mark.parametrize(
    "decoder", [SoftmaxDecoder(TaggerConfig()), CrfDecoder(TaggerConfig(), TagSpace(LABELS))], ids=repr
)
def test_padding_may_hold_nan(decoder):
    tags = TagSpace(LABELS).num_inner
    scores = torch.randn(2, 3, tags, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([3, 1])
    scores[1, 1:] = torch.nan
    scores.requires_grad_()
    if isinstance(decoder, CrfDecoder):
        decoder.reset_parameters()
    pairs = decoder.pair_posterior(torch.zeros_like(scores), lengths, scores)
    loss = decoder.cross_entropy(scores, pairs, lengths, scores)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert scores.grad.isfinite().all() and not scores.grad[1, 1:].any()


def test_stack_lstms_neither_teach_nor_learn(tokenizer):
    model = build_model("stack-lstm", tokenizer)
    batch = helpers.pad(helpers.random_sentences(model.config, (2,)), labels=True)
    with pytest.raises(ValueError, match="can be a teacher"):
        pairs_of(model, batch)
    pairs = torch.zeros(1, 2, model.tags.num_inner, model.tags.num_inner)
    with pytest.raises(ValueError, match="can learn from a teacher"):
        model(**batch, teacher_pairs=pairs)
