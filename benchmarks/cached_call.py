"""What `to_static` adds to the run of its Program, for a call of a kind that was seen before.

Measured in CPU time of the thread, so that what else runs on the machine counts less.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from harness import Goal, Job, Row

import dy2st as paddle


def small() -> Any:
    return paddle.to_tensor(np.ones((2, 2), "float32"))


def one(x: Any) -> Any:
    return x + x


def ten(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    return a + j


def scaled(x: Any, factor: float = 1.0, way: str = "up", bias: Any = None) -> Any:
    return x * factor if way == "up" else x


def first_of(items: list[Any]) -> Any:
    return items[0] + items[1]


class Shift(paddle.nn.Layer):
    """A layer with a parameter and a number."""

    def __init__(self):
        super().__init__()
        self.offset = self.create_parameter([2, 2])
        self.factor = 2.0

    def forward(self, x: Any) -> Any:
        return (x + self.offset) * self.factor


Make = Callable[[], tuple[Any, Sequence[Any], dict[str, Any]]]
CALLS = 1000


def timed(f: Callable[[], object]) -> Job:
    """Return what calls `f` many times without gradients and gives seconds a call."""

    def job() -> float:
        with paddle.no_grad():
            begin = time.thread_time()
            for _ in range(CALLS):
                f()
            return (time.thread_time() - begin) / CALLS

    job()
    return job


def call(make: Make) -> Callable[[], Job]:
    """Call a static function."""

    def prepare() -> Job:
        static, args, keywords = make()
        return timed(lambda: static(*args, **keywords))

    return prepare


def plan(make: Make) -> Callable[[], Job]:
    """Run the Program of that call on arrays."""

    def prepare() -> Job:
        static, args, keywords = make()
        with paddle.no_grad():
            static(*args, **keywords)
        program = getattr(static, "forward", static).concrete_program
        leaves = [x for group in args for x in (group if isinstance(group, list) else [group])]
        raw = [x._payload for x in [*leaves, *program.parameters] if isinstance(x, paddle.Tensor)]
        return timed(lambda: program.compiled.run(raw, np))

    return prepare


def added(median: Mapping[str, float]) -> float:
    return median["dy2st call"] - median["plan alone"]


def row(name: str, make: Make) -> Row:
    return Row(
        f"to_static cached call, {name}",
        {"dy2st call": call(make), "plan alone": plan(make)},
        Goal("what a cached call adds", added, 5e-6),
        reports_seconds=True,
    )


def static(function: Any) -> Any:
    return paddle.jit.to_static(function, full_graph=True)


ROWS = (
    row("1 input", lambda: (static(one), [small()], {})),
    row("10 inputs", lambda: (static(ten), [small() for _ in range(10)], {})),
    row("a number, a word and None beside", lambda: (static(scaled), [small(), 2.0, "up"], {"bias": None})),
    row("a list of 10", lambda: (static(first_of), [[small() for _ in range(10)]], {})),
    row("method of a layer", lambda: (static(Shift()).forward, [small()], {})),
    row("layer", lambda: (static(Shift()), [small()], {})),
)
