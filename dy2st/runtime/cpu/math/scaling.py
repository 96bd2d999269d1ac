"""Numbers times powers of 2."""

from __future__ import annotations

import functools

from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.math.emitter import Emitter, Lanes
from dy2st.runtime.cpu.math.representation import form
from dy2st.runtime.cpu.target import Target


def power_of_two(e: Emitter, n: Lanes) -> Lanes:
    """Write 2**n for an n (integers) whose power is a normal number."""
    f = form("f" + n.kind[1:])
    return e.floats((n + f.bias) << f.mantissa_bits)


def scaled(e: Emitter, x: Lanes, n: Lanes, whole: Lanes) -> Lanes:
    """Write x 2**n, rounded once where the result is subnormal; `whole` is n as floats."""
    return e.each_part(lambda part: e.call(_in_two_steps(x.kind, e.lanes), x.kind, part, n, whole), x)


@functools.cache
def _in_two_steps(kind: str, lanes: int) -> Definition:
    """Return the function of `scaled` by two products, of which the first is exact."""
    e = Emitter(lanes)
    x, n = Lanes(e, kind, "%x"), Lanes(e, "i" + kind[1:], "%n")
    half = n >> 1
    return _function(kind, e, x * power_of_two(e, half) * power_of_two(e, n - half))


def _function(kind: str, e: Emitter, made: Lanes) -> Definition:
    name, t, integers = f"dy2st.scaled.{kind}.{e.lanes}", e.type(kind), e.type("i" + kind[1:])
    head = f"define internal {t} @{name}({t} %x, {integers} %n, {t} %whole) alwaysinline nounwind {{"
    text = "\n".join([head, "entry:", *e.lines, f"  ret {t} {made.text}", "}"])
    return Definition(name, text, tuple(e.needs.values()))


@functools.cache
def better_definitions(target: Target) -> dict[str, Definition]:
    """Return what a target has better definitions of, with the same results."""
    if target.vector_bytes < 64:
        return {}
    made = (_scaled_with_avx512(kind, k * n) for kind, n in (("f32", 16), ("f64", 8)) for k in (1, 2, 4))
    return {definition.name: definition for definition in made}


def _scaled_with_avx512(kind: str, lanes: int) -> Definition:
    """Return the function of `scaled` for several vectors of 512 bits, each by one instruction."""
    e, width = Emitter(lanes), 16 if kind == "f32" else 8
    short, one = ("ps", Emitter(width).type("f32")) if kind == "f32" else ("pd", Emitter(width).type("f64"))
    symbol, mask = f"llvm.x86.avx512.mask.scalef.{short}.512", f"i{width}"
    e.needs[symbol] = Definition(symbol, f"declare {one} @{symbol}({one}, {one}, {one}, {mask}, i32)")
    parts: list[Lanes] = []
    for first in range(0, lanes, width):
        numbers = f"<{width} x i32> <{', '.join(f'i32 {first + k}' for k in range(width))}>"
        x_part, whole = (
            e.line(kind, f"shufflevector {e.type(kind)} {v}, {e.type(kind)} poison, {numbers}").text
            for v in ("%x", "%whole")
        )
        operands = f"{one} {x_part}, {one} {whole}, {one} zeroinitializer, {mask} -1, i32 4"
        parts.append(e.line(kind, f"call {one} @{symbol}({operands})"))
    while len(parts) > 1:
        parts = [_joined(e, a, b, width) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        width *= 2
    return _function(kind, e, parts[0])


def _joined(e: Emitter, a: Lanes, b: Lanes, width: int) -> Lanes:
    """Write two vectors behind one another."""
    t = Emitter(width).type(a.kind)
    numbers = ", ".join(f"i32 {k}" for k in range(2 * width))
    return e.line(a.kind, f"shufflevector {t} {a.text}, {t} {b.text}, <{2 * width} x i32> <{numbers}>")
