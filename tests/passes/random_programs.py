"""Random small Programs for properties: tensors, numbers, lists, nested control flow, ops that may raise."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program, Value
from dy2st.ir.types import BOOL, INT, ListType, ScalarType, TensorType
from dy2st.shapes import symbol

VECTOR = TensorType(dtypes.float32, (symbol("N"),))
POINT = TensorType(dtypes.float32, ())
LIST = ListType(VECTOR)
NUMBERS = (1.0, 0.0, -0.0, 2.5, float("inf"))

Pool = dict[Any, list[Value]]


def kind(value: Value) -> Any:
    """Return a value's type without what it knows of extents."""
    return ScalarType(value.type.kind) if isinstance(value.type, ScalarType) else value.type


class Maker:
    """Makes a Program out of what `draw` says."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw

    def program(self) -> Program:
        b = Builder()
        values = [b.argument(VECTOR, "x"), b.argument(VECTOR, "y"), b.argument(POINT, "s"), b.argument(INT, "k"),
                  b.argument(BOOL, "p")]  # fmt: skip
        pool = self.pooled(values)
        self.put(pool, b.emit("list_new", [], {"type": LIST}))
        self.fill(b, pool, depth=0)
        chosen = [v for kept in pool.values() for v in kept]
        b.block.results = self.draw(st.lists(st.sampled_from(chosen), min_size=2, max_size=8))
        return Program({"main": b.block})

    def pooled(self, values: list[Value]) -> Pool:
        pool: Pool = {VECTOR: [], POINT: [], INT: [], BOOL: [], LIST: []}
        for value in values:
            self.put(pool, value)
        return pool

    def put(self, pool: Pool, value: Value) -> None:
        pool[kind(value)].append(value)

    def pick(self, b: Builder, pool: Pool, of: Any) -> Value:
        """Draw a value, one of the latest as often as any of the others."""
        latest = pool[of][-2:] if self.draw(st.booleans()) else pool[of]
        return b.use(self.draw(st.sampled_from(latest)))

    def fill(self, b: Builder, pool: Pool, depth: int) -> None:
        steps = [self.binary, self.unary, self.with_number, self.point, self.number, self.grow, self.read, self.view]
        steps += [self.write]
        if depth < 2:
            steps += [self.cond, self.loop, self.again]
        for _ in range(self.draw(st.sampled_from((12, 8, 5, 3) if depth == 0 else (5, 4, 3, 2, 1)))):
            self.draw(st.sampled_from(steps))(b, pool, depth)

    # ---- operations ------------------------------------------------------------------------------------------------
    def binary(self, b: Builder, pool: Pool, depth: int) -> None:
        of = self.draw(st.sampled_from((VECTOR, POINT)))
        op = self.draw(st.sampled_from(("add", "sub", "mul", "div")))
        self.put(pool, b.emit(op, [self.pick(b, pool, of), self.pick(b, pool, of)]))

    def unary(self, b: Builder, pool: Pool, depth: int) -> None:
        x = self.pick(b, pool, VECTOR)
        op = self.draw(st.sampled_from(("neg", "tanh", "detach", "reshape", "transpose", "cast", "ones_like")))
        if op == "reshape":
            self.put(pool, b.shaped("reshape", [x], b.shape(x)))
            return
        attributes = {"transpose": {"perm": (0,)}, "cast": {"dtype": dtypes.float32}}.get(op, {})
        self.put(pool, b.emit(op, [x], attributes))

    def view(self, b: Builder, pool: Pool, depth: int) -> None:
        """Read all elements forwards, backwards, or through two axes more."""
        x = self.pick(b, pool, VECTOR)
        how = self.draw(st.sampled_from(("backwards", "flip", "split", "there and back")))
        if how == "backwards":
            x = b.emit("index", [x], {"spec": (("slice", None, None, -1),)})
            x = b.shaped("reshape", [x], b.shape(VECTOR))
        elif how == "flip":
            x = b.emit("flip", [x], {"axes": (0,)})
        elif how == "split":
            x = b.emit(
                "index", [b.emit("stack", [x, x], {"axis": 0})], {"spec": (("int", self.draw(st.booleans()) * 1),)}
            )
        else:
            wide = b.emit("transpose", [b.expand_dims(x, axes=(0,))], {"perm": (1, 0)})
            x = b.emit("squeeze", [wide], {"axes": (1,)})
        self.put(pool, x)

    def write(self, b: Builder, pool: Pool, depth: int) -> None:
        """Set all elements, or add to them, from a tensor that may be the same."""
        op = self.draw(st.sampled_from(("index_set", "index_add")))
        spec = (("slice", None, None, self.draw(st.sampled_from((None, -1)))),)
        self.put(pool, b.emit(op, [self.pick(b, pool, VECTOR), self.pick(b, pool, VECTOR)], {"spec": spec}))

    def with_number(self, b: Builder, pool: Pool, depth: int) -> None:
        of = self.draw(st.sampled_from((VECTOR, POINT)))
        op, number = self.draw(st.sampled_from(("add", "sub", "mul", "div"))), self.draw(st.sampled_from(NUMBERS))
        self.put(pool, getattr(b, op)(self.pick(b, pool, of), number))

    def point(self, b: Builder, pool: Pool, depth: int) -> None:
        x, s = self.pick(b, pool, VECTOR), self.pick(b, pool, POINT)
        self.put(pool, b.mul(x, s))

    def number(self, b: Builder, pool: Pool, depth: int) -> None:
        op = self.draw(st.sampled_from(("scalar_add", "scalar_sub", "scalar_floordiv", "scalar_lt", "scalar_eq")))
        left = self.pick(b, pool, INT)
        right = self.draw(st.sampled_from((0, 1, 2))) if self.draw(st.booleans()) else self.pick(b, pool, INT)
        self.put(pool, getattr(b, op)(left, right))

    def grow(self, b: Builder, pool: Pool, depth: int) -> None:
        if not pool[LIST]:
            self.put(pool, b.emit("list_new", [], {"type": LIST}))
        self.put(pool, b.list_append(self.pick(b, pool, LIST), self.pick(b, pool, VECTOR)))

    def read(self, b: Builder, pool: Pool, depth: int) -> None:
        if pool[LIST]:
            items = self.pick(b, pool, LIST)
            if self.draw(st.booleans()):
                self.put(pool, b.list_len(items))
            else:
                self.put(pool, b.list_get(items, self.draw(st.sampled_from((0, -1)))))

    # ---- control flow ----------------------------------------------------------------------------------------------
    def cond(self, b: Builder, pool: Pool, depth: int) -> None:
        pred = self.pick(b, pool, BOOL)
        if self.draw(st.booleans()):
            pred = b.scalar(self.draw(st.booleans()))
        kinds = [k for k in (VECTOR, POINT, INT, LIST) if pool[k]]
        of = self.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
        blocks = [b.child(), b.child()]
        for child in blocks:
            inner = {k: list(v) for k, v in pool.items()}
            self.fill(child, inner, depth + 1)
            child.block.results = [self.pick(child, inner, k) for k in of]
        self.close(b, "cond", [pred], blocks, {})

    def again(self, b: Builder, pool: Pool, depth: int) -> None:
        """Ask once more what was asked before, for conds to be merged."""
        pred = b.use(pool[BOOL][0])
        blocks = [b.child(), b.child()]
        for child in blocks:
            x = self.pick(child, pool, VECTOR)
            child.block.results = [child.neg(x) if self.draw(st.booleans()) else x]
        self.close(b, "cond", [pred], blocks, {})
        self.put(pool, b.block.operations[-1].results[0])

    def loop(self, b: Builder, pool: Pool, depth: int) -> None:
        kinds = [k for k in (VECTOR, POINT, INT, LIST) if pool[k]]
        of = self.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
        start = [self.pick(b, pool, k) for k in of]
        child = b.child()
        turn = child.argument(INT)
        carried = [child.argument(k) for k in of]
        inner = {k: list(v) for k, v in pool.items()}
        for value in (turn, *carried, *carried):
            self.put(inner, value)
        self.fill(child, inner, depth + 1)
        results = [self.pick(child, inner, k) for k in of]
        turns = b.scalar(self.draw(st.sampled_from((0, 1, 2, 3))))
        if self.draw(st.booleans()):
            child.block.results = results
            attributes = {"carried": len(of), "reverse": self.draw(st.booleans())}
            made = self.close(b, "counted_while", [turns, *start], [child], attributes)
        else:  # the turn's number is carried too
            more = child.scalar_add(turn, 1)
            child.block.results = [child.scalar_lt(more, turns), more, *results]
            first = b.scalar_lt(0, turns)
            operands = [first, b.scalar(0), *start]
            made = self.close(b, "while_loop", operands, [child], {"carried": len(of) + 1})
        for value in made:
            self.put(pool, value)

    def close(self, b: Builder, op: str, operands: list[Value], blocks: list[Builder], attributes: Any) -> list[Value]:
        """Append an op with sub-blocks; both blocks of a cond get the arguments that either captures."""
        captured = list(dict.fromkeys(v for child in blocks for v in child.captures))
        operands = operands + [b.use(v) for v in captured]
        for child in blocks:
            own = [a for a in child.block.arguments if a not in set(child.captures.values())]
            child.block.arguments = own + [child.use(v) for v in captured]
        return b.operation(op, operands, attributes, [child.block for child in blocks]).results


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a Program that takes (float32[N], float32[N], float32[], int, bool)."""
    return Maker(draw).program()


def inputs(n: int, k: int, p: bool) -> list[Any]:
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=n).astype(np.float32) for _ in range(2))
    return [x, y, np.array(1.5, np.float32), k, p]


def outcome(run: Any, given: list[Any]) -> Any:
    """Return what a run gives, as something to compare: bits, or the error."""
    try:
        return [bits(v) for v in run(given)]
    except (ArithmeticError, LookupError, ValueError) as error:
        return type(error), str(error)


def bits(value: Any) -> Any:
    """Return a value with arrays as (type, shape, numbers): NaN is NaN, whatever its sign."""
    if isinstance(value, (list, tuple)):
        return [type(value), *map(bits, value)]
    if isinstance(value, np.ndarray):
        numbers = ["nan" if np.isnan(e) else e.tobytes() for e in value.reshape(-1)]
        return value.dtype.str, value.shape, numbers
    return type(value), value
