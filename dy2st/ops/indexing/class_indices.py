"""Class numbers as places along an axis: `class_places`, and `keep_at`, which keeps one element of each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import int32
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.indexing.along_axis import refuse_types

Tangents = Sequence[Value | None]


class ClassPlaces(Op):
    """The labels as int32, -1 where a label is `ignore_index`; ValueError for one that is none of `classes` classes."""

    name = "class_places"
    of_last_axes = True
    attributes = ("ignore_index",)
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, labels: TensorType, classes: ScalarType, *, ignore_index: int) -> TensorType:
        if not labels.dtype.is_integer:
            raise TypeError(f"class_places needs integer labels, not {labels.dtype.name}")
        return TensorType(int32, labels.shape)

    def eval(self, xp: Any, labels: Any, classes: int, *, ignore_index: int) -> Any:
        kept = labels != ignore_index
        outside = kept & ((labels < 0) | (labels >= classes))
        if bool(xp.any(outside)):
            raise ValueError(f"softmax_cross_entropy: label {int(labels[outside][0])} is not one of {classes} classes")
        return xp.where(kept, labels, -1).astype(np.int32)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array([[2], [-100], [0]]), 3), {"ignore_index": -100})
        yield Sample((np.array([1, 1, 0], np.int32), 2), {"ignore_index": 1})


class KeepAt(Op):
    """The element of each line along `axis` that stands at its place, 0 elsewhere; nothing where the place is -1.

    The places have the tensor's extents, but 1 along the axis.
    """

    name = "keep_at"
    attributes = ("axis",)
    linear_in = (0,)
    fresh = True

    def infer(self, x: TensorType, places: TensorType, *, axis: int) -> TensorType:
        refuse_types(self.name, x, places, axis)
        if isinstance(places.shape[axis], int) and places.shape[axis] != 1:
            raise ValueError(f"keep_at needs one place a line, not {places} along axis {axis}")
        return x

    def eval(self, xp: Any, x: Any, places: Any, *, axis: int) -> Any:
        line = xp.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - 1 - axis))
        return xp.where(line == places, x, xp.zeros((), x.dtype))

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int) -> Tangents:  # fmt: skip
        return [b.keep_at(cts[0], operands[1], axis=axis), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(3, 4)), np.array([[2], [-1], [0]], np.int32)), {"axis": 1})
        yield Sample((rng.normal(size=(2, 3, 2)), np.array([[[2, 0]], [[1, 2]]], np.int32)), {"axis": 1})
