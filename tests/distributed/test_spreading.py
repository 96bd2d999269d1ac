"""State, weights and layers of a model spread over processes: curves, checkpoints and errors."""

import re
from functools import cache

import numpy as np
import pytest

from tests.distributed.job import ROOT, job, needs_mpi

pytestmark = needs_mpi
WAYS = ("sharding", "mp", "pp")


@cache
def losses(ranks, folder):
    found = [line.partition(": ") for line in job("spreading.py", ranks, folder, seconds=400).splitlines()]
    return {title: np.array(numbers.split(), "float64") for title, _, numbers in found}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_each_way_to_spread_a_model_has_the_curve_of_one_process(ranks, tmp_path):
    alone = {title.partition(" | ")[0]: curve for title, curve in losses(1, tmp_path).items()}
    spread = losses(ranks, tmp_path)
    assert len(spread) == (9 if ranks == 2 else 12)
    for title, curve in spread.items():
        np.testing.assert_allclose(curve, alone[title.partition(" | ")[0]], rtol=2e-5, err_msg=title)


def curve(text):
    (line,) = [line for line in text.splitlines() if line.startswith("losses ")]
    return np.array(line.split()[1:], "float64")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "ranks"), [("sharding", (2, 1)), *(pytest.param(w, (1, 4, 2), marks=pytest.mark.soak) for w in WAYS)]
)
def test_training_goes_on_with_another_number_of_processes(way, ranks, tmp_path):
    whole = curve(job("checkpoints.py", 1, tmp_path / "alone", 2 * len(ranks), way))
    for i, count in enumerate(ranks):
        part = curve(job("checkpoints.py", count, tmp_path / "c", 2 * (i + 1), way, seconds=400))
        np.testing.assert_allclose(part, whole[: 2 * (i + 1)], rtol=2e-5, err_msg=f"{count} processes")
    files = [path.name.partition(".")[2] for path in (tmp_path / "c").iterdir()]
    assert files.count("metadata") == 2
    assert set(files) == {"metadata", "distcp"}


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_at_any_moment_it_ends_as_if_undisturbed(kills, tmp_path):
    steps = 20 * kills
    text = job(
        "checkpoints.py", 2, tmp_path / "c", steps, "sharding", seconds=400 + 60 * kills,
        options=("--max-restarts", str(kills)), DY2ST_KILLS=str(kills), DY2ST_KILL_WITHIN="1.0",
    )  # fmt: skip
    assert text.count("it begins anew") > kills // 4, text
    whole = curve(job("checkpoints.py", 1, tmp_path / "alone", steps, "sharding"))
    np.testing.assert_allclose(curve(text), whole, rtol=2e-5)


@pytest.mark.slow
def test_the_example_trains_with_shared_state_on_four_processes(tmp_path):
    script = str(ROOT / "examples" / "sharded_state.py")
    text = job(script, 4, "--steps", 20, "--folder", tmp_path, seconds=400)
    alone = job(script, 1, "--steps", 20, seconds=400)
    assert text.splitlines()[0] == alone.splitlines()[0]
    kept, whole = ([int(count) for count in re.findall(r"keeps (\d+)", said)] for said in (text, alone))
    assert (len(kept), [sum(kept)]) == (4, whole)
    again = job(script, 2, "--steps", 20, "--folder", tmp_path, seconds=400)  # there is nothing left to do
    assert "step" not in again
