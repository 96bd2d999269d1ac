"""Lists made one tensor: `list_stack` side by side, `list_concat` end to end, `list_to_tensor` for numbers.

Their tangents take a tangent list, in which slots may be unset; the transposes cut a tensor into slots again. They need
no tensor of the list for that: `list_extents` keeps how long each was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType, int64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ListType, ScalarType, TensorType, Type
from dy2st.ops.control.list_cotangents import refuse_slot
from dy2st.ops.core.base import Op, Sample

Tangents = Sequence[Value | None]


def _element(name: str, items: ListType) -> TensorType:
    if not isinstance(items, ListType) or not isinstance(items.element, TensorType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name} needs a list of tensors, not {items}")
    return items.element


def _refuse_axis(name: str, axis: int, rank: int) -> None:
    if not 0 <= axis < rank:
        raise ValueError(f"{name}: axis {axis} is out of range for tensors of {rank} axes")


class ListStack(Op):
    """The elements, all of one shape, as one tensor with a new first axis."""

    name = "list_stack"
    may_raise = True
    fresh = True

    def infer(self, items: ListType) -> Type:
        element = _element("stack", items)
        return TensorType(element.dtype, (None, *element.shape))  # type: ignore[arg-type]

    def eval(self, xp: Any, items: Any) -> Any:
        if not items:
            raise ValueError("stack() needs at least one tensor")
        if any(x.shape != items[0].shape for x in items):
            shapes = sorted({x.shape for x in items})
            raise ValueError(f"stack needs tensors of one shape, the list has {', '.join(map(str, shapes))}")
        return xp.stack(items)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return b.list_stack_tangent(tangents[0], outs[0])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample(([rng.normal(size=(2, 3)) for _ in range(4)],))
        yield Sample(([rng.normal(size=())],))
        yield Sample(([np.zeros((0, 3), np.float32)] * 2,))


class ListStackTangent(Op):
    """The slots of a tangent list stacked in the shape of `like`; unset slots are zeros."""

    name = "list_stack_tangent"
    linear_in = (0,)

    def infer(self, slots: ListType, like: TensorType) -> Type:
        return like

    def eval(self, xp: Any, slots: Any, like: Any) -> Any:
        out = xp.zeros_like(like)
        for i, slot in enumerate(slots):
            if slot[0]:
                out[i] = slot[1]
        return out

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.list_unstack(cts[0], type=operands[0].type), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListUnstack(Op):
    """The slices of a tensor along its first axis as slots of a tangent list."""

    name = "list_unstack"
    attributes = ("type",)
    linear_in = (0,)

    def infer(self, x: TensorType, *, type: ListType) -> Type:
        return type

    def eval(self, xp: Any, x: Any, *, type: ListType) -> Any:
        refuse_slot(len(x))
        return [(1, part) for part in x] if x.ndim > 1 else [(1, x[i, ...]) for i in range(len(x))]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.list_stack_tangent(cts[0], _zeros(b, operands[0]))]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListConcat(Op):
    """The elements one after the other along an axis; their other extents are equal."""

    name = "list_concat"
    attributes = ("axis",)
    may_raise = True
    fresh = True

    def infer(self, items: ListType, *, axis: int) -> Type:
        element = _element("concat", items)
        _refuse_axis("concat", axis, element.rank)
        return TensorType(element.dtype, (*element.shape[:axis], None, *element.shape[axis + 1 :]))  # type: ignore[arg-type]

    def eval(self, xp: Any, items: Any, *, axis: int) -> Any:
        if not items:
            raise ValueError("concat() needs at least one tensor")
        rest = {x.shape[:axis] + x.shape[axis + 1 :] for x in items}
        if len(rest) > 1:
            shapes = ", ".join(map(str, sorted({x.shape for x in items})))
            raise ValueError(f"concat along axis {axis} needs tensors of equal other extents, the list has {shapes}")
        return xp.concatenate(items, axis=axis)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int) -> Any:  # fmt: skip
        extents = b.list_extents(primals[0], axis=axis)
        return b.list_concat_tangent(tangents[0], extents, outs[0], axis=axis)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample(([rng.normal(size=(2, 3)) for _ in range(3)],), {"axis": 0})
        yield Sample(([rng.normal(size=(2, 3)) for _ in range(2)],), {"axis": 1})
        yield Sample(([np.arange(4)],), {"axis": 0})


class ListExtents(Op):
    """The extent of each element along an axis, an int64 vector."""

    name = "list_extents"
    attributes = ("axis",)
    differentiable = False
    fresh = True

    def infer(self, items: ListType, *, axis: int) -> Type:
        _refuse_axis("extents", axis, _element("extents", items).rank)
        return TensorType(int64, (None,))  # type: ignore[arg-type]

    def eval(self, xp: Any, items: Any, *, axis: int) -> Any:
        return xp.asarray(np.array([x.shape[axis] for x in items], np.int64))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample(([rng.normal(size=(2, 3)) for _ in range(3)],), {"axis": 1})


class ListConcatTangent(Op):
    """The slots of a tangent list end to end in the shape of `like`, each so long as `extents` says; unset is zeros."""

    name = "list_concat_tangent"
    attributes = ("axis",)
    linear_in = (0,)

    def infer(self, slots: ListType, extents: TensorType, like: TensorType, *, axis: int) -> Type:
        return like

    def eval(self, xp: Any, slots: Any, extents: Any, like: Any, *, axis: int) -> Any:
        out = xp.zeros_like(like)
        for slot, part in zip(slots, _parts(out, extents, axis), strict=False):  # a tangent list may be shorter
            if slot[0]:
                part[...] = slot[1]
        return out

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int) -> Tangents:  # fmt: skip
        return [b.list_split(cts[0], operands[1], axis=axis, type=operands[0].type), None, None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListSplit(Op):
    """The parts of a tensor along an axis, each so long as `extents` says, as slots of a tangent list."""

    name = "list_split"
    attributes = ("axis", "type")
    linear_in = (0,)

    def infer(self, x: TensorType, extents: TensorType, *, axis: int, type: ListType) -> Type:
        return type

    def eval(self, xp: Any, x: Any, extents: Any, *, axis: int, type: ListType) -> Any:
        return [(1, part) for part in _parts(x, extents, axis)]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, type: ListType) -> Tangents:  # fmt: skip
        return [b.list_concat_tangent(cts[0], operands[1], _zeros(b, operands[0]), axis=axis), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListToTensor(Op):
    """The numbers of a list as a vector of a dtype; an empty list gives an empty one."""

    name = "list_to_tensor"
    attributes = ("dtype",)
    differentiable = False
    fresh = True

    def infer(self, items: ListType, *, dtype: DType) -> Type:
        if not isinstance(items, ListType) or not isinstance(items.element, ScalarType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"list_to_tensor needs a list of numbers, not {items}")
        return TensorType(dtype, (None,))  # type: ignore[arg-type]

    def eval(self, xp: Any, items: Any, *, dtype: DType) -> Any:
        return xp.asarray(np.array(items, dtype.numpy))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample(([1, 2, 3],), {"dtype": int64})


def _parts(x: Any, extents: Any, axis: int) -> Iterator[Any]:
    """Yield views of the parts of an array along an axis; IndexError for one that is not there."""
    at = 0
    for extent in extents.tolist():
        if not 0 <= extent <= x.shape[axis] - at:
            raise IndexError(f"there is no part of {extent} at {at} of {x.shape[axis]}")
        yield x[(*(slice(None),) * axis, slice(at, at + extent))]
        at += extent


def _zeros(b: Builder, like: Value) -> Any:
    """Emit zeros in the shape of a value whose elements may not be used."""
    return b.shaped("full", [b.constant(0, like.type.dtype)], b.shape(like))  # type: ignore[union-attr]
