"""Order along one axis: sort, argsort, topk.

NaN counts as larger than every number; of equal elements the first comes first, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import int64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents


def order(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """Return the int64 indices that sort `x`; of equal elements the first comes first in both directions."""
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable").astype(xp.int64)
    backwards = xp.argsort(xp.flip(x, axis), axis=axis, kind="stable")
    return (x.shape[axis] - 1 - xp.flip(backwards, axis)).astype(xp.int64)


class Sort(Op):
    """The elements in order along `axis`."""

    name = "sort"
    nanoseconds = 6
    superlinear = True
    defined_on = REAL_NUMBERS
    attributes = ("axis", "descending")
    fresh = True

    def infer(self, x: TensorType, *, axis: int, descending: bool) -> TensorType:
        return x

    def eval(self, xp: Any, x: Any, *, axis: int, descending: bool) -> Any:
        if x.dtype.kind == "f" and xp.any((x == 0) & xp.signbit(x)):  # of 0.0 and -0.0 the first comes first
            return xp.take_along_axis(x, order(xp, x, axis, descending), axis)
        ascending = xp.sort(x, axis=axis)
        return xp.flip(ascending, axis) if descending else ascending

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, descending: bool) -> Any:  # fmt: skip
        indices = b.argsort(primals[0], axis=axis, descending=descending)
        return b.take_along_axis(tangents[0], indices, axis=axis)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from _order_samples(rng)


class ArgSort(Op):
    """The int64 indices that sort the tensor along `axis`; of equal elements the first comes first."""

    name = "argsort"
    superlinear = True
    defined_on = REAL_NUMBERS
    attributes = ("axis", "descending")
    differentiable = False
    fresh = True

    def infer(self, x: TensorType, *, axis: int, descending: bool) -> TensorType:
        return TensorType(int64, x.shape)

    def eval(self, xp: Any, x: Any, *, axis: int, descending: bool) -> Any:
        return order(xp, x, axis, descending)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from _order_samples(rng)


def _order_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for axis, descending in ((0, False), (1, True)):
        yield Sample((rng.normal(size=(3, 4)),), {"axis": axis, "descending": descending})
        yield Sample((np.zeros((0, 2)),), {"axis": axis, "descending": descending})
    yield Sample((np.array([2, 1, 2, 0]),), {"axis": 0, "descending": True})


class TopK(Op):
    """The `k` largest (or smallest) elements along `axis`, and their int64 indices; ValueError when there are fewer.

    They come in order, with and without `sorted`; of equal elements the first comes first.
    """

    name = "topk"
    nanoseconds = 60
    superlinear = True
    defined_on = REAL_NUMBERS
    attributes = ("k", "axis", "largest", "sorted")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *, k: int, axis: int, largest: bool, sorted: bool) -> tuple[TensorType, TensorType]:
        _refuse_few(x.shape[axis], k, axis)
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return TensorType(x.dtype, shape), TensorType(int64, shape)

    def eval(self, xp: Any, x: Any, *, k: int, axis: int, largest: bool, sorted: bool) -> tuple[Any, Any]:
        _refuse_few(x.shape[axis], k, axis)
        chosen = tuple(slice(k) if i == axis else slice(None) for i in range(x.ndim))
        indices = order(xp, x, axis, largest)[chosen]
        return xp.take_along_axis(x, indices, axis), indices

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, k: int, axis: int, largest: bool, sorted: bool) -> Any:  # fmt: skip
        return [b.take_along_axis(tangents[0], outs[1], axis=axis), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for k, axis, largest in ((2, 0, True), (3, 1, False), (0, 1, True)):
            yield Sample((rng.normal(size=(3, 4)),), {"k": k, "axis": axis, "largest": largest, "sorted": True})
        yield Sample((np.zeros((0, 2)),), {"k": 1, "axis": 1, "largest": True, "sorted": False})


def _refuse_few(extent: Any, k: int, axis: int) -> None:
    if isinstance(extent, int) and k > extent:
        raise ValueError(f"topk: k is {k}, but axis {axis} has {extent} elements")
