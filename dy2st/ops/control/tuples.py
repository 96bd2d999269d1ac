"""Tuples as values: elements of lists and alternatives of variants that are made of several values.

The tangent of a tuple is the tuple of optional tangents of its items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TupleType, Type, VariantType, is_differentiable, optional, tangent_type
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.bundle import Bundle

Tangents = Sequence[Value | None]


class _Tuple(Op):
    """What makes a tuple."""

    abstract = True

    def infer(self, *items: Type) -> Type:
        return TupleType(tuple(items))

    def eval(self, xp: Any, *items: Any) -> Any:
        return Bundle(items)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        parts = [maybe(b, t, p.type) for t, p in zip(tangents, primals, strict=True)]
        return b.emit("tuple_of_tangents", parts)


class TupleNew(_Tuple):
    """A tuple of the operands."""

    name = "tuple_new"
    moves_elements = True

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class TupleOfTangents(_Tuple):
    """A tuple of optional tangents, linear in them."""

    name = "tuple_of_tangents"

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        parts = b.operation("tuple_get", [cts[0]]).results  # type: ignore[list-item]
        return [part if one else None for part, one in zip(parts, linear, strict=True)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class TupleGet(Op):
    """The items of a tuple."""

    name = "tuple_get"
    moves_elements = True
    linear_in = (0,)

    def infer(self, bundle: TupleType) -> tuple[Type, ...]:
        return bundle.items

    def eval(self, xp: Any, bundle: Any) -> Any:
        return tuple(bundle.items)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        parts = b.operation("tuple_get", [tangents[0]]).results  # type: ignore[list-item]
        return [
            None
            if not is_differentiable(out.type)
            else part
            if isinstance(out.type, VariantType)
            else b.variant_or_zeros(part, out, tag=1)
            for part, out in zip(parts, outs, strict=True)
        ]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        of = operands[0].type
        assert isinstance(of, TupleType)
        return [b.emit("tuple_of_tangents", [maybe(b, ct, t) for ct, t in zip(cts, of.items, strict=True)])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


def maybe(b: Builder, tangent: Value | None, primal: Type) -> Value:
    """Emit a tangent of a value of type `primal` as an optional; None is unset."""
    if tangent is not None and isinstance(tangent.type, VariantType):
        return tangent
    attributes = {"type": optional(tangent_type(primal)), "tag": 0 if tangent is None else 1}
    return b.emit("variant_new", [] if tangent is None else [tangent], attributes)
