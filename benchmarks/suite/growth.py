"""How dy2st's time grows: with turns, batch, width and length of a Program, and compilation with operations.

A line of sizes is fitted by time = constant * size ** exponent over its upper half, where the fixed cost of a call has
little weight.
"""

import contextlib
import importlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.suite import recurrent
from benchmarks.suite.long_functions import BRANCHES, LOOPS, SLICES, job
from benchmarks.suite.measure import variables
from benchmarks.suite.workload import Job, Side

LIMIT = 120.0  # seconds for a line
REPEATS = 7
OPERATIONS_OF_BLOCK = 13


@dataclass(frozen=True)
class Line:
    """One quantity that grows. `make` prepares a job of a size; the figure is the time of a call or of the first."""

    name: str
    title: str
    sizes: tuple[int, ...]
    make: Callable[[int], Job]
    expected: float  # the exponent of the work
    first: bool = False


def _lstm(side: Side, **size_of: int) -> Callable[[int], Job]:
    """Return what prepares an LSTM of which one size is open, the one given as 0."""

    def make(size: int) -> Job:
        sizes = {name: fixed or size for name, fixed in size_of.items()}
        return side(recurrent.arrays(np.random.default_rng(0), **sizes))

    return make


def _program(blocks: int) -> Job:
    """Build a Program of products, sums and tanh; return the job that runs it."""
    paddle = importlib.import_module("dy2st")
    static = paddle.static
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main, static.Program()):
            x = start = static.data("x", [None, 8])
            weights = [paddle.to_tensor(np.full((8, 8), 0.1, "float32")) for _ in range(3)]
            for block in range(blocks):
                x = paddle.tanh(paddle.matmul(x, weights[block % 3]) + 0.5) * 0.9 + x * 0.1
            result = x.sum()
        executor = static.Executor()
    finally:
        paddle.disable_static()
    fed = np.ones((4, 8), "float32")
    return lambda: executor.run(main, feed={start.name: fed}, fetch_list=[result])


def _run_of(operations: int) -> Job:
    return _program(operations // OPERATIONS_OF_BLOCK)


FUNCTION = recurrent.ROWS[0].sides["dy2st"]
GRADIENT = recurrent.ROWS[-1].sides["dy2st"]

LONG = (50, 100, 200, 400, 800, 1600)
WRITTEN = (300, 625, 1250, 2500, 5000, 10_000)
OPERATIONS = (80, 160, 320, 640, 1280, 2560, 5120, 10_000)

LINES = (
    Line("turns", "LSTM, 4 x 64: turns", LONG, _lstm(FUNCTION, turns=0, batch=4, width=64), 1),
    Line("gradient-turns", "its gradient: turns", LONG, _lstm(GRADIENT, turns=0, batch=4, width=64), 1),
    Line(
        "batch",
        "LSTM, 50 turns, width 64: batch",
        (4, 8, 16, 32, 64, 128),
        _lstm(FUNCTION, turns=50, batch=0, width=64),
        1,
    ),
    Line(
        "width",
        "LSTM, 50 turns, batch 4: width",
        (32, 64, 128, 256, 512),
        _lstm(FUNCTION, turns=50, batch=4, width=0),
        2,
    ),
    Line("length", "Program without loops, a run: operations", OPERATIONS, _run_of, 1),
    Line("compile", "the same, its first two runs: operations", OPERATIONS, _run_of, 1, first=True),
    *(
        Line(
            f"compile-{name.split()[0]}",
            f"{name}, the first two calls: operations",
            WRITTEN,
            partial(job, lines),
            1,
            first=True,
        )
        for name, lines in (("branches", BRANCHES), ("loops", LOOPS), ("slices of slices", SLICES))
    ),
)


def grown(line: Line) -> dict[str, Any]:
    """Measure a line in a process of its own; return seconds by size and the exponent, or why there are none."""
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    with tempfile.TemporaryDirectory() as cache, variables({"DY2ST_CACHE_DIR": cache, "DY2ST_BACKEND": "native"}):
        process = context.Process(target=_serve, args=(theirs, line.name), daemon=True)
        process.start()
        theirs.close()
        seconds, why = _collected(line, pipe)
        process.kill()
        process.join()
    found = {"title": line.title, "seconds": seconds, "expected": line.expected, "exponent": exponent(seconds)}
    return found | ({"why": why} if why else {})


def _collected(line: Line, pipe: Any) -> tuple[dict[str, float], str]:
    """Receive the seconds of each size; and why the rest is missing, else an empty text."""
    seconds: dict[str, float] = {}
    end = time.perf_counter() + LIMIT
    for size in line.sizes:
        try:
            answer = pipe.recv() if pipe.poll(max(0.0, end - time.perf_counter())) else f"took more than {LIMIT:.0f} s"
        except EOFError:
            answer = "its process ended"
        if isinstance(answer, str):
            return seconds, f"{size}: {answer}"
        seconds[str(size)] = answer
    return seconds, ""


def exponent(seconds: dict[str, float]) -> float | None:
    """Fit the exponent over the upper half of the sizes; None for fewer than two."""
    upper = sorted((int(size), value) for size, value in seconds.items())[len(seconds) // 2 - (len(seconds) < 4) :]
    if len(upper) < 2:
        return None
    sizes, values = np.log(np.array(upper, dtype=float)).T
    return float(np.polyfit(sizes, values, 1)[0])


def _serve(connection: Connection, name: str) -> None:
    """Send the seconds of each size of a line, or what went wrong."""
    line = next(line for line in LINES if line.name == name)
    with contextlib.redirect_stdout(sys.stderr):
        for size in line.sizes:
            try:
                connection.send(_seconds(line, size))
            except Exception as error:  # what fails at one size is told, and ends the line
                connection.send(f"{type(error).__name__}: {error}")
                return


def _seconds(line: Line, size: int) -> float:
    """Return the least processor time of the first calls, or of a call later on."""
    job = line.make(size)
    start = time.process_time()
    job()
    job()
    if line.first:
        return time.process_time() - start
    job()
    least = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        job()
        least = min(least, time.process_time() - start)
    return least
