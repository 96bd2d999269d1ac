"""Each job of the benchmarks, at a size at which it costs nothing: native code gives what NumPy gives."""

import numpy as np
import pytest

from benchmarks.suite import ROWS, find, matching
from benchmarks.suite.forms import EAGER, LABELS, MINIMIZE, MODEL
from benchmarks.suite.workload import PEERS, Row, Work, difference, digest

JOBS = {(row.sides["dy2st"], row.reference, str(row.tiny)): row for row in ROWS}
NAMES = [row.name for row in JOBS.values() if row.name != "resnet-8"]

FORMS = LABELS[MODEL], LABELS[EAGER], LABELS[MINIMIZE]
LONG = ("resnet-1", "resnet-step", "lenet-step", "transformer-step", "bert-step", "seq2seq-step")


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Return what holds for a job: the bias of keys moves no weight, its gradient is nothing but rounding."""
    rounded = pytest.mark.one_tier("Adam makes whole steps of gradients that are nothing but rounding")
    return [
        *([pytest.mark.slow] if name in LONG else ()),
        *([rounded] if name in ("transformer-step", "bert-step") else ()),
    ]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in NAMES])
def test_a_job_gives_what_numpy_gives(name: str):
    row = find(name)
    given = row.given(tiny=True)
    wanted = digest(row.reference(given))
    job = row.sides["dy2st"](given)
    assert difference([*digest(job()), *digest(job()), *digest(job())], wanted) < row.tolerance
    assert sum(array.size for array in wanted) > 0


@pytest.mark.parametrize(
    ("name", "label"),
    [pytest.param(row.name, label, id=f"{row.name}-{label}", marks=marks(row.name))
     for row in JOBS.values() for label in FORMS
     if label in row.sides and (label == LABELS[MODEL] or row.name not in LONG)],
)  # fmt: skip
def test_the_other_forms_give_the_same(name: str, label: str):
    row = find(name)
    given = row.given(tiny=True)
    job, wanted = row.sides[label](given), digest(row.reference(given))
    assert difference([*digest(job()), *digest(job()), *digest(job())], wanted) < row.tolerance


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_sizes_fit_and_packages_are_known(row: Row):
    assert set(row.sizes) == set(row.tiny)
    assert isinstance(row.at_least, Work)
    assert next(iter(row.sides)) == "dy2st"
    assert {side.split()[0] for side in row.sides} <= {"dy2st", *PEERS}


def test_names_are_unique_and_found_by_their_beginnings():
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [row.name for row in matching(["lstm-gradient"])] == [
        f"lstm-gradient-{size}" for size in ("1x64", "32x64", "32x256")
    ]
    assert matching([]) == list(ROWS)


def test_an_unknown_name_is_refused():
    with pytest.raises(KeyError, match="no such row: lstn; there are mlp, autoencoder"):
        matching(["lstn"])


def test_difference_is_relative_to_the_largest_number():
    assert difference([np.array([1.0, 100.0])], [np.array([2.0, 100.0])]) == pytest.approx(0.01)
    assert difference([np.array([1.0])], [np.array([1.0, 2.0])]) == float("inf")
    assert difference([np.array([np.nan])], [np.array([1.0])]) == float("inf")


def test_a_large_result_is_compared_at_equal_distances():
    (some,) = digest(np.arange(1000.0), most=10)
    assert some.tolist() == [float(i) for i in range(0, 1000, 100)]
