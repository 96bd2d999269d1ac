"""Pooling to a given extent: axis cells are [floor(i * n / count), ceil((i + 1) * n / count)) of n elements.

`adaptive_avg_pool` and its transpose average with one matrix for each axis; `adaptive_max_pool` gives places, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import int64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.transpose_helpers import in_shape_of
from dy2st.ops.nn.pooling import read_places

Tangents = Sequence[Value | None]
Ints = tuple[int, ...]


class AdaptiveAvgPool(Op):
    """The mean of each cell of [batch, channels, *spatial]; the result's spatial extents are `output`."""

    native_in_eager = True
    name = "adaptive_avg_pool"
    superlinear = True
    defined_on = "fc"
    attributes = ("output",)
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *, output: Ints) -> TensorType:
        _refuse(self.name, x.shape, output)
        return TensorType(x.dtype, (*x.shape[:2], *output))

    def eval(self, xp: Any, x: Any, *, output: Ints) -> Any:
        _refuse(self.name, x.shape, output)
        for axis, count in enumerate(output, 2):
            cells = [x[(slice(None),) * axis + (cell,)] for cell in _cells(x.shape[axis], count)]
            x = xp.stack([cell.mean(axis=axis) for cell in cells], axis=axis)  # a NaN stays in its cells
        return x

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.shaped("adaptive_avg_pool_grad", [cts[0]], b.shape(operands[0]), **attributes)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 1, 7)),), {"output": (3,)})
        yield Sample((rng.normal(size=(1, 2, 5, 4)),), {"output": (2, 1)})
        yield Sample((rng.normal(size=(1, 2, 2)),), {"output": (3,)})


class AdaptiveAvgPoolGrad(Op):
    """The transpose of `adaptive_avg_pool` from tensors of `shape` (a template)."""

    native_in_eager = True
    name = "adaptive_avg_pool_grad"
    superlinear = True
    defined_on = "fc"
    attributes = ("shape", "output")
    linear_in = (0,)
    fresh = True

    def infer(self, c: TensorType, *dims: ScalarType, shape: tuple[int | None, ...],
              output: Ints) -> TensorType:  # fmt: skip
        return TensorType(c.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, c: Any, *dims: int, shape: tuple[int | None, ...], output: Ints) -> Any:
        target = fill(shape, dims)
        if c.shape != (*target[:2], *output):
            wanted = [*target[:2], *output]
            raise ValueError(f"{self.name}: pooling {list(target)} gives {wanted}, which is not {list(c.shape)}")
        for axis, extent in enumerate(target[2:], 2):
            c = _along(xp, _averages(xp, extent, c.shape[axis], c.dtype).T, c, axis)
        return c

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, output: Ints, **attributes: Any) -> Tangents:  # fmt: skip
        ct = in_shape_of(b, b.adaptive_avg_pool(cts[0], output=output), operands[0])
        return [ct, *[None] * (len(operands) - 1)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 1, 3)), 7), {"shape": (2, 1, None), "output": (3,)})
        yield Sample((rng.normal(size=(1, 2, 2, 1)),), {"shape": (1, 2, 5, 4), "output": (2, 1)})


class AdaptiveMaxPool(Op):
    """The largest element of each cell and its place (int64), row-major in the spatial axes; the first of equals."""

    native_in_eager = True
    name = "adaptive_max_pool"
    superlinear = True
    defined_on = REAL_NUMBERS
    attributes = ("output",)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *, output: Ints) -> tuple[TensorType, TensorType]:
        _refuse(self.name, x.shape, output)
        shape = (*x.shape[:2], *output)
        return TensorType(x.dtype, shape), TensorType(int64, shape)

    def eval(self, xp: Any, x: Any, *, output: Ints) -> Any:
        _refuse(self.name, x.shape, output)
        spatial, lead = x.shape[2:], x.shape[:2]
        numbers = xp.arange(math.prod(spatial)).reshape(spatial)
        values, places = xp.empty((*lead, *output), x.dtype), xp.empty((*lead, *output), np.int64)
        cells = [list(_cells(n, count)) for n, count in zip(spatial, output, strict=True)]
        for at, cell in zip(np.ndindex(*output), itertools.product(*cells), strict=True):
            found = x[(..., *cell)].reshape(*lead, math.prod(c.stop - c.start for c in cell))
            best = found.argmax(axis=-1)
            values[(..., *at)] = xp.take_along_axis(found, best[..., None], -1)[..., 0]
            places[(..., *at)] = numbers[cell].reshape(-1)[best]
        return values, places

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return [read_places(b, tangents[0], outs[1]), None]  # type: ignore[arg-type]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.permutation(14).reshape(2, 1, 7) / 7.0,), {"output": (3,)})
        yield Sample((rng.permutation(40).reshape(1, 2, 5, 4) / 7.0,), {"output": (2, 1)})
        yield Sample((np.zeros((0, 2, 4)),), {"output": (3,)})


def _cells(extent: int, count: int) -> Iterator[slice]:
    for i in range(count):
        yield slice(i * extent // count, -(-(i + 1) * extent // count))


def _averages(xp: Any, extent: int, count: int, dtype: Any) -> Any:
    """Return the matrix [count, extent] that averages over cells."""
    matrix = np.zeros((count, extent))
    for row, cell in zip(matrix, _cells(extent, count), strict=True):
        row[cell] = 1.0 / (cell.stop - cell.start)
    return xp.asarray(matrix.astype(dtype))


def _along(xp: Any, matrix: Any, x: Any, axis: int) -> Any:
    return xp.moveaxis(xp.matmul(matrix, xp.moveaxis(x, axis, -2)), -2, axis)


def _refuse(name: str, shape: Sequence[Any], output: Ints) -> None:
    if len(shape) != len(output) + 2:
        raise ValueError(f"{name} to {list(output)} needs a tensor of rank {len(output) + 2}, not {len(shape)}")
    if any(n == 0 for n in shape[2:]) or any(count < 1 for count in output):
        raise ValueError(f"{name} cannot pool extents [{', '.join(map(str, shape[2:]))}] to {list(output)}")
