"""Real MPI processes, started by the launcher: what each gets is what NumPy says."""

import pytest

from tests.distributed.job import job, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_give_what_numpy_says(ranks):
    text = job("collectives.py", ranks)
    assert sorted(text.splitlines()) == [f"rank {r} of {ranks}: all right" for r in range(ranks)]


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_programs_exchange_what_eager_code_does(backend):
    text = job("programs.py", 2, DY2ST_BACKEND=backend)
    assert sorted(text.splitlines()) == [f"rank {r} of 2: all right" for r in range(2)]
