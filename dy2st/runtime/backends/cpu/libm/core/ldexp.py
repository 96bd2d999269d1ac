"""Numbers times powers of 2."""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import float_format
from dy2st.runtime.backends.cpu.libm.core.vectors import Parts, by_vectors
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition


def power_of_two(e: FormulaEmitter, n: VectorValue) -> VectorValue:
    """Write 2**n for an n (integers) whose power is a normal number."""
    f = float_format("f" + n.kind[1:])
    return e.floats((n + f.bias) << f.mantissa_bits)


def scaled(e: FormulaEmitter, x: VectorValue, n: VectorValue, whole: VectorValue) -> VectorValue:
    """Write x 2**n, rounded once where the result is subnormal; `whole` is n as floats."""
    return e.each_part(lambda part: e.call(_in_two_steps(x.kind, e.lanes), x.kind, part, n, whole), x)


@functools.cache
def _in_two_steps(kind: str, lanes: int) -> Definition:
    """Return the function of `scaled` by two products, of which the first is exact."""
    e = FormulaEmitter(lanes)
    x, n = VectorValue(e, kind, "%x"), VectorValue(e, "i" + kind[1:], "%n")
    half = n >> 1
    return _function(kind, e, x * power_of_two(e, half) * power_of_two(e, n - half))


def _function(kind: str, e: FormulaEmitter, made: VectorValue) -> Definition:
    name, t, integers = f"dy2st.scaled.{kind}.{e.lanes}", e.type(kind), e.type("i" + kind[1:])
    head = f"define internal {t} @{name}({t} %x, {integers} %n, {t} %whole) alwaysinline nounwind {{"
    text = "\n".join([head, "entry:", *e.lines, f"  ret {t} {made.text}", "}"])
    return Definition(name, text, tuple(e.needs.values()))


@functools.cache
def scaled_with_avx512(kind: str, lanes: int) -> Definition:
    """Return the function of `scaled` with the same results by one instruction for each vector of 512 bits."""
    e, width, short = FormulaEmitter(lanes), *((16, "ps") if kind == "f32" else (8, "pd"))
    one, symbol, mask = FormulaEmitter(width).type(kind), f"llvm.x86.avx512.mask.scalef.{short}.512", f"i{width}"
    e.needs[symbol] = Definition(symbol, f"declare {one} @{symbol}({one}, {one}, {one}, {mask}, i32)")

    def instructions(numbers: Parts, powers: Parts) -> Parts:
        return [
            e.line(
                kind, f"call {one} @{symbol}({one} {x.text}, {one} {n.text}, {one} zeroinitializer, {mask} -1, i32 4)"
            )
            for x, n in zip(numbers, powers, strict=True)
        ]

    return _function(
        kind, e, by_vectors(e, width, instructions, VectorValue(e, kind, "%x"), VectorValue(e, kind, "%whole"))
    )
