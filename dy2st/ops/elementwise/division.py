"""Division with a whole quotient: floordiv, mod, fmod. An integer divided by zero gives 0, as in NumPy's arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents, Ufunc


class _Whole(Ufunc):
    abstract = True
    defined_on = "iuf"
    arity = 2

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            signs = rng.choice([-1.0, 1.0], shape)
            yield Sample((rng.uniform(4.2, 4.8, size=shape), np.asarray(signs * rng.uniform(1.8, 2, shape))))
        yield Sample((np.array([7, -7, 7, -7, 5]), np.array([3, 3, -3, -3, 0])), differentiate=False)


class FloorDiv(_Whole):
    """floor(x / y), as Python's `//`; its derivative is zero."""

    name = "floordiv"
    formula = "division"
    function = "floor_divide"
    differentiable = False


class Mod(_Whole):
    """x - y * floor(x / y), as Python's `%`: the result has the divisor's sign."""

    name = "mod"
    formula = "division"
    function = "remainder"

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return _remainder_tangent(b, b.floordiv(*primals), tangents) if tangents[1] is not None else tangents[0]


class FMod(_Whole):
    """x - y * trunc(x / y), as C's fmod: the result has the dividend's sign."""

    name = "fmod"
    formula = "division"
    function = "fmod"

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return _remainder_tangent(b, b.trunc(b.div(*primals)), tangents) if tangents[1] is not None else tangents[0]


def _remainder_tangent(b: Builder, quotient: Value, tangents: Tangents) -> Any:
    dx, dy = tangents
    in_y = b.safe_mul(dy, b.neg(quotient))
    return in_y if dx is None else b.add(dx, in_y)
