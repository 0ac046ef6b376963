"""The model card: its content, its metadata, and the escaping of names."""

import copy
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean, stdev

import pytest
from huggingface_hub import ModelCard

from hf_xorner.cli import main
from hf_xorner.hub import card as module
from hf_xorner.hub.card import Card, error_rows, write_card
from hf_xorner.registration import CONFIGS
from hf_xorner.training.arguments import parse
from hf_xorner.training.run import prepare

HOSTILE = [
    "a|b",
    "<script>alert(1)</script>",
    "x\n---\nlicense: mit",
    "-->",
    "`` ` ```",
    "[go](https://example.com) ![x](y) www.example.com",
    "*bold* __bold__ ~~gone~~ $x$ \\| &lt;",
    "- name: {a: b} # {{ card }} {% raw %}",
    "\u202eright to left\u2028next",
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tiny model with its facts."""
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
def folder(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "tiny"))


@pytest.fixture
def facts(trained):
    return json.loads((trained / "facts.json").read_text())


@pytest.fixture
def without_process(monkeypatch):
    """Skip the process that runs the usage snippet."""
    monkeypatch.setattr(module, "run_without_package", lambda *_: "{'entity_group': 'LOC', 'word': 'Annaville'}")


def changed(facts, *keys, value):
    """A copy of the facts with another value under nested keys."""
    content = inside = copy.deepcopy(facts)
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return content


def test_the_card_has_the_facts_of_the_run(folder, facts, without_process):
    text = write_card(folder, sentences=["Vilm ."]).read_text()
    scores = facts["scores"]["test"]
    for line in (
        "# tiny",
        "| train | 24 | 96 | 24 |",
        "| LOC | 24 | 6 | 6 |",
        '| `dataset` | `"towns"` |',
        "| `hidden_size` | `4` |",
        f"| all | {scores['precision']:.2f} | {scores['recall']:.2f} | {scores['f1']:.2f} | 6 |",
        facts["command"],
        f"SHA-256 of `model.safetensors`: `{hashlib.sha256((folder / 'model.safetensors').read_bytes()).hexdigest()}`",
    ):
        assert line in text.splitlines(), line
    assert CONFIGS["cross-bilstm-cnn"].citation in text
    assert str(folder.parent) not in text and "brightly" not in text  # nothing of this machine or of the corpus


def test_the_card_has_the_learning_curve(folder, without_process):
    assert "](learning_curve.png)" in write_card(folder).read_text()
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_usage_on_the_card_is_run(folder, forked_offline):
    text = write_card(folder, sentences=["Vilm ."]).read_text()
    assert '("ner", "tiny", trust_remote_code=True, aggregation_strategy="simple")("Vilm .")' in text
    assert re.search(r"```text\n\{'entity_group': 'LOC'.*\n```|It finds nothing in this sentence\.", text)


def test_the_command_takes_examples_from_the_corpus(folder, without_process, capsys):
    examples = (folder / "examples.txt").read_text().splitlines()
    assert len(examples) == 3
    main("card", [str(folder)])
    assert {row["text"] for row in ModelCard((folder / "README.md").read_text()).data.widget} <= set(examples)
    assert "of the corpus" in capsys.readouterr().out
    text = write_card(folder, overwrite=True).read_text()  # as `publish` does
    assert not any(example in text for example in examples)


def test_the_metadata_are_those_of_the_hub(facts):
    options = {"license": "mit", "language": "en", "dataset_id": "some/towns", "dataset_revision": "abc"}
    data = ModelCard(Card("me/tiny", facts, sentences=("A B .",), **options).text()).data
    assert (data.license, data.language, data.library_name, data.datasets) == (
        "mit",
        "en",
        "transformers",
        ["some/towns"],
    )
    assert data.widget == [{"text": "A B ."}]
    assert "CrossBiLstmCnnForTokenClassification" in data.tags
    assert len(data.eval_results) == 6
    for result in data.eval_results:
        assert (result.dataset_type, result.dataset_revision) == ("some/towns", "abc")
        score = facts["scores"][result.dataset_split][result.metric_type]
        assert result.metric_value == pytest.approx(score / 100, abs=1e-6)


def test_an_encoder_is_the_base_model(facts):
    local = changed(facts, "inputs", value={"context": {"name": "encoder", "bytes": 1, "sha256": "0" * 64}})
    named = changed(facts, "inputs", value={"context": {"name": "some/encoder"}, "vectors": {"name": "a.txt"}})
    both = ["some/encoder", "other/encoder"]
    for inputs, options, base in ((named, [], both[:1]), (local, [], None), (local, both, both), (named, both, both)):
        assert ModelCard(Card("x", inputs, base_models=tuple(options)).text()).data.base_model == base


def test_plain_labels_have_accuracies(facts):
    splits = {name: {"sentences": 2, "tokens": 4, "per_tag": {"DT": 2, "NN": 2}} for name in ("train", "test")}
    plain = changed(facts, "data", "splits", value=splits)
    plain = changed(plain, "scores", value={"test": {"accuracy": 75.0}})
    plain = changed(plain, "config", "id2label", value={"1": "NN", "0": "DT"})
    text = Card("x", plain).text()
    assert "one label: DT, NN.\n" in text and "| all | 75.00 |" in text and "entities" not in text
    data = ModelCard(text).data
    assert [result.metric_type for result in data.eval_results] == ["accuracy"]
    assert "named-entity-recognition" not in data.tags


def test_without_held_out_data_there_are_no_scores(facts):
    splits = {"train": facts["data"]["splits"]["train"]}
    text = Card("x", changed(changed(facts, "data", "splits", value=splits), "scores", value={})).text()
    assert "### " not in text and ModelCard(text).data.eval_results is None


@pytest.fixture
def other_seeds(facts):
    """The facts of runs with other seeds, whose F1 is 10 and 25."""
    runs = []
    for seed, f1 in ((1, 10.0), (2, 25.0)):
        run = changed(facts, "seed", value=seed)
        run["options"]["seed"] = seed
        for scores in run["scores"].values():
            scores["f1"] = f1
        runs.append(run)
    return runs


def test_seeds_are_reported_as_mean_and_standard_deviation(facts, other_seeds):
    text = Card("x", facts, tuple(other_seeds)).text()
    values = [10.0, 25.0, facts["scores"]["test"]["f1"]]
    assert f"| {mean(values):.2f} ± {stdev(values):.2f} |" in text
    result = [result for result in ModelCard(text).data.eval_results if result.metric_type == "f1"][-1]
    assert result.metric_value == pytest.approx(mean(values) / 100, abs=1e-6)


def test_runs_that_differ_in_more_than_the_seed_are_refused(facts, other_seeds):
    vectors = changed(other_seeds[0], "inputs", value={"vectors": {"name": "vectors.txt", "sha256": "0"}})
    for run in (facts, changed(other_seeds[0], "options", "dropout", value=0.9), vectors):
        with pytest.raises(ValueError, match="seed"):
            Card("x", facts, (run,))


def test_errors_are_counted_by_type(facts):
    confusion = {
        "types": ["A", "B"],
        "matrix": [[30, 4], [9, 20]],
        "boundary": {"A": 1, "B": 0},
        "boundary_and_type": {"A": 2, "B": 4},
        "missed": {"A": 3, "B": 7},
        "support": {"A": 40, "B": 40},
        "spurious": {"A": 8, "B": 1200},
    }
    scores = {**facts["scores"]["test"], "confusion": confusion}
    text = Card("x", changed(facts, "scores", "test", value=scores)).text()
    # Type, entities, found, another type, wrong boundary, both, missed, and what is no entity.
    assert "| B | 40 | 20 | 9 | 0 | 4 | 7 | 1,200 |" in text
    assert "B as A (9), A as B (4)" in text
    assert all(row[1] == sum(row[2:7]) for row in error_rows(confusion))


# --- Names with special characters ------------------------------------------------------------------------------------


def hostile_card(facts, name):
    spoilt = copy.deepcopy(facts)
    spoilt["config"]["id2label"] = {"0": "O", "1": f"B-{name}", "2": f"I-{name}"}
    spoilt["data"]["source"] = spoilt["options"]["dataset"] = name
    spoilt["inputs"] = {"vectors": {"name": name}}
    for split in spoilt["data"]["splits"].values():
        split["per_type"] = {name: 6}
    for scores in spoilt["scores"].values():
        scores["per_type"] = {name: scores["per_type"]["LOC"]}
        confusion = scores["confusion"]
        types = [name, f"not {name}"]
        counts = {key: dict.fromkeys(types, 1) for key in confusion}
        scores["confusion"] = {**counts, "types": types, "matrix": [[4, 1], [0, 0]]}
    return Card(name, spoilt, usage=module._usage(name, name), output="none", sentences=(name,)).text()


class Page(HTMLParser):
    """The tags of a page, and its text outside of blocks of code."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.is_code = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, *attributes))
        self.is_code |= tag == "pre"

    def handle_endtag(self, tag):
        self.is_code &= tag != "pre"

    def handle_data(self, data):
        self.text += "" if self.is_code else data


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_escaped(facts, name):
    renderer = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    harmless = Page(renderer.render(ModelCard(hostile_card(facts, "LOC")).text))
    card = ModelCard(hostile_card(facts, name))
    written = " ".join(name.replace("\u202e", " ").split())
    assert card.data.license is None and len(card.data.eval_results) == 6
    assert card.data.widget[0]["text"] == written
    page = Page(renderer.render(card.text))
    # The page has the tags that it has for a harmless name, except for code in a line.
    assert [tag for tag in page.tags if tag[0] != "code"] == [tag for tag in harmless.tags if tag[0] != "code"]
    assert page.text.count(written) >= harmless.text.count("LOC") - 1 > 8  # the option's value is JSON
    assert "\u202e" not in card.text and "www.e" not in re.sub(r"`+[^`]*`+", "", card.text)
    usage = module._usage(name, name)
    assert compile(usage, "usage", "exec") and len(usage.splitlines()) == 2


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_an_existing_card_is_replaced_only_on_request(folder, script, without_process):
    (folder / "README.md").write_text("mine")
    code, _, errors = script("card", folder)
    assert code == 1 and "README.md exists" in errors
    assert (folder / "README.md").read_text() == "mine"
    code, out, errors = script("card", folder, "--overwrite", "--license", "mit")
    assert code == 0 and out.startswith(f"written: {folder / 'README.md'}\n"), errors
    assert "license: mit\n" in (folder / "README.md").read_text()


def test_sentences_of_a_file_are_the_examples(folder, script, without_process, tmp_path):
    (tmp_path / "mine.txt").write_text("Nowhere burns .\n\n")
    assert script("card", folder, "--name", "me/tiny", "--sentences", "mine.txt", "--overwrite")[0] == 0
    text = (folder / "README.md").read_text()
    assert "# me/tiny\n" in text and '"simple")("Nowhere burns .")' in text


def test_facts_of_other_weights_and_foreign_code_are_refused(folder, without_process, monkeypatch):
    monkeypatch.setattr(module.Tagger, "from_pretrained", lambda *_, **__: pytest.fail("the model was loaded"))
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="the weights are not those of"):
        write_card(folder)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "tags.py").write_text("print()")
    with pytest.raises(ValueError, match=r"tags\.py differs from this version"):
        write_card(folder)
    assert not (folder / "README.md").exists()


@pytest.mark.parametrize("missing", [("curve",), ("data", "splits", "train"), ("scores",), ("config",), None], ids=str)
def test_facts_that_lack_something_are_refused(folder, facts, without_process, missing):
    (folder / "facts.json").write_text(json.dumps(changed(facts, *missing, value=None)) if missing else "[]")
    with pytest.raises(ValueError, match=r"facts\.json is not complete"):
        write_card(folder)


@pytest.mark.parametrize("name", ["/dev/zero", "../other.safetensors"])
def test_the_weights_are_those_in_the_folder_whatever_the_facts_name(folder, facts, without_process, name):
    (folder / "facts.json").write_text(json.dumps(changed(facts, "model", "file", value=name)))
    write_card(folder, overwrite=True)
