"""How a row is measured: sides in processes of their own, compared with ours, and given up where they take too long."""

import numpy as np
import pytest

from benchmarks.suite import find
from benchmarks.suite.forms import LABELS, MODEL
from benchmarks.suite.measure import SINGLE, Effort, measure

TINY = Effort(prepare_limit=60.0, sample_seconds=1e-4, most_samples=2, budget=0.01, tiny=True)


@pytest.mark.slow
def test_each_side_gives_figures():
    row = find("autoencoder")
    sides = measure(row, ("dy2st", "numpy"), TINY)["sides"]
    assert list(sides) == [*LABELS.values(), "numpy", SINGLE]
    for side in sides.values():
        assert 0 < side["min"] <= side["median"] < 1
        assert side["samples"] == 2
    assert all(sides[label]["cold"] > 0 for label in ("dy2st", LABELS[MODEL]))
    assert sides["dy2st"]["cold_reads"] < 1000  # of the 40,000 pages of LLVM's library, which were read before
    assert (sides[SINGLE]["threads"], sides["numpy"]["threads"]) == (1, None)


def test_a_side_that_takes_too_long_is_given_up():
    sides = measure(find("autoencoder"), ("numpy",), Effort(prepare_limit=0.001, tiny=True))["sides"]
    assert sides == {"numpy": {"missing": "took more than 0 s"}}


@pytest.mark.slow
def test_a_side_that_gives_something_else_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.suite.measure.difference", lambda got, wanted: float(np.pi))
    sides = measure(find("counter"), ("dy2st", "numpy"), TINY)["sides"]
    assert sides["numpy"] == {"missing": "DIFFERS from ours by 3.1 of the largest number"}
