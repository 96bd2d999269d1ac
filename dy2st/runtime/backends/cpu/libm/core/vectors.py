"""Lanes as vectors of the length that an instruction takes: cut up, filled up and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue

Parts = list[VectorValue]


def by_vectors(e: FormulaEmitter, width: int, function: Callable[..., Parts], *operands: VectorValue) -> VectorValue:
    """Write a function of vectors of `width` lanes: it gets those of each operand, and returns those of its result.

    Fewer lanes are filled up with zeros.
    """
    parts = [[_cut(e, x, first, width) for first in range(0, e.lanes, width)] for x in operands]
    lanes, e.lanes = e.lanes, width
    try:
        made = function(*parts)
    finally:
        e.lanes = lanes
    size = width
    while len(made) > 1:
        made = [_joined(e, a, b, size) for a, b in zip(made[::2], made[1::2], strict=True)]
        size *= 2
    return made[0] if e.lanes >= width else _first(e, made[0], width)


def _cut(e: FormulaEmitter, x: VectorValue, first: int, width: int) -> VectorValue:
    """Write `width` lanes of x, from `first` on."""
    if e.lanes == width:
        return x
    if e.lanes == 1:
        t = FormulaEmitter(width).type(x.kind)
        return e.line(x.kind, f"insertelement {t} zeroinitializer, {e.type(x.kind)} {x.text}, i64 0")
    return _picked(e, x, "zeroinitializer", e.lanes, [min(first + k, e.lanes) for k in range(width)])


def _first(e: FormulaEmitter, x: VectorValue, width: int) -> VectorValue:
    """Write as many lanes as there are."""
    if e.lanes == 1:
        return e.line(x.kind, f"extractelement {FormulaEmitter(width).type(x.kind)} {x.text}, i64 0")
    return _picked(e, x, "poison", width, range(e.lanes))


def _joined(e: FormulaEmitter, a: VectorValue, b: VectorValue, size: int) -> VectorValue:
    """Write two vectors behind one another."""
    return _picked(e, a, b.text, size, range(2 * size))


def _picked(e: FormulaEmitter, x: VectorValue, other: str, size: int, places: Iterable[int]) -> VectorValue:
    """Write the elements at `places` of two vectors of one size behind one another."""
    t, listed = FormulaEmitter(size).type(x.kind), [f"i32 {k}" for k in places]
    return e.line(x.kind, f"shufflevector {t} {x.text}, {t} {other}, <{len(listed)} x i32> <{', '.join(listed)}>")
