"""Programs as files have them, with operands: every op on its samples, and functions with control flow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.ir.program import Program
from dy2st.ir.serialize import to_json
from tests.ir.programs import every
from tests.ops.test_registry import built, cases

Entry = tuple[str, Any, dict[str, Any]]
"""A name, the Program as JSON has it, and its arrays."""


def entries() -> list[Entry]:
    """Return the whole corpus, always in the same order."""
    found = [*_of_ops(), *_of_functions()]
    found += [(f"made-{name}", *to_json(program)) for name, program in every().items()]
    return found


def _of_ops() -> Iterator[Entry]:
    for case in cases(lambda op, _: op.saveable):
        for symbolic in (False, True):
            op, sample = case.values
            program = Program({"main": built(op, sample, symbolic)})
            yield f"{case.id}-{'symbolic' if symbolic else 'known'}", *to_json(program)


def _of_functions() -> Iterator[Entry]:
    for function, shapes in FUNCTIONS:
        inputs = [paddle.to_tensor(np.linspace(0.5, 2.0, int(np.prod(s))).reshape(s).astype("float32")) for s in shapes]
        static = paddle.jit.to_static(function, full_graph=True)
        for t in inputs:
            t.stop_gradient = True
        static(*inputs)
        yield function.__name__, *to_json(static.concrete_program.main_program)


# ---- functions -----------------------------------------------------------------------------------------------------
def halved(x: Any) -> Any:
    while x.sum() > 1:
        x = x / 2
    return x


def gathered(x: Any) -> Any:
    out = []
    for i in range(x.shape[0]):
        if x[i].sum() > 1:
            out.append(x[i] * 2)
        else:
            out.append(x[i])
    return paddle.stack(out)


def early(x: Any, w: Any) -> Any:
    total = paddle.zeros([w.shape[1]])
    for row in x:
        total = total + paddle.matmul(row.unsqueeze(0), w)[0]
        if total.max() > 3:
            return total * 2
    return total


def rebuilt(x: Any) -> Any:
    out = []
    i = paddle.to_tensor(0)
    while i < x.shape[0]:
        out.append(x[i])
        if len(out) > 3:
            out.pop(0)
        i = i + 1
    return paddle.concat([t.reshape([-1]) for t in out]) if out else x


def either(x: Any, y: Any) -> Any:
    if x.sum() > 2:
        z = None
    else:
        z = x + y
    if z is None:
        z = x - y
    return z[1:] * z[:-1]


def handled(x: Any) -> Any:
    out = x
    try:
        if x.sum() > 0:
            raise ValueError(x.shape[0])
        out = x * 2
    except ValueError:
        out = x * 3
    return out


def normed(x: Any, scale: Any, bias: Any) -> Any:
    y = paddle.nn.functional.layer_norm(x, [x.shape[-1]], scale, bias)
    return paddle.nn.functional.softmax(paddle.matmul(y, y, transpose_y=True))


def factorial(x: Any) -> Any:
    def inner(n: Any, acc: Any) -> Any:
        if n.sum() <= 1:
            return acc
        return inner(n - 1, acc * n.sum())

    return inner(x, paddle.ones([2]))


def placed(x: Any, y: Any) -> Any:
    z = paddle.zeros_like(x)
    for i in range(x.shape[0]):
        z[i] = y[x.shape[0] - 1 - i] + i
    return paddle.gather(z, paddle.argsort(x[:, 0])), paddle.nonzero(x > 1), x[x > 1]


FUNCTIONS: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (halved, [(3, 4)]), (gathered, [(4, 3)]), (early, [(4, 3), (3, 5)]), (rebuilt, [(5, 2)]),
    (either, [(4, 3), (4, 3)]), (handled, [(3,)]), (normed, [(3, 4), (4,), (4,)]), (factorial, [(2,)]),
    (placed, [(4, 3), (4, 3)]),
]  # fmt: skip


def operands(program: Program, rng: random.Random) -> list[Any] | None:
    """Return inputs of the types that a Program declares; None where it takes what no caller can make."""
    from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, VariantType
    from dy2st.ops.core.bundle import Bundle
    from dy2st.shapes import Dim

    sizes: dict[str, int] = {}

    def extent(e: Any) -> int:
        if isinstance(e, Dim):
            return sizes.setdefault(str(e), rng.choice((0, 1, 2, 3, 4, 4, 5, 7, 8, 16, 17)))
        return rng.randrange(4) if e is None else e

    def make(t: Any) -> Any:
        if isinstance(t, TensorType):
            shape = tuple(map(extent, t.shape))
            if int(np.prod(shape, dtype=object)) > 1 << 20:
                raise ValueError
            if rng.random() < 0.04 and shape:
                shape = (shape[0] + rng.choice((-1, 1, 5)) if shape[0] else 2, *shape[1:])
            numbers = np.array([rng.uniform(-3, 3) for _ in range(max(1, min(64, int(np.prod(shape)))))])
            return np.resize(numbers, shape).astype(t.dtype.numpy)
        if isinstance(t, ScalarType):
            return {
                "int": rng.choice((0, 1, 2, 3, -1, 5, 1 << 40)),
                "float": rng.uniform(-2, 9),
                "bool": rng.random() < 0.5,
            }[t.kind]
        if isinstance(t, ListType):
            return [make(t.element) for _ in range(rng.randrange(4))]
        if isinstance(t, TupleType):
            return Bundle([make(item) for item in t.items])
        if isinstance(t, VariantType):
            tag = rng.randrange(len(t.alternatives))
            return (tag, make(t.alternatives[tag]))
        return None

    try:
        return [make(t) for t in program.argument_types]
    except ValueError:
        return None
