"""Greedy and beam search match exhaustive search, always finish, and turn actions into label probabilities."""

import itertools
import math

import helpers
import pytest
import references as ref
import torch
from test_stack_lstm import LABEL_SETS, LENGTHS, VARIANTS, build, labelled_batch, reference_of

from hf_xorner import Tagger
from hf_xorner.models.transition_decoder import search
from hf_xorner.models.transitions import NO_ACTION, TransitionSystem

EVERYTHING = 4000  # more hypotheses than there are sequences of actions


@pytest.fixture(params=VARIANTS)
def fields(request):
    return VARIANTS[request.param]


@pytest.fixture(params=LABEL_SETS)
def labels(request):
    return LABEL_SETS[request.param]


def words_of(model, lengths, seed=0):
    """Random vectors of words (B, T, d), in float64, and lengths (B,)."""
    torch.manual_seed(seed)
    words = torch.randn(len(lengths), max(lengths) + 1, model.encoder.output_size, dtype=torch.double)
    return words, torch.tensor(lengths)


def names_of(system, actions):
    """Actions (S,) as the reference names them."""
    names = [system.actions[action] for action in actions.tolist() if action != NO_ACTION]
    return [name.replace("REDUCE(", "REDUCE-").removesuffix(")") for name in names]


# Search


@torch.no_grad()
@pytest.mark.parametrize("seed", [0, 1])
def test_greedy_search_takes_the_best_action_at_every_step(tokenizer, fields, labels, seed):
    model = build(tokenizer, labels, seed, **fields).double()
    scorer, reference = model.decoder.scorer, reference_of(model)
    words, lengths = words_of(model, LENGTHS, seed)
    found = search(scorer, words, lengths)
    for row, length in enumerate(lengths.tolist()):
        actions, log_probs, _ = reference.greedy(words[row, :length])
        assert names_of(scorer.system, found.actions[row, 0]) == actions
        total = sum(choices[action].item() for choices, action in zip(log_probs, actions, strict=True))
        helpers.close(found.log_probs[row, 0], total, 1e-9)
        for values, choices in zip(found.alternatives[row], log_probs, strict=False):
            everything = [choices.get(name, -torch.inf) for name in reference.actions]
            helpers.close(values.exp(), torch.tensor(everything).exp().numpy(), 1e-7)


@torch.no_grad()
def test_the_test_models_use_every_action(tokenizer):
    counts = torch.zeros(5)
    for seed in (9, 10, 11):
        model = build(tokenizer, seed=seed).double()
        words, lengths = words_of(model, (12, 12, 12, 12), seed)
        found = search(model.decoder.scorer, words, lengths)
        counts += torch.bincount(found.actions[found.actions >= 0], minlength=5)
    assert (counts >= 5).all(), counts
    assert counts[0] > counts[2:].sum(), "some chunks have several words"


@torch.no_grad()
def test_stepwise_and_batched_scores_agree(tokenizer, fields):
    """Scores step by step, and in one batch along the sequences found."""
    model = build(tokenizer, **fields).double()
    words, lengths = words_of(model, LENGTHS)
    for size in (1, 3):
        found = search(model.decoder.scorer, words, lengths, size)
        for rank in range(size):
            log_probs, sentence, step = model.decoder.scorer(words, lengths, found.actions[:, rank])
            taken = log_probs.gather(1, found.actions[sentence, rank, step].unsqueeze(1)).squeeze(1)
            totals = torch.zeros(len(lengths), dtype=torch.double).index_add(0, sentence, taken)
            alive = found.log_probs[:, rank] > -torch.inf
            torch.testing.assert_close(totals[alive], found.log_probs[:, rank][alive], rtol=0, atol=1e-9)
            if rank == 0:
                torch.testing.assert_close(found.alternatives[sentence, step], log_probs, rtol=0, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("discontiguous", [False, True])
def test_an_exhaustive_beam_finds_all_sequences_in_order(tokenizer, labels, discontiguous):
    model = build(tokenizer, labels, discontiguous=discontiguous).double()
    scorer, reference = model.decoder.scorer, reference_of(model)
    words, lengths = words_of(model, (3, 0, 1, 2))
    found = search(scorer, words, lengths, EVERYTHING)
    for row, length in enumerate(lengths.tolist()):
        everything = sorted(reference.all_sequences(words[row, :length]), key=lambda sequence: -sequence[1])
        helpers.close(sum(math.exp(total) for _, total, _ in everything), 1.0, 1e-9)
        assert (found.log_probs[row] > -torch.inf).sum() == len(everything)
        for rank, (actions, total, _) in enumerate(everything[:50]):
            helpers.close(found.log_probs[row, rank], total, 1e-9)
            assert names_of(scorer.system, found.actions[row, rank]) == actions


@torch.no_grad()
def test_beam_search_matches_the_reference(tokenizer, labels):
    model = build(tokenizer, labels, seed=3).double()
    scorer, reference = model.decoder.scorer, reference_of(model)
    words, lengths = words_of(model, (6, 2, 4), seed=3)
    for size in (1, 2, 5):
        found = search(scorer, words, lengths, size)
        for row, length in enumerate(lengths.tolist()):
            beam = [(0.0, reference.initial(words[row, :length]), [])]
            while any(reference.valid(state) for _, state, _ in beam):
                beam = sorted(continued(reference, words[row, :length], beam), key=lambda entry: -entry[0])[:size]
            for rank, (total, _, actions) in enumerate(beam):
                helpers.close(found.log_probs[row, rank], total, 1e-9)
                assert names_of(scorer.system, found.actions[row, rank]) == actions


def continued(reference, words, beam):
    for total, state, actions in beam:
        if not reference.valid(state):
            yield total, state, actions
            continue
        for action, log_prob in reference.log_probs(state).items():
            yield total + log_prob.item(), reference.after(state, words, action), [*actions, action]


@torch.no_grad()
@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_search_ends_in_finished_states_for_any_length(tokenizer, fields, labels, beam_size, seed):
    model = build(tokenizer, labels, seed, beam_size=beam_size, **fields)
    words, lengths = words_of(model, (0, 1, 2, 60), seed)
    assert_finished(model, words.float(), lengths, beam_size)


@torch.no_grad()
@pytest.mark.parametrize("liked", ["SHIFT", "OUT", "REDUCE(LOC)"])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_search_over_two_thousand_words_ends_in_a_finished_state(tokenizer, liked, beam_size):
    model = build(tokenizer, beam_size=beam_size)
    scorer = model.decoder.scorer
    scorer.classifier.bias[scorer.system.actions.index(liked)] = 50
    words, lengths = words_of(model, (2000, 1, 0))
    assert_finished(model, words.float(), lengths, beam_size)


def assert_finished(model, words, lengths, size):
    found = search(model.decoder.scorer, words, lengths, size)
    system: TransitionSystem = model.decoder.scorer.system
    actions = found.actions.flatten(0, 1)
    alive = (found.log_probs > -torch.inf).flatten()
    assert alive.view(-1, size)[:, 0].all()
    trace, length = system.trace(actions), lengths.repeat_interleave(size).unsqueeze(1)
    valid = system.valid(trace.position, trace.depth, length)
    there = actions >= 0
    assert valid[there].gather(1, actions[there].unsqueeze(1)).all()
    taken = (actions == 0) | (actions == 1)
    assert torch.equal(taken.sum(1)[alive], length.squeeze(1)[alive])
    opened = torch.where(actions == 0, 1, 0).cumsum(1) if actions.shape[1] else actions
    closed = torch.where(actions >= 2, opened, 0)
    if actions.shape[1]:
        assert torch.equal(closed.amax(1)[alive], opened[alive, -1]), "words are left on the stack"
    assert (there.sum(1) <= 2 * length.squeeze(1)).all()


# Label probabilities


@torch.no_grad()
@pytest.mark.parametrize("beam_size", [1, 4])
def test_logits_are_log_probabilities_with_the_decoded_chunks_on_top(tokenizer, fields, labels, beam_size):
    model = build(tokenizer, labels, beam_size=beam_size, **fields).double()
    reference = reference_of(model)
    batch, _ = labelled_batch(model)
    lengths = batch["attention_mask"].sum(1)
    words = model.features(batch["input_ids"], batch["char_ids"])
    logits = model(**batch).logits
    found = search(model.decoder.scorer, words, lengths, beam_size)
    assert logits.isfinite().all()
    for row, length in enumerate(lengths.tolist()):
        state = reference.initial(words[row, :length])
        for action in names_of(model.decoder.scorer.system, found.actions[row, 0]):
            state = reference.after(state, words[row, :length], action)
        decoded = reference.tags(parts(state.chunks), length)
        assert [labels[label] for label in logits[row, :length].argmax(-1)] == decoded
        # Except for the margin that puts the decoded label on top.
        assert logits[row, :length].exp().sum(-1).max() <= 1 + 1e-9 if length else True


def parts(chunks):
    """Chunks without gaps: each part of one with gaps is one."""
    whole = []
    for kind, words in chunks:
        for _, group in itertools.groupby(enumerate(words), key=lambda pair: pair[1] - pair[0]):
            whole.append((kind, [word for _, word in group]))
    return whole


def local_posterior(reference, words):
    """Probability of every public label of each word along the greedy actions."""
    actions, log_probs, _ = reference.greedy(words)
    choices = [{name: value.exp().item() for name, value in row.items()} for row in log_probs]
    names = ["O", *(f"B-{kind}" for kind in reference.types)] if reference.chunked else reference.types
    told, depth, arrived = [], 0, None
    for step, (action, p) in enumerate(zip(actions, choices, strict=True)):
        if arrived is None:
            arrived = (p, depth > 0)  # actions that were valid when the word was first in the buffer
        if action.startswith("REDUCE"):
            depth = 0
            continue
        label = dict.fromkeys(reference.labels, 0.0)
        first, was_open = arrived
        end = next((later for later in range(step, len(actions)) if actions[later].startswith("REDUCE")), None)
        at_end = reductions(reference, choices[end]) if end is not None else {}
        closed = 1.0
        if was_open:
            kinds = at_end if depth else reductions(reference, first)  # still open: its type is decided at its end
            kinds = shares({kind: share for kind, share in kinds.items() if reference.many(kind)})
            for kind, share in kinds.items():
                label[f"I-{kind}"] += first.get("SHIFT", 0.0) * share
            if reference.chunked:
                label["O"] += first.get("OUT", 0.0)
            closed -= first.get("SHIFT", 0.0) + first.get("OUT", 0.0)
        if depth:  # the chunk continued, so the alternatives are unknown
            for name in names:
                label[name] += closed / len(names)
        else:
            if reference.chunked:
                label["O"] += closed * p.get("OUT", 0.0)
            kinds = at_end if action == "SHIFT" else dict.fromkeys(reference.types, 1 / len(reference.types))
            for kind, share in kinds.items():
                label[f"B-{kind}" if reference.chunked else kind] += closed * p.get("SHIFT", 0.0) * share
        told.append([label[name] for name in reference.labels])
        depth += action == "SHIFT"
        arrived = None
    return told


def reductions(reference, p):
    return shares({name.removeprefix("REDUCE-"): value for name, value in p.items() if name.startswith("REDUCE")})


def shares(weights):
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("discontiguous", [False, True])
def test_label_probabilities_match_the_local_posterior(tokenizer, labels, seed, discontiguous):
    model = build(tokenizer, labels, seed, discontiguous=discontiguous).double()
    reference = reference_of(model)
    words, lengths = words_of(model, LENGTHS, seed)
    decoded = model.decoder(None, lengths, words)
    probabilities = model.tags.to_public_log_probs(decoded.log_probs).exp()
    for row, length in enumerate(lengths.tolist()):
        if length:
            helpers.close(probabilities[row, :length], local_posterior(reference, words[row, :length]), 1e-9)
            helpers.close(probabilities[row, :length].sum(-1), torch.ones(length).numpy(), 1e-9)


@torch.no_grad()
def test_chunk_probabilities_are_products_of_their_actions(tokenizer, labels):
    model = build(tokenizer, labels, seed=1).double()
    reference = reference_of(model)
    words, lengths = words_of(model, LENGTHS, seed=1)
    log_probs = model.decoder(None, lengths, words).path_log_probs
    for row, length in enumerate(lengths.tolist()):
        actions, choices, chunks = reference.greedy(words[row, :length])
        done = iter([row[action].item() for row, action in zip(choices, actions, strict=True)])
        for kind, place in chunks:
            expected = sum(next(done) for _ in range(len(place) + bool(kind)))
            helpers.close(log_probs[row, place[0], 0] + log_probs[row, place[1:], 1].sum(), expected, 1e-9)


@torch.no_grad()
def test_an_exhaustive_beam_gives_exact_probabilities(tokenizer, labels):
    model = build(tokenizer, labels, seed=2, beam_size=EVERYTHING).double()
    reference = reference_of(model)
    words, lengths = words_of(model, (3, 1, 2), seed=2)
    decoded = model.decoder(None, lengths, words)
    probabilities = model.tags.to_public_log_probs(decoded.log_probs).exp()
    for row, length in enumerate(lengths.tolist()):
        everything = reference.all_sequences(words[row, :length])
        best = max(everything, key=lambda sequence: sequence[1])
        expected = torch.zeros(length, len(labels), dtype=torch.double)
        for _, total, chunks in everything:
            for word, tag in enumerate(reference.tags(chunks, length)):
                expected[word, labels.index(tag)] += math.exp(total)
        helpers.close(probabilities[row, :length], expected.numpy(), 1e-9)
        for kind, place in best[2]:
            with_it = sum(math.exp(total) for _, total, chunks in everything if (kind, place) in chunks)
            told = decoded.path_log_probs[row, place[0], 0] + decoded.path_log_probs[row, place[1:], 1].sum()
            helpers.close(told.exp(), with_it, 1e-9)


@torch.no_grad()
def test_a_small_beam_is_completed_by_the_local_posterior(tokenizer):
    model = build(tokenizer, seed=1, beam_size=2).double()
    words, lengths = words_of(model, (12,), seed=1)
    found = search(model.decoder.scorer, words, lengths, 2)
    narrow = model.decoder(None, lengths, words)
    probabilities = model.tags.to_public_log_probs(narrow.log_probs).exp()[0, :12]
    helpers.close(probabilities.sum(-1), torch.ones(12).numpy(), 1e-9)
    decoded = model.tags.to_public_path(narrow.path, torch.arange(13) < 12, repair=True)[:, :12]
    assert (probabilities.gather(1, decoded.T) >= found.log_probs[0, 0].exp()).all()


def test_tagger_finds_the_chunks_with_their_probabilities(tokenizer):
    model = build(tokenizer, seed=2)
    tagger = Tagger(model, tokenizer)
    sentences = [["Ann", "saw", "Zeus", "in", "New", "York"], ["Nobody"], ["@ann", "wrote", "Ann", "Smith", ":"]]
    found = list(tagger.tag(sentences))
    assert any(entity.word_end - entity.word_start > 1 for entities in found for entity in entities)
    reference = reference_of(model.double())
    for sentence, entities in zip(sentences, found, strict=True):
        batch = tokenizer([sentence], is_split_into_words=True, return_tensors="pt")
        words = model.features(batch["input_ids"], batch["char_ids"])[0].detach()
        actions, choices, chunks = reference.greedy(words)
        done = iter([row[action].item() for row, action in zip(choices, actions, strict=True)])
        sums = [sum(next(done) for _ in range(len(place) + bool(kind))) for kind, place in chunks]
        expected = [
            (kind, place[0], place[-1] + 1, math.exp(total))
            for (kind, place), total in zip(chunks, sums, strict=True)
            if kind
        ]
        assert len(entities) == len(expected)
        for entity, (kind, first, end, score) in zip(entities, expected, strict=True):
            assert (entity.label, entity.word_start, entity.word_end) == (kind, first, end)
            assert entity.score == pytest.approx(score, abs=1e-5)


# Batches, precision and export


@helpers.can_export
def test_a_model_with_a_beam_and_gaps_can_be_exported(tokenizer):
    model = build(tokenizer, beam_size=2, discontiguous=True)
    model.config.return_dict = False
    batch = helpers.pad(helpers.random_sentences(model.config, (3, 1, 2)))
    exported = torch.export.export(model, (), batch).module()
    word = batch["attention_mask"].bool()
    torch.testing.assert_close(exported(**batch)[0][word], model(**batch)[0][word])


def test_plain_labels_have_no_out_action(tokenizer):
    model = build(tokenizer, LABEL_SETS["plain"])
    batch, _ = labelled_batch(model)
    lengths = batch["attention_mask"].sum(1)
    found = search(model.decoder.scorer, model.features(batch["input_ids"], batch["char_ids"]), lengths)
    assert not (found.actions == 1).any()
    assert not ref.is_chunked(model.config.labels)


def test_the_decoder_raises_without_states(tokenizer):
    model = build(tokenizer)
    _, lengths = words_of(model, (3, 1))
    with pytest.raises(ValueError, match="give the encoder's states"):
        model.decoder(None, lengths)
