"""Joining and splitting: `concat` and its transpose `split`, `stack`; axes of extent 1: `expand_dims`, `squeeze`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.transpose_helpers import dense, in_shape_of, zeros
from dy2st.shapes import Dim, Extent, Shape

Tangents = Sequence[Value | None]


class Concat(Op):
    """The operands one after the other along `axis`; their other extents are equal."""

    name = "concat"
    is_data_movement = True
    attributes = ("axis",)
    linear_together = (0,)
    variadic = True
    may_raise = True
    fresh = True

    def infer(self, *xs: TensorType, axis: int) -> TensorType:
        _refuse_different(self.name, xs, axis)
        total: Extent | None = 0
        for x in xs:
            total = total + x.shape[axis]  # type: ignore[operator]
        others = _merged(xs)
        return TensorType(xs[0].dtype, (*others[:axis], total, *others[axis + 1 :]))  # type: ignore[arg-type]

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return _can_differ(types, attributes["axis"])

    def eval(self, xp: Any, *xs: Any, axis: int) -> Any:
        try:
            return xp.concatenate(xs, axis=axis)
        except ValueError:
            raise ValueError(_not_joined(self.name, [x.shape for x in xs], axis)) from None

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return b.emit(self, dense(b, primals, tangents), attributes)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int) -> Tangents:  # fmt: skip
        extents = [b.extent(x.type.shape[axis]) for x in operands]  # type: ignore[union-attr]
        dims = [e for e in extents if isinstance(e, Value)]
        sections = tuple(None if isinstance(e, Value) else e for e in extents)
        parts = b.operation("split", [cts[0], *dims], {"sections": sections, "axis": axis}).results  # type: ignore[list-item]
        return [in_shape_of(b, part, x) if one else None for part, x, one in zip(parts, operands, linear, strict=True)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 1)), rng.normal(size=(2, 0))), {"axis": 1})
        yield Sample((rng.normal(size=(2,)),), {"axis": 0})


class Split(Op):
    """Consecutive parts along `axis`; `sections` are their extents, None where a scalar operand gives it."""

    name = "split"
    is_data_movement = True
    attributes = ("sections", "axis")
    linear_in = (0,)
    may_raise = True

    def infer(self, x: TensorType, *dims: ScalarType, sections: tuple[int | None, ...],
              axis: int) -> tuple[TensorType, ...]:  # fmt: skip
        extents = fill_extents(sections, dims)
        total: Extent | None = 0
        for extent in extents:
            total = None if total is None or extent is None else total + extent
        if isinstance(total, int) and isinstance(x.shape[axis], int) and total != x.shape[axis]:
            raise ValueError(_not_split(x.shape[axis], extents, axis))
        shapes = ((*x.shape[:axis], extent, *x.shape[axis + 1 :]) for extent in extents)
        return tuple(TensorType(x.dtype, shape) for shape in shapes)  # type: ignore[arg-type]

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        sections, extent = attributes["sections"], types[0].shape[attributes["axis"]]
        return any(e is None or e < 0 for e in sections) or sum(sections) != extent

    def eval(self, xp: Any, x: Any, *dims: int, sections: tuple[int | None, ...], axis: int) -> Any:
        parts: list[Any] = []
        extents, start = fill(sections, dims), 0
        if sum(extents) != x.shape[axis] or any(e < 0 for e in extents):
            raise ValueError(_not_split(x.shape[axis], extents, axis))
        lead = (slice(None),) * axis
        for extent in extents:
            parts.append(x[(*lead, slice(start, start + extent))])
            start += extent
        return tuple(parts) if len(parts) != 1 else parts[0]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, sections: tuple[int | None, ...], axis: int) -> Tangents:  # fmt: skip
        x, extents = operands[0], fill(sections, operands[1:])  # type: ignore[arg-type]
        parts: list[Value] = []
        for ct, extent in zip(cts, extents, strict=True):
            shape = b.shape(x)
            shape[axis] = extent
            parts.append(ct if ct is not None else zeros(b, x.type.dtype, shape))  # type: ignore[union-attr]
        whole = in_shape_of(b, b.emit("concat", parts, {"axis": axis}), x)
        return [whole, *[None] * (len(operands) - 1)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 6)), 2), {"sections": (3, None, 1), "axis": 1})
        yield Sample((rng.normal(size=(2, 6)),), {"sections": (2,), "axis": 0})


class Stack(Op):
    """The operands, which have one shape, along a new axis."""

    name = "stack"
    is_data_movement = True
    attributes = ("axis",)
    linear_together = (0,)
    variadic = True
    may_raise = True
    fresh = True

    def infer(self, *xs: TensorType, axis: int) -> TensorType:
        _refuse_different(self.name, xs, None)
        shape = _merged(xs)
        return TensorType(xs[0].dtype, (*shape[:axis], len(xs), *shape[axis:]))

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return _can_differ(types, None)

    def eval(self, xp: Any, *xs: Any, axis: int) -> Any:
        try:
            return xp.stack(xs, axis=axis)
        except ValueError:
            raise ValueError(_not_joined(self.name, [x.shape for x in xs], None)) from None

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return b.emit(self, dense(b, primals, tangents), attributes)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int) -> Tangents:  # fmt: skip
        lead = (("slice", None, None, None),) * axis
        parts = [b.index(cts[0], spec=(*lead, ("int", i))) if one else None for i, one in enumerate(linear)]
        return [p if p is None else in_shape_of(b, p, x) for p, x in zip(parts, operands, strict=True)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))), {"axis": 1})
        yield Sample((rng.normal(size=()), rng.normal(size=()), rng.normal(size=())), {"axis": 0})


class ExpandDims(Op):
    """The operand with new axes of extent 1; `axes` are their places in the result, ascending."""

    name = "expand_dims"
    rematerializes = True
    renames = True
    is_data_movement = True
    is_reshape = True
    attributes = ("axes",)
    linear_in = (0,)
    is_view = True

    def infer(self, x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
        rank = x.rank + len(axes)
        if len(set(axes)) != len(axes) or any(not 0 <= a < rank for a in axes):
            raise ValueError(f"axes {list(axes)} do not name {len(axes)} different axes of a tensor of rank {rank}")
        rest = iter(x.shape)
        return TensorType(x.dtype, tuple(1 if a in axes else next(rest) for a in range(rank)))

    def eval(self, xp: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        shape = list(x.shape)
        for a in axes:
            shape.insert(a, 1)
        return x.reshape(shape)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axes: tuple[int, ...]) -> Tangents:  # fmt: skip
        return [in_shape_of(b, b.squeeze(cts[0], axes=axes), operands[0])]

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value], *, axes: tuple[int, ...]) -> Value:
        return b.squeeze(new, axes=axes)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), {"axes": (0, 2)})
        yield Sample((rng.normal(size=()),), {"axes": (0, 1)})


class Squeeze(Op):
    """The operand without its `axes`, which have extent 1; ValueError when one has not."""

    name = "squeeze"
    renames = True
    is_data_movement = True
    is_reshape = True
    attributes = ("axes",)
    linear_in = (0,)
    is_view = True
    may_raise = True

    def infer(self, x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
        for a in axes:
            if isinstance(x.shape[a], int) and x.shape[a] != 1:
                raise ValueError(_not_squeezed(a, x.shape))
        return TensorType(x.dtype, tuple(e for i, e in enumerate(x.shape) if i not in axes))

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return any(types[0].shape[a] != 1 for a in attributes["axes"])

    def eval(self, xp: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        for a in axes:
            if x.shape[a] != 1:
                raise ValueError(_not_squeezed(a, x.shape))
        return x.reshape(tuple(e for i, e in enumerate(x.shape) if i not in axes))

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axes: tuple[int, ...]) -> Tangents:  # fmt: skip
        return [in_shape_of(b, b.expand_dims(cts[0], axes=axes), operands[0])]

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value], *, axes: tuple[int, ...]) -> Value:
        return b.expand_dims(new, axes=axes)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(1, 3, 1)),), {"axes": (0, 2)})
        yield Sample((rng.normal(size=(1,)),), {"axes": (0,)})


def _merged(xs: Sequence[TensorType]) -> Shape:
    """Return what is known of a shape that all operands share: an int where one of them has an int."""
    return tuple(
        next((x.shape[a] for x in xs if not isinstance(x.shape[a], Dim)), xs[0].shape[a]) for a in range(xs[0].rank)
    )


def _can_differ(types: Sequence[TensorType], axis: int | None) -> bool:
    """Return whether extents (but those of `axis`) may differ, as far as types tell."""
    pairs = ((a, pair) for x in types[1:] for a, pair in enumerate(zip(types[0].shape, x.shape, strict=True)))
    return any(p != q for a, (p, q) in pairs if a != axis)


def _refuse_different(name: str, xs: Sequence[TensorType], axis: int | None) -> None:
    if not xs:
        raise ValueError(f"{name} needs at least one tensor")
    for x in xs[1:]:
        if x.dtype is not xs[0].dtype:
            raise TypeError(f"{name} needs tensors of one dtype, not {xs[0].dtype.name} and {x.dtype.name}")
        pairs = enumerate(zip(xs[0].shape, x.shape, strict=False))
        differ = any(isinstance(p, int) and isinstance(q, int) and p != q for a, (p, q) in pairs if a != axis)
        if x.rank != xs[0].rank or differ:
            raise ValueError(_not_joined(name, [y.shape for y in xs], axis))


def _not_joined(name: str, shapes: Sequence[Sequence[Any]], axis: int | None) -> str:
    listed = ", ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
    where = "" if axis is None else f" but for axis {axis}"
    return f"{name} needs tensors of one shape{where}, not {listed}"


def _not_split(extent: Any, sections: Sequence[Any], axis: int) -> str:
    return f"sections {list(sections)} do not add up to axis {axis}, whose extent is {extent}"


def _not_squeezed(axis: int, shape: Sequence[Any]) -> str:
    listed = ", ".join(map(str, shape))
    return f"cannot squeeze axis {axis} of a tensor of shape [{listed}]: its extent is not 1"
