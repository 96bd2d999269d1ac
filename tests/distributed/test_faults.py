"""A rank that fails ends the job on all ranks, in seconds, with one message that names it and the user's line."""

import re
import time
from pathlib import Path

import pytest

from tests.distributed.job import job, needs_mpi

pytestmark = needs_mpi
LINES = (Path(__file__).parent / "scripts" / "faults.py").read_text().splitlines()


def line_of(text):
    return 1 + next(i for i, line in enumerate(LINES) if text in line)


LAST = len(LINES) - 1
CASES = {
    "dies": rf"rank 1 \(process \d+\) died: .*Killed.*all_reduce.*faults.py:{line_of('dist.all_reduce(x)')}",
    "raises": r"ValueError: a bad sample\nrank 1 of 2 raised ValueError",
    "raises where nobody reads": r"ValueError: a bad sample\nrank 1 of 2 raised ValueError",
    "hangs": rf"has waited 3 seconds:\n  rank 0 waits in all_reduce.*faults.py:{LAST}\n  rank 1 has done all_reduce",
    "hangs at once": rf"rank 0 waits in barrier at .*faults.py:{line_of('dist.barrier()')}\n  rank 1 has begun",
    "leaves": rf"  rank 0 waits in all_reduce.*faults.py:{LAST}\n  rank 1 has ended",
    "shape": rf"rank 0 does .*float32\[4\] at .*:{LAST}, rank 1 does .*float32\[5\] at .*:{line_of('ones([5]))')}\n",
    "op": rf"rank 0 does all_reduce.* at .*:{LAST}, rank 1 does broadcast.* at .*:{line_of('dist.broadcast')}\n",
    "first line of a program": rf"float32\[4\] at .*:{line_of('    dist.all_reduce(y)')}, rank 1 does .*float32\[5\]",
}


IN_EACH_RUN = ("dies", "raises where nobody reads", "hangs", "hangs at once", "shape")


@pytest.mark.slow
@pytest.mark.parametrize("what", [pytest.param(c, marks=() if c in IN_EACH_RUN else pytest.mark.soak) for c in CASES])
def test_the_job_ends_and_says_why(what):
    began = time.monotonic()
    text = job("faults.py", 2, what, fails=True, options=("--timeout", "3"))
    assert re.search(CASES[what], text), text
    assert len(re.findall(r"all processes end|has waited|died", text)) == 1, text
    assert time.monotonic() - began < 30
