"""Automatic casts: while `auto_cast` is on, ops get their floats in 16 bits or float32, by what kind of op they are.

low       matmul and convolutions: float32 becomes float16 or bfloat16
high      what loses in 16 bits (exponentials, sums, norms, losses): these become float32
the rest  as their operands come, all in the widest dtype among them; with level "O2" they count as low
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st import dtypes
from dy2st.dtypes import DType, promote
from dy2st.ir.opdef import REGISTRY, lookup
from dy2st.ops.core.base import Op
from dy2st.ops.core.constant import Cast
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor

LOW = tuple(name for name, op in REGISTRY.items() if op.amp == "low")
HIGH = tuple(name for name, op in REGISTRY.items() if op.amp == "high")


@record(frozen=True)
class AutoCast:
    """One setting of `auto_cast`; its repr is part of the key of cached Programs."""

    level: str
    dtype: str
    low: tuple[str, ...]
    high: tuple[str, ...]

    def cast(self, op: Op, operands: Sequence[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """Return the operands of an op in the dtypes in which it is to get them; `apply` applies the op `cast`."""
        if isinstance(op, Cast) or op.is_view:
            return operands
        given = [x.dtype for x in operands if isinstance(x, Tensor) and x.dtype.is_floating]
        wanted = self.wanted(op.name, given)
        if wanted is None:
            return operands
        return [
            apply(lookup("cast"), x, dtype=wanted)
            if isinstance(x, Tensor) and x.dtype.is_floating and x.dtype is not wanted
            else x
            for x in operands
        ]

    def wanted(self, op: str, given: Sequence[DType]) -> DType | None:
        """Return the dtype in which an op gets its floats of these dtypes; None where they stay (float64 does)."""
        if not given or dtypes.float64 in given:
            return None
        if op in self.high:
            return dtypes.float32
        if op in self.low or self.level == "O2":
            return dtypes.dtype(self.dtype)
        if self.level == "OD":
            return dtypes.float32
        widest = given[0]
        for dtype in given[1:]:
            widest = promote(widest, dtype)
        return widest
