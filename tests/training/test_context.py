"""A pretrained encoder in a run: loaded once, cached if frozen, fine-tuned at its own learning rate if not."""

import copy
import json

import pytest
import runs
import tiny_encoders as tiny
import torch
from conftest import build_model
from safetensors.torch import load_file

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.corpora import DataError
from hf_xorner.models.contextual import ContextualFeatures
from hf_xorner.training.batches import CONTEXT_STATES, TaggingCollator
from hf_xorner.vectors.distill import compose, encoder_of, write_composition

TOWNS = ["Annaville", "Berta's", "Carl-a", "Doraville"]
RESTS = ["is far away", "has two bridges .", "burns", "\u200b saw İstanbul and [SEP] 12:30 , again and again and again"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of CoNLL columns, some sentences longer than a window."""
    folder = tmp_path_factory.mktemp("corpus")
    for split, size in (("train", 24), ("dev", 6), ("test", 5)):
        lines = []
        for number in range(size):
            words = [TOWNS[number % 4], *RESTS[number % 3 if number % 5 else 3].split(" ")]
            lines += [f"{word} {'O' if index else 'B-LOC'}" for index, word in enumerate(words)] + [""]
        (folder / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.save_encoder(tmp_path_factory.mktemp("encoder"), tiny.bert(max_position_embeddings=20))


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("composed")
    words = ["oslo", "rains", "annex", "zeus", "isn't"]
    write_composition(compose(words, encoder_of(tiny.bert(seed=7), tiny.bert_tokenizer()), 4), folder)
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def read(monkeypatch):
    """Sentences that an encoder has read."""
    numbers = []
    states = ContextualFeatures.states

    def counting(self, piece_ids):
        numbers.append(len(piece_ids))
        return states(self, piece_ids)

    monkeypatch.setattr(ContextualFeatures, "states", counting)
    return numbers


@pytest.fixture
def ready(corpus, encoder, tmp_path):
    """Prepare a run."""

    def prepared(*words, context=encoder, out="out"):
        options = {"model_type": "bilstm-cnn", "hidden_size": 8, "word_dim": 6, "num_train_epochs": 2}
        options |= {"per_device_train_batch_size": 4} | ({} if context is None else {"context": context})
        return runs.ready(corpus, tmp_path / out, *words, **options)

    return prepared


def frozen_parts(model):
    names = ("features.context.encoder.", "features.composed.")
    return {name: value.clone() for name, value in model.state_dict().items() if name.startswith(names)}


def same(first, second):
    assert first.keys() == second.keys() and first
    return all(torch.equal(value, second[name]) for name, value in first.items())


def test_the_config_follows_from_the_encoder(ready, encoder):
    run = ready()
    config, model = run.trainer.model.config, run.trainer.model
    assert config.context_encoder["model_type"] == "bert"
    assert list(config.context_layers) == [2, 3]
    # Two positions fewer than there are, a quarter of them shared.
    assert (config.context_window, config.context_overlap) == (18, 4)
    assert (list(config.context_prefix), list(config.context_suffix)) == ([2], [3])
    assert (config.max_word_pieces, config.piece_vocab_size) == (12, len(tiny.BERT_PIECES))
    saved = load_file(encoder / "model.safetensors")
    for name, value in model.features.context.encoder.state_dict().items():
        assert torch.equal(value, saved[name])
    assert str(encoder) not in json.dumps(config.to_dict())
    narrower = ready("--context_layers", "0", "--max_word_pieces", 3)
    config = narrower.trainer.model.config
    assert (list(config.context_layers), config.max_word_pieces) == ([0], 3)


def test_cached_states_match_uncached_states(ready):
    run = ready("--model_type", "att-bilstm-cnn", "--decoder", "crf")
    model, collate = run.trainer.model, run.trainer.data_collator
    for name, split in run.corpus.items():
        rows = list(split)
        # All of a split as it was encoded: bit by bit. In other company: as near as any batch is to another.
        for part, tolerance in ((rows, 0), (rows[:4], 1e-6), (rows[-1:], 1e-6)):
            cached = collate(part)
            uncached = {key: value for key, value in cached.items() if key != CONTEXT_STATES}
            for training in (False, True):
                model.train(training)
                torch.manual_seed(3)
                output = model(**cached)
                torch.manual_seed(3)
                expected = model(**uncached)
                torch.testing.assert_close(output.loss, expected.loss, rtol=0, atol=tolerance)
                if not training:
                    torch.testing.assert_close(output.logits, expected.logits, rtol=0, atol=tolerance, msg=name)


def test_states_in_bfloat16_are_near_those_in_float32(ready):
    exact, half = (ready(*options, out=f"out{len(options)}").corpus["train"] for options in ([], ["--bf16", "true"]))
    for row, other in zip(exact[CONTEXT_STATES], half[CONTEXT_STATES], strict=True):
        expected, found = (torch.frombuffer(bytearray(states), dtype=torch.float32) for states in (row, other))
        torch.testing.assert_close(found, expected, atol=0.1, rtol=0.1)
        assert not torch.equal(found, expected)


def test_each_sentence_is_encoded_once(ready, read):
    first = ready()
    assert sum(read) == 24 + 6 + 5
    read.clear()
    first.train()
    first.predict(first.corpus["test"])
    assert read == []
    second = ready(out="other")
    assert read == []
    for name, split in first.corpus.items():
        assert split[:] == second.corpus[name][:]


def test_the_cache_is_used_for_the_same_encoder_and_settings_alone(ready, read, tmp_path):
    first = ready()
    read.clear()
    ready(context=tiny.save_encoder(tmp_path / "copy", tiny.bert(max_position_embeddings=20)))
    assert read == []
    for options in (["--context_layers", "1"], ["--context_window", 9], ["--bf16", "true"]):
        second = ready(*options)
        assert sum(read) == 24 + 6 + 5
        assert first.corpus["train"][:][CONTEXT_STATES] != second.corpus["train"][:][CONTEXT_STATES]
        read.clear()
    model, tokenizer = tiny.bert(max_position_embeddings=20), tiny.bert_tokenizer()
    cased = type(tokenizer)(vocab=tokenizer.get_vocab(), do_lower_case=False)
    ready(context=tiny.save_encoder(tmp_path / "cased", model, cased))
    with torch.no_grad():
        model.encoder.layer[2].output.dense.bias[3] += 1e-3
    ready(context=tiny.save_encoder(tmp_path / "other", model, tokenizer))
    assert sum(read) == 2 * (24 + 6 + 5)


def test_frozen_weights_are_bit_identical_after_training_and_loading(ready, composed, tmp_path):
    run = ready("--composed", composed, "--weight_decay", 0.5, "--learning_rate", 0.05)
    model = run.trainer.model
    assert model.config.composed_dim == 4 and model.config.word_dim == 6
    before = frozen_parts(model)
    others = copy.deepcopy(model.classifier.state_dict())
    scores = run.train()
    assert set(scores) == {"validation", "test"}
    assert not same(others, model.classifier.state_dict())
    assert same(before, frozen_parts(model))
    tagger = Tagger.from_pretrained(str(tmp_path / "out"))
    assert same(before, frozen_parts(tagger.model))
    for path in (tmp_path / "out").glob("checkpoint-*/model.safetensors"):
        saved = load_file(path)
        assert same(before, {name: saved[name] for name in before})


def rates(trainer):
    """The learning rate of every trained weight, by name."""
    names = {id(weight): name for name, weight in trainer.model.named_parameters()}
    by_rate = {}
    for group in trainer.optimizer.param_groups:
        for weight in group["params"]:
            assert names[id(weight)] not in by_rate
            by_rate[names[id(weight)]] = (group["lr"], group["weight_decay"])
    return by_rate


def test_a_fine_tuned_encoder_has_its_own_learning_rate(ready, read, tmp_path):
    options = ["--context_frozen", "false", "--context_learning_rate", 1e-4, "--learning_rate", 0.01]
    run = ready(*options, "--weight_decay", 0.1, "--lr_scheduler_type", "linear")
    assert read == []
    assert CONTEXT_STATES not in run.corpus["train"].column_names
    model = run.trainer.model
    before = frozen_parts(model)
    run.trainer.create_optimizer()
    for name, (rate, decay) in rates(run.trainer).items():
        assert rate == (1e-4 if name.startswith("features.context.encoder.") else 0.01), name
        assert decay == (0.0 if "bias" in name or "LayerNorm" in name else 0.1), name
    assert set(rates(run.trainer)) == {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert any(name.startswith("features.context.encoder.") for name in rates(run.trainer))
    run.train()
    assert sum(read) >= 2 * 24
    after = frozen_parts(model)
    assert not same(before, after)
    # Adam's steps are as long as the rate: 12 of them.
    moved = max((after[name] - before[name]).abs().max().item() for name in before)
    assert 1e-4 < moved < 20 * 1e-4
    assert same(after, frozen_parts(Tagger.from_pretrained(str(tmp_path / "out")).model))


@pytest.mark.parametrize("side", ["left", "right"])
def test_cached_states_are_padded_like_their_words(side):
    pieces = tiny.pieces_of(tiny.bert_tokenizer())
    tokenizer = WordCharTokenizer.from_corpus(tiny.SENTENCES, pieces=pieces, max_word_pieces=4)
    tokenizer.padding_side = side
    model = build_model("bilstm-cnn", tokenizer, **tiny.context_fields(tiny.bert(), pieces))
    collate = TaggingCollator(tokenizer)
    examples = []
    for words in [*tiny.SENTENCES, [], ["rain"]]:
        ids = tokenizer([words], is_split_into_words=True, return_tensors="pt", padding=True)["piece_ids"]
        states = model.features.context.states(ids)[0].numpy().tobytes()
        examples.append({"tokens": words, "ner_tags": [0] * len(words), CONTEXT_STATES: states})
    batch = collate(examples)
    output = model(**batch)
    del batch[CONTEXT_STATES]
    expected = model(**batch)
    words = batch["attention_mask"].bool()
    torch.testing.assert_close(output.logits[words], expected.logits[words], rtol=0, atol=1e-6)
    torch.testing.assert_close(output.loss, expected.loss, rtol=0, atol=1e-6)


def test_contradicting_options_are_refused(ready, composed, tmp_path):
    folder = tiny.save_encoder(tmp_path / "other", tiny.roberta(), tiny.roberta_tokenizer())
    with pytest.raises(DataError, match="context and composed cut words into different pieces"):
        ready("--composed", composed, context=folder)
    with pytest.raises(ValueError, match=r"context_layers=\[4\]: the encoder has the layers 0 to 3"):
        ready("--context_layers", "4")
