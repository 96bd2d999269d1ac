"""Rounding to whole numbers: floor, ceil, round, trunc. Integers stay as they are; derivatives are zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st.ops.base import Sample
from dy2st.ops.elementwise import Ufunc, as_array


class _Rounding(Ufunc):
    abstract = True
    differentiable = False

    def eval(self, xp: Any, x: Any) -> Any:
        return x.copy() if x.dtype.kind in "biu" else as_array(xp, getattr(xp, self.function)(x))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.arange(3, dtype=np.int32),))


class Floor(_Rounding):
    """The largest whole number that is not above x."""

    name = "floor"
    function = "floor"


class Ceil(_Rounding):
    """The smallest whole number that is not below x."""

    name = "ceil"
    function = "ceil"


class Round(_Rounding):
    """The nearest whole number; of two, the one farther from zero."""

    name = "round"
    function = "rint"

    def eval(self, xp: Any, x: Any) -> Any:
        if x.dtype.kind != "f":
            return super().eval(xp, x)
        whole = xp.trunc(x)
        far = xp.asarray(xp.abs(x - whole) >= 0.5, x.dtype)
        return as_array(xp, whole + xp.copysign(far, x))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([-2.5, -0.5, 0.5, 1.5, np.nan, np.inf, -np.inf]),))


class Trunc(_Rounding):
    """The whole part, towards zero."""

    name = "trunc"
    function = "trunc"
