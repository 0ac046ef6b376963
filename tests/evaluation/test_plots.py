import builtins

import numpy as np
import pytest
from matplotlib.image import imread
from processes import run_python

from hf_xorner.evaluation import plots
from hf_xorner.evaluation.calibration import calibration
from hf_xorner.evaluation.plots import draw

FILES = ["confusion.png", "per_type.png", "reliability.png"]


def report_of(types, seed=0):
    """A report on so many types, with numbers at random."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 9, (len(types), len(types))) * (rng.random((len(types), len(types))) < 0.4)
    np.fill_diagonal(matrix, rng.integers(20, 12_000, len(types)))
    confidences = rng.beta(5, 1, 500)

    def numbers():
        return dict(zip(types, rng.integers(0, 30, len(types)).tolist(), strict=True))

    return {
        "f1": 50.0,
        "confusion": {
            "types": list(types),
            "matrix": matrix.tolist(),
            **{key: numbers() for key in ("boundary", "boundary_and_type", "missed", "inexact", "spurious")},
        },
        "per_type": {
            name: {**dict(zip(("precision", "recall", "f1"), rng.random(3) * 100, strict=True)), "support": 7}
            for name in types
        },
        "calibration": calibration(confidences, rng.random(500) < confidences),
    }


def confusion_of(types, matrix, **outcomes):
    """A confusion whose other outcomes are 0."""
    zero = dict.fromkeys(types, 0)
    keys = ("boundary", "boundary_and_type", "missed", "inexact", "spurious")
    return {"types": types, "matrix": matrix, **dict.fromkeys(keys, zero), **outcomes}


def pixels(path):
    """The pixels of an image: height, width, colours; 0 is black and 1 is white."""
    assert path.read_bytes().startswith(b"\x89PNG")
    return imread(path)[..., :3]


def share_of_colour(image, colour):
    """The share of pixels in a colour given in hexadecimal digits."""
    wanted = np.array([int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)])
    return (np.abs(image - wanted) < 0.01).all(axis=-1).mean()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [1, 20])
def test_every_plot_is_drawn(tmp_path, count):
    """Pictures grow with the types, and are neither blank nor black."""
    written = draw(report_of([f"TYPE_{index}" for index in range(count)]), tmp_path / "new" / "plots")
    assert [path.name for path in written] == FILES
    for path in written:
        height, width, _ = pixels(path).shape
        assert (900 if count == 20 and path.name != "reliability.png" else 200) < height < 2500
        assert 400 < width < 2500
        assert 0.1 < (pixels(path) > 0.99).all(axis=-1).mean() < 0.98


def test_bar_lengths_are_proportional_to_scores(tmp_path):
    shares = []
    for score in (25.0, 50.0, 100.0):
        row = {"precision": score, "recall": 2 * score / 5, "f1": 0.0, "support": 3}
        (path,) = draw({"per_type": {"PER": row}}, tmp_path)
        image = pixels(path)
        above_legend = image[: int(0.75 * len(image))]
        shares.append(
            [
                share_of_colour(above_legend, "#0072B2"),
                share_of_colour(above_legend, "#E69F00"),
                share_of_colour(above_legend, "#009E73"),
            ]
        )
    blue, orange, green = np.array(shares).T
    assert blue / blue[-1] == pytest.approx([0.25, 0.5, 1], abs=0.02)
    assert orange / blue == pytest.approx([0.4, 0.4, 0.4], abs=0.04)
    assert green == pytest.approx([0, 0, 0], abs=1e-3)


def test_cell_darkness_follows_the_shares(tmp_path):
    def darkness(matrix, missed):
        confusion = confusion_of(["A", "B"], matrix, missed={"A": missed, "B": 0})
        (path,) = draw({"confusion": confusion}, tmp_path)
        image = pixels(path)
        return share_of_colour(image, "#08306b")  # the darkest of the map, also at the end of its scale

    assert darkness([[90, 0], [0, 5]], 0) > darkness([[45, 45], [0, 5]], 0) > 0
    assert darkness([[90, 0], [0, 5]], 0) > darkness([[90, 0], [0, 5]], 90)


def middles(image, colour):
    """The mean row and column of the pixels of a colour."""
    wanted = np.array([int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)])
    return np.argwhere((np.abs(image - wanted) < 0.01).all(axis=-1)).mean(axis=0)


def test_rows_are_gold_and_columns_are_predicted(tmp_path):
    found = []
    for gold, predicted in ((0, 2), (2, 0)):
        matrix = np.zeros((3, 3), dtype=int)
        matrix[gold, predicted] = 2
        (path,) = draw({"confusion": confusion_of(["A", "B", "C"], matrix.tolist())}, tmp_path)
        image = pixels(path)[:, :-140]  # without the bar of colours
        found.append(middles(image, "#08306b") / image.shape[:2])
    (down, across), (further_down, less_across) = found
    assert further_down - down > 0.2
    assert across - less_across > 0.15


def test_the_most_frequent_type_is_on_top(tmp_path):
    zero = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    for frequent, above in ((9, True), (1, False)):
        per_type = {"A": {**zero, "support": 5}, "B": {**zero, "recall": 100.0, "support": frequent}}
        (path,) = draw({"per_type": per_type}, tmp_path)
        image = pixels(path)
        upper = image[: int(0.75 * len(image))]  # without the legend
        assert (middles(upper, "#E69F00")[0] < 0.4 * len(image)) == above


def test_only_sections_of_the_report_are_drawn(tmp_path):
    report = report_of("AB")
    assert [path.name for path in draw({"per_type": report["per_type"]}, tmp_path / "one")] == ["per_type.png"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["per_type.png"]


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"accuracy": 97.0},
        {"per_type": {}, "calibration": calibration([], []), "confusion": {"types": [], "matrix": []}},
        {"per_type": None, "calibration": None, "confusion": None},
    ],
    ids=["empty", "plain", "no spans", "nulls"],
)
def test_empty_reports_draw_nothing(tmp_path, report):
    assert draw(report, tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()


def test_a_report_with_zero_counts_is_drawn(tmp_path):
    confusion = confusion_of(["A"], [[0]])
    assert len(draw({"confusion": confusion, "calibration": calibration([0.0], [False])}, tmp_path)) == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("types", [["$A_", "B$", "$\\frac$", "{}%"], ["a-long-name-of-a-type" * 3, "X"]])
def test_type_names_are_drawn_as_plain_text(tmp_path, types):
    (tmp_path / "confusion.png").write_text("replaced")
    assert len(draw(report_of(types), tmp_path)) == 3
    assert (tmp_path / "confusion.png").read_bytes().startswith(b"\x89PNG")


def test_the_state_of_matplotlib_is_not_changed(tmp_path):
    program = f"""
import sys
from hf_xorner.evaluation import plots
assert "matplotlib" not in sys.modules
import matplotlib
# Asking the settings themselves for the backend would choose one.
before = list(dict.items(matplotlib.rcParams))
assert plots.draw({{"per_type": {{"A": dict(precision=1.0, recall=2.0, f1=3.0, support=4)}}}}, {str(tmp_path)!r})
assert list(dict.items(matplotlib.rcParams)) == before
assert "matplotlib.pyplot" not in sys.modules
"""
    run_python(["-c", program]).check_returncode()


def test_a_missing_matplotlib_is_reported(tmp_path, monkeypatch):
    ordinary = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return ordinary(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "hf_xorner\[plots\]"'):
        plots.draw(report_of("AB"), tmp_path)
