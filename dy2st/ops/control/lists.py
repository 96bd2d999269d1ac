"""Growable lists as values, and their tangents.

A tangent or cotangent of `list<T>` is a `list<unset | T>` as long as it needs to be: slots that nobody wrote are
unset. Its ops (`list_cotangents.py`) address slots by number; append and pop become put and take at the length of the
list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import INT, ListType, ScalarType, Type, VariantType
from dy2st.ops.control.control_flow import join
from dy2st.ops.control.list_cotangents import empty_tangent
from dy2st.ops.core.base import Op, Sample

Tangents = Sequence[Value | None]


class ListNew(Op):
    """A list of `type` with the operands as its elements."""

    name = "list_new"
    moves_elements = True
    attributes = ("type",)
    linear_together = (0,)
    variadic = True

    def infer(self, *items: Type, type: ListType) -> Type:
        return type

    def eval(self, xp: Any, *items: Any, type: ListType) -> Any:
        return list(items)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, type: ListType) -> Any:  # fmt: skip
        total = empty_tangent(b, type)
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                total = b.list_put(total, i, tangent)
        return total

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.list_take(cts[0], i) if one else None for i, one in enumerate(linear)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListAppend(Op):
    """The list with one more element at its end."""

    name = "list_append"
    moves_elements = True
    linear_together = (0, 1)

    def infer(self, items: ListType, item: Type) -> Type:
        return ListType(join(items.element, item))

    def eval(self, xp: Any, items: Any, item: Any) -> Any:
        return [*items, item]

    def eval_in_place(self, xp: Any, items: Any, item: Any) -> Any:
        items.append(item)
        return items

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        ditems, ditem = tangents
        if ditem is None:
            return ditems
        ditems = ditems if ditems is not None else empty_tangent(b, primals[0].type)
        return b.list_put(ditems, b.scalar_sub(b.list_len(outs[0]), 1), ditem)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        raise TypeError("list_append is linearised into list_put, which has the transpose")

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListLen(Op):
    """The number of elements."""

    name = "list_len"
    tells_structure = True
    differentiable = False

    def infer(self, items: ListType) -> Type:
        return INT

    def eval(self, xp: Any, items: Any) -> int:
        return len(items)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListIndex(Op):
    """A list index counted from the front: negative ones are counted from the end; IndexError outside."""

    name = "list_index"
    places = slice(1, 2)
    tells_structure = True
    differentiable = False
    may_raise = True

    def infer(self, items: ListType, i: ScalarType) -> Type:
        return INT

    def eval(self, xp: Any, items: Any, i: int) -> int:
        at = i + len(items) if i < 0 else i
        if not 0 <= at < len(items):
            raise IndexError("list index out of range")
        return at

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListGet(Op):
    """Element number i; negative ones count from the end; IndexError outside."""

    name = "list_get"
    moves_elements = True
    places = slice(1, 2)
    raises = (IndexError,)
    may_raise = True

    def infer(self, items: ListType, i: ScalarType) -> Type:
        return items.element

    def eval(self, xp: Any, items: Any, i: int) -> Any:
        try:
            return items[i]
        except IndexError:
            raise IndexError("list index out of range") from None

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return densify(b, b.list_take(tangents[0], b.list_index(*primals)), outs[0])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListSet(Op):
    """The list with element number i replaced; IndexError outside."""

    name = "list_set"
    moves_elements = True
    places = slice(1, 2)
    raises = (IndexError,)
    writes = 2
    may_raise = True

    def infer(self, items: ListType, i: ScalarType, item: Type) -> Type:
        return ListType(join(items.element, item))

    def eval(self, xp: Any, items: Any, i: int, item: Any) -> Any:
        return self.eval_in_place(xp, list(items), i, item)

    def eval_in_place(self, xp: Any, items: Any, i: int, item: Any) -> Any:
        if not -len(items) <= i < len(items):
            raise IndexError("list assignment index out of range")
        items[i] = item
        return items

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        ditems, _, ditem = tangents
        at = b.list_index(outs[0], primals[1])
        if ditem is None:
            return None if ditems is None else b.list_clear(ditems, at)
        return b.list_put(ditems if ditems is not None else empty_tangent(b, primals[0].type), at, ditem)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListPop(Op):
    """The list without element number i, and that element; IndexError outside."""

    name = "list_pop"
    moves_elements = True
    places = slice(1, 2)
    raises = (IndexError,)
    may_raise = True

    def infer(self, items: ListType, i: ScalarType) -> Any:
        return (items, items.element)

    def eval(self, xp: Any, items: Any, i: int) -> Any:
        return self.eval_in_place(xp, list(items), i)

    def eval_in_place(self, xp: Any, items: Any, i: int) -> Any:
        if not items:
            raise IndexError("pop from empty list")
        if not -len(items) <= i < len(items):
            raise IndexError("pop index out of range")
        item = items.pop(i)
        return items, item

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        at = b.list_popped(outs[0], primals[1])
        return [b.list_remove(tangents[0], at), densify(b, b.list_take(tangents[0], at), outs[1])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListPopped(Op):
    """The place that element i had before it was popped, counted from the front, told by the list that is left."""

    name = "list_popped"
    places = slice(1, 2)
    tells_structure = True
    differentiable = False

    def infer(self, rest: ListType, i: ScalarType) -> Type:
        return INT

    def eval(self, xp: Any, rest: Any, i: int) -> int:
        return i + len(rest) + 1 if i < 0 else i

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample(([1.0, 2.0], -1), differentiate=False)


def densify(b: Builder, tangent: Any, out: Value) -> Any:
    """Turn an optional tangent into what `out` takes: zeros where it is unset, unless `out` is a variant itself."""
    return tangent if isinstance(out.type, VariantType) else b.variant_or_zeros(tangent, out, tag=1)
