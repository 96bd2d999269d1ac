"""One spelling of arithmetic for arrays and tensors, so that an update rule is written once.

Eagerly a rule runs on bare arrays, which costs nothing beside NumPy's calls; in a trace it runs on tensors and becomes
part of the Program. Operators (+ - * / **) are the same on both; what is not is here.
"""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import float64
from dy2st.functions.core.operands import cast_to, op, pair
from dy2st.functions.math import math
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import zeros_like
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


class ArrayMaths:
    """Arithmetic on the arrays of a module, NumPy or CuPy."""

    def __init__(self, xp: Any):
        self.xp = xp
        self.sqrt, self.abs, self.sign, self.where = xp.sqrt, xp.abs, xp.sign, xp.where
        self.maximum, self.minimum, self.square = xp.maximum, xp.minimum, xp.square
        self.zeros_like, self.concat = xp.zeros_like, xp.concatenate

    def like(self, x: Any, other: Any) -> Any:
        """Return a number or array in the dtype of `other`."""
        return x.astype(other.dtype) if hasattr(x, "astype") else other.dtype.type(x)

    def wide(self, x: Any) -> Any:
        """Return an array in float64."""
        return x.astype("float64")

    def sum(self, x: Any) -> Any:
        """Return the sum of all elements."""
        return x.sum()


class TensorMaths:
    """The same on tensors."""

    sqrt, abs, sign, square = (staticmethod(f) for f in (math.sqrt, math.abs, math.sign, math.square))
    maximum, minimum = staticmethod(math.maximum), staticmethod(math.minimum)
    zeros_like, concat = staticmethod(zeros_like), staticmethod(concat)
    _where = op("where")

    def where(self, condition: Tensor, x: Any, y: Any) -> Tensor:
        """Return x where the condition holds, else y."""
        return apply(self._where, condition, *pair(x, y, "where"))

    def like(self, x: Any, other: Tensor) -> Any:
        """Return a tensor in the dtype of `other`; a number takes it by itself."""
        return cast_to(x, other.dtype) if isinstance(x, Tensor) else x

    def wide(self, x: Tensor) -> Tensor:
        """Return a tensor in float64."""
        return cast_to(x, float64)

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum of all elements."""
        return x.sum()


TENSORS = TensorMaths()
