"""float16 and bfloat16 in registers of float32: 16 bits, as i32, to float32 and back, by integers, on every CPU alike.

A number of float16 is 2**(e - 15) 1.m, or 2**-24 m where e is 0. As bits of float32, moved up by 13 places, e and m are
a number that is 2**112 times too small; 31, the largest e, is that of infinities and NaN. A number of
bfloat16 is the upper half of the bits of a float32. (The instructions of AVX-512 BF16 take small numbers for 0.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

_INFINITY, _LARGE, _NORMAL = 0x7F800000, 0x47800000, 0x38800000
"""Bits of float32: infinity, 2**16, and 2**-14, the least normal number of float16."""

Conversion = Callable[[FormulaEmitter, VectorValue], VectorValue]


def from_half(e: FormulaEmitter, word: VectorValue) -> VectorValue:
    """Write the float32 numbers that the bits of float16 numbers stand for."""
    size = (word & 0x7FFF) << 13
    number = e.bits(e.floats(size) * 2.0**112)
    number = e.select(size >= 31 << 23, size | _INFINITY, number)
    return e.floats(number | ((word & 0x8000) << 16))


def to_half(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the bits of the float16 numbers nearest to float32 numbers, of two the even one."""
    bits = e.bits(x)
    size = bits & 0x7FFFFFFF
    odd = e.logical_shift(size, 13) & 1
    normal = e.logical_shift(size - ((112 << 23) - 0xFFF) + odd, 13)
    small = e.bits(e.floats(size) + 0.5) - (126 << 23)  # the last bit of 0.5 is 2**-24
    made = e.select(size < _NORMAL, small, normal)
    infinite = e.select(size > _INFINITY, e.constant("i32", 0x7E00), 0x7C00)
    return e.select(size >= _LARGE, infinite, made) | e.logical_shift(bits ^ size, 16)


def rounded_to_half(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the float16 numbers nearest to float32 numbers, as float32 numbers."""
    return from_half(e, to_half(e, x))


def from_bfloat(e: FormulaEmitter, word: VectorValue) -> VectorValue:
    """Write the float32 numbers that the bits of bfloat16 numbers stand for."""
    return e.floats(word << 16)


def to_bfloat(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the bits of the bfloat16 numbers nearest to float32 numbers, of two the even one."""
    return e.logical_shift(_rounded(e, x), 16)


def rounded_to_bfloat(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the bfloat16 numbers nearest to float32 numbers, as float32 numbers."""
    return e.floats(_rounded(e, x) & -0x10000)


def _rounded(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write bits of float32 whose upper half is the nearest bfloat16 number; of a NaN one."""
    bits = e.bits(x)
    nearest = bits + (e.logical_shift(bits, 16) & 1) + 0x7FFF
    return e.select((bits & 0x7FFFFFFF) > _INFINITY, bits | 0x400000, nearest)


@functools.cache
def conversion(formula: Conversion, lanes: int) -> Definition:
    """Return one of the functions above as IR: `<lanes x float> @dy2st.from_half.16(<lanes x i32>)`.

    >>> conversion(to_half, 16).name
    'dy2st.to_half.16'
    """
    e = FormulaEmitter(lanes)
    source = "i32" if formula in (from_half, from_bfloat) else "f32"
    result = formula(e, VectorValue(e, source, "%x"))
    name = f"dy2st.{formula.__name__}.{lanes}"
    head = f"define internal {e.type(result.kind)} @{name}({e.type(source)} %x) alwaysinline nounwind {{"
    text = "\n".join([head, "entry:", *e.lines, f"  ret {e.type(result.kind)} {result.text}", "}"])
    return Definition(name, text, tuple(e.needs.values()))
