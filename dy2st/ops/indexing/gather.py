"""Reading whole slices at places, and adding there: `take`, `gather_nd` and their transposes.

    take(x, i)          result[.., *i's axes, ..] = x[.., i, ..]        (index_select, embedding)
    gather_nd(x, i)     i's last axis holds a place on the first axes of x

`take_add` and `scatter_nd_add` add values to `x` at such places; places that repeat add up. Negative places count from
the end; others outside are an IndexError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.scatter_add_arrays import add_rows, refuse_outside
from dy2st.ops.core.transpose_helpers import in_shape_of, zeros_of
from dy2st.shapes import Extent

Tangents = Sequence[Value | None]


class _Gather(Op):
    """A read, whose transpose is the op named `adds`."""

    abstract = True
    linear_in = (0,)
    may_raise = True
    fresh = True
    adds: str

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        x, places = operands
        return [b.emit(self.adds, [zeros_of(b, x), cts[0], places], attributes), None]  # type: ignore[list-item]


class _Scatter(Op):
    """The tensor `x` with values added at places; the op named `reads` reads them."""

    abstract = True
    linear_together = (0, 1)
    may_raise = True
    fresh = True
    reads: str
    region: Callable[..., Sequence[Extent]]
    """Return the shape that the values must have: region(x, places, **attributes)."""
    eval_in_place: Callable[..., Any]
    """Do what `eval` does on `x` itself."""

    def infer(self, x: TensorType, values: TensorType, places: TensorType, **attributes: Any) -> TensorType:
        if values.dtype is not x.dtype:
            dtypes = f"{values.dtype.name} for {x.dtype.name}"
            raise TypeError(f"{self.name} needs values of the tensor's dtype, not {dtypes}")
        region = self.region(x, places, **attributes)
        pairs = zip(values.shape, region, strict=False)
        differ = any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in pairs)
        if values.rank != len(region) or differ:
            raise _misfit(self.name, values.shape, region)
        return x

    def eval(self, xp: Any, x: Any, values: Any, indices: Any, *_: Any, **attributes: Any) -> Any:
        return self.eval_in_place(xp, x.copy(), values, indices, **attributes)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        (ct,), (_, values, places) = cts, operands
        read = in_shape_of(b, b.emit(self.reads, [ct, places], attributes), values) if linear[1] else None  # type: ignore[list-item]
        return [ct if linear[0] else None, read, None]


class Take(_Gather):
    """The slices of `x` along `axis` at `indices`, whose axes stand in that axis' place."""

    name = "take"
    is_gather = True
    attributes = ("axis",)
    adds = "take_add"

    def infer(self, x: TensorType, indices: TensorType, *, axis: int) -> TensorType:
        _refuse_places(self.name, indices)
        return TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def eval(self, xp: Any, x: Any, indices: Any, *, axis: int) -> Any:
        if xp is not np:
            refuse_outside(xp, self.name, indices, axis, x.shape[axis])
        try:
            return xp.asarray(xp.take(x, indices, axis))
        except IndexError:
            refuse_outside(xp, self.name, indices, axis, x.shape[axis])
            raise

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 4)), np.array([[1, 3], [1, -1]])), {"axis": 1})
        yield Sample((rng.normal(size=(3,)), np.array(2)), {"axis": 0})
        yield Sample((rng.normal(size=(3, 2)), np.zeros(0, np.int32)), {"axis": 0})


class TakeAdd(_Scatter):
    """The tensor `x` with `values` added to its slices along `axis` at `indices`."""

    name = "take_add"
    accumulates = True
    defined_on = "iufc"
    attributes = ("axis",)
    reads = "take"

    def region(self, x: TensorType, places: TensorType, *, axis: int) -> Sequence[Extent]:
        _refuse_places(self.name, places)
        return (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])

    def eval(self, xp: Any, x: Any, values: Any, indices: Any, *, axis: int) -> Any:
        return super().eval(xp, x, values, indices, axis=axis)

    def eval_in_place(self, xp: Any, x: Any, values: Any, indices: Any, *, axis: int) -> Any:
        """Do the same on `x` itself."""
        refuse_outside(xp, self.name, indices, axis, x.shape[axis])
        region = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
        if values.shape != region:
            raise _misfit(self.name, values.shape, region)
        flat = values.reshape(*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
        add_rows(xp, xp.moveaxis(x, axis, 0), indices.reshape(-1), xp.moveaxis(flat, axis, 0))
        return x

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        indices = np.array([[1, 3], [1, -1]])
        yield Sample((rng.normal(size=(2, 4)), rng.normal(size=(2, 2, 2)), indices), {"axis": 1})
        yield Sample((rng.normal(size=(4, 2)), rng.normal(size=(2, 2, 2)), indices), {"axis": 0})
        yield Sample((rng.normal(size=(3,)), rng.normal(size=()), np.array(2)), {"axis": 0})
        yield Sample((rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), np.array([3, 2, 1, 0])), {"axis": 0})


class GatherNd(_Gather):
    """The slices of `x` at places; the last axis of `indices` holds one place on each of the first `depth` axes."""

    name = "gather_nd"
    is_gather = True
    attributes = ("depth",)
    adds = "scatter_nd_add"

    def infer(self, x: TensorType, indices: TensorType, *, depth: int) -> TensorType:
        return TensorType(x.dtype, _nd(self.name, x, indices, depth))

    def eval(self, xp: Any, x: Any, indices: Any, *, depth: int) -> Any:
        _refuse_depth(self.name, len(x.shape), indices.shape, depth)
        if xp is not np:
            _refuse_nd(xp, self.name, x, indices)
        try:
            found = x[(*xp.moveaxis(indices, -1, 0), ...)]
        except IndexError:
            _refuse_nd(xp, self.name, x, indices)
            raise
        return found.copy() if indices.ndim == 1 else found  # one place gives a view

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3, 4)), np.array([[0, 1], [-1, 2], [0, 1]])), {"depth": 2})
        yield Sample((rng.normal(size=(3,)), np.array([1])), {"depth": 1})


class ScatterNdAdd(_Scatter):
    """The tensor `x` with `values` added at places as in `gather_nd`."""

    name = "scatter_nd_add"
    accumulates = True
    attributes = ("depth",)
    reads = "gather_nd"

    def region(self, x: TensorType, places: TensorType, *, depth: int) -> Sequence[Extent]:
        return _nd(self.name, x, places, depth)

    def eval(self, xp: Any, x: Any, values: Any, indices: Any, *, depth: int) -> Any:
        return super().eval(xp, x, values, indices, depth=depth)

    def eval_in_place(self, xp: Any, x: Any, values: Any, indices: Any, *, depth: int) -> Any:
        """Do the same on `x` itself."""
        _refuse_depth(self.name, len(x.shape), indices.shape, depth)
        _refuse_nd(xp, self.name, x, indices)
        lead, rest = x.shape[:depth], x.shape[depth:]
        if values.shape != indices.shape[:-1] + rest:
            raise _misfit(self.name, values.shape, indices.shape[:-1] + rest)
        count = math.prod(lead)
        numbered = xp.arange(count).reshape(lead)
        positions = xp.asarray(numbered[tuple(xp.moveaxis(indices, -1, 0))]).reshape(-1)
        rows = xp.ascontiguousarray(x).reshape(count, *rest)
        add_rows(xp, rows, positions, values.reshape(positions.size, *rest))
        x[...] = rows.reshape(x.shape)
        return x

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        indices = np.array([[0, 1], [-1, 2], [0, 1]])
        yield Sample((rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 4)), indices), {"depth": 2})
        yield Sample((rng.normal(size=(3,)), rng.normal(size=()), np.array([1])), {"depth": 1})
        places = np.array([[3], [2], [1], [0]])
        yield Sample((rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), places), {"depth": 1})


def _refuse_places(name: str, places: TensorType) -> None:
    if not places.dtype.is_integer:
        raise TypeError(f"{name} needs integer indices, not {places.dtype.name}")


def _nd(name: str, x: TensorType, indices: TensorType, depth: int) -> tuple[Extent, ...]:
    _refuse_places(name, indices)
    _refuse_depth(name, x.rank, indices.shape, depth)
    return (*indices.shape[:-1], *x.shape[depth:])


def _refuse_depth(name: str, rank: int, indices: Sequence[Extent], depth: int) -> None:
    if depth > rank or not indices or (isinstance(indices[-1], int) and indices[-1] != depth):
        raise ValueError(
            f"{name} on {depth} axes of a tensor of rank {rank} cannot use indices of shape {_listed(indices)}"
        )


def _refuse_nd(xp: Any, name: str, x: Any, indices: Any) -> None:
    for axis in range(indices.shape[-1]):
        refuse_outside(xp, name, indices[..., axis], axis, x.shape[axis])


def _misfit(name: str, values: Sequence[Any], region: Sequence[Any]) -> ValueError:
    return ValueError(f"{name} needs values of shape {_listed(region)}, not {_listed(values)}")


def _listed(shape: Sequence[Any]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
