import numpy as np
import pytest
from matplotlib.image import imread

from hf_xorner.evaluation.plots import draw
from hf_xorner.evaluation.report import calibration


def report_of(types):
    """A report on so many types, with numbers at random."""
    rng = np.random.default_rng(0)
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


def pixels(path):
    """The pixels of an image: height, width, colours; 0 is black and 1 is white."""
    assert path.read_bytes().startswith(b"\x89PNG")
    return imread(path)[..., :3]


@pytest.mark.filterwarnings("error")
def test_plots_are_drawn_for_the_keys_of_the_report(tmp_path):
    """They grow with the types, and are neither blank nor black; dollars in names are not formulas."""
    types = ["$A_", "B$", "$\\frac$", "{}%", *(f"TYPE_{index}" for index in range(16))]
    written = draw(report_of(types), tmp_path / "new" / "plots")
    assert [path.name for path in written] == ["confusion.png", "reliability.png"]
    for path in written:
        height, width, _ = pixels(path).shape
        assert (900 if path.name == "confusion.png" else 200) < height < 2500
        assert 400 < width < 2500
        assert 0.1 < (pixels(path) > 0.99).all(axis=-1).mean() < 0.98
    for report in ({}, {"calibration": calibration([], []), "confusion": {"types": [], "matrix": []}}):
        assert draw(report, tmp_path / "none") == []
