"""Elementwise choice by size: maximum, minimum, fmax, fmin, abs, sign, relu."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents, Ufunc, as_array, zero_tangent
from dy2st.ops.elementwise.comparison import select
from dy2st.ops.elementwise.complex import PART_OF


class _Choice(Ufunc):
    abstract = True
    defined_on = REAL_NUMBERS
    arity = 2
    comparison: ClassVar[str]
    """The operand x is chosen where `x comparison y` holds (or y is NaN, for `skips_nan`), else y."""
    skips_nan: ClassVar[bool] = False

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        x, y = primals
        chosen = getattr(b, self.comparison)(x, y)
        if self.skips_nan:
            chosen = b.logical_or(chosen, b.isnan(y))
        return select(b, chosen, *tangents)


class Maximum(_Choice):
    """The larger of x and y, NaN if one is; the derivative goes to x where x > y, else to y."""

    name = "maximum"
    function = "maximum"
    comparison = "gt"


class Minimum(_Choice):
    """The smaller of x and y, NaN if one is; the derivative goes to x where x < y, else to y."""

    name = "minimum"
    function = "minimum"
    comparison = "lt"


class FMax(_Choice):
    """The larger of x and y, a NaN only if both are; the derivative goes to x where x >= y, else to y."""

    name = "fmax"
    function = "fmax"
    comparison = "ge"
    skips_nan = True


class FMin(_Choice):
    """The smaller of x and y, a NaN only if both are; the derivative goes to x where x <= y, else to y."""

    name = "fmin"
    function = "fmin"
    comparison = "le"
    skips_nan = True


class Abs(Ufunc):
    """|x|, real also for complex x; the derivative at 0 is 0."""

    name = "abs"
    function = "absolute"
    domain = (0.5, 2.0)

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        (x,) = types
        return TensorType(PART_OF.get(x.dtype, x.dtype), x.shape)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        if outs[0].type == primals[0].type:
            return b.mul(tangents[0], b.sign(primals[0]))
        return b.real(b.mul(tangents[0], b.conj(b.sign(primals[0]))))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((-rng.uniform(0.5, 2, size=3),))
        yield Sample((np.array([3 + 4j, -1j]),), differentiate=False)


class Sign(Ufunc):
    """-1, 0 or 1, NaN for NaN; x / |x| of complex x, 0 at 0. The derivative is zero; of complex x that of the angle."""

    name = "sign"
    defined_on = "iufc"
    function = "sign"

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        (x,), (dx,), (out,) = primals, tangents, outs
        if not tensor_type(x).dtype.is_complex:
            return zero_tangent(b, dx)
        size = b.abs(x)
        turned = b.safe_mul(b.imag(b.mul(b.conj(out), dx)), b.reciprocal(size))
        return b.mul(out, b.complex(b.zeros_like(size), turned))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([3 + 4j, -1j, 0j]),), differentiate=False)


class Relu(Ufunc):
    """max(x, 0); the derivative at 0 is 0."""

    name = "relu"
    defined_on = REAL_NUMBERS
    domain = (0.5, 2.0)

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, xp.maximum(x, xp.zeros((), x.dtype)))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return select(b, b.gt(primals[0], 0), tangents[0], None)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((-rng.uniform(0.5, 2, size=3),))
