import numpy as np
import pytest
from matplotlib.image import imread

from hf_xorner.evaluation.plots import draw
from hf_xorner.evaluation.report import calibration


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


@pytest.mark.filterwarnings("error")
def test_pictures_are_drawn_of_what_the_report_has(tmp_path):
    """They grow with the types, and are neither blank nor black; dollars in names are not formulas."""
    for types in (["$A_", "B$", "$\\frac$", "{}%"], [f"TYPE_{index}" for index in range(20)]):
        written = draw(report_of(types), tmp_path / "new" / "plots")
        assert [path.name for path in written] == ["confusion.png", "reliability.png"]
        for path in written:
            height, width, _ = pixels(path).shape
            assert (900 if len(types) == 20 and path.name == "confusion.png" else 200) < height < 2500
            assert 400 < width < 2500
            assert 0.1 < (pixels(path) > 0.99).all(axis=-1).mean() < 0.98
    for report in ({}, {"calibration": calibration([], []), "confusion": {"types": [], "matrix": []}}):
        assert draw(report, tmp_path / "none") == []
