"""The memory of a gradient through 10,000 turns of an LSTM in a `while`, by what is kept of the turns.

Counted are the bytes that Python and NumPy hold at most while function and gradient run (`tracemalloc`), beyond what
was there before; a checkpointed loop runs its turns twice.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from gradients import Names, arrays
from harness import Goal, Job, Row

TURNS, ROWS_OF_STATE, UNITS = 10_000, 4, 32
STATE = arrays((ROWS_OF_STATE, UNITS), (ROWS_OF_STATE, UNITS), (UNITS, 4 * UNITS), (4 * UNITS,))


def gradient(checkpoint: str | int) -> Callable[[], Any]:
    """Return the run of function and gradient of the loop."""
    p = Names("dy2st")
    paddle = p.module

    def loop(h: Any, c: Any, u: Any, b: Any, turns: Any) -> Any:
        t = 0
        while t < turns:
            i, f, g, o = paddle.split(h @ u + b, 4, axis=1)
            c = p.sigmoid(f) * c + p.sigmoid(i) * p.tanh(g)
            h = p.sigmoid(o) * p.tanh(c)
            t += 1
        return (h * h).mean()

    static = paddle.jit.to_static(loop, full_graph=True, checkpoint=checkpoint)
    state = [paddle.to_tensor(x, stop_gradient=False) for x in STATE]

    def run(turns: int) -> None:
        static(*state, paddle.to_tensor(turns)).backward()
        for x in state:
            x.clear_grad()

    run(10)
    return lambda: run(TURNS)


def peak(checkpoint: str | int) -> Callable[[], Job]:
    """Make a job that returns the peak bytes of a run."""

    def prepare() -> Job:
        run = gradient(checkpoint)

        def measured() -> float:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            run()
            most = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
            return float(most)

        return measured

    return prepare


def seconds_of(checkpoint: str | int) -> Callable[[], Job]:
    def prepare() -> Job:
        run = gradient(checkpoint)

        def measured() -> float:
            start = time.perf_counter()
            run()
            return time.perf_counter() - start

        return measured

    return prepare


def megabytes(value: float) -> str:
    return f"{value / 1e6:8.2f} MB"


def candidates(make: Callable[[str | int], Callable[[], Job]]) -> dict[str, Callable[[], Job]]:
    return {f"dy2st checkpoint={policy}": make(policy) for policy in ("all", "sqrt", 100)}


ROWS = (
    Row(
        "peak memory, 10,000 turns of an LSTM of 32 units, 4 rows",
        candidates(peak),
        Goal(
            "sqrt over all",
            lambda medians: medians["dy2st checkpoint=sqrt"] / medians["dy2st checkpoint=all"],
            0.05,
            lambda share: f"{share:.1%}",
        ),
        repeats=1,
        reports_seconds=True,
        show=megabytes,
    ),
    Row("time, the same", candidates(seconds_of), repeats=3, reports_seconds=True),
)
