"""The spaCy component sets the entities that the tagger finds in a doc's own tokens."""

import multiprocessing
import subprocess
import sys

import pytest
from conftest import SENTENCES
from random_texts import GIVEN, TEXTS

spacy = pytest.importorskip("spacy", reason='spaCy is not installed: pip install "hf_xorner[spacy]"')

from spacy.tokens import Doc, Span  # noqa: E402

from hf_xorner import Entity  # noqa: E402
from hf_xorner.integrations.spacy import TaggerComponent  # noqa: E402

TEXT = "Ann Smith met Zeus in New York . zeus saw LONDON and Ann"


@pytest.fixture
def pipeline(tagger_folder):
    """Make a blank pipeline with the component."""

    def make(**config):
        nlp = spacy.blank("en")
        nlp.add_pipe("hf_xorner", config={"model": tagger_folder, **config})
        return nlp

    return make


def found_in(doc, spans=None):
    """Entities or spans as (first token, one past the last, label, score)."""
    spans = doc.ents if spans is None else spans
    return [(span.start, span.end, span.label_, pytest.approx(span._.score, abs=1e-5)) for span in spans]


def expected_of(tagger, words, **options):
    (entities,) = tagger([words], **options)
    return [(entity.word_start, entity.word_end, entity.label, entity.score) for entity in entities]


def test_entities_are_those_of_the_tokens(pipeline, tagger):
    nlp = pipeline()
    count = 0
    for text, doc in zip(TEXTS, nlp.pipe(TEXTS, batch_size=5), strict=True):
        expected = expected_of(tagger, [token.text for token in doc])
        assert found_in(doc) == found_in(nlp(text)) == expected
        assert {token.ent_iob_ for token in doc} <= {"B", "I", "O"}
        count += len(expected)
    assert count > 40
    for words in [*SENTENCES, ["New York", "Ann"], ["zeus"] * 300, []]:
        assert found_in(nlp(Doc(nlp.vocab, words=words))) == expected_of(tagger, words)


def test_tokens_of_white_space_are_left_out(pipeline, tagger):
    nlp = pipeline()
    for words in GIVEN:
        words = [word for word in words if word.strip()]
        spaced = [word for pair in zip([" \n"] * len(words), words, strict=True) for word in pair] + ["\t"]
        doc = nlp(Doc(nlp.vocab, words=spaced))
        moved = [(2 * start + 1, 2 * end, *rest) for start, end, *rest in expected_of(tagger, words)]
        assert found_in(doc) == moved
        assert not any(ent[0].is_space or ent[-1].is_space for ent in doc.ents)
    assert nlp("  \n ").ents == nlp("").ents == ()


def test_white_space_inside_of_an_entity_is_part_of_it():
    class Fixed:
        def pipe(self, items):
            assert items == [["in", "New", "York", "now"]]
            return [[Entity(label="LOC", text="New York", start=3, end=11, word_start=1, word_end=3, score=0.5)]]

    component = TaggerComponent(None, "own", "nowhere")
    component._tagger = Fixed()
    doc = component(Doc(spacy.blank("en").vocab, words=["\t", "in", "\n", "New", "\n", "York", " ", "now"]))
    assert [(ent.start, ent.end, ent.label_, ent._.score) for ent in doc.ents] == [(3, 6, "LOC", 0.5)]


@pytest.mark.parametrize("least", [0.5, {"PER": 0.4, "LOC": 1.0}], ids=str)
def test_a_least_score_leaves_entities_out(pipeline, tagger, least):
    for doc in pipeline(min_score=least).pipe(TEXTS[:8]):
        assert found_in(doc) == expected_of(tagger, [token.text for token in doc], min_score=least)


def test_a_model_is_loaded_with_the_first_text():
    nlp = spacy.blank("en")
    nlp.add_pipe("hf_xorner", config={"model": "no/such/folder"})
    assert nlp.pipe_labels["hf_xorner"] == []
    with pytest.raises(ValueError, match="no/such/folder"):
        nlp("Ann")


def test_the_default_model_is_the_english_one():
    assert TaggerComponent(None, "hf_xorner").model == "english"


def test_a_batch_that_fails_goes_to_the_error_handler(pipeline, monkeypatch):
    nlp = pipeline()
    tagger = nlp.get_pipe("hf_xorner").tagger
    pipe = tagger.pipe

    def pipe_or_fail(items):
        if "fails" in items[-1]:
            raise RuntimeError("memory is full")
        return pipe(items)

    monkeypatch.setattr(tagger, "pipe", pipe_or_fail)
    texts = [*TEXTS[:3], "this", "one", "fails"]
    with pytest.raises(RuntimeError, match="memory"):
        list(nlp.pipe(texts, batch_size=3))
    failed = []
    nlp.set_error_handler(lambda name, proc, docs, error: failed.append((name, len(docs), str(error))))
    assert [doc.text for doc in nlp.pipe(texts, batch_size=3)] == TEXTS[:3]
    assert failed == [("hf_xorner", 3, "memory is full")]


def test_entities_set_before_are_kept_and_those_that_overlap_left_out(pipeline, tagger):
    nlp, anew = pipeline(), pipeline(overwrite=True)
    words = TEXT.split()
    entities = expected_of(tagger, words)
    assert len(entities) > 2
    for start, *_ in entities:
        before = Doc(nlp.vocab, words=words)
        first = max(0, start - 1)
        before.ents = [Span(before, first, start + 1, "OWN", kb_id="Q1", span_id="one")]
        doc = nlp(before)
        earlier = [(ent.start, ent.end, ent.label_, ent.kb_id_, ent.id_) for ent in doc.ents if ent.label_ == "OWN"]
        assert earlier == [(first, start + 1, "OWN", "Q1", "one")]
        others = [row for row in entities if row[1] <= first or row[0] > start]
        assert len(others) < len(entities)
        assert [row for row in found_in(doc) if row[2] != "OWN"] == others
        doc.ents = [Span(doc, first, start + 1, "OWN")]
        assert found_in(anew(doc)) == entities


def test_blocked_tokens_stay_free_of_entities(pipeline, tagger):
    nlp = pipeline()
    words = TEXT.split()
    start, end, *_ = expected_of(tagger, words)[0]
    doc = Doc(nlp.vocab, words=words)
    doc.set_ents([], blocked=[doc[start:end]], default="missing")
    state = [(token.ent_iob, token.ent_type) for token in doc[start:end]]
    assert found_in(nlp(doc)) == expected_of(tagger, words)[1:]
    assert [(token.ent_iob, token.ent_type) for token in doc[start:end]] == state
    assert "" not in {token.ent_iob_ for token in doc}


def test_entities_may_be_spans_of_a_key(pipeline, tagger):
    nlp, words = pipeline(spans_key="sc"), TEXT.split()
    before = Doc(nlp.vocab, words=words)
    before.ents = [Span(before, 0, len(words), "ALL")]
    before.spans["other"] = [Span(before, 0, 2, "X")]
    doc = nlp(before)
    assert found_in(doc, doc.spans["sc"]) == expected_of(tagger, words)
    assert [ent.label_ for ent in doc.ents] == ["ALL"]
    assert [span.label_ for span in doc.spans["other"]] == ["X"]


def test_spans_set_before_are_kept_unless_overwritten(pipeline, tagger):
    nlp, anew, words = pipeline(spans_key="sc"), pipeline(spans_key="sc", overwrite=True), TEXT.split()
    entities = expected_of(tagger, words)
    start, end, *_ = entities[1]
    before = Doc(nlp.vocab, words=words)
    before.spans["sc"] = [Span(before, start, end, "OWN")]
    doc = nlp(before)
    labels = [span.label_ for span in doc.spans["sc"]]
    assert labels == ["OWN", *(row[2] for row in entities if row is not entities[1])]
    assert found_in(doc, anew(doc).spans["sc"]) == entities


def test_a_saved_pipeline_contains_the_model(pipeline, tmp_path):
    nlp = pipeline(min_score=0.4, spans_key="sc", overwrite=True)
    expected = [found_in(doc, doc.spans["sc"]) for doc in nlp.pipe(TEXTS)]
    assert any(expected)
    nlp.to_disk(tmp_path / "saved")
    config = spacy.util.load_config(tmp_path / "saved" / "config.cfg")
    config["components"]["hf_xorner"]["model"] = "moved/away"
    config.to_disk(tmp_path / "saved" / "config.cfg")
    loaded = spacy.load(tmp_path / "saved")
    assert [[(*row[:3],) for row in found_in(doc, doc.spans["sc"])] for doc in loaded.pipe(TEXTS)] == [
        [(*row[:3],) for row in rows] for rows in expected
    ]
    assert loaded.pipe_labels["hf_xorner"] == ["PER", "LOC", "GOD"]


SCRIPT = """
import multiprocessing, sys
import spacy, torch

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[2])
    torch.set_num_threads(2)
    nlp = spacy.blank("en")
    nlp.add_pipe("hf_xorner", config={"model": sys.argv[1]})
    texts = ["Ann Smith met Zeus in New York", "zeus saw LONDON and Ann", "", "Nobody"] * 100
    # The threads of this process have run when the others are forked.
    alone, two = ([[str(ent) + ent.label_ for ent in doc.ents] for doc in docs] for docs in (
        nlp.pipe(texts), nlp.pipe(texts, n_process=2, batch_size=25)
    ))
    assert alone == two and sum(map(len, alone)) >= 100
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods()[:2])
def test_two_processes_give_the_entities_of_one(tagger_folder, method, tmp_path):
    (tmp_path / "two.py").write_text(SCRIPT)
    # The package is found by its entry point: the script does not import it.
    command = [sys.executable, str(tmp_path / "two.py"), tagger_folder, method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
