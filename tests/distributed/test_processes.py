"""Real MPI processes, started by the launcher: what each gets is what NumPy says."""

import re

import pytest

from dy2st import distributed as dist
from tests.distributed import spawned
from tests.distributed.job import ROOT, job, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_give_what_numpy_says(ranks):
    text = job("collectives.py", ranks)
    assert sorted(text.splitlines()) == [f"rank {r} of {ranks}: all right" for r in range(ranks)]


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_programs_exchange_what_eager_code_does(backend):
    text = job("programs.py", 2, DY2ST_BACKEND=backend)
    assert sorted(text.splitlines()) == [f"rank {r} of 2: all right" for r in range(2)]


@pytest.mark.slow
def test_the_command_of_the_readme_trains_a_model():
    ranks, script = re.search(r"launch --nproc_per_node (\d) (\S+)", (ROOT / "README.md").read_text()).groups()
    text = job(str(ROOT / script), int(ranks), "--steps", 60)
    alone = job(str(ROOT / script), 1, "--steps", 60)
    assert text.splitlines()[:2] == alone.splitlines()[:2]
    assert f"{ranks} processes" in text


@pytest.mark.proves("distributed.spawn")
def test_spawned_processes_are_ranks_of_one_job(capfd):
    dist.spawn(spawned.summed, (3.0,), nprocs=2)
    assert sorted(capfd.readouterr().out.splitlines()) == ["rank 0: 6.0", "rank 1: 6.0"]
    with pytest.raises(RuntimeError, match="the processes ended with exit code"):
        dist.spawn(spawned.failing, nprocs=2)
    assert "rank 1 of 2 raised ValueError" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, pytest.param(1000, marks=pytest.mark.soak)])
def test_random_programs_do_what_numpy_says_of_all_ranks(count):
    text = job("random_programs.py", 2, 0, count, seconds=60 + 3 * count)
    assert sorted(text.splitlines()) == [f"rank {r}: {count} programs" for r in range(2)]
