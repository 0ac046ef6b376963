"""The model card: its content, edits that are kept, and the escaping of names."""

import hashlib
import html
import json
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from inspect import getsource
from pathlib import Path
from statistics import mean, stdev

import pytest
import yaml
from conftest import REPOSITORY
from huggingface_hub import ModelCard
from processes import run_python

from hf_xorner.entities import Entity
from hf_xorner.hub import card as module
from hf_xorner.hub.card import Card, varied, write_card
from hf_xorner.hub.card_content import code, error_rows, fence, renewed, shown
from hf_xorner.registration import CONFIGS
from hf_xorner.training import parse, prepare
from hf_xorner.training.facts import Facts

pytestmark = pytest.mark.usefixtures("forked_offline")

HOSTILE = [
    "a|b",
    "<script>alert(1)</script>",
    "x\n---\nlicense: mit",
    "a\n<!-- hf_xorner:end scores -->\n# Mine",
    "-->",
    "`` ` ```",
    "[go](https://example.com) ![x](y) www.example.com",
    "*bold* __bold__ ~~gone~~ $x$ \\| &lt;",
    "- name: {a: b} # {{ card }} {% raw %}",
    "\u202eright to left\u2028next",
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tiny model, and the sentences that it was trained on."""
    folder = tmp_path_factory.mktemp("card")
    (folder / "towns").mkdir()
    town = ["Annaville", "Bertaville", "Carlaville"]
    for split, size in (("train", 24), ("dev", 6), ("test", 6)):
        text = "".join(f"{town[number % 3]} B-LOC\nburns O\nbrightly O\n. O\n\n" for number in range(size))
        (folder / "towns" / f"{split}.txt").write_text(text)
    argv = ["--dataset", str(folder / "towns"), "--output_dir", str(folder / "tiny"), "--num_train_epochs", "2"]
    argv += ["--word_dim", "8", "--hidden_size", "4", "--use_cpu", "true", "--disable_tqdm", "true"]
    prepare(*parse(argv)).train()
    return folder / "tiny"


@pytest.fixture
def facts(trained):
    return Facts.read(trained)


@pytest.fixture
def without_example_process(monkeypatch):
    """Skip the process that runs the examples of the card."""
    monkeypatch.setattr(module, "_output", lambda code: "{'entity_group': 'LOC', 'word': 'Annaville'}")


#: The whole card; "…" stands for any text, and OUTPUT, CALIBRATION and BIBTEX for what the test puts there.
PATTERN = (Path(__file__).parent / "expected_card.txt").read_text(encoding="utf-8")


def calibration_of(found):
    """The end of the scores: a row for every bin, and nothing where no entity was predicted."""
    if not found["count"]:
        return ""
    rows = [
        f"| {row['lower'] * 100:.0f} to {row['upper'] * 100:.0f} "
        f"| {row['confidence']:.2f} | {row['accuracy']:.2f} | {row['count']} |\n"
        for row in found["bins"]
    ]
    return (
        "\nThe confidence of an entity is the score that the pipeline gives it. Where confidence can be trusted, it is "
        "the precision of the entities that have it; here the two are … points apart on average (expected calibration "
        "error).\n\n| confidence | mean confidence | precision | predicted entities |\n"
        f"| --- | ---: | ---: | ---: |\n{''.join(rows)}"
    )


def test_the_whole_card_line_by_line(trained):
    pytest.importorskip("matplotlib")
    (trained / "README.md").unlink(missing_ok=True)
    path = write_card(trained, language="en", licence="apache-2.0")
    text = path.read_text(encoding="utf-8")
    found = r"\{'entity_group': 'LOC', 'score': np\.float32\(0\.\d+\), 'word': '.*', 'start': \d+, 'end': \d+\}"
    output = re.search(rf"```text\n({found}\n)+```|It finds nothing in this sentence\.", text)[0]
    expected = PATTERN.replace("OUTPUT", output).replace("BIBTEX", CONFIGS["cross-bilstm-cnn"].citation)
    expected = expected.replace("CALIBRATION\n", calibration_of(Facts.read(trained).scores["test"]["calibration"]))
    # As many examples as it takes to show all types, of which there is one.
    for line, pattern in zip(text.splitlines(), expected.splitlines(), strict=True):
        assert re.fullmatch(re.escape(pattern).replace("…", ".+"), line), (line, pattern)
    assert (trained / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert not re.search(r"[ \t]$", text.partition("\n---\n")[2], re.MULTILINE)
    assert hashlib.sha256((trained / "model.safetensors").read_bytes()).hexdigest() in text
    assert "brightly" not in text and "Annaville" not in text
    assert str(trained.parent) not in text and not re.search(r"[\"'` (]/\w", text)


def test_the_hubs_client_reads_the_scores(facts):
    data = ModelCard(Card("me/tiny", facts, dataset_id="some/towns", dataset_revision="abc").text()).data
    assert data.library_name == "transformers" and data.datasets == ["some/towns"]
    assert len(data.eval_results) == 6
    for result in data.eval_results:
        assert result.dataset_type == "some/towns" and result.dataset_revision == "abc"
        score = facts.scores[result.dataset_split][result.metric_type]
        assert result.metric_value == pytest.approx(score / 100, abs=1e-6)


@pytest.mark.skipif(
    "https://huggingface.co" in getsource(ModelCard.validate), reason="this client's validate() asks no other Hub"
)
def test_the_hub_validates_the_card(facts, hub, online, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.endpoint)
    for name in ("tiny", *HOSTILE):
        ModelCard(hostile_card(facts, name)).validate()
    told = {"language": "en", "licence": "apache-2.0", "dataset_id": "some/towns", "dataset_revision": "1e5"}
    card = ModelCard(Card("x", facts, base_models=("some/encoder",), **told).text())
    card.validate()
    assert card.data.eval_results[0].dataset_revision == "1e5"
    with pytest.raises(ValueError, match="license"):
        ModelCard(Card("x", facts, licence="do as: you like").text()).validate()
    assert len(hub.requests) == len(HOSTILE) + 3


def test_an_encoder_is_the_base_model(facts):
    named = replace(facts, inputs={"context": {"name": "some/encoder"}, "vectors": {"name": "a.txt"}})
    assert ModelCard(Card("x", named).text()).data.base_model == ["some/encoder"]
    local = replace(facts, inputs={"context": {"name": "encoder", "bytes": 1, "sha256": "0" * 64}})
    assert ModelCard(Card("x", local).text()).data.base_model is None
    told = ("some/encoder", "other/encoder")
    assert ModelCard(Card("x", local, base_models=told).text()).data.base_model == list(told)
    assert ModelCard(Card("x", named, base_models=told).text()).data.base_model == list(told)


def test_the_same_facts_give_the_same_bytes(trained, without_example_process):
    (trained / "README.md").unlink(missing_ok=True)
    first = write_card(trained).read_bytes()
    picture = (trained / "learning_curve.png").read_bytes()
    assert write_card(trained).read_bytes() == first
    (trained / "README.md").unlink()
    assert write_card(trained).read_bytes() == first
    assert (trained / "learning_curve.png").read_bytes() == picture


def test_plain_labels_have_accuracies(facts):
    splits = {name: {"sentences": 2, "tokens": 4, "per_tag": {"DT": 2, "NN": 2}} for name in ("train", "test")}
    plain = replace(
        facts,
        data={**facts.data, "splits": splits},
        scores={"test": {"accuracy": 75.0}},
        config={**facts.config, "id2label": {"0": "DT", "1": "NN"}},
    )
    text = Card("x", plain).text()
    assert "one label: DT, NN.\n" in text and "| all | 75.00 |" in text and "entities" not in text
    data = ModelCard(text).data
    assert [result.metric_type for result in data.eval_results] == ["accuracy"]
    assert "named-entity-recognition" not in data.tags
    assert "## Limitations\n\nBeyond what is said above nothing was measured.\n" in text


def test_without_held_out_data_there_are_no_scores(facts):
    splits = {"train": facts.data["splits"]["train"]}
    card = Card("x", replace(facts, data={**facts.data, "splits": splits}, scores={}))
    assert "## Scores\n\nThere are none: the corpus has no data that the model was not trained on.\n<!--" in card.text()
    assert ModelCard(card.text()).data.eval_results is None


def test_seeds_are_reported_as_mean_and_standard_deviation(facts):
    others = []
    for seed, f1 in ((1, 10.0), (2, 25.0)):
        scores = {split: {**found, "f1": f1} for split, found in facts.scores.items()}
        others.append(replace(facts, seed=seed, options={**facts.options, "seed": seed}, scores=scores))
    text = Card("x", facts, tuple(others)).text()
    values = [10.0, 25.0, facts.scores["test"]["f1"]]
    assert f"| {mean(values):.2f} ± {stdev(values):.2f} |" in text
    assert "over 3 runs of seeds 1, 2, 42; this model is the one of seed `42`" in text
    results = [found for found in ModelCard(text).data.eval_results if found.metric_type == "f1"]
    assert results[-1].metric_name == f"F1 (0 to 1, mean of 3 seeds ± {stdev(values) / 100:.4f})"
    assert results[-1].metric_value == pytest.approx(mean(values) / 100, abs=1e-6)


@pytest.mark.parametrize(
    ("others", "told", "reason"),
    [
        ([{}], {}, "same seed"),
        ([{"seed": 7, "options": {"dropout": 0.9}}], {}, "seed 7 has other options"),
        ([{"seed": 7, "scores": {}}], {}, "seed 7 was scored on other splits"),
        ([{"seed": 7, "scores": {"test": {"f1": 5.0}, "validation": {}}}], {}, r"seed 7 lack scores\.test\.precision"),
        ([], {"language": "English"}, "language="),
        ([], {"dataset_id": "towns"}, "dataset_id="),
        ([], {"dataset_id": "a/b/c"}, "dataset_id="),
        ([], {"base_models": ("encoder",)}, "base_model="),
    ],
)
def test_bad_values_are_refused(facts, others, told, reason):
    with pytest.raises(ValueError, match=reason):
        Card("x", facts, tuple(replace(facts, **changes) for changes in others), **told)


# --- Details of the scores --------------------------------------------------------------------------------------------

SPLIT = {
    "per_type": {
        name: {"precision": 9.0, "recall": 8.0, "f1": f1, "support": 40}
        for name, f1 in (("A", 50.0), ("B", 40.0), ("C", 0.0))
    },
    "seen": {
        "seen": {"precision": 75.0, "recall": 60.0, "f1": 66.6667, "support": 90},
        "unseen": {"precision": 30.0, "recall": 20.0, "f1": 24.0, "support": 30},
    },
    "confusion": {
        "matrix": {"A": {"A": 30, "B": 4}, "B": {"A": 9, "B": 20, "C": 1}, "C": {"A": 4}},
        "boundary": {"A": 1, "B": 0, "C": 2},
        "boundary_and_type": {"A": 2, "B": 3, "C": 4},
        "missed": {"A": 3, "B": 7, "C": 30},
        "support": {"A": 40, "B": 40, "C": 40},
        "inexact": {"A": 5, "B": 6, "C": 0},
        "spurious": {"A": 8, "B": 1200, "C": 0},
        "predicted": {"A": 56, "B": 1230, "C": 1},
    },
    "calibration": {
        "ece": 12.3456,
        "count": 1287,
        "bins": [
            {"lower": 0.3, "upper": 0.4, "confidence": 35.5, "accuracy": 20.0, "count": 1000},
            {"lower": 0.9, "upper": 1.0, "confidence": 95.5, "accuracy": 91.0, "count": 287},
        ],
    },
}


def with_split(facts, split):
    return replace(facts, scores={**facts.scores, "test": {**facts.scores["test"], **split}})


def test_errors_confidence_and_new_entities_have_tables(facts):
    text = Card("x", with_split(facts, SPLIT)).text()
    lines = text.splitlines()
    for line in (
        "| known | 75.00 | 60.00 | 66.67 | 90 |",
        "| new | 30.00 | 20.00 | 24.00 | 30 |",
        "| A | 40 | 30 | 4 | 1 | 2 | 3 | 8 |",
        "| B | 40 | 20 | 10 | 0 | 3 | 7 | 1,200 |",
        "| C | 40 | 0 | 4 | 2 | 4 | 30 | 0 |",
        "| all | 120 | 50 | 18 | 3 | 9 | 40 | 1,208 |",
        "Types that were taken for another most often: B as A (9), A as B (4), C as A (4), B as C (1).",
        "| 30 to 40 | 35.50 | 20.00 | 1,000 |",
        "| 90 to 100 | 95.50 | 91.00 | 287 |",
        "- Of the entities of test that are entities of the training data too it finds 60.00 %, of the others 20.00 %.",
        "- Weakest on test: C (F1 0.00).",
    ):
        assert lines.count(line) == 1, line
    assert "here the two are 12.35 points apart on average" in text
    assert "here all are" not in text


def test_error_types_add_up_to_the_entities(facts):
    rows = error_rows(SPLIT["confusion"])
    assert all(row[1] == sum(row[2:7]) for row in rows)
    rows = error_rows(facts.scores["test"]["confusion"])
    assert all(row[1] == sum(row[2:7]) for row in rows)


def test_facts_of_earlier_versions_have_no_such_tables(facts):
    for key in ("seen", "calibration", "confusion", "surface"):
        for scores in facts.scores.values():
            del scores[key]
    text = Card("x", facts).text()
    assert "### test" in text and "By length in words" in text
    for word in ("known", "What became", "taken for another", "confidence", "surface"):
        assert word not in sections(text)["scores"]


@pytest.mark.parametrize("words", ["3 or more", "4 or more"])
def test_scores_of_long_entities_say_how_long(facts, words):
    row = {"precision": 75.0, "recall": 60.0, "f1": 66.67, "support": 90}
    lines = Card("x", with_split(facts, {"per_length": {words: row}})).text().splitlines()
    assert f"| {words} | 75.00 | 60.00 | 66.67 | 90 |" in lines
    assert f"- Of the 90 entities of test with {words} words it finds 60.00 %." in lines


def test_without_predictions_there_is_no_confidence_table(facts):
    split = {"calibration": {"ece": 0.0, "bins": [], "count": 0}}
    assert "confidence" not in Card("x", with_split(facts, split)).text()


def test_examples_cover_different_types(facts):
    class Tags:
        def tag(self, sentences):
            return [[Entity(label, "x", 0, 1, 0, 1, 0.9) for label in sentence.split()] for sentence in sentences]

    assert varied(Tags(), ["A A", "B", "A A A B", "C", "A C D", "", "C D"]) == ["A C D", "A A A B"]
    assert varied(Tags(), ["A A . .", "A A A B", "B A A A"])[0] == "A A . ."
    assert varied(Tags(), ["", ""]) == [""]
    assert len(varied(Tags(), list("ABCDEFG"))) == 4


# --- Edits by hand ----------------------------------------------------------------------------------------------------


def sections(text):
    return dict(re.findall(r"^<!-- hf_xorner:begin (\w+) \w+ -->\n(.*?)^<!-- hf_xorner:end", text, re.M | re.S))


def test_edited_sections_are_kept_and_others_updated(facts):
    old = Card("x", facts).text()
    new = Card("x", replace(facts, seed=7, model={**facts.model, "sha256": "f" * 64}), language="en").text()
    edited = old.replace("# x\n", "# Towns of fire\n")
    edited = edited.replace("<!-- hf_xorner:begin data", "## My own section\n\nwords\n\n<!-- hf_xorner:begin data")
    edited = edited.replace("library_name: transformers", "library_name: mine\nthumbnail: me.png")
    edited = edited.replace("pipeline_tag: token-classification\n", "")
    again = renewed(edited, new)
    assert sections(again) == {**sections(new), "about": sections(edited)["about"]}
    assert "# Towns of fire\n" in again and "## My own section\n\nwords\n\n<!-- hf_xorner:begin data" in again
    header = yaml.safe_load(again.split("---\n")[1])
    assert header["library_name"] == "mine" and header["thumbnail"] == "me.png" and header["language"] == "en"
    assert "pipeline_tag" not in header
    assert renewed(again, new) == again
    # Generated sections that no longer apply are deleted; edited ones are kept however often the card is written.
    last = renewed(again, Card("x", facts).text())
    assert "language" not in yaml.safe_load(last.split("---\n")[1])
    assert sections(last) == {**sections(old), "about": sections(edited)["about"]}


def test_deleted_sections_are_restored_in_order(facts):
    card = Card("x", facts).text()
    assert renewed(card, card) == card
    without = re.sub(r"<!-- hf_xorner:begin data.*?end data -->\n\n", "", card, flags=re.S)
    assert without != card and renewed(without, card) == card
    emptied = re.sub(r"(<!-- hf_xorner:begin data.*?\n).*?(<!-- hf_xorner:end data)", r"\1\2", card, flags=re.S)
    assert sections(emptied)["data"] == "" and renewed(emptied, card) == emptied


def test_sections_are_appended_to_a_handwritten_card(facts):
    card = Card("x", facts, licence="apache-2.0").text()
    again = renewed("---\nlicense: mit\n---\n# Mine\n\ntext\n", card)
    assert yaml.safe_load(again.split("---\n")[1])["license"] == "mit"
    assert again.partition("# Mine\n\ntext\n\n")[2] == card.partition(" -->\n\n")[2]
    assert renewed(again, card) == again


def test_line_endings_do_not_count_as_edits(trained, without_example_process):
    (trained / "README.md").unlink(missing_ok=True)
    path = write_card(trained)
    before = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + before.replace(b"\n", b"\r\n"))
    assert write_card(trained).read_bytes() == before


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda text: text.replace("<!-- hf_xorner:end data -->\n", ""), "has lost its counterpart"),
        (lambda text: text.replace("library_name: ", "library_name: ["), "not YAML of keys and values"),
    ],
)
def test_a_card_with_invalid_markers_is_refused(trained, without_example_process, spoil, reason):
    path = trained / "README.md"
    path.unlink(missing_ok=True)
    write_card(trained)
    path.write_text(spoil(path.read_text()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"README\.md: .*{reason}.*; correct the card"):
        write_card(trained)
    assert path.read_bytes() == before
    path.unlink()


# --- Names with special characters ------------------------------------------------------------------------------------


def hostile_card(facts, name):
    confusion = {
        key: {name: {name: 4, f"not {name}": 1} if key == "matrix" else counts["LOC"]}
        for key, counts in facts.scores["test"]["confusion"].items()
    }
    rows = {"per_type": {name: facts.scores["test"]["per_type"]["LOC"]}, "confusion": confusion}
    splits = {split: {**found, "per_type": {name: 6}} for split, found in facts.data["splits"].items()}
    spoilt = replace(
        facts,
        config={**facts.config, "id2label": {"0": "O", "1": f"B-{name}", "2": f"I-{name}"}},
        data={**facts.data, "source": name, "splits": splits},
        scores={split: {**found, **rows} for split, found in facts.scores.items()},
        options={**facts.options, "dataset": name},
        command=f"hf-xorner train --dataset '{name}'",
        inputs={"vectors": {"name": name}},
    )
    usage, output = module._usage(name, name), str({"entity_group": name, "word": name, "start": 0, "end": 1})
    return Card(name, spoilt, usage=usage, output=output, sentences=(name,)).text()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_escaped(facts, name):
    plain, spoilt = Card("x", facts, usage="x", output="y").text(), hostile_card(facts, name)
    assert sections(spoilt).keys() == sections(plain).keys()
    assert renewed(spoilt, spoilt) == spoilt
    card = ModelCard(spoilt)
    assert card.data.license is None and len(card.data.eval_results) == 6
    assert card.data.widget[0]["text"] == " ".join(name.replace("\u202e", " ").split())
    prose = re.sub(r"^(`{3,})\w+\n.*?^\1$", "", card.text, flags=re.M | re.S)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    assert "<script" not in prose and "](https" not in prose and "www.e" not in prose and "\u202e" not in prose
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    assert all(row.count("|") in (3, 4, 5, 6, 9) for row in rows)
    # As many tables as without it, none torn by a line.
    assert len(rows) == sum(line.startswith("|") for line in plain.splitlines())
    for row in rows:
        if row.endswith("| 6 | 6 | 6 |"):
            assert html.unescape(row)[2 : -len(" | 6 | 6 | 6 |")] == " ".join(name.replace("\u202e", " ").split())
    assert compile(module._usage(name, name), "usage", "exec")
    assert len(module._usage(name, name).splitlines()) == 2


class Page(HTMLParser):
    """The tags of a page, and what a reader sees of it outside of blocks of code."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.seen, self.is_code = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, *attributes))
        self.is_code |= tag == "pre"

    def handle_endtag(self, tag):
        self.is_code &= tag != "pre"

    def handle_data(self, data):
        self.seen += "" if self.is_code else data


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_escaped_when_rendered(facts, name):
    renderer = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    pages = [
        Page(renderer.render(ModelCard(card).text)) for card in (hostile_card(facts, "LOC"), hostile_card(facts, name))
    ]
    # The page is built as it is of a harmless name, save what is code in a line.
    built = [[tag for tag in page.tags if tag[0] != "code"] for page in pages]
    assert built[0] == built[1]
    told = " ".join(name.replace("\u202e", " ").split())
    assert pages[1].seen.count(told) >= pages[0].seen.count("LOC") - 1 > 8  # the option's value is JSON


def test_fences_are_longer_than_backticks_inside():
    assert fence("a\n````\nb", "text") == "`````text\na\n````\nb\n`````"
    assert fence("<!-- hf_xorner:end x -->\r<!-- hf_xorner:end x -->", "") == (
        "```\n# <!-- hf_xorner:end x -->\n# <!-- hf_xorner:end x -->\n```"
    )


def test_only_special_characters_are_escaped():
    assert shown("B-first_name.x (3)") == "B-first_name.x (3)"
    assert shown("_x_ __y") == "&#95;x&#95; &#95;&#95;y"
    assert shown(1234) == "1,234" and shown(2.5) == "2.50"
    assert code("[1, 2]") == "`[1, 2]`" and code("a|`") == "<code>a&#124;&#96;</code>" and code("") == "<code></code>"


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", CONFIGS)
def test_every_architecture_has_its_paper(model_type):
    entry = CONFIGS[model_type].citation
    key, _, fields = entry.removeprefix("@inproceedings{").partition(",\n")
    assert key.isalnum() and f"{{{key[-4:]}}}" in fields
    assert entry.count("{") == entry.count("}")


def test_long_curves_are_thinned_but_keep_the_best_epoch(facts):
    curve = [{"epoch": float(n), "loss": 1 / n, "dev": {"f1": 50.0 - abs(n - 33)}} for n in range(1, 101)]
    rows = Card("x", replace(facts, curve=curve)).curve_rows
    assert len(rows) == 21 and rows[-1][0] == "100" and ["33", "0.0303", 50.0] in rows
    assert "| 33 | 0.0303 | 50.00 |" in Card("x", replace(facts, curve=curve)).text()


def test_without_matplotlib_the_curve_is_a_table(trained, tmp_path):
    """In a process of its own, in which importing it fails as it does where it is broken."""
    shutil.copytree(trained, tmp_path / "tiny", ignore=shutil.ignore_patterns("README.md", "*.png", "checkpoint-*"))
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("raise ImportError('broken')\n")
    lines = "from hf_xorner.hub import card; card._output = lambda lines: 'x'; card.write_card('tiny')"
    paths = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    done = run_python(["-c", lines], cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")
    curve = Facts.read(trained).curve
    rows = "".join(f"| {row['epoch']:g} | {row['loss']:.4g} | {row['dev']['f1']:.2f} |\n" for row in curve)
    assert f"| epoch | loss | validation F1 (%) |\n| --- | ---: | ---: |\n{rows}<!--" in text and len(curve) == 2
    assert "learning_curve.png" not in text and not (tmp_path / "tiny" / "learning_curve.png").exists()


def test_durations_are_written_in_words(facts):
    said = {0.5: "0.50 seconds", 57.1: "57 seconds", 130: "2 minutes", 7140: "119 minutes", 12345: "3 hours 26 minutes"}
    for seconds, words in said.items():
        speed = {**facts.speed, "training_seconds": seconds}
        assert f"- training: {words}, " in Card("x", replace(facts, speed=speed)).text()


def test_weights_that_do_not_match_the_facts_are_refused(trained, without_example_process, tmp_path):
    text = (trained / "facts.json").read_text()
    (tmp_path / "facts.json").write_text(text)
    with pytest.raises(ValueError, match=r"weights are not those of"):
        write_card(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"weights are not those of"):
        write_card(tmp_path)
    (tmp_path / "facts.json").write_text(json.dumps({**json.loads(text), "recipe": "/home/me/recipe.yaml"}))
    with pytest.raises(ValueError, match="a path of this machine as recipe"):
        write_card(tmp_path)


@pytest.fixture
def copied(trained, without_example_process, monkeypatch, tmp_path):
    """A folder of this test's own, whose model must not run."""
    monkeypatch.setattr(module.Tagger, "from_pretrained", lambda folder: pytest.fail("the model was loaded"))
    ignored = shutil.ignore_patterns("README.md", "*.png", "checkpoint-*")
    return shutil.copytree(trained, tmp_path / "tiny", ignore=ignored)


def refusal(folder):
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ValueError) as caught:
        write_card(folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    (only,) = str(caught.value).splitlines()
    return only


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((("seed",), "1"), (("config",), []), (("config", "model_type"), ["grn"]), (("config", "model_type"), "none")),
        *((("config", "id2label"), {"x": "O"}), (("data", "splits"), {}), (("data", "splits", "train"), {})),
        *((("scores", "test"), {}), (("scores", "test"), {"accuracy": 50.0}), (("scores", "test", "per_length"), 3)),
        *((("curve",), "x"), (("speed",), None), (("model", "file"), 5), (("model", "sha256"), "0" * 64)),
        *(
            (("model", "file"), "../tiny/facts.json"),
            (("options",), {"a": "/home/me/x"}),
            (("inputs",), {"context": []}),
        ),
    ],
)
def test_invalid_facts_are_refused_before_the_model_runs(copied, place, value):
    content = json.loads((copied / "facts.json").read_text())
    inside = content
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    (copied / "facts.json").write_text(json.dumps(content))
    refusal(copied)


@pytest.mark.parametrize(
    "text", ["- a", "a: &a [x]\nb: *a", "1: 2", "self: 1", "[" * 100_000, "d: 2024-13-45", "model-index: [3]"]
)
def test_an_unreadable_card_is_refused_before_the_model_runs(copied, text):
    (copied / "README.md").write_text(f"---\n{text}\n---\n# Mine\n")
    found = refusal(copied)
    assert "README.md: " in found
    assert "; correct the card" in found


@pytest.mark.parametrize(("name", "value"), [("hidden_size", "x"), ("id2label", 3), ("char_widths", {"a": 1})])
def test_a_model_that_does_not_load_gives_a_one_line_error(trained, without_example_process, tmp_path, name, value):
    folder = shutil.copytree(trained, tmp_path / "tiny", ignore=shutil.ignore_patterns("README.md", "checkpoint-*"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, name: value}))
    assert "the model cannot be used" in refusal(folder)


@pytest.mark.parametrize("name", ["facts.json", "model.safetensors", "README.md", "config.json"])
def test_links_out_of_the_folder_are_refused(trained, without_example_process, tmp_path, name):
    folder = tmp_path / "tiny"
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("README.md", "checkpoint-*"))
    elsewhere = tmp_path / name
    elsewhere.write_bytes((folder / name).read_bytes() if (folder / name).exists() else b"private")
    before = elsewhere.read_bytes()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(ValueError, match=f"^{name} lies outside of "):
        write_card(folder)
    assert elsewhere.read_bytes() == before


def test_the_image_is_not_written_through_a_link(trained, without_example_process, tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "tiny"
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("*.png", "README.md", "checkpoint-*"))
    for name in ("learning_curve.png", "README.md"):
        (folder / name).symlink_to(tmp_path / name)
    write_card(folder)
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_the_script_writes_the_card(trained, without_example_process, script, tmp_path):
    (trained / "README.md").unlink(missing_ok=True)
    (tmp_path / "mine.txt").write_text("Nowhere burns .\n\n")
    options = ["--name", "me/tiny", "--licence", "mit", "--base_model", "some/encoder"]
    code, out, _ = script("card.py", trained, "--sentences", "mine.txt", *options)
    assert (code, out) == (0, f"written: {trained / 'README.md'}\n")
    text = (trained / "README.md").read_text()
    assert "license: mit\n" in text and "# me/tiny\n" in text and '"simple")("Nowhere burns .")' in text
    assert "base_model:\n- some/encoder\n" in text
    (trained / "README.md").unlink()
    code, _, errors = script("card.py", tmp_path)
    assert code == 1 and "hf-xorner card: " in errors and "train the model to the end." in errors
