"""`bitcast`: the same bits as elements of another dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample


class Bitcast(Op):
    """The bits of the operand in another dtype; a wider or narrower one makes the last axis shorter or longer."""

    name = "bitcast"
    of_last_axes = True
    attributes = ("dtype",)
    differentiable = False
    fresh = True

    def infer(self, x: TensorType, *, dtype: DType) -> TensorType:
        if dtype.itemsize == x.dtype.itemsize:
            return TensorType(dtype, x.shape)
        last = x.shape[-1] if x.rank else 1
        if x.rank == 0 or (isinstance(last, int) and last * x.dtype.itemsize % dtype.itemsize):
            raise ValueError(f"the bits of {x} do not make up whole elements of {dtype.name}")
        return TensorType(dtype, (*x.shape[:-1], last * x.dtype.itemsize // dtype.itemsize))

    def eval(self, xp: Any, x: Any, *, dtype: DType) -> Any:
        return xp.array(x, order="C").view(dtype.numpy)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), {"dtype": dtypes.int64}, differentiate=False)
        yield Sample((rng.normal(size=(2, 4)).astype(np.float32),), {"dtype": dtypes.float64}, differentiate=False)
        yield Sample((np.arange(3),), {"dtype": dtypes.int16}, differentiate=False)
