"""The package's recipes and tables: their options, inheritance, and published scores."""

import os
import re
import time

import pytest
import yaml
from conftest import REPOSITORY

from hf_xorner.papers.tables import read_table
from hf_xorner.registration import CONFIGS
from hf_xorner.training import parse
from hf_xorner.training.recipes import ROOT, read_recipe, recipe_names, table_names

PAPERS = ("li2020", "lample2016", "ma2016", "chen2019", "strubell2017")
OF_PAPERS = [name for name in recipe_names() if name.startswith(PAPERS)]
ROWS = [name for name in OF_PAPERS if "/table" in name]

# The published figures once more, by recipe and split, from the papers' texts.
PUBLISHED = {
    ("li2020/table1/baseline-ontonotes", "test"): "87.75 ± 0.14",
    ("li2020/table1/cross-ontonotes", "test"): "88.27 ± 0.17",
    ("li2020/table1/att-ontonotes", "test"): "88.40 ± 0.18",
    ("li2020/table1/baseline", "test"): "40.68 ± 1.78",
    ("li2020/table1/cross", "test"): "42.85 ± 0.99",
    ("li2020/table1/att", "test"): "42.26 ± 0.82",
    ("lample2016/table1/lstm-crf", "test"): "90.94",
    ("lample2016/table1/lstm-crf-no-char", "test"): "90.20",
    ("lample2016/table1/s-lstm", "test"): "90.33",
    ("lample2016/table1/s-lstm-no-char", "test"): "87.96",
    ("lample2016/table5/lstm-crf-char-dropout", "test"): "83.63",
    ("lample2016/table5/s-lstm-char-dropout", "test"): "80.88",
    ("ma2016/table3/brnn", "test"): "85.44",
    ("ma2016/table3/blstm", "test"): "87.00",
    ("ma2016/table3/blstm-cnn", "test"): "89.36",
    ("ma2016/table3/blstm-cnns-crf", "test"): "91.21",
    ("ma2016/table3/blstm-cnns-crf", "validation"): "94.74",
    ("ma2016/table3/blstm-cnns-crf-pos", "test"): "97.55",
    ("ma2016/table6/random", "test"): "80.76",
    ("ma2016/table7/no-dropout", "test"): "89.25",
    ("chen2019/table1/id-cnn-crf", "test"): "90.54 ± 0.18",
    ("chen2019/table1/cnn-bilstm-crf", "test"): "91.17 ± 0.18",
    ("chen2019/table1/cnn-bilstm-att-crf", "test"): "90.24 ± 0.15",
    ("chen2019/table1/grn", "test"): "91.44 ± 0.16",
    ("chen2019/table2/grn-context", "test"): "92.34 ± 0.10",
    ("chen2019/table3/id-cnn-crf", "test"): "86.84 ± 0.19",
    ("chen2019/table3/cnn-bilstm-att-crf", "test"): "87.25 ± 0.17",
    ("chen2019/table3/grn", "test"): "87.67 ± 0.17",
    ("chen2019/table4/no-context", "test"): "88.36",
    ("chen2019/table4/no-context-ontonotes", "test"): "82.21",
    ("chen2019/table4/branch-3", "test"): "90.88",
    ("chen2019/table4/branch-3-ontonotes", "test"): "86.66",
    ("chen2019/table4/no-relation", "test"): "90.13",
    ("chen2019/table4/no-relation-ontonotes", "test"): "85.87",
    ("chen2019/table5/dfn", "test"): "90.72",
    ("chen2019/table5/dfn-ontonotes", "test"): "85.81",
    ("chen2019/table5/gattn", "test"): "87.11",
    ("chen2019/table5/gattn-ontonotes", "test"): "79.83",
}
OF_OTHERS = {
    ("li2020/table1", "crf-bilstm", "ontonotes5-test-f1"): "86.99 ± 0.22",
    ("li2020/table1", "crf-bilstm", "wnut17-test-f1"): "38.24",
    ("chen2019/table6", "grn", "training"): "1.15–1.16",
    ("chen2019/table6", "grn", "test"): "1.08–1.19",
    ("ma2016/table3", "blstm-cnns-crf", "conll2003-test-precision"): "91.35",
    ("ma2016/table3", "blstm-cnns-crf", "conll2003-test-recall"): "91.06",
    ("ma2016/table7", "dropout", "conll2003-test-f1"): "91.21",
    ("ma2016/table5", "lample2016", "conll2003-test-f1"): "90.94",
}


def shown(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def text_of(name):
    return (ROOT / f"{name}.yaml").read_text(encoding="utf-8")


def header_of(name):
    lines = text_of(name).splitlines()
    return "\n".join(lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))])


def published_of(table, figures=("f1", "accuracy")):
    """The published figures of a table by the recipe and split that they are of."""
    for row in table.rows.values():
        for key, value in row.published.items():
            column = table.columns.get(key)
            if column is not None and column.run in row.recipes and column.figure in figures:
                yield (row.recipes[column.run], column.split), shown(value)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_parsed_into_options(name, tmp_path):
    run, training, config_fields = parse([name, "--output_dir", str(tmp_path)])
    assert run.recipe == name
    config = CONFIGS[run.model_type](**config_fields)
    default_run, default_training, _ = parse(["--output_dir", str(tmp_path)])
    defaults = {**vars(CONFIGS[run.model_type]()), **vars(default_run), **vars(default_training)}
    for option, value in read_recipe(name).options.items():
        value = defaults[option] if value is None else value
        holder = next(holder for holder in (config, run, training) if hasattr(holder, option))
        found = getattr(holder, option)
        expected = yaml.safe_load(str(value)) if isinstance(value, str) else value
        expected = float(expected) if isinstance(found, float) else expected
        assert (list(found) if isinstance(found, tuple) else str(found) if run.tag_column == found else found) == (
            str(expected) if run.tag_column == found else expected
        ), option


@pytest.mark.parametrize("name", ROWS)
def test_the_header_names_paper_table_and_score(name):
    work, table, _ = name.split("/")
    header = header_of(name)
    assert f"{work}, Table {table.removeprefix('table')}, row " in header
    assert f"hf-xorner train {name}" in header
    figures = {value for place, value in published_of(read_table(f"{work}/{table}")) if place[0] == name}
    assert all(figure in header for figure in figures)
    # There is no figure in the header that is not the table's.
    assert set(re.findall(r"\b\d\d\.\d\d(?: ± \d\.\d\d)?", header)) == figures


@pytest.mark.parametrize("name", OF_PAPERS)
def test_every_number_has_its_citation(name):
    for line in text_of(name).splitlines():
        if re.match(r"\w+: *[\[\d.-]", line) and not line.startswith("tag_column"):
            assert re.search(rf"# .*({'|'.join(PAPERS)})", line) or line == "fallback: [lower]", line


def test_published_scores_match_the_papers():
    found = {}
    for name in table_names():
        for place, value in published_of(read_table(name)):
            assert found.setdefault(place, value) == value, f"{place} has two figures"
    assert {place: found.get(place) for place in PUBLISHED} == PUBLISHED
    for (name, row, column), value in OF_OTHERS.items():
        assert shown(read_table(name).rows[row].published[column]) == value


def test_each_published_score_is_listed_once():
    seen = {}
    for name in table_names():
        content = yaml.safe_load(text_of(name))
        for key, row in content["rows"].items():
            for column in row.get("published", {}):
                recipe = row.get("recipes", {}).get(content["columns"][column].get("run"))
                place = (recipe, content["columns"][column].get("split"), content["columns"][column].get("figure"))
                if recipe:
                    assert seen.setdefault(place, (name, key)) == (name, key)


def test_rows_of_tables_use_recipes_of_the_package():
    for name in table_names():
        for row in read_table(name).rows.values():
            assert set(row.recipes.values()) <= set(recipe_names())
            assert set(row.vectors) <= set(row.recipes)
    used = {
        recipe for name in table_names() for row in read_table(name).rows.values() for recipe in row.recipes.values()
    }
    assert set(ROWS) == used, "a recipe that no table shows"


def test_options_of_an_ablation_match_the_paper():
    _, training, fields = parse(["ma2016/table7/no-dropout"])
    assert (training.optimizer, training.momentum, training.learning_rate) == ("sgd", 0.9, 0.015)
    assert (training.epoch_decay, training.max_grad_norm, training.per_device_train_batch_size) == (0.05, 5, 10)
    assert fields["dropout"] == fields["feature_dropout"] == fields["char_dropout"] == 0
    run, training, _ = parse(["ma2016/table3/brnn-pos"])
    assert (run.tag_column, training.learning_rate) == ("1", 0.01)
    _, training, _ = parse(["li2020/table1/cross"])
    assert (training.optimizer, training.learning_rate, training.num_train_epochs) == ("nadam", 0.001, 1600)
    _, training, _ = parse(["chen2019/table5/dfn"])
    assert (training.learning_rate, training.epoch_decay, training.num_train_epochs) == (0.02, 0.02, 200)
    _, training, _ = parse(["lample2016/table1/s-lstm"])
    assert (training.learning_rate, training.momentum, training.per_device_train_batch_size) == (0.01, 0, 1)


def test_later_keys_override_and_null_resets(tmp_path):
    (tmp_path / "a.yaml").write_text("hidden_size: 5\ndropout: 0.1\nmax_steps: 3\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\nhidden_size: 6\ndropout: null\n")
    (tmp_path / "c.yaml").write_text("extends: b.yaml\nhidden_size: 7\n")
    run, training, fields = parse([str(tmp_path / "c.yaml")])
    assert (run.recipe, training.max_steps, fields) == ("c", 3, {"hidden_size": 7})
    (tmp_path / "d.yaml").write_text("extends: li2020/base\nhidden_size: 7\n")
    assert read_recipe(str(tmp_path / "d.yaml")).options["num_hidden_layers"] == 2


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a": "extends: b.yaml", "b": "extends: a.yaml"}, r"extends itself: a extends b extends a; take one"),
        ({"a": "extends: a.yaml"}, r"a\.yaml extends itself: a extends a"),
        ({"a": "extends: nothing"}, r"a\.yaml extends 'nothing', which is not a recipe; of the package's the nearest"),
        ({"a": "extends: li2020/bas"}, r"the nearest names are li2020/base"),
        ({"a": "extends: li2020/table1"}, r"extends 'li2020/table1', which is not a recipe"),
        ({"a": "extends: [b, c]"}, r"extends \['b', 'c'\]; name one recipe"),
        ({"a": "1: 2"}, r"does not map options to values"),
        ({"a": ""}, r"does not map options to values"),
        ({"a": "extends: b.yaml", "b": "a: ["}, r"b\.yaml is not valid YAML"),
    ],
)
def test_an_invalid_recipe_gives_a_one_line_error(tmp_path, files, sentence):
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text + "\n")
    with pytest.raises(ValueError, match=sentence):
        parse([str(tmp_path / "a.yaml")])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("li2020/table1/crss", r"'li2020/table1/crss' is unknown: .* the nearest names are li2020/table1/cross"),
        ("li2020/table1", r"is a table, which `hf-xorner reproduce` runs; its recipes are li2020/table1/att,"),
        ("../recipes/li2020/base", r"is unknown"),
        ("nowhere.yaml", r"The recipe nowhere\.yaml cannot be read: No such file"),
    ],
)
def test_an_unknown_recipe_gives_a_one_line_error(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse([name])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"baseline": "c"}, "names the row 'c', but has a"),
        ({"colums": {}}, r"'colums' is unknown; the nearest names are columns"),
        ({"kind": "magic"}, "has the kind 'magic'; choose one of trained"),
        ({"rows": {"a": {"name": "A", "vectors": {"r": "glove"}}}}, "the vectors 'glove' are not described"),
        ({"rows": {"a": {"as": "li2020/table1/crss"}}}, "li2020/table1 has no row 'crss', but crf-bilstm"),
        ({"rows": {"a": {"recipes": {}}}}, "row a: missing 1 required positional argument: 'name'"),
    ],
)
def test_an_invalid_table_gives_a_one_line_error(tmp_path, change, sentence):
    content = {"title": "T", "columns": {"c": {"head": "C"}}, "rows": {"a": {"name": "A"}}}
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(content))
    assert read_table(str(path)).rows["a"].name == "A"
    path.write_text(yaml.safe_dump(content | change))
    with pytest.raises(ValueError, match=sentence):
        read_table(str(path))


def test_recipes_are_part_of_the_wheel():
    tomllib = pytest.importorskip("tomllib", reason="came with Python 3.11")
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["hf_xorner"]
    shipped = {path for pattern in patterns for path in (REPOSITORY / "hf_xorner").glob(pattern)}
    assert set((REPOSITORY / "hf_xorner" / "recipes").rglob("*.yaml")) <= shipped


#: Each list has the one before twice: a gigabyte of them, if they were written out.
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(28))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LAUGHS, "is not valid YAML in line 2: aliases are not supported"),
        ("a: " + "[" * 100_000, "is not valid YAML in line 1: it is nested too deeply"),
        ("a: " + "{b: " * 3_000 + "1" + "}" * 3_000, "is not valid YAML in line 1: it is nested too deeply"),
        ("a: 1\n" * 200_000, "it has more than 262,144 bytes"),
        ("a: 2026-13-01", "is not valid YAML: month must be in 1..12"),
        ("a: !!bool perhaps", "is not valid YAML"),
        (f"a: {'9' * 5000}", "is not valid YAML"),
        ("a: 1\nb: [1,\n", "is not valid YAML in line 3"),
    ],
    ids=["aliases", "lists", "mappings", "bytes", "date", "truth", "number", "end"],
)
def test_oversized_recipes_are_refused(tmp_path, text, sentence):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    started = time.monotonic()
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        parse([str(recipe)])
    assert time.monotonic() - started < 5
    assert str(recipe) in str(caught.value) and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("value", ["[" * 1000, "[1", "&a [*a]", "!!bool perhaps"])
def test_an_invalid_config_value_gives_a_one_line_error(value):
    with pytest.raises(ValueError, match="the command line: the value of 'char_widths' is not valid YAML") as caught:
        parse([f"--char_widths={value}"])
    assert len(str(caught.value).splitlines()) == 1


def test_a_named_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "recipe.yaml")
    with pytest.raises(ValueError, match="cannot be read: it is not a file"):
        parse([str(tmp_path / "recipe.yaml")])


def test_numbers_with_an_exponent_are_parsed():
    """YAML reads 1e-05, which is how Python writes the number, as a string."""
    assert parse(["--initializer_range", "1e-05"])[2] == {"initializer_range": 1e-5}
