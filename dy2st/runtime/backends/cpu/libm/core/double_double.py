"""Numbers as unevaluated sums head + tail, for twice the precision.

The products take their factors apart into halves (T. J. Dekker, "A floating-point technique for extending the available
precision", Numerische Mathematik 18, 1971), so that they are exact with and without a fused multiply-add.
"""

from __future__ import annotations

from typing import NamedTuple

from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue

_LOW_HALF = {"f32": (1 << 12) - 1, "f64": (1 << 27) - 1}


class DoubleDouble(NamedTuple):
    """head + tail, where head is the sum rounded."""

    head: VectorValue
    tail: VectorValue


def upper_half(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x with the lower half of its significant bits cleared."""
    return e.floats(e.bits(x) & ~_LOW_HALF[x.kind])


def fast_sum(head: VectorValue, tail: VectorValue) -> DoubleDouble:
    """Write head + tail in two parts, where |head| >= |tail|."""
    total = head + tail
    return DoubleDouble(total, (head - total) + tail)


def exact_sum(x: VectorValue, y: VectorValue) -> DoubleDouble:
    """Write x + y in two parts (D. E. Knuth, "The Art of Computer Programming" 2, 4.2.2)."""
    total = x + y
    back = total - x
    return DoubleDouble(total, (x - (total - back)) + (y - back))


def exact_product(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> DoubleDouble:
    """Write x y in two parts."""
    head = x * y
    x_upper, y_upper = upper_half(e, x), upper_half(e, y)
    x_lower, y_lower = x - x_upper, y - y_upper
    tail = e.fma(x_upper, y_upper, -head)
    tail = e.fma(x_lower, y_upper, e.fma(x_upper, y_lower, tail))
    return DoubleDouble(head, e.fma(x_lower, y_lower, tail))


def product(e: FormulaEmitter, x: DoubleDouble, y: DoubleDouble) -> DoubleDouble:
    """Write the product of two sums, the product of the tails left out."""
    exact = exact_product(e, x.head, y.head)
    cross = e.fma(x.head, y.tail, e.fma(x.tail, y.head, exact.tail))
    return DoubleDouble(exact.head, cross)


def constant(e: FormulaEmitter, kind: str, parts: tuple[float, float]) -> DoubleDouble:
    """Write a constant given in two parts."""
    return DoubleDouble(e.constant(kind, parts[0]), e.constant(kind, parts[1]))
