"""Rounding to whole numbers: floor, ceil, round, rint, trunc. Integers stay as they are; derivatives are zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents, Ufunc, as_array, zero_tangent


class _Rounding(Ufunc):
    abstract = True

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return zero_tangent(b, tangents[0])

    def eval(self, xp: Any, x: Any) -> Any:
        return x.copy() if x.dtype.kind in "biu" else as_array(xp, getattr(xp, self.function)(x))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.arange(3, dtype=np.int32),))


class Floor(_Rounding):
    """The largest whole number that is not above x."""

    name = "floor"
    defined_on = REAL_NUMBERS
    function = "floor"


class Ceil(_Rounding):
    """The smallest whole number that is not below x."""

    name = "ceil"
    defined_on = REAL_NUMBERS
    function = "ceil"


class Round(_Rounding):
    """The nearest whole number; of two, the one farther from zero. Of complex numbers each part is rounded."""

    name = "round"
    function = "rint"

    def eval(self, xp: Any, x: Any) -> Any:
        if x.dtype.kind == "c":
            return as_array(xp, self.eval(xp, x.real) + 1j * self.eval(xp, x.imag)).astype(x.dtype)
        if x.dtype.kind != "f":
            return super().eval(xp, x)
        whole = xp.trunc(x)
        far = xp.asarray(xp.abs(x - whole) >= 0.5, x.dtype)
        return as_array(xp, whole + xp.copysign(far, x))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([-2.5, -0.5, 0.5, 1.5, np.nan, np.inf, -np.inf]),), differentiate=False)


class Rint(_Rounding):
    """The nearest whole number; of two, the even one. Of complex numbers each part is rounded."""

    name = "rint"
    function = "rint"

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        halves = [-2.5, -1.5, -0.5, 0.5, 0.49999999999999994, 1.5, 4503599627370495.5, np.nan, np.inf, -np.inf]
        yield Sample((np.array(halves),), differentiate=False)


class Trunc(_Rounding):
    """The whole part, towards zero."""

    name = "trunc"
    defined_on = REAL_NUMBERS
    function = "trunc"
