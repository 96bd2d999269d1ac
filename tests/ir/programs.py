"""Programs that the tests of the IR share: hand-made ones, and random ones for properties."""

import random

import numpy as np

import dy2st.ops  # noqa: F401  fills the registry
from dy2st.dtypes import bool_, float32, float64, int64
from dy2st.ir.builder import Builder
from dy2st.ir.location import Location
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    UNSET,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    VariantType,
    optional,
)
from dy2st.shapes import symbol

N = symbol("N")
MATRIX = TensorType(float32, (N, 4))
PREDICATE = TensorType(bool_, ())


def at(line: int, function: str = "forward", file: str = "models/net.py") -> Location:
    return Location(file, line, function)


def branches() -> Program:
    """A `cond` whose branches see the outer values as arguments of theirs."""
    b = Builder()
    b.location = at(12)
    x, p = b.argument(MATRIX, "x"), b.argument(PREDICATE, "p")
    h = b.neg(x)
    b.location = at(13)
    then, other = b.child(), b.child()
    a = then.argument(MATRIX, "a")
    then.block.results = [then.neg(a)]
    c = other.argument(MATRIX, "a")
    other.block.results = [other.add(c, 1.5)]
    y = b.emit("cond", [p, h], {}, [then.block, other.block])
    y.name = "y"
    b.block.results = [y]
    return Program({"main": b.block})


def loops() -> Program:
    """A `while_loop` around a `counted_while`, with invariants, and effects."""
    b = Builder()
    b.location = at(3, "<module>", "loop.py")
    x, n = b.argument(MATRIX, "x"), b.argument(ScalarType("int", N), "n")
    body = b.child()
    cx, cn = body.argument(MATRIX, "x"), body.argument(INT, "n")
    turn = body.child()
    i, tx = turn.argument(INT, "i"), turn.argument(MATRIX, "x")
    turn.emit("print", [i, tx], {"template": ("turn", ("", "", ""), ("Tensor:True", "", "")), "sep": " ", "end": "\n"})
    turn.block.results = [turn.mul(tx, tx)]
    inner = body.emit("counted_while", [cn, cx], {"carried": 1, "reverse": True}, [turn.block])
    rest = body.scalar_sub(cn, 1)
    body.block.results = [body.scalar_gt(rest, 0), inner, rest]
    y, _ = b.emit("while_loop", [b.scalar_gt(n, 0), x, n], {"carried": 2}, [body.block])
    b.block.results = [y]
    return Program({"main": b.block})


def recursive() -> Program:
    """A function that calls itself, and an entry whose name is not `main`."""
    f = Builder()
    f.location = at(7, "count down")
    n = f.argument(INT, "n")
    go, stop = f.child(), f.child()
    m = go.argument(INT, "n")
    again = go.emit("call", [go.scalar_sub(m, 1)], {"function": "count down", "types": (INT,)})
    go.block.results = again if isinstance(again, list) else [again]
    stop.block.results = [stop.argument(INT, "n")]
    f.block.results = [f.emit("cond", [f.scalar_gt(n, 0), n], {}, [go.block, stop.block])]
    b = Builder()
    b.location = at(9, "entry")
    k = b.argument(INT, "k")
    b.block.results = [b.emit("call", [k], {"function": "count down", "types": (INT,)})]
    return Program({"entry": b.block, "count down": f.block}, "entry")


def literals() -> Program:
    """Every kind of type and attribute value."""
    b = Builder()
    b.location = at(1, "f g", 'odd "name": é.py')
    variant = VariantType((UNSET, NONE, ConstType('a"#{'), ConstType(0.5), TensorType(float64, ())))
    whole = TupleType((ListType(optional(MATRIX)), INT, FLOAT, BOOL, variant, TupleType(())))
    x = b.argument(whole, "é.x")
    for value in (0, -7, 2**70, True, 0.1, -0.0, 1e300, 1e-7, float("inf"), float("-inf"), float("nan")):
        b.scalar(value)
    for array in (
        np.array(0.1, np.float32),
        np.array([[1, np.nan, -np.inf, -0.0], [0.1, 1e-45, 3.4e38, 1 / 3]], np.float32),
        np.zeros((0, 3), np.float16),
        np.array([True, False]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([1 + 2j, complex(np.nan, -np.inf), complex(-0.0, 0.0)]),
        np.arange(40, dtype=np.float32).reshape(5, 8),
        np.array([0x7FC00001], np.uint32).view(np.float32),  # a NaN that is not the usual one
    ):
        b.emit("constant", [], {"value": array})
    b.emit("variant_new", [], {"type": variant, "tag": 2})
    b.emit("list_new", [], {"type": ListType(MATRIX)})
    b.emit("cast", [b.constant(1, int64)], {"dtype": float64})
    b.emit("print", [], {"template": ('tab\t"quote" \\ # { é \u2028',), "sep": "", "end": ""})
    b.block.results = [x]
    return Program({"main": b.block})


def every() -> dict[str, Program]:
    return {f.__name__: f() for f in (branches, loops, recursive, literals)}


def random_program(seed: int) -> Program:
    """A valid Program of random operations, `cond`s and loops, three deep."""
    choose = random.Random(seed)
    b = Builder()
    p = b.argument(PREDICATE, "p")
    values = [b.argument(MATRIX, name) for name in ("x", "x", None)]
    b.block.results = choose.sample(_fill(choose, b, p, values, 3), 2)
    return Program({"main": b.block})


def _fill(choose: random.Random, b: Builder, p: Value, values: list[Value], depth: int) -> list[Value]:
    for _ in range(choose.randrange(1, 6)):
        b.location = choose.choice([None, at(choose.randrange(1, 99)), at(3, "", "a b/net.py")])
        made = _one(choose, b, p, values, depth)
        made.name = choose.choice([None, None, "x", "x_1", "1", "é", "a b"])
        values.append(made)
    return values


def _one(choose: random.Random, b: Builder, p: Value, values: list[Value], depth: int) -> Value:
    x, y = choose.choice(values), choose.choice(values)
    kind = choose.choice(["neg", "add", "mul", "number"] + ["cond", "while_loop"] * (depth > 0))
    if kind == "neg":
        return b.neg(x)
    if kind in ("add", "mul"):
        return getattr(b, kind)(x, y)
    if kind == "number":
        return b.add(x, choose.uniform(-1, 1))
    blocks = [_inner(choose, b, depth, loop=kind == "while_loop") for _ in range(2 if kind == "cond" else 1)]
    return b.emit(kind, [p, x, y], {} if kind == "cond" else {"carried": 1}, blocks)


def _inner(choose: random.Random, b: Builder, depth: int, *, loop: bool) -> Block:
    child = b.child()
    values = [child.argument(MATRIX, choose.choice(["x", None])) for _ in range(2)]
    predicate = child.constant(choose.random() < 0.5, bool_)
    result = choose.choice(_fill(choose, child, predicate, values, depth - 1))
    child.block.results = [predicate, result] if loop else [result]
    return child.block
