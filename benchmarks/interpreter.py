"""What a plan adds to the NumPy calls it makes: a chain of 200 adds, and loops.

Measured on two shared cores (Python 3.11, NumPy 2.4), beyond the bare NumPy call: 0.06 us an add of 4 float32, 0.12 us
an add of 0-D tensors. An add of Python numbers takes 0.08 us in all, a turn of a counted loop that appends to a list
0.4 us.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from harness import Goal, Job, Row

import dy2st.ops  # noqa: F401  fills the registry
from dy2st.dtypes import float32
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program, Value
from dy2st.ir.types import INT, ListType, TensorType
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate

ADDS = 200
TURNS = 1000
Run = Callable[[Program, Sequence[object]], Callable[[], object]]


def by_plan(program: Program, inputs: Sequence[object]) -> Job:
    plan = compile_plan(program)
    return lambda: plan.run(inputs)


def by_interpreter(program: Program, inputs: Sequence[object]) -> Job:
    return lambda: evaluate(program, inputs)


def chain(shape: tuple[int, ...]) -> Program:
    """Add y to x 200 times."""
    b = Builder()
    x, y = (b.argument(TensorType(float32, shape)) for _ in range(2))
    return result_of(b, x, lambda total: b.add(total, y))


def number_chain() -> Program:
    """Add a Python number 200 times."""
    b = Builder()
    x, y = b.argument(INT), b.argument(INT)
    return result_of(b, x, lambda total: b.scalar_add(total, y))


def result_of(b: Builder, total: Value, step: Callable[[Value], Value]) -> Program:
    for _ in range(ADDS):
        total = step(total)
    b.block.results = [total]
    return Program({"main": b.block})


def appending() -> Program:
    """Append the number of the turn to a list."""
    b = Builder()
    n = b.argument(INT)
    items = b.emit("list_new", [], {"type": ListType(INT)})
    body = b.child()
    i, kept = body.argument(INT), body.argument(ListType(INT))
    body.block.results = [body.list_append(kept, i)]
    b.block.results = [b.emit("counted_while", [n, items], {"carried": 1, "reverse": False}, [body.block])]
    return Program({"main": b.block})


def adds(run: Run, shape: tuple[int, ...]) -> Callable[[], Job]:
    def prepare() -> Job:
        one = np.ones(shape, "float32")
        return run(chain(shape), [one, one])

    return prepare


def bare_adds(shape: tuple[int, ...]) -> Callable[[], Job]:
    def prepare() -> Job:
        one = np.ones(shape, "float32")
        add, turns = np.add, range(ADDS)

        def job() -> None:
            for _ in turns:
                add(one, one)  # not chained: NumPy would go on with its scalars where tensors stay 0-D arrays

        return job

    return prepare


def python_appends() -> Job:
    def job() -> list[int]:
        items: list[int] = []
        for i in range(TURNS):
            items.append(i)
        return items

    return job


def beyond_numpy(median: Mapping[str, float]) -> float:
    return median["dy2st plan"] - median["numpy"]


def chain_row(name: str, shape: tuple[int, ...]) -> Row:
    return Row(
        f"an add in a chain of {ADDS}, {name}",
        {
            "dy2st plan": adds(by_plan, shape),
            "dy2st interpreter": adds(by_interpreter, shape),
            "numpy": bare_adds(shape),
        },
        Goal("a small op of a plan beyond its NumPy call", beyond_numpy, 0.7e-6),
        per=ADDS,
    )


ROWS = (
    chain_row("4 float32", (4,)),
    chain_row("0-D float32", ()),
    Row(
        f"an add in a chain of {ADDS}, Python numbers",
        {"dy2st plan": lambda: by_plan(number_chain(), [1, 2])},
        per=ADDS,
    ),
    Row(
        f"a turn of a loop of {TURNS} that appends to a list",
        {"dy2st plan": lambda: by_plan(appending(), [TURNS]), "python": python_appends},
        per=TURNS,
    ),
)
