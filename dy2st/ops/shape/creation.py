"""Tensors made from numbers: `arange`, `linspace`, `eye`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st.dtypes import DType, float32, int64
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.index_spec import at_least, extent_of
from dy2st.shapes import Extent

_TOO_MANY = 2**60
"""So many elements no memory has."""


class Arange(Op):
    """start, start + step, ... before `stop`; element i is start + i * step, rounded once to `dtype`."""

    name = "arange"
    attributes = ("dtype",)
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, start: ScalarType, stop: ScalarType, step: ScalarType, *, dtype: DType) -> TensorType:
        return TensorType(dtype, (_count(start.extent, stop.extent, step.extent),))  # type: ignore[arg-type]

    def eval(self, xp: Any, start: Any, stop: Any, step: Any, *, dtype: DType) -> Any:
        if step == 0:
            raise ValueError("arange: step must not be 0")
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
            count = max(0, -((start - stop) // step))
            values = xp.arange(start, start + _fitting(count) * step, step, dtype=np.int64)
            return values.astype(dtype.numpy, copy=False)
        count = _fitting(max(0, math.ceil((stop - start) / step)))
        return (xp.arange(count, dtype=np.float64) * step + start).astype(dtype.numpy, copy=False)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((0, 5, 1), {"dtype": int64})
        yield Sample((5, -2, -3), {"dtype": float32})
        yield Sample((3, 1, 1), {"dtype": int64})
        yield Sample((0.5, 2.0, 0.25), {"dtype": float32})


class Linspace(Op):
    """`num` numbers from `start` to `stop`, both included, with equal steps; computed in float64."""

    name = "linspace"
    attributes = ("dtype",)
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, start: ScalarType, stop: ScalarType, num: ScalarType, *, dtype: DType) -> TensorType:
        return TensorType(dtype, (extent_of(num),))  # type: ignore[arg-type]

    def eval(self, xp: Any, start: Any, stop: Any, num: int, *, dtype: DType) -> Any:
        if num < 0:
            raise ValueError(f"linspace: num must not be negative, but is {num}")
        return xp.linspace(start, stop, _fitting(num)).astype(dtype.numpy, copy=False)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((0, 1.5, 4), {"dtype": float32})
        yield Sample((2, 5, 1), {"dtype": float32})
        yield Sample((0, 0, 0), {"dtype": float32})


class Eye(Op):
    """The matrix of `rows` and `columns` with 1 on its main diagonal, 0 elsewhere."""

    name = "eye"
    attributes = ("dtype",)
    differentiable = False
    fresh = True

    def infer(self, rows: ScalarType, columns: ScalarType, *, dtype: DType) -> TensorType:
        return TensorType(dtype, (extent_of(rows), extent_of(columns)))  # type: ignore[arg-type]

    def eval(self, xp: Any, rows: int, columns: int, *, dtype: DType) -> Any:
        return xp.eye(rows, columns, dtype=dtype.numpy)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((2, 3), {"dtype": float32})
        yield Sample((0, 3), {"dtype": int64})


def _fitting(count: int) -> int:
    """Return a number of elements; MemoryError for one of which NumPy would make something else."""
    if count >= _TOO_MANY:
        raise MemoryError(f"{count} numbers do not fit into memory")
    return count


def _count(start: Extent | None, stop: Extent | None, step: Extent | None) -> Extent | None:
    """Return how many numbers a range of ints has, None where that cannot be said."""
    if start is None or stop is None or not isinstance(step, int) or step == 0:
        return None
    if isinstance(start, int) and isinstance(stop, int):
        return len(range(start, stop, step))
    length, step = (stop - start, step) if step > 0 else (start - stop, -step)
    if not at_least(length, 0):
        return None
    return length if step == 1 else (length + (step - 1)) // step
