"""Places and values chosen by value: `one_hot`, `nonzero`, `masked_select`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType, float32, int64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.transpose_helpers import zeros_of

Tangents = Sequence[Value | None]


class OneHot(Op):
    """1 at each class number, 0 elsewhere, along a new last axis; ValueError for a number that is no class.

    `num_classes` None takes the number of classes from the operand behind.
    """

    name = "one_hot"
    of_last_axes = True
    attributes = ("num_classes", "dtype")
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *count: ScalarType, num_classes: int | None, dtype: DType) -> TensorType:
        if not x.dtype.is_integer:
            raise TypeError(f"one_hot needs integer class numbers, not {x.dtype.name}")
        return TensorType(dtype, (*x.shape, *fill_extents((num_classes,), count)))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *count: int, num_classes: int | None, dtype: DType) -> Any:
        (num_classes,) = fill((num_classes,), count)
        if num_classes < 1:
            raise ValueError(f"one_hot: num_classes must be positive, not {num_classes}")
        outside = (x < 0) | (x >= num_classes)
        if bool(xp.any(outside)):
            raise ValueError(f"one_hot: {int(x[outside][0])} is not one of {num_classes} classes")
        return (x[..., None] == xp.arange(num_classes)).astype(dtype.numpy)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array([[0, 3], [1, 1]]),), {"num_classes": 4, "dtype": float32})
        yield Sample((np.array(1),), {"num_classes": 2, "dtype": float32})
        yield Sample((np.array([2, 0]), 3), {"num_classes": None, "dtype": float32})


class Nonzero(Op):
    """The places of the elements that are not 0, in row-major order: int64 of shape [count, rank]."""

    name = "nonzero"
    differentiable = False
    fresh = True

    def infer(self, x: TensorType) -> TensorType:
        return TensorType(int64, (None, x.rank))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any) -> Any:
        if not x.ndim:
            return xp.zeros((int(bool(x)), 0), np.int64)
        return xp.stack(xp.nonzero(x), axis=-1).astype(np.int64, copy=False)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array([[0, 3, 0], [1, 1, 0]]),))
        yield Sample((np.array(2.5),))


class MaskedSelect(Op):
    """The elements where the mask is true, in row-major order."""

    name = "masked_select"
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, mask: TensorType) -> TensorType:
        if not mask.dtype.is_bool:
            raise TypeError(f"masked_select needs a bool mask, not {mask.dtype.name}")
        pairs = zip(x.shape, mask.shape, strict=False)
        if x.rank != mask.rank or any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in pairs):
            raise ValueError(f"masked_select needs a mask of the tensor's shape, not {mask} for {x}")
        return TensorType(x.dtype, (None,))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, mask: Any) -> Any:
        x, mask = xp.broadcast_arrays(x, mask)
        return x[mask]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        x, mask = operands
        return [b.index_add(zeros_of(b, x), cts[0], mask, spec=(("mask",),)), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), np.array([[True, False, True], [False, False, True]])))
        yield Sample((rng.normal(size=(3,)), np.zeros(3, bool)))
