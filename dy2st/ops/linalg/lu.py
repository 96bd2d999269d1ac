"""`lu`: the triangular factors of matrices by Gaussian elimination with row exchanges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.shapes import Extent


class LU(Op):
    """L (below its diagonal of ones) and U in one matrix, and the row that each row was exchanged with, from 1 on."""

    name = "lu"
    of_last_axes = True
    defined_on = "fc"
    differentiable = False
    fresh = True

    def infer(self, a: TensorType) -> tuple[TensorType, TensorType]:
        if a.rank < 2:
            raise ValueError(f"lu needs matrices, not {a}")
        rows, columns = a.shape[-2:]
        least: Extent | None = rows if rows == columns else None
        if isinstance(rows, int) and isinstance(columns, int):
            least = min(rows, columns)
        return a, TensorType(dtypes.int32, (*a.shape[:-2], least))  # type: ignore[arg-type]

    def eval(self, xp: Any, a: Any) -> Any:
        rows, columns = a.shape[-2:]
        least = min(rows, columns)
        packed = a.reshape(math.prod(a.shape[:-2]), rows, columns).copy()
        pivots = xp.zeros((len(packed), least), xp.int32)
        every = xp.arange(len(packed))
        for k in range(least):
            found = k + xp.abs(packed[:, k:, k]).argmax(1)
            pivots[:, k] = found + 1
            upper = packed[every, found].copy()
            packed[every, found] = packed[:, k]
            packed[:, k] = upper
            pivot = packed[:, k, k]
            packed[:, k + 1 :, k] /= xp.where(pivot == 0, 1, pivot)[:, None]
            packed[:, k + 1 :, k + 1 :] -= packed[:, k + 1 :, k, None] * packed[:, k, None, k + 1 :]
        return packed.reshape(a.shape), pivots.reshape(*a.shape[:-2], least)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 4, 3), (2, 3)):
            yield Sample((rng.normal(size=shape),), differentiate=False)
