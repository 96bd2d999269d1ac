"""Runs a script of `scripts/` in several MPI processes, and ends it where it takes too long."""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs the extra mpi")


def started(script, ranks, *arguments, options=(), **environment):
    """Start a job in a process group of its own."""
    command = [sys.executable, "-m", "dy2st.distributed.launch", "--nproc_per_node", str(ranks), *options]
    path = script if os.path.isabs(script) else str(Path(__file__).parent / "scripts" / script)
    return subprocess.Popen(
        [*command, path, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


def job(script, ranks, *arguments, seconds=120, fails=False, **more):
    """Run a job; return what it printed. A job that does not end in time is ended, and an error."""
    process = started(script, ranks, *arguments, **more)
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"the job did not end in {seconds} s:\n{process.communicate()[0]}") from None
    assert (process.returncode != 0) == fails, text
    return text
