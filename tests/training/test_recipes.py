"""The package's recipes and tables: their options, inheritance, and published scores."""

import pytest
from conftest import REPOSITORY

from hf_xorner import CnnLstmCrfConfig, GrnConfig
from hf_xorner.papers.tables import published_text, read_table
from hf_xorner.registration import CONFIGS
from hf_xorner.training import parse
from hf_xorner.training.arguments import arguments_of
from hf_xorner.training.build import build_afresh
from hf_xorner.training.recipes import ROOT, read_recipe, recipe_names, table_names

PAPERS = ("li2020", "lample2016", "ma2016", "chen2019", "strubell2017")
OF_PAPERS = [name for name in recipe_names() if name.startswith(PAPERS)]
ROWS = [name for name in OF_PAPERS if "/table" in name]

# Every published figure once more, from the papers' texts: by table, the cells of each row.
PUBLISHED = {
    "chen2019/table1": (
        "14,987 | 59,924; 204,567 | 1,088,503; 23,499 | 81,828; 3,466 | 8,528; 51,578 | 147,724; 5,942 | 11,066; "
        "3,684 | 8,262; 46,666 | 152,728; 5,648 | 11,257"
    ).split("; "),
    "chen2019/table2": (
        "90.54 ± 0.18 | – | – | –; 91.17 ± 0.18 | 91.45 | – | –; 90.24 ± 0.15 | 90.48 | – | –; 91.44 ± 0.16 | "
        "91.67 | 91.31 | 91.57; 92.34 ± 0.10 | 92.45 | 92.04 | 92.65"
    ).split("; "),
    "chen2019/table3": "86.84 ± 0.19 | – | –; 87.25 ± 0.17 | – | –; 87.67 ± 0.17 | 87.79 | 87.56".split("; "),
    "chen2019/table4": ("88.36 ± 0.21; 90.88 ± 0.22; 90.13 ± 0.28; 90.72 ± 0.06; 87.11 ± 0.25; 91.44 ± 0.16").split(
        "; "
    ),
    "chen2019/table5": ("82.21 ± 0.23; 86.66 ± 0.21; 85.87 ± 0.16; 85.81 ± 0.14; 79.83 ± 0.37; 87.67 ± 0.17").split(
        "; "
    ),
    "chen2019/table6": "– | – | – | –; 1.16 | 1.19 | 1.15 | 1.08".split("; "),
    "lample2016/table1": "90.20; 90.94; 87.96; 90.33".split("; "),
    "lample2016/table2": "75.06; 78.76; 65.87; 75.66".split("; "),
    "lample2016/table3": "73.14; 81.74; 69.90; 79.88".split("; "),
    "lample2016/table4": "83.44; 85.75; 79.46; 83.93".split("; "),
    "lample2016/table5": ("89.15; 83.63; 88.39; 89.77; 90.20; 90.94; 80.88; 86.67; 89.32; 87.96; 90.33").split("; "),
    "li2020/table1": (
        "86.04 | 86.53 | 86.28 ± 0.26 | – | – | –; – | – | 86.84 ± 0.19 | – | – | –; – | – | 86.99 ± 0.22 | – | – "
        "| 38.24; 88.37 | 87.14 | 87.75 ± 0.14 | 53.24 | 32.93 | 40.68 ± 1.78; 88.37 | 88.17 | 88.27 ± 0.17 | "
        "58.28 | 33.92 | 42.85 ± 0.99; 88.71 | 88.11 | 88.40 ± 0.18 | 55.82 | 34.08 | 42.26 ± 0.82"
    ).split("; "),
    "li2020/table2": (
        "1088.5 thousand | 62.7 thousand; 81.8 thousand | 1.9 thousand; 147.7 thousand | 15.7 thousand; 11.0 "
        "thousand | 0.8 thousand; 152.7 thousand | 23.3 thousand; 11.2 thousand | 1.0 thousand"
    ).split("; "),
    "li2020/table3": (
        "– | – | – | – | – | – | – | –; +3.0 | +4.1 | +4.5 | +3.3 | +2.1 | +6.4 | +3.2 | +8.6; +4.6 | +0.8 | +0.8 "
        "| +3.4 | +5.6 | +0.3 | +2.0 | +5.3"
    ).split("; "),
    "li2020/table4": (
        "– | – | – | – | – | – | – | –; +0.3 | +0.6 | +1.8 | +1.3 | +1.7 | +2.9 | +8.7 | +5.4; +0.1 | +1.1 | +2.3 "
        "| +1.8 | +1.5 | +2.0 | +2.6 | +0.9"
    ).split("; "),
    "li2020/table5": (
        "99.05 | 93.74 | 90.99 | 90.09 | 93.23 | – | – | – | – | –; -1.68 | 2.69 | 1.21 | -28.18 | 2.00 | – | – | "
        "– | – | –; 0.75 | -91.02 | -52.26 | -3.80 | -71.50 | – | – | – | – | –; 0.95 | -90.56 | -90.78 | -87.93 "
        "| -93.12 | – | – | – | – | –; -1.67 | -90.88 | -88.08 | -60.56 | -36.45 | – | – | – | – | –; -45.57 | "
        "-25.61 | -90.88 | -50.19 | -39.19 | – | – | – | – | –; -0.81 | -86.25 | -12.21 | -57.19 | -91.90 | – | – "
        "| – | – | –; -35.46 | -84.32 | -87.45 | -79.63 | -90.83 | – | – | – | – | –; -0.03 | 0.13 | -0.63 | "
        "-0.41 | -0.38 | – | – | – | – | –"
    ).split("; "),
    "ma2016/table2": (
        "38,219 | 14,987; 912,344 | 204,567; 5,527 | 3,466; 131,768 | 51,578; 5,462 | 3,684; 129,654 | 46,666"
    ).split("; "),
    "ma2016/table3": (
        "96.56 | 96.76 | 92.04 | 89.13 | 90.56 | 87.05 | 83.88 | 85.44; 96.88 | 96.93 | 92.31 | 90.85 | 91.57 | "
        "87.77 | 86.23 | 87.00; 97.34 | 97.33 | 92.52 | 93.64 | 93.07 | 88.53 | 90.21 | 89.36; 97.46 | 97.55 | "
        "94.85 | 94.63 | 94.74 | 91.35 | 91.06 | 91.21"
    ).split("; "),
    "ma2016/table4": "97.55".split("; "),
    "ma2016/table5": ("88.31; 88.76; 89.31; 89.59; 90.10; 90.77; 90.80; 90.90; 90.90; 90.94; 91.20; 91.21").split("; "),
    "ma2016/table6": "97.13 | 80.76; 97.44 | 90.28; 97.40 | 84.91; 97.55 | 91.21".split("; "),
    "ma2016/table7": (
        "98.46 | 97.06 | 97.11 | 99.97 | 93.51 | 89.25; 97.86 | 97.46 | 97.55 | 99.63 | 94.74 | 91.21"
    ).split("; "),
    "ma2016/table8": (
        "127,247 | 125,826 | 4,616 | 3,773; 2,960 | 2,412 | 1,087 | 1,597; 659 | 588 | 44 | 8; 902 | 828 | 195 | 270"
    ).split("; "),
    "ma2016/table9": (
        "97.57 | 93.75 | 90.29 | 80.27 | 97.55 | 93.45 | 90.14 | 80.07 | 94.83 | 87.28 | 96.55 | 82.90 | 90.07 | "
        "89.45 | 100.00 | 78.44; 97.68 | 93.65 | 91.05 | 82.71 | 97.77 | 93.16 | 90.65 | 82.49 | 96.49 | 88.63 | "
        "97.67 | 86.91 | 92.14 | 90.73 | 100.00 | 80.60"
    ).split("; "),
}


def text_of(name):
    return (ROOT / f"{name}.yaml").read_text(encoding="utf-8")


def test_every_recipe_is_read_into_options():
    default_run, default_training, _ = parse([])
    for name in recipe_names():
        run, training, config_fields = parse([name])
        assert run.recipe == name
        config = CONFIGS[run.model_type](**config_fields)
        defaults = {**vars(CONFIGS[run.model_type]()), **vars(default_run), **vars(default_training)}
        for option, value in read_recipe(name).options.items():
            holder = next(holder for holder in (config, run, training) if hasattr(holder, option))
            value = defaults[option] if value is None else str(value) if option == "tag_column" else value
            read = getattr(holder, option)
            assert (list(read) if isinstance(read, tuple) else read) == value, (name, option)


def test_every_published_figure_matches_the_paper():
    for name, rows in PUBLISHED.items():
        table = read_table(name)
        cells = [[published_text(row.published.get(column)) for column in table.columns] for row in table.rows.values()]
        assert [" | ".join(row) for row in cells] == rows, name


def test_every_published_figure_has_a_recipe_or_a_reason():
    """It is counted, its row has a recipe for it, its column names what is missing, or its row is another system's."""
    without = set()
    for name in table_names():
        table = read_table(name)
        for key, row in table.rows.items():
            columns = [table.columns[column] for column in row.published if column in table.columns]
            counted = table.kind != "trained" and row.figure
            if not all(counted or column.missing or column.run in row.recipes for column in columns):
                without.add(f"{name}/{key}")
    others = "chieu2002 florian2003 ando2005 collobert2011 huang2015 chiu2015 ratinov2009 lin2009 passos2014 luo2015"
    expected = {f"ma2016/table5/{key}" for key in others.split()}
    assert without == expected | {"li2020/table1/bilstm-cnn", "li2020/table1/crf-bilstm"}


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


def test_spellings_of_ma2016_start_from_the_lower_cased_vector_and_are_tuned_apart(tmp_path):
    (tmp_path / "glove.txt").write_text("said" + " 0.5" * 100 + "\nup" + " 0.25" * 100 + "\n", encoding="utf-8")
    run, _, fields = parse(["ma2016/table3/blstm", "--vectors", str(tmp_path / "glove.txt")])
    tokenizer, model, _ = build_afresh(run, [["said", "Said"]], ["O", "B-PER", "I-PER"], fields)
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
        ({"a": ""}, "does not map options to values"),
        ({"a": "extends: b.yaml", "b": "a: 1\nb: [1,\n"}, "b.yaml is not valid YAML: .* line 4"),
    ):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text + "\n")
        with pytest.raises(ValueError, match=sentence) as error:
            arguments_of({}, str(tmp_path / "a.yaml"))
        assert len(str(error.value).splitlines()) == 1
    for name, sentence in (
        ("li2020/table1/crss", "is unknown: .* the nearest names are li2020/table1/cross"),
        ("li2020/table1", "is a table, which `hf-xorner reproduce` runs; its recipes are li2020/table1/att,"),
    ):
        with pytest.raises(ValueError, match=sentence):
            arguments_of({}, name)


def test_recipes_are_part_of_the_wheel():
    tomllib = pytest.importorskip("tomllib", reason="came with Python 3.11")
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["hf_xorner"]
    shipped = {path for pattern in patterns for path in (REPOSITORY / "hf_xorner").glob(pattern)}
    assert set((REPOSITORY / "hf_xorner" / "recipes").rglob("*.yaml")) <= shipped
