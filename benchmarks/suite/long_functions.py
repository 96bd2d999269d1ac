"""Functions of as many lines as wanted, of which each goes on with what the line before made: how compilation grows."""

import importlib
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.suite.workload import Job

BRANCHES = ("if x.sum() > {}:", "    x = x + 1", "else:", "    x = x * 0.5")
LOOPS = ("while x.sum() < {}:", "    x = x + 1")
SLICES = ("x = x[1:]",)
OPERATIONS_OF = {BRANCHES: 10, LOOPS: 11, SLICES: 1}
"""How many operations these lines become."""


def job(lines: Sequence[str], operations: int) -> Job:
    """Return the job that calls a function of these lines again and again, which has about so many operations."""
    paddle = importlib.import_module("dy2st")
    count = operations // OPERATIONS_OF[tuple(lines)]
    static = paddle.jit.to_static(_function(lines, count), full_graph=True)
    x = paddle.to_tensor(np.ones(count + 10, "float32"))

    def run() -> Any:
        with paddle.no_grad():
            return static(x)

    return run


def _function(lines: Sequence[str], count: int) -> Callable[[Any], Any]:
    body = "".join(f"    {line.format(-turn)}\n" for turn in range(count) for line in lines)
    text = f"def grown(x):\n{body}    return x\n"
    name = f"grown_{len(lines)}_{count}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    return space["grown"]
