"""Real MPI processes, started by the launcher: what each gets is what NumPy says."""

import pytest

from tests.distributed.job import job, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_give_what_numpy_says(ranks):
    text = job("collectives.py", ranks)
    assert sorted(text.splitlines()) == [f"rank {r} of {ranks}: all right" for r in range(ranks)]
