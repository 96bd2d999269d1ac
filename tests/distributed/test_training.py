"""Training in several processes: the loss curve is that of one process with the same global batch."""

from functools import cache

import numpy as np
import pytest

from tests.distributed.job import job, needs_mpi

pytestmark = needs_mpi


@cache
def losses(ranks):
    return np.array([line.split() for line in job("training.py", ranks).splitlines()], "float64")


@pytest.mark.slow
@pytest.mark.proves("DataParallel")
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_loss_curves_are_those_of_one_process(ranks):
    assert losses(ranks).shape == (3, 8)
    np.testing.assert_allclose(losses(ranks), losses(1), rtol=2e-5)
    np.testing.assert_allclose(losses(ranks)[0], losses(ranks)[1], rtol=1e-5)


@pytest.mark.slow
def test_a_killed_job_goes_on_from_its_last_checkpoint(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    undisturbed = job("restarting.py", 2, tmp_path / "whole")
    text = job("restarting.py", 2, tmp_path / "killed", 1, 4, options=("--max-restarts", "2"))
    assert text.count("it begins anew") == 2
    assert text.count("launch: rank 1 (process") == 2
    assert text.splitlines()[-1] == undisturbed.splitlines()[-1]
