"""The package's recipes and tables: their options, inheritance, and published scores."""

import re
import tomllib
import zlib

import pytest
from conftest import REPOSITORY

from hf_xorner import CnnLstmCrfConfig, GrnConfig
from hf_xorner.papers.tables import published_text, read_table
from hf_xorner.registration import CONFIGS
from hf_xorner.training import parse
from hf_xorner.training.arguments import arguments_of
from hf_xorner.training.build import build_new
from hf_xorner.training.recipes import read_recipe, recipe_names, table_names

PAPERS = ("li2020", "lample2016", "ma2016", "chen2019", "strubell2017")
OF_PAPERS = [name for name in recipe_names() if name.startswith(PAPERS)]
ROWS = [name for name in OF_PAPERS if "/table" in name or "/section" in name]

#: Of all published figures, when they were compared with the papers' texts.
CHECKSUM = 2043631839


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


def test_published_figures_are_those_that_were_compared_with_the_papers():
    figures = [
        (name, key, column, published_text(row.published.get(column)))
        for name in sorted(table_names())
        for table in [read_table(name)]
        for key, row in table.rows.items()
        for column in table.columns
    ]
    assert len(figures) > 300 and zlib.crc32(repr(figures).encode()) == CHECKSUM


def test_every_published_figure_has_a_recipe_or_a_reason():
    """It is counted, its row has a recipe for it, its column names what is missing, or its row cites another paper."""
    without = set()
    for name in table_names():
        table = read_table(name)
        for key, row in table.rows.items():
            columns = [table.columns[column] for column in row.published if column in table.columns]
            counted = table.kind != "trained" and row.figure
            cites = re.search(r"\b(19|20)\d\d", row.name)
            if not (cites or all(counted or column.missing or column.run in row.recipes for column in columns)):
                without.add(f"{name}/{key}")
    assert without == {"li2020/table1/bilstm-cnn", "li2020/table1/crf-bilstm"}


def test_rows_of_tables_use_recipes_of_the_package():
    rows = [row for name in table_names() for row in read_table(name).rows.values()]
    assert all(set(row.vectors) <= set(row.recipes) for row in rows)
    used = {recipe for row in rows for recipe in row.recipes.values()}
    assert used <= set(recipe_names())
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
    _, training, fields = parse(["chen2019/table3/id-cnn-crf"])
    assert (training.learning_rate, training.adam_beta2, training.per_device_train_batch_size) == (1e-4, 0.999, 32)
    assert (fields["dropout"], fields["word_dropout"], fields["dropout_penalty"]) == (0.75, 0.15, 1e-6)
    for row in ("ma2016/table3/blstm-cnn", "lample2016/table5/lstm"):
        assert parse([row])[2]["loss_reduction"] == "token"
    _, training, _ = parse(["lample2016/table1/s-lstm"])
    assert (training.learning_rate, training.momentum, training.per_device_train_batch_size) == (0.01, 0, 1)


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


def test_both_taggers_of_the_speed_table_have_one_character_layer():
    for row, run in read_table("chen2019/table6").rows["grn"].recipes.items():
        name = read_table("chen2019/table6").rows["cnn-bilstm-crf"].recipes[row]
        (_, _, fields), (_, _, others) = parse([run]), parse([name])
        ours, theirs = GrnConfig(**fields), CnnLstmCrfConfig(**others)
        shared = {field for field in vars(ours) if field.startswith("char_")} | {"max_word_chars"}
        shared.remove("char_padding")  # not read with centred windows
        assert {field: getattr(theirs, field) for field in shared} == {field: getattr(ours, field) for field in shared}


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
