"""The package's recipes and tables: their options, inheritance, and published scores."""

import tomllib

import pytest
from conftest import REPOSITORY

from hf_xorner.papers.tables import read_table
from hf_xorner.registration import CONFIGS
from hf_xorner.training.arguments import arguments_of, parse
from hf_xorner.training.build import build_new
from hf_xorner.training.recipes import read_recipe, recipe_names, table_names

PAPERS = ("li2020", "lample2016", "ma2016", "chen2019", "strubell2017")
OF_PAPERS = [name for name in recipe_names() if name.startswith(PAPERS)]
ROWS = [name for name in OF_PAPERS if "/table" in name or "/section" in name]


def test_every_recipe_is_read_into_options():
    default_run, default_training, _ = parse([])
    for name in recipe_names():
        run, training, config_fields = parse([name])
        assert run.recipe == name
        config = CONFIGS[run.model_type](**config_fields)
        defaults = {**vars(CONFIGS[run.model_type]()), **vars(default_run), **vars(default_training)}
        for option, value in read_recipe(name).options.items():
            holder = next(holder for holder in (run, training, config) if hasattr(holder, option))
            value = defaults[option] if value is None else str(value) if option == "tag_column" else value
            read = getattr(holder, option)
            assert (list(read) if isinstance(read, tuple) else read) == value, (name, option)


@pytest.fixture(scope="module")
def tables():
    return {name: read_table(name) for name in sorted(table_names())}


def test_rows_of_tables_use_recipes_of_the_package(tables):
    rows = [row for table in tables.values() for row in table.rows.values()]
    assert all(set(row.vectors) <= set(row.recipes) for row in rows)
    used = {recipe for row in rows for recipe in row.recipes.values()}
    assert used <= set(recipe_names())
    assert set(ROWS) == used, "a recipe that no table shows"


def test_spellings_of_ma2016_start_from_the_lower_cased_vector_and_are_tuned_apart(tmp_path):
    (tmp_path / "glove.txt").write_text("said" + " 0.5" * 100 + "\nup" + " 0.25" * 100 + "\n", encoding="utf-8")
    run, _, fields = parse(["ma2016/table3/blstm", "--vectors", str(tmp_path / "glove.txt")])
    tokenizer, model, _ = build_new(run, [["said", "Said"]], ["O", "B-PER", "I-PER"], fields)
    ids = tokenizer.convert_tokens_to_ids(["said", "Said", "up", "Up", "Osaka"])
    assert len({*ids}) == 4 and ids[2] == ids[3]  # training has Said, and not Up
    rows = model.features.words.weight[ids]
    assert (rows[:2] == 0.5).all() and (rows[2:4] == 0.25).all()
    for name in ("ma2016/table6/random", "ma2016/table6/random-pos", "ma2016/table6/word2vec"):
        assert (parse([name])[0].casing, parse([name])[0].fallback) == ("keep", [])


def test_later_keys_override_and_null_resets(tmp_path):
    (tmp_path / "a.yaml").write_text("hidden_size: 5\ndropout: 0.1\nmax_steps: 3\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\nhidden_size: 6\ndropout: null\n")
    (tmp_path / "c.yaml").write_text("extends: b.yaml\nhidden_size: 7\n")
    run, training, fields = parse([str(tmp_path / "c.yaml")])
    assert (run.recipe, training.max_steps, fields) == ("c", 3, {"hidden_size": 7})
    (tmp_path / "d.yaml").write_text("extends: li2020/base\nhidden_size: 7\n")
    assert read_recipe(str(tmp_path / "d.yaml")).options["num_hidden_layers"] == 2


def test_faulty_recipes_are_refused_with_their_name(tmp_path):
    for files, sentence in (
        ({"a": "extends: b.yaml", "b": "extends: a.yaml"}, "extends itself: a extends b extends a"),
        ({"a": "extends: li2020/bas"}, "the nearest names are li2020/base"),
        ({"a": "1: 2"}, "does not map options to values"),
        ({"a": "b: &x [1]\nc: [*x, *x]"}, "a.yaml is not valid YAML: aliases"),
        ({"a": ""}, "does not map options to values"),
        ({"a": "extends: b.yaml", "b": "a: 1\nb: [1,\n"}, "b.yaml is not valid YAML: .* line 4"),
    ):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text + "\n")
        with pytest.raises(ValueError, match=sentence) as error:
            arguments_of({}, str(tmp_path / "a.yaml"))
        assert len(str(error.value).splitlines()) == 1


def test_recipes_are_part_of_the_wheel():
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["hf_xorner"]
    shipped = {path for pattern in patterns for path in (REPOSITORY / "hf_xorner").glob(pattern)}
    assert set((REPOSITORY / "hf_xorner" / "recipes").rglob("*.yaml")) <= shipped
