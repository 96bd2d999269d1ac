"""Lists, tuples and variants rebuilt with something done to every tensor and number in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.autodiff.cotangents import close_cond
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import INT, ConstType, ListType, ScalarType, TensorType, TupleType, Type, UnsetType, VariantType
from dy2st.ops.control.lists import ListNew

Leaf = Callable[[Builder, Value, Type], Value]
"""Emit what becomes of a tensor or number; the type is that which it has in one lane."""


class Rebuilder:
    """Rebuilds values: `leaf` is done to what they hold, `target` says the types of lists and variants of that."""

    def __init__(self, leaf: Leaf, target: Callable[[Type], Type]):
        self.leaf, self.target = leaf, target

    def value(self, b: Builder, value: Value, kind: Type) -> Value:
        """Emit what becomes of a value; `kind` is its type in one lane."""
        if isinstance(kind, (TensorType, ScalarType)):
            return self.leaf(b, b.use(value), kind)
        if isinstance(kind, ListType):
            return self._list(b, value, kind)
        if isinstance(kind, TupleType):
            parts = b.operation("tuple_get", [value]).results
            return b.tuple_new(*(self.value(b, part, item) for part, item in zip(parts, kind.items, strict=True)))
        if isinstance(kind, VariantType):
            return self._variant(b, value, kind, 0)
        return b.use(value)  # unset, or a constant

    def _list(self, b: Builder, value: Value, kind: ListType) -> Value:
        made, of = value.operation, self.target(kind)
        empty = b.emit("list_new", [], {"type": of})
        if made is not None and isinstance(made.op, ListNew) and not made.operands:
            return empty
        body = b.child()
        i, so_far = body.argument(INT), body.argument(of)
        element = self.value(body, body.list_get(value, i), kind.element)
        body.block.results = [body.list_append(so_far, element)]
        return counted(b, b.list_len(value), body, [empty])[0]

    def _variant(self, b: Builder, value: Value, kind: VariantType, tag: int) -> Value:
        """Emit the variant, from alternative `tag` on: one `cond` for each."""
        last = tag + 1 == len(kind.alternatives)
        here = b if last else b.child()
        alternative = kind.alternatives[tag]
        payload: list[Value] = []
        if not isinstance(alternative, (UnsetType, ConstType)):
            held = here.variant_get(value, tag=tag, message="a value of another kind was read")
            payload = [self.value(here, held, alternative)]
        made = here.emit("variant_new", payload, {"type": self.target(kind), "tag": tag})
        if last:
            return made
        other = b.child()
        here.block.results = [made]
        other.block.results = [self._variant(other, value, kind, tag + 1)]
        return close_cond(b, b.scalar_eq(b.variant_tag(value), tag), here, other)[0]


def counted(b: Builder, iterations: int | Value, body: Builder, initial: Sequence[Value]) -> list[Value]:
    """Emit a `counted_while` over a child that takes the iteration, the carried values, and what it captured."""
    own = body.block.arguments[: 1 + len(initial)]
    body.block.arguments[:] = [*own, *body.captures.values()]
    attributes = {"carried": len(initial), "reverse": False}
    operands = [b.scalar(iterations), *initial, *body.captures]
    return b.operation("counted_while", operands, attributes, [body.block]).results
