"""Reading and writing at indices along one axis: `take_along_axis`, `put_along_axis`, and `last_writer`.

Indices have the tensor's rank and, but for the axis, its extents (in a Program; `eval` broadcasts). Negative ones count
from the end; others outside raise IndexError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import bool_
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.ops.elementwise.comparison import select


class TakeAlongAxis(Op):
    """The elements at `indices` along `axis`."""

    name = "take_along_axis"
    is_gather = True
    attributes = ("axis",)
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, indices: TensorType, *, axis: int) -> TensorType:
        refuse_types(self.name, x, indices, axis)
        return TensorType(x.dtype, indices.shape)

    def eval(self, xp: Any, x: Any, indices: Any, *, axis: int) -> Any:
        return x[grid_of(xp, x.shape, indices, axis)]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int) -> Tangents:  # fmt: skip
        x, indices = operands
        return [b.put_along_axis(_zeros(b, x, cts[0]), indices, cts[0], axis=axis, mode="add"), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(3, 4)), rng.integers(-4, 4, size=(3, 6))), {"axis": 1})
        yield Sample((rng.normal(size=(3, 4)), rng.integers(0, 3, size=(2, 4))), {"axis": 0})
        yield Sample((rng.normal(size=(3, 4)), np.zeros((3, 0), np.int64)), {"axis": 1})


class PutAlongAxis(Op):
    """The tensor with `values` put at `indices` along `axis`.

    Mode "assign" keeps the last value of equal indices, "add" adds all of them to the element.
    """

    name = "put_along_axis"
    writes = 2
    attributes = ("axis", "mode")
    linear_together = (0, 2)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, indices: TensorType, values: TensorType, *, axis: int, mode: str) -> TensorType:
        if mode not in ("assign", "add"):
            raise ValueError(f"put_along_axis: mode is {mode!r}, not 'assign' or 'add'")
        refuse_types(self.name, x, indices, axis)
        refuse_values(self.name, x, indices, values)
        return x

    def eval(self, xp: Any, x: Any, indices: Any, values: Any, *, axis: int, mode: str) -> Any:
        grid = grid_of(xp, x.shape, indices, axis)
        result = x.copy()
        if mode == "add":
            xp.add.at(result, grid, xp.broadcast_to(values, grid[axis].shape))
        elif xp is np:
            result[grid] = values
        else:
            last = _last(xp, x.shape, grid, axis)
            result[tuple(line[last] for line in grid)] = xp.broadcast_to(values, last.shape)[last]
        return result

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, mode: str) -> Tangents:  # fmt: skip
        (x, indices, _), ct = operands, cts[0]
        in_x = in_values = None
        if linear[0]:
            in_x = ct if mode == "add" else b.put_along_axis(ct, indices, _zeros(b, indices, ct), axis=axis, mode=mode)
        if linear[2]:
            in_values = b.take_along_axis(ct, indices, axis=axis)
            if mode == "assign":
                last = b.shaped("last_writer", [indices], [b.shape(x)[axis]], axis=axis)
                in_values = select(b, last, in_values, None)
        return [in_x, None, in_values]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for mode in ("assign", "add"):
            yield from put_samples(rng, mode)


class LastWriter(Op):
    """True where no later index along `axis` is the same: whose value `put_along_axis` leaves in mode "assign".

    `shape` is a template of one extent, that of the tensor's axis, which negative indices count from.
    """

    name = "last_writer"
    attributes = ("shape", "axis")
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, indices: TensorType, *dims: ScalarType, shape: tuple[int | None], axis: int) -> TensorType:
        return TensorType(bool_, indices.shape)

    def eval(self, xp: Any, indices: Any, *dims: int, shape: tuple[int | None], axis: int) -> Any:
        written = (*indices.shape[:axis], *fill(shape, dims), *indices.shape[axis + 1 :])
        return _last(xp, written, grid_of(xp, written, indices, axis), axis)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array([[0, 2, 0, -1]]),), {"shape": (3,), "axis": 1})
        yield Sample((np.array([[0, 2, 0, -1]]), 3), {"shape": (None,), "axis": 1})
        yield Sample((np.zeros((0, 2), np.int64),), {"shape": (3,), "axis": 1})


def refuse_types(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    """Raise TypeError or ValueError for indices that do not fit the tensor."""
    if not indices.dtype.is_integer:
        raise TypeError(f"{name} needs integer indices, not {indices.dtype.name}")
    if x.rank != indices.rank:
        raise ValueError(f"{name} needs indices of the tensor's rank, not {indices} into {x}")
    for i, (extent, wanted) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if i != axis and extent != wanted and isinstance(extent, int) and isinstance(wanted, int):
            raise ValueError(f"{name}: axis {i} of the indices has {extent} elements, that of the tensor {wanted}")


def refuse_values(name: str, x: TensorType, indices: TensorType, values: TensorType) -> None:
    """Raise TypeError or ValueError for values that do not fit tensor and indices."""
    if values.dtype is not x.dtype:
        raise TypeError(f"{name} needs values of the tensor's dtype {x.dtype.name}, not {values.dtype.name}")
    if values.shape != indices.shape:
        raise ValueError(f"{name} needs values of the indices' shape, not {values} at {indices}")


def grid_of(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index arrays, of one shape, that address `indices` along `axis` and each place along the others."""
    extent, rank = shape[axis], len(shape)
    outside = (indices < -extent) | (indices >= extent)
    if indices.size and bool(outside.any()):
        first = int(indices[outside].ravel()[0])
        raise IndexError(f"index {first} is out of range for axis {axis} with {extent} elements")
    places = xp.where(indices < 0, indices + extent, indices)
    lines = [xp.arange(e).reshape(tuple(-1 if i == j else 1 for j in range(rank))) for i, e in enumerate(shape)]
    return tuple(xp.broadcast_arrays(*(places if i == axis else line for i, line in enumerate(lines))))


def put_samples(rng: np.random.Generator, mode: str) -> Iterator[Sample]:
    """Yield operands of ops that put values: repeated indices, distinct ones along the first axis, none at all, all."""
    x = rng.normal(size=(3, 4))
    yield Sample((x, rng.integers(-4, 4, size=(3, 6)), rng.normal(size=(3, 6))), {"axis": 1, "mode": mode})
    yield Sample((x, np.array([[2, 0, 1, 1], [2, 1, 0, 2]]), rng.normal(size=(2, 4))), {"axis": 0, "mode": mode})
    yield Sample((x, np.zeros((3, 0), np.int64), np.zeros((3, 0))), {"axis": 1, "mode": mode})
    turned = np.tile(np.array([3, 2, 1, 0]), (3, 1))
    yield Sample((x, turned, rng.normal(size=(3, 4))), {"axis": 1, "mode": mode})


def _last(xp: Any, shape: tuple[int, ...], grid: tuple[Any, ...], axis: int) -> Any:
    """Say of each write whether it is the last at its place; independent of the order in which a device writes."""
    count = grid[axis].shape[axis]
    line = xp.arange(count, dtype=xp.int32).reshape(tuple(-1 if i == axis else 1 for i in range(len(shape))))
    iterations = xp.broadcast_to(line, grid[axis].shape)
    latest = xp.full(shape, -1, dtype=iterations.dtype)
    xp.maximum.at(latest, grid, iterations)
    return latest[grid] == iterations


def _zeros(b: Builder, shaped_as: Value, typed_as: Any) -> Value:
    return b.shaped("full", [b.constant(0, typed_as.type.dtype)], b.shape(shaped_as))
