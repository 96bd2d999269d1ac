"""What `to_static` adds to the run of its Program, for a call of a kind that was seen before; what calls take in whole.

Measured in CPU time of the thread, so that what else runs on the machine counts less. Programs are native code by then.
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


def branched(x: Any) -> Any:
    return x + 1 if x.sum() > 0 else x - 1


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


def settled(static: Any, *args: Any, **keywords: Any) -> Any:
    """Call a static function until its Program is native code, which is made beside; return the runner."""
    for _ in range(4):
        static(*args, **keywords)
    runner = getattr(static, "forward", static).concrete_program.compiled.runner(np)
    runner.finish_compiling()
    static(*args, **keywords)
    return runner


def call(make: Make) -> Callable[[], Job]:
    """Call a static function."""

    def prepare() -> Job:
        static, args, keywords = make()
        with paddle.no_grad():
            settled(static, *args, **keywords)
        return timed(lambda: static(*args, **keywords))

    return prepare


def native(make: Make) -> Callable[[], Job]:
    """Call the machine code of a function of tensors: what it takes from Python, arrays of the results included."""

    def prepare() -> Job:
        static, args, _ = make()
        with paddle.no_grad():
            run = settled(static, *args).native.latest.call
        arrays = [x.payload for x in args]
        return timed(lambda: run(*arrays))

    return prepare


def guarded() -> Job:
    """Call a function with a branch under `no_grad`, as the suite does."""
    static, x = paddle.jit.to_static(branched, full_graph=True), paddle.ones([1])

    def run() -> Any:
        with paddle.no_grad():
            return static(x)

    with paddle.no_grad():
        settled(static, x)
    return timed(run)


def executed() -> Job:
    """Run a Program that was built by hand."""
    program = paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(program):
            x, y = (paddle.static.data(name, [None, 2], "float32") for name in "xy")
            total = x + y
    finally:
        paddle.disable_static()
    feed = {name: np.ones((2, 2), "float32") for name in "xy"}
    executor = paddle.static.Executor()
    for _ in range(4):
        executor.run(program, feed=feed, fetch_list=[total])
    time.sleep(1)  # native code is made beside
    return timed(lambda: executor.run(program, feed=feed, fetch_list=[total]))


def step(parameters: int) -> Callable[[], Job]:
    """Make an Adam step on so many parameters of 8 numbers."""

    def prepare() -> Job:
        weights = [paddle.create_parameter([8], "float32") for _ in range(parameters)]
        optimizer = paddle.optimizer.Adam(parameters=weights)

        def train(x: Any) -> Any:
            loss: Any = sum(((w * x).sum() for w in weights), x.sum())
            loss.backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
            return loss

        static, x = paddle.jit.to_static(train, full_graph=True), paddle.ones([8])
        settled(static, x)

        def job() -> float:
            begin = time.thread_time()
            for _ in range(CALLS // 10):
                static(x)
            return (time.thread_time() - begin) / (CALLS // 10)

        return job

    return prepare


def plan(make: Make) -> Callable[[], Job]:
    """Run the Program of that call on arrays."""

    def prepare() -> Job:
        static, args, keywords = make()
        with paddle.no_grad():
            static(*args, **keywords)
        program = getattr(static, "forward", static).concrete_program
        leaves = [x for group in args for x in (group if isinstance(group, list) else [group])]
        raw = [x.payload for x in [*leaves, *program.parameters] if isinstance(x, paddle.Tensor)]
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


def whole(name: str, job: Callable[[], Job], goal: float) -> Row:
    return Row(name, {"dy2st": job}, Goal("all told", lambda median: median["dy2st"], goal), reports_seconds=True)


ROWS = (
    row("1 input", lambda: (static(one), [small()], {})),
    row("10 inputs", lambda: (static(ten), [small() for _ in range(10)], {})),
    row("a number, a word and None beside", lambda: (static(scaled), [small(), 2.0, "up"], {"bias": None})),
    row("a list of 10", lambda: (static(first_of), [[small() for _ in range(10)]], {})),
    row("method of a layer", lambda: (static(Shift()).forward, [small()], {})),
    row("layer", lambda: (static(Shift()), [small()], {})),
    whole("machine code called from Python, 1 array in and out", native(lambda: (static(one), [small()], {})), 1e-6),
    whole("to_static call of 10 tensors", call(lambda: (static(ten), [small() for _ in range(10)], {})), 5e-6),
    whole("to_static call with an if, under no_grad", guarded, 2e-6),
    whole("Executor.run, 2 feeds and a fetch", executed, 10e-6),
    whole("Adam step of 1 parameter of 8 numbers", step(1), 10e-6),
    whole("Adam step of 60 parameters of 8 numbers", step(60), 200e-6),
)
