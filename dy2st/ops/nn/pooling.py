"""Pooling over the spatial axes of [batch, channels, *spatial]: `max_pool`, `avg_pool` and its transpose.

Padding is no element: it is never the maximum. It counts in an average unless `exclusive`. It must be smaller than the
window, so that no window lies in the padding alone. In `ceil_mode` a last window may reach over the end, if it begins
inside the tensor or the padding before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import int64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.transpose_helpers import in_shape_of
from dy2st.ops.nn.geometry import Pairs, offsets, padded, pooled_counts, refuse_attributes, refuse_wide_padding
from dy2st.shapes import product

Tangents = Sequence[Value | None]
Ints = tuple[int, ...]
Template = tuple[int | None, ...]


class MaxPool(Op):
    """The largest element of each window and its place (int64), row-major in the spatial axes; the first of equals."""

    native_in_eager = True
    name = "max_pool"
    nanoseconds = 10
    superlinear = True
    defined_on = REAL_NUMBERS
    attributes = ("kernel", "stride", "padding", "ceil_mode")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *, kernel: Ints, stride: Ints, padding: Pairs,
              ceil_mode: bool) -> tuple[TensorType, TensorType]:  # fmt: skip
        shape = (*x.shape[:2], *_counts(self.name, x.shape, kernel, stride, padding, ceil_mode))
        return TensorType(x.dtype, shape), TensorType(int64, shape)  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *, kernel: Ints, stride: Ints, padding: Pairs, ceil_mode: bool) -> Any:
        counts = _counts(self.name, x.shape, kernel, stride, padding, ceil_mode)
        spatial = x.shape[2:]
        lowest = -np.inf if x.dtype.kind == "f" else (np.iinfo(x.dtype).min if x.dtype.kind in "iu" else False)
        around = padded(xp, x, _reach(spatial, kernel, stride, padding, counts), lowest)
        shape = (*x.shape[:2], *counts)
        values, places = xp.full(shape, lowest, x.dtype), xp.empty(shape, np.int64)
        # where nothing is larger than the padding's value, the first element stays
        places[...] = _place(xp, (0,) * len(kernel), spatial, stride, padding, counts)
        for place, where in offsets(kernel, stride, (1,) * len(kernel), counts):
            found = around[where]
            better = found > values
            if x.dtype.kind == "f":
                better |= (found != found) & (values == values)  # a NaN is larger than all
            xp.copyto(values, found, where=better)
            xp.copyto(places, _place(xp, place, spatial, stride, padding, counts), where=better)
        return values, places

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return [read_places(b, tangents[0], outs[1]), None]  # type: ignore[arg-type]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, how in _examples():
            yield Sample((rng.permutation(math.prod(shape)).reshape(shape) / 7.0,), how)


class AvgPool(Op):
    """The mean of each window; over its elements alone where `exclusive`, else over the padding too."""

    native_in_eager = True
    name = "avg_pool"
    nanoseconds = 10
    superlinear = True
    defined_on = "fc"
    attributes = ("kernel", "stride", "padding", "ceil_mode", "exclusive")
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *, kernel: Ints, stride: Ints, padding: Pairs, ceil_mode: bool,
              exclusive: bool) -> TensorType:  # fmt: skip
        counts = _counts(self.name, x.shape, kernel, stride, padding, ceil_mode)
        return TensorType(x.dtype, (*x.shape[:2], *counts))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *, kernel: Ints, stride: Ints, padding: Pairs, ceil_mode: bool,
             exclusive: bool) -> Any:  # fmt: skip
        counts = _counts(self.name, x.shape, kernel, stride, padding, ceil_mode)
        around = padded(xp, x, _reach(x.shape[2:], kernel, stride, padding, counts))
        total = xp.zeros((*x.shape[:2], *counts), x.dtype)
        for _, where in offsets(kernel, stride, (1,) * len(kernel), counts):
            total += around[where]
        return total / _sizes(xp, x.shape[2:], kernel, stride, padding, counts, exclusive).astype(x.dtype)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.shaped("avg_pool_grad", [cts[0]], b.shape(operands[0]), **attributes)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, how in _examples():
            for exclusive in (True, False):
                yield Sample((rng.normal(size=shape),), {**how, "exclusive": exclusive})


class AvgPoolGrad(Op):
    """The transpose of `avg_pool` from tensors of `shape` (a template)."""

    native_in_eager = True
    name = "avg_pool_grad"
    superlinear = True
    defined_on = "fc"
    attributes = ("shape", "kernel", "stride", "padding", "ceil_mode", "exclusive")
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, c: TensorType, *dims: ScalarType, shape: Template, kernel: Ints, stride: Ints, padding: Pairs,
              ceil_mode: bool, exclusive: bool) -> TensorType:  # fmt: skip
        return TensorType(c.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, c: Any, *dims: int, shape: Template, kernel: Ints, stride: Ints, padding: Pairs,
             ceil_mode: bool, exclusive: bool) -> Any:  # fmt: skip
        target = fill(shape, dims)
        counts = _counts(self.name, target, kernel, stride, padding, ceil_mode)
        if c.shape != (*target[:2], *counts):
            wanted = [*target[:2], *counts]
            raise ValueError(f"{self.name}: pooling {list(target)} gives {wanted}, which is not {list(c.shape)}")
        shares = c / _sizes(xp, target[2:], kernel, stride, padding, counts, exclusive).astype(c.dtype)
        reach = _reach(target[2:], kernel, stride, padding, counts)
        pairs = list(zip(target[2:], reach, strict=True))
        out = xp.zeros((*target[:2], *(n + low + high for n, (low, high) in pairs)), c.dtype)
        for _, where in offsets(kernel, stride, (1,) * len(kernel), counts):
            part = out[where]  # `out[where] +=` would write twice
            part += shares
        return out[(..., *(slice(low, low + n) for n, (low, _) in pairs))]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, shape: Template, **attributes: Any) -> Tangents:  # fmt: skip
        ct = in_shape_of(b, b.avg_pool(cts[0], **attributes), operands[0])
        return [ct, *[None] * (len(operands) - 1)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, how in _examples():
            counts = _counts(self.name, shape, how["kernel"], how["stride"], how["padding"], how["ceil_mode"])
            c = rng.normal(size=(*shape[:2], *counts))
            yield Sample((c, shape[2]), {"shape": (*shape[:2], None, *shape[3:]), "exclusive": True, **how})


def read_places(b: Builder, x: Value, places: Value) -> Value:
    """Emit the elements of `x` at `places`, numbers row-major in the axes behind the second."""
    batch, channels, *_ = b.shape(x)
    flat, line = (  # extents, not -1: a batch may be empty
        b.shaped("reshape", [v], [batch, channels, b.extent(product(tensor_type(v).shape[2:]))]) for v in (x, places)
    )
    return b.shaped("reshape", [b.take_along_axis(flat, line, axis=2)], b.shape(places))


def _counts(name: str, shape: Sequence[Any], kernel: Ints, stride: Ints, padding: Pairs, ceil_mode: bool) -> Any:
    rank = len(shape) - 2
    if rank < 1:
        raise ValueError(f"{name} needs [batch, channels, *spatial], not a tensor of rank {len(shape)}")
    refuse_attributes(name, rank, kernel=kernel, stride=stride, padding=padding)
    refuse_wide_padding(name, kernel, padding)
    return pooled_counts(name, shape[2:], kernel, stride, padding, ceil_mode)


def _reach(spatial: Sequence[int], kernel: Ints, stride: Ints, padding: Pairs, counts: Sequence[int]) -> Pairs:
    """Return the padding that holds every window, also those that reach over the end."""
    axes = zip(spatial, kernel, stride, padding, counts, strict=True)
    return tuple((low, max(high, (c - 1) * s + k - n - low)) for n, k, s, (low, high), c in axes)


def _place(xp: Any, offset: Sequence[int], spatial: Sequence[int], stride: Ints, padding: Pairs,
           counts: Sequence[int]) -> Any:  # fmt: skip
    """Return the number of the element at `offset` in each window, that of the next one inside where it is padding."""
    number = xp.zeros((), np.int64)
    for o, n, s, (low, _), count in zip(offset, spatial, stride, padding, counts, strict=True):
        number = number[..., None] * n + xp.clip(xp.arange(count) * s - low + o, 0, n - 1)
    return number


def _sizes(xp: Any, spatial: Sequence[int], kernel: Ints, stride: Ints, padding: Pairs, counts: Sequence[int],
           exclusive: bool) -> Any:  # fmt: skip
    """Return by how many elements the sum of each window is divided."""
    sizes = xp.ones((), np.int64)
    for n, k, s, (low, high), count in zip(spatial, kernel, stride, padding, counts, strict=True):
        starts = xp.arange(count) * s - low
        begin, end = (0, n) if exclusive else (-low, n + high)
        sizes = sizes[..., None] * (xp.minimum(starts + k, end) - xp.maximum(starts, begin))
    return sizes


def _examples() -> Iterator[tuple[Ints, dict[str, Any]]]:
    yield (2, 3, 7), {"kernel": (3,), "stride": (2,), "padding": ((1, 1),), "ceil_mode": False}
    yield (2, 1, 5, 6), {"kernel": (2, 3), "stride": (2, 2), "padding": ((0, 1), (1, 0)), "ceil_mode": True}
    yield (1, 2, 3, 4, 3), {
        "kernel": (2, 2, 1), "stride": (1, 2, 2), "padding": ((0, 0), (0, 0), (0, 0)), "ceil_mode": False,
    }  # fmt: skip
