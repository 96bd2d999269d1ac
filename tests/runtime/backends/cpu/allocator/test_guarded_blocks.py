"""The mode of tests in which each block of native code stands in front of a forbidden page; all jobs run in it."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import dy2st as paddle
from benchmarks.suite import ROWS, sequences, transformer, tutorials
from benchmarks.suite.workload import Row, difference, digest
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.shares import some

EDGES = (0, 1, 2, 15, 16, 17, 255)
JOBS = {(row.sides["dy2st"], str(row.tiny)): row for row in ROWS if not row.name.startswith("resnet")}
OUTSIDE = """
import ctypes, os
os.environ["DY2ST_GUARD"] = "1"
import numpy as np
from dy2st.runtime.backends.cpu.python_abi.run_contexts import RunContext
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.python_abi import helpers as support
context = RunContext([], 0, 0)
block = support.allocate(context.address, 24)
ctypes.memset(block + HEAD, 1, 24)
print("inside", flush=True)
{access}
print("outside", flush=True)
"""


@pytest.mark.parametrize(
    ("access", "ended"),
    [
        ("ctypes.string_at(block + HEAD, 25)", signal.SIGSEGV),
        ("ctypes.memset(block + HEAD + 24, 0, 1)", signal.SIGSEGV),
        ("support.freer()(block); ctypes.string_at(block + HEAD, 1)", signal.SIGSEGV),
        ("ctypes.memset(block - 1, 1, 1); support.freer()(block)", signal.SIGABRT),
    ],
    ids=["read behind", "write behind", "read of what is gone", "write in front"],
)
def test_an_access_outside_ends_the_process(access, ended):
    made = subprocess.run([sys.executable, "-c", OUTSIDE.format(access=access)], capture_output=True, timeout=60)
    assert made.stdout.split() == [b"inside"]
    assert made.returncode == -ended


def test_blocks_go_back_when_results_do(guarded):
    static = paddle.jit.to_static(lambda x: (x * 2, x.sum()), full_graph=True)
    static(paddle.ones([3]))
    native = NativePlan(static.concrete_program.main_program)
    for n in (0, 1, 5000):
        x = np.arange(n, dtype="float32")
        doubled, total = native.run([x])
        np.testing.assert_array_equal(doubled, 2 * x)
        assert total == x.sum()


@pytest.fixture
def natively(guarded, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


LARGE = ("lenet-step", "transformer", "transformer-step", "bert-step", "seq2seq-step", "epoch")
WHOLE = [pytest.param(r, id=r.name, marks=pytest.mark.slow if r.name in LARGE else ()) for r in JOBS.values()]


@pytest.mark.parametrize("row", WHOLE)
def test_no_job_touches_what_is_not_its_own(row: Row, each_cpu, natively):
    given = row.given(tiny=True)
    job = row.sides["dy2st"](given)
    assert difference([*digest(job()), *digest(job())], digest(row.reference(given))) < row.tolerance


NEVER_EMPTY = (
    "newton-n",
    "decode-source",
    "decode-words",
    "decode-most",
    "transformer-width",
    "transformer-step-width",
)
"""Sizes that are refused where they are 0: there is no largest of no numbers, and no head without width."""
SIZED = [
    pytest.param(row, key, id=f"{row.name}-{key}", marks=pytest.mark.slow if row.name in LARGE else ())
    for row in JOBS.values()
    if row not in (*sequences.ROWS, *tutorials.ROWS)  # whose layers refuse to be empty
    for key in row.tiny
    if key not in ("end", "size", "turns" if row.name.startswith("counter") else "")
]


@pytest.mark.parametrize(("row", "key"), SIZED)
def test_every_size_of_a_job(row: Row, key, natively, monkeypatch):
    monkeypatch.setattr(transformer, "HEADS", 2)
    for size in some(EDGES if f"{row.name}-{key}" not in NEVER_EMPTY else EDGES[1:]):
        size *= transformer.HEADS if (row.name[:11], key) == ("transformer", "width") else 1
        with np.errstate(invalid="ignore"):  # OpenBLAS sets the flag by lanes that it reads and drops
            given = row.arrays(np.random.default_rng(0), **{**row.tiny, key: size})
        found = {}
        for backend in ("interpreter", "native"):
            monkeypatch.setenv("DY2ST_BACKEND", backend)
            paddle.seed(0)
            job = row.sides["dy2st"]({name: array.copy() for name, array in given.items()})
            found[backend] = [*digest(job()), *digest(job())]
        assert difference(found["native"], found["interpreter"]) < row.tolerance, size
