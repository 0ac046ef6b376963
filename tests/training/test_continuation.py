"""Continuing from a model: known words and labels are kept, new ones are added and learned."""

import random

import pytest
import references as ref
import runs
import torch
from conftest import ARCHITECTURES, LABELS, SENTENCES, TAG_SCORING, VARIANTS, build_model
from helpers import DECODERS
from safetensors.torch import load_file
from transformers import AutoModelForTokenClassification

from hf_xorner import Tagger, WordCharTokenizer
from hf_xorner.training.arguments import RunArguments, take_options_from_model
from hf_xorner.training.build import build_new, continue_from, extended, known_words, usual_name

#: GOD is gone, ORG is new, and the others come in another order.
NEW_LABELS = ["O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER"]
SHARED_TYPES = ("LOC", "PER")
NEW_SENTENCES = [
    "Ann Smith runs ACME & Söhne in Köln .".split(),
    "ACME & Co. met Zeus".split(),
    "Köln ! Köln !".split(),
]
CRF = DECODERS["barred crf"]


def saved(folder, kind, tokenizer, **fields):
    model = build_model(kind, tokenizer, **fields)
    Tagger(model, tokenizer).save_pretrained(folder)
    return model


def continued(folder, sentences=NEW_SENTENCES, labels=NEW_LABELS, fields=None, **options):
    torch.manual_seed(1)
    run = RunArguments(model_name_or_path=str(folder), **options)
    take_options_from_model(run, options)
    start = continue_from(run, sentences, list(labels), fields or {})
    return start.model.eval(), start.tokenizer


def encoded(tokenizer, sentences):
    return tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")


def features(model, tokenizer, sentences):
    batch = encoded(tokenizer, sentences)
    return model.features(batch["input_ids"], batch["char_ids"], batch.get("piece_ids"))


def scored(model, tokenizer, sentences):
    """Inner scores and states of words."""
    batch = encoded(tokenizer, sentences)
    states = model.encode(batch["input_ids"], batch["char_ids"], batch["attention_mask"].sum(1)).states
    return model.score(states), states


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_the_same_data_does_not_change_the_model(kind, tokenizer, tmp_path):
    old = saved(tmp_path, kind, tokenizer, **CRF)
    new, extended_tokenizer = continued(tmp_path, SENTENCES, LABELS)
    assert known_words(extended_tokenizer) == known_words(tokenizer)
    assert extended_tokenizer.model_fields() == tokenizer.model_fields()
    before, after = old.state_dict(), new.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(values, after[name]) for name, values in before.items())
    batch = encoded(tokenizer, SENTENCES)
    assert torch.equal(new(**batch).logits, old(**batch).logits)


@pytest.mark.parametrize("kind", [kind for kind in ARCHITECTURES if kind in TAG_SCORING])
def test_shared_labels_keep_their_scores_and_transitions(kind, tokenizer, tmp_path):
    old = saved(tmp_path, kind, tokenizer, **CRF)
    new, extended_tokenizer = continued(tmp_path)
    assert new.config.labels == NEW_LABELS
    tags, old_tags = ref.inner_tags(NEW_LABELS), ref.inner_tags(LABELS)
    assert new.tags.inner_tags == tags
    shared = [(old_tags.index(tag), tags.index(tag)) for tag in old_tags if tag in tags]
    assert len(shared) == 1 + 4 * len(SHARED_TYPES)
    old_scores, old_states = scored(old, tokenizer, SENTENCES)
    new_scores, new_states = scored(new, extended_tokenizer, SENTENCES)
    assert torch.equal(new_states, old_states)
    for before, after in shared:
        torch.testing.assert_close(new_scores[..., after], old_scores[..., before], rtol=0, atol=1e-5)
    old_chain = old.decoder.chain(old_scores, old_states)
    new_chain = new.decoder.chain(new_scores, new_states)
    for before, after in shared:
        for name in ("start", "end"):
            a, b = (getattr(chain, name)[..., index] for chain, index in ((old_chain, before), (new_chain, after)))
            torch.testing.assert_close(b, a, rtol=0, atol=1e-5)
        for then, later in shared:
            moves = new_chain.transitions[..., after, later], old_chain.transitions[..., before, then]
            torch.testing.assert_close(*moves, rtol=0, atol=1e-5)


def test_other_names_of_persons_organisations_and_locations_count_as_the_same(tokenizer, tmp_path):
    old = saved(tmp_path, "cnn-lstm-crf", tokenizer, **CRF)
    names = {"PER": "Person", "LOC": "location"}
    same, _ = continued(tmp_path, SENTENCES, LABELS)
    labels = [label[:2] + names.get(label[2:], label[2:]) for label in LABELS]
    new, _ = continued(tmp_path, SENTENCES, labels)
    assert new.config.labels == labels != same.config.labels
    expected, found = (model(**encoded(tokenizer, SENTENCES)).logits for model in (old, new))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_usual_name_of_tags_actions_and_pairs():
    assert usual_name("REDUCE(person)") == "REDUCE(PER)"
    assert usual_name(("S-GPE", "E-Organization")) == ("S-LOC", "E-ORG")
    for name in ("O", "SHIFT", "B-creative-work", "B-PERCENT", "B-PERS2"):
        assert usual_name(name) == name


@pytest.mark.parametrize("kind", [kind for kind in VARIANTS if kind not in TAG_SCORING])
def test_shared_types_keep_their_action_scores(kind, tokenizer, tmp_path):
    old = saved(tmp_path, kind, tokenizer)
    new, extended_tokenizer = continued(tmp_path)
    names = ["SHIFT", "OUT", *(f"REDUCE({name})" for name in SHARED_TYPES)]
    done = ["SHIFT", "SHIFT", "REDUCE(LOC)", "OUT", "SHIFT", "REDUCE(PER)", "OUT", "OUT"]
    log_probs = []
    for model, model_tokenizer in ((old, tokenizer), (new, extended_tokenizer)):
        actions = model.decoder.scorer.system.actions
        _, words = scored(model, model_tokenizer, [SENTENCES[0][:6]])
        indices = torch.tensor([[actions.index(name) for name in done]])
        scores, *_ = model.decoder.scorer(words, torch.tensor([6]), indices)
        # Compared among shared actions, as new ones take a share of the probability.
        log_probs.append(scores[:, [actions.index(name) for name in names]].log_softmax(-1))
    assert new.decoder.scorer.system.actions == ["SHIFT", "OUT", "REDUCE(LOC)", "REDUCE(ORG)", "REDUCE(PER)"]
    torch.testing.assert_close(log_probs[1], log_probs[0], rtol=0, atol=1e-5)


def test_the_extended_vocabulary_follows_the_policies_of_the_model():
    first = [["often", "often", "once", "rare"]]
    old = WordCharTokenizer.from_corpus(first, vector_words=["vector", "beside", "often"])
    assert known_words(old) == ["[PAD]", "[UNK]", "often", "once", "rare", "vector", "beside"]
    new = extended(old, [["rare", "rare", "new", "new", "single", "vector", "once"]], vector_words=["further", "new"])
    assert known_words(new)[2:] == ["often", "new", "rare", "once", "single", "vector", "beside", "further"]
    fields = new.model_fields()
    assert (fields["first_singleton_id"], fields["trained_vocab_size"]) == (5, 8)
    assert known_words(extended(new, [["rare", "single"]])) == known_words(new)
    old = WordCharTokenizer.from_corpus([["Ab", "12"]], casing="lower", digits="zero", max_word_chars=7)
    new = extended(old, [["AB", "CD", "34", "5"]])
    assert known_words(new)[2:] == ["00", "ab", "0", "cd"]
    assert (new.max_word_chars, new.init_kwargs["casing"], new.init_kwargs["digits"]) == (7, "lower", "zero")
    assert new.characters == "0Ab" + "BCD"


@pytest.mark.parametrize(
    "kind", [*ARCHITECTURES, *("lstm-crf without characters", "grn all windows", "stack-lstm standard cells")]
)
def test_features_do_not_change(kind, tokenizer, tmp_path):
    old = saved(tmp_path, kind, tokenizer)
    new, extended_tokenizer = continued(tmp_path)
    assert torch.equal(features(new, extended_tokenizer, SENTENCES), features(old, tokenizer, SENTENCES))
    if old.config.char_features != "lstm":  # which skips unknown characters
        # What is new is read as before, too, but for how sums over more characters are rounded.
        every = [*NEW_SENTENCES, ["Ω", "never", "seen"]]
        actual, expected = features(new, extended_tokenizer, every), features(old, tokenizer, every)
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)
    assert new.config.vocab_size > old.config.vocab_size
    assert new.config.char_vocab_size > old.config.char_vocab_size
    ids = encoded(extended_tokenizer, NEW_SENTENCES)["input_ids"]
    assert (ids != 1).all()


def write_vectors(path, rows):
    path.write_text("\n".join(f"{word} {a} {b} 0.5" for word, (a, b) in rows.items()))
    return str(path)


@pytest.fixture(params=["frozen", "tuned", "beside"])
def with_vectors(request, tmp_path):
    """A saved model with vectors, its tokenizer, and the options to continue from it with more vectors."""
    vectors = {"ann": (1, 2), "zeus": (3, 4), "köln": (5, 6), "oslo": (7, 8)}
    run = RunArguments(model_type="bilstm-cnn", vectors=write_vectors(tmp_path / "first.txt", vectors))
    run.vectors_as, run.fallback = request.param, ["lower"]
    fields = {"hidden_size": 8} | ({"word_dim": 4} if request.param == "beside" else {})
    start = build_new(run, SENTENCES, LABELS, fields)
    Tagger(start.model, start.tokenizer).save_pretrained(tmp_path / "old")
    more = write_vectors(tmp_path / "more.txt", {"acme": (9, 9), "ann": (0, 0), "Rome": (2, 2)})
    return start.model.eval(), start.tokenizer, {"folder": tmp_path / "old", "vectors": more}


def vectors_of(model, tokenizer, words):
    """Return the pretrained vectors of words in the vocabulary."""
    features, vocabulary = model.features, tokenizer.get_vocab()
    table = features.words if model.config.pretrained_words else features.static
    return [table.weight[vocabulary[word]].tolist() for word in words]


def test_features_do_not_change_with_vectors(with_vectors):
    old, tokenizer, options = with_vectors
    texts = [["Köln", "köln", "Oslo", "oslo", "runs", "&", "Ann", "Zeus"], *SENTENCES]
    new, extended_tokenizer = continued(sentences=[*NEW_SENTENCES, ["köln"]], **options)
    assert torch.equal(features(new, extended_tokenizer, texts), features(old, tokenizer, texts))


def test_spellings_of_a_word_that_only_had_a_vector_start_from_it(with_vectors):
    new, tokenizer = continued(sentences=[*NEW_SENTENCES, ["köln"]], **with_vectors[2])
    assert vectors_of(new, tokenizer, ["Köln", "köln"]) == [[5, 6, 0.5]] * 2
    assert tokenizer.get_vocab()["köln"] < new.config.trained_vocab_size <= tokenizer.get_vocab()["oslo"]


def test_unknown_words_start_from_the_vector_of_unknown_words(with_vectors):
    new, tokenizer = continued(**with_vectors[2])
    for word in ("runs", "&", "Söhne"):
        assert torch.equal(
            new.features.words.weight[tokenizer.get_vocab()[word]], with_vectors[0].features.words.weight[1]
        )


def test_new_vectors_are_of_new_words_alone(with_vectors):
    new, tokenizer = continued(**with_vectors[2])
    assert vectors_of(new, tokenizer, ["ACME", "Rome"]) == [[9, 9, 0.5], [2, 2, 0.5]]
    assert tokenizer.get_vocab()["Rome"] >= new.config.trained_vocab_size
    if not new.config.pretrained_words:
        assert vectors_of(new, tokenizer, ["Ann"]) == [[1, 2, 0.5]]
        assert new.features.static.has_vector[tokenizer.get_vocab()["Rome"]]


def test_only_words_with_vectors_are_new_if_only_the_head_is_trained(with_vectors):
    _, tokenizer, options = with_vectors
    _, head_tokenizer = continued(train_only="head", **options)
    assert set(known_words(head_tokenizer)) - set(known_words(tokenizer)) == {"acme", "Rome"}
    assert head_tokenizer.characters == tokenizer.characters
    assert head_tokenizer.model_fields()["trained_vocab_size"] == tokenizer.model_fields()["trained_vocab_size"]


NAMES = {"PER": ["Ann", "Bob", "Cleo"], "LOC": ["Oslo", "Rome", "Paris"], "ORG": ["Acme", "Zorg", "Ünlü"]}
SAID = {
    "PER": ["{} sleeps now", "we met {} ."],
    "LOC": ["far from {} !", "it rains in {} ."],
    "ORG": ["shares of {} fell", "{} & sons fell"],
}


@pytest.fixture(scope="module")
def corpora_of_types(tmp_path_factory):
    """Two corpora in CoNLL columns; each sentence has a name of one of the corpus's types."""
    folder, draw = tmp_path_factory.mktemp("corpora"), random.Random(0)
    for corpus, types in (("A", ["PER", "LOC"]), ("B", ["ORG", "LOC"])):
        (folder / corpus).mkdir()
        for split, count in (("train", 48), ("dev", 12), ("test", 12)):
            lines = []
            for number in range(count):
                name = types[number % 2]
                for word in draw.choice(SAID[name]).split():
                    lines.append(f"{draw.choice(NAMES[name])} B-{name}" if word == "{}" else f"{word} O")
                lines.append("")
            (folder / corpus / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    return {"A": folder / "A", "B": folder / "B"}


FROM = "--model_name_or_path"
SMALL = "--hidden_size 16 --word_dim 12".split()


def prepared(dataset, out, *words):
    options = {"save_strategy": "no", "load_best_model_at_end": False, "eval_strategy": "no", "learning_rate": 0.01}
    return runs.ready(dataset, out, *words, per_device_train_batch_size=8, **options)


@pytest.fixture(scope="module")
def trained(corpora_of_types, tmp_path_factory):
    """A folder of a model of each architecture with the labels PER and LOC, trained once."""
    folder, known = tmp_path_factory.mktemp("trained"), {}

    def model_of(kind):
        if kind not in known:
            known[kind] = folder / kind
            options = ["--model_type", kind, "--num_train_epochs", 1, "--casing", "keep", *SMALL]
            prepared(corpora_of_types["A"], known[kind], *options).train()
        return known[kind]

    return model_of


@pytest.mark.parametrize("kind", ["stack-lstm", "id-cnn"])
def test_training_only_the_head(kind, trained, corpora_of_types, tmp_path):
    source = trained(kind)
    options = [FROM, source, "--train_only", "head", "--num_train_epochs", 1]
    ready = prepared(corpora_of_types["B"], tmp_path / "B", *options)
    ready.trainer.model.train()
    learning = {name.partition(".")[0] for name, p in ready.trainer.model.named_parameters() if p.requires_grad}
    assert learning <= {"classifier", "decoder"}
    start = {name: values.clone() for name, values in ready.trainer.model.state_dict().items()}
    ready.train()
    before, after = (load_file(folder / "model.safetensors") for folder in (source, tmp_path / "B"))
    rest = {name for name in after if not name.startswith(("classifier.", "decoder."))}
    assert rest == {name for name in before if not name.startswith(("classifier.", "decoder."))}
    assert all(torch.equal(after[name], before[name]) for name in rest)
    assert all(not torch.equal(after[name], start[name]) for name in after.keys() - rest if "bias" not in name)
    model = AutoModelForTokenClassification.from_pretrained(tmp_path / "B")
    assert all(parameter.requires_grad for parameter in model.train().parameters())
    assert model.config.labels == ["O", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]


def test_new_types_words_and_characters_are_learned(trained, corpora_of_types, tmp_path):
    options = [FROM, trained("id-cnn"), "--num_train_epochs", 12, "--feature_dropout", 0, "--dropout", 0]
    ready = prepared(corpora_of_types["B"], tmp_path / "B", *options, "--learning_rate", 0.02)
    assert ready.trainer.model.config.model_type == "id-cnn"
    tokenizer = ready.trainer.processing_class
    assert {"Acme", "Ünlü"} <= tokenizer.get_vocab().keys() and "Ü" in tokenizer.characters
    before = ready.trainer.model.features.words.weight.detach().clone()
    scores = ready.train()
    assert scores["test"]["f1"] > 90, scores["test"]
    learned = ready.trainer.model.features.words.weight.detach()
    moved = (learned != before).any(1)
    assert moved[tokenizer.get_vocab()["Ünlü"]] and not moved[tokenizer.get_vocab()["sleeps"]]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--hidden_size 200", "hidden_size=200 does not fit the existing model, whose hidden_size is 16"),
        ("--char_widths 1 2", "char_widths=.* does not fit"),
        ("--model_type cross-bilstm-cnn", "model_type='cross-bilstm-cnn' does not fit .* is 'id-cnn'"),
        ("--fallback lower", r"fallback=\['lower'\] does not fit the existing model, whose fallback is \[\]"),
        ("--vectors v.txt", "trained without pretrained word vectors"),
        ("--context x", "context cannot be added"),
    ],
)
def test_options_that_contradict_the_model_are_refused(trained, corpora_of_types, tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        prepared(corpora_of_types["B"], tmp_path, FROM, trained("id-cnn"), *options.split())


def test_default_options_come_from_the_model(tmp_path, corpora_of_types):
    lower = WordCharTokenizer.from_corpus(SENTENCES, casing="lower", max_word_chars=10, fallback=["zero"])
    saved(tmp_path / "old", "grn", lower)
    ready = prepared(corpora_of_types["B"], tmp_path / "new", FROM, tmp_path / "old")
    assert (ready.run.model_type, ready.run.casing, ready.run.fallback) == ("grn", "lower", ["zero"])
    assert ready.trainer.processing_class.init_kwargs["casing"] == "lower"
    with pytest.raises(ValueError, match="digits='zero' does not fit"):
        prepared(corpora_of_types["B"], tmp_path / "new", FROM, tmp_path / "old", "--digits", "zero")


def test_overwriting_the_model_or_the_corpus_is_refused(tokenizer, tmp_path, corpora_of_types):
    with pytest.raises(ValueError, match="is an input"):
        prepared(corpora_of_types["B"], corpora_of_types["B"], "--overwrite")
    for folder, source in (("old", tmp_path / "old"), ("run", tmp_path / "run" / "checkpoint-3")):
        saved(source, "bilstm-cnn", tokenizer)
        with pytest.raises(ValueError, match="is an input"):
            prepared(corpora_of_types["B"], tmp_path / folder, FROM, source)
        with pytest.raises(ValueError, match="is an input"):
            prepared(corpora_of_types["B"], tmp_path / folder, "--teacher", source, "--overwrite")
