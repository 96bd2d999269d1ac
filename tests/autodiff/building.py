"""Short ways to build Programs with control flow by hand."""

from collections.abc import Callable, Sequence
from typing import Any

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program, Value
from dy2st.ir.types import INT, UNSET, ListType, ScalarType, TensorType, Type, VariantType
from dy2st.shapes import symbol

N = symbol("N")
VECTOR = TensorType(dtypes.float64, (N,))
POINT = TensorType(dtypes.float64, ())
MATRIX = TensorType(dtypes.float64, (N, N))
LIST = ListType(VECTOR)

Branch = Callable[..., Sequence[Value]]


def program(types: Sequence[Type], body: Callable[..., Any]) -> Program:
    """Return the Program of `body(b, *arguments)`, which gives one value or several."""
    b = Builder()
    results = body(b, *(b.argument(t) for t in types))
    b.block.results = [results] if isinstance(results, Value) else list(results)
    return Program({"main": b.block})


def cond(b: Builder, predicate: Value, then: Branch, other: Branch) -> Any:
    """Emit `cond` of two functions of a builder; they use outer values freely."""
    sides = [b.child(), b.child()]
    for side, branch in zip(sides, (then, other), strict=True):
        side.block.results = _results(side, branch(side))
    return _close(b, "cond", [predicate], sides, {})


def while_loop(
    b: Builder, start: Sequence[Value], test: Callable[..., Value], body: Branch, changing: bool = False
) -> Any:
    """Emit `while_loop`: `test(b, *carried)` and `body(b, *carried)`; extents are `changing` from turn to turn."""
    inner = b.child()
    carried = [inner.argument(_carried(b, v.type, changing)) for v in start]
    after = _results(inner, body(inner, *carried))
    inner.block.results = [test(inner, *after), *after]
    return _close(b, "while_loop", [test(b, *start), *start], [inner], {"carried": len(start)})


def counted_while(
    b: Builder, turns: Any, start: Sequence[Value], body: Branch, reverse: bool = False, changing: bool = False
) -> Any:
    """Emit `counted_while`: `body(b, i, *carried)`."""
    inner = b.child()
    arguments = [inner.argument(t) for t in (INT, *(_carried(b, v.type, changing) for v in start))]
    inner.block.results = _results(inner, body(inner, *arguments))
    attributes = {"carried": len(start), "reverse": reverse}
    return _close(b, "counted_while", [b.scalar(turns), *start], [inner], attributes)


def empty_list(b: Builder, of: Type = LIST) -> Value:
    return b.emit("list_new", [], {"type": of})


def variant(b: Builder, of: VariantType, tag: int, *value: Value) -> Value:
    return b.emit("variant_new", list(value), {"type": of, "tag": tag})


def maybe(of: Type) -> VariantType:
    return VariantType((UNSET, of))


def _carried(b: Builder, t: Type, changing: bool) -> Type:
    if isinstance(t, ScalarType):
        return ScalarType(t.kind)
    if isinstance(t, TensorType) and changing:
        return TensorType(t.dtype, tuple(b.names.symbol() for _ in t.shape))
    return t


def _results(b: Builder, made: Any) -> list[Value]:
    return [b.use(v) for v in ([made] if isinstance(made, Value) else made)]


def _close(b: Builder, op: str, operands: list[Value], blocks: list[Builder], attributes: dict[str, Any]) -> Any:
    captured = list(dict.fromkeys(v for child in blocks for v in child.captures))
    for child in blocks:
        own = [a for a in child.block.arguments if a not in set(child.captures.values())]
        child.block.arguments = own + [child.use(v) for v in captured]
    results = b.operation(op, [*operands, *captured], attributes, [child.block for child in blocks]).results
    return results[0] if len(results) == 1 else results
