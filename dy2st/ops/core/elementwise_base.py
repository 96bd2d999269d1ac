"""Bases of elementwise ops that are one NumPy function: what they give is an array, also for 0-D operands.

A `Unary` op states its derivative as `slope`, which the tangent is multiplied with. Where the slope is infinite or NaN
at some operands (`singular`), the product is `safe_mul`, so that a tangent or cotangent of exactly 0 stays 0 there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import DType, bool_
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import undefined
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Elementwise, Sample

Tangents = Sequence[Value | None]


def as_array(xp: Any, result: Any) -> Any:
    """Return `result` as an array: NumPy gives scalars where all operands are 0-D."""
    return result if isinstance(result, xp.ndarray) else xp.asarray(result)


@lru_cache(maxsize=1024)
def _has_loop(function: str, dtypes: tuple[DType, ...]) -> bool:
    """Return whether a NumPy function takes operands of these dtypes; only ufuncs tell."""
    ufunc = getattr(np, function, None)
    if not isinstance(ufunc, np.ufunc) or len(dtypes) != ufunc.nin:
        return True
    try:
        ufunc.resolve_dtypes((*(np.dtype(d.numpy) for d in dtypes), *[None] * ufunc.nout))
    except TypeError:
        return False
    return True


def zero_tangent(b: Builder, tangent: Any) -> Any:
    """Emit the tangent of a function that is constant between its jumps: zeros, which are a gradient (None is none)."""
    return b.where(b.constant(False, bool_), tangent, b.constant(0, tangent.type.dtype))


class Ufunc(Elementwise):
    """An op that is the NumPy function named `function`."""

    abstract = True
    fresh = True
    function: ClassVar[str]
    arity: ClassVar[int] = 1
    domain: ClassVar[tuple[float, float]] = (-2.0, 2.0)
    """Where the samples lie: inside, the op is smooth."""

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        if not _has_loop(getattr(self, "function", ""), tuple(t.dtype for t in types)):
            raise undefined(self.name, [t.dtype for t in types])
        return super().infer(*types, **attributes)

    def eval(self, xp: Any, *operands: Any, **attributes: Any) -> Any:
        return as_array(xp, getattr(xp, self.function)(*operands, **attributes))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample(tuple(rng.uniform(*self.domain, size=shape) for _ in range(self.arity)))


class Unary(Ufunc):
    """A function of one operand with a derivative."""

    abstract = True
    singular: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any):
        if not cls.__dict__.get("abstract") and cls.slope is Unary.slope:
            raise TypeError(f"op class {cls.__name__} lacks `slope`, its derivative")
        super().__init_subclass__(**keywords)

    def slope(self, b: Builder, x: Value, out: Value) -> Any:
        """Emit the derivative at `x`, where the op gives `out`."""
        raise TypeError(f"{self.name} has no slope")

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        slope = self.slope(b, primals[0], outs[0])
        return b.safe_mul(tangents[0], slope) if self.singular else b.mul(tangents[0], slope)
