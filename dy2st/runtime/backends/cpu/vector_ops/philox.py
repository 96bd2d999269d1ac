"""Random numbers in registers: the bits of `dy2st/ops/shape/philox.py`, as the numbers of `dy2st/ops/shape/random.py`.

Philox 4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) makes four words of 32 bits from
a block number. A function here gives elements `first` .. `first + lanes - 1` of draw number `draw` of generator `seed`;
`first` is a multiple of `lanes`.
"""

from __future__ import annotations

import functools
import math

from dy2st.runtime.backends.cpu.libm.core.emitter import ELEMENTS, FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.functions import function
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = 0xFFFFFFFF
_PLACE = (("i64", "%seed"), ("i64", "%draw"), ("i64", "%first"))


@functools.cache
def random_words(lanes: int) -> Definition:
    """Return `<lanes x i32> @dy2st.random.words.16(i64 seed, i64 draw, i64 first)`: uniform random words."""
    e = FormulaEmitter(max(lanes // 4, 1))
    pairs = [a | (b << 32) for a, b in _pairs(_block(e, "%first", 4))]
    whole = f"<{4 * e.lanes} x i32>"
    joined = e.line("i32", f"bitcast <{2 * e.lanes} x i64> {_interleaved(e, pairs)} to {whole}").text
    return _finished(
        e, f"dy2st.random.words.{lanes}", _part(e, joined, "i32", 4 * e.lanes, lanes), _vector("i32", lanes)
    )


@functools.cache
def random_words64(lanes: int) -> Definition:
    """Return `<lanes x i64> @dy2st.random.words64.8(i64 seed, i64 draw, i64 first)`: pairs of words, the first high."""
    e = FormulaEmitter(max(lanes // 2, 1))
    pairs = [(a << 32) | b for a, b in _pairs(_block(e, "%first", 2))]
    joined = _interleaved(e, pairs)
    return _finished(
        e, f"dy2st.random.words64.{lanes}", _part(e, joined, "i64", 2 * e.lanes, lanes), _vector("i64", lanes)
    )


@functools.cache
def random_uniform(dtype: str, lanes: int) -> Definition:
    """Return `@dy2st.random.uniform.f32.16(i64 seed, i64 draw, i64 first)`: numbers in [0, 1)."""
    e = FormulaEmitter(lanes)
    bits = _words(e, dtype)
    kept = 24 if dtype == "f32" else 53
    number = e.convert(e.logical_shift(bits, (32 if dtype == "f32" else 64) - kept), dtype)
    return _finished(e, f"dy2st.random.uniform.{dtype}.{lanes}", (number * 2.0**-kept).text, _vector(dtype, lanes))


@functools.cache
def random_int(lanes: int) -> Definition:
    """Return `<lanes x i64> @dy2st.random.int.8(i64 seed, i64 draw, i64 first, i64 low, i64 span)`.

    The numbers are low + floor(r span / 2**64) for random r of 64 bits, by halves of 32 bits.
    """
    e = FormulaEmitter(lanes)
    r = _words(e, "i64")
    low, span = (_spread(e, "i64", name) for name in ("%low", "%span"))
    high_r, low_r = e.logical_shift(r, 32), r & _WORD
    high_span, low_span = e.logical_shift(span, 32), span & _WORD
    middle = high_r * low_span + e.logical_shift(low_r * low_span, 32)
    other = low_r * high_span + (middle & _WORD)
    number = high_r * high_span + e.logical_shift(middle, 32) + e.logical_shift(other, 32) + low
    return _finished(e, f"dy2st.random.int.{lanes}", number.text, _vector("i64", lanes), ("low", "span"))


@functools.cache
def random_normal(dtype: str, lanes: int) -> Definition:
    """Return `@dy2st.random.normal.f32.16(i64 seed, i64 draw, i64 first)`: the normal distribution, by Box and Muller.

    Elements 2 j and 2 j + 1 come from one pair of random numbers, in float64. One lane computes both and takes its own.
    """
    half = max(lanes // 2, 1)
    e = FormulaEmitter(half)
    count = 2 * half
    words, kind = (random_words(count), "i32") if dtype == "f32" else (random_words64(count), "i64")
    e.needs[words.name] = words
    first = "%first" if lanes > 1 else e.line("i64", "and i64 %first, -2").text
    drawn = e.line(kind, f"call {_vector(kind, count)} @{words.name}(i64 %seed, i64 %draw, i64 {first})").text
    u, v = (_unsigned_to_float(e, _every_other(e, drawn, kind, start, count)) for start in (0, 1))
    unit = 2.0**-32 if dtype == "f32" else 2.0**-53
    log, cos, sin = (function(name, "f64", half) for name in ("log", "cos", "sin"))
    radius = e.sqrt(e.call(log, "f64", (u + 1.0) * unit) * -2.0)
    angle = v * (2.0 * math.pi * unit)
    pair = [radius * e.call(cos, "f64", angle), radius * e.call(sin, "f64", angle)]
    if dtype == "f32":
        pair = [e.convert(x, "f32") for x in pair]
    joined = _interleaved(e, pair)
    return _finished(
        e, f"dy2st.random.normal.{dtype}.{lanes}", _part(e, joined, dtype, count, lanes), _vector(dtype, lanes)
    )


def _block(e: FormulaEmitter, first: str, share: int) -> list[VectorValue]:
    """Write the four words, in 64-bit lanes, of the blocks from element `first` on; a block gives `share` elements."""
    start = e.line("i64", f"lshr i64 {first}, {share.bit_length() - 1}").text
    block = _spread(e, "i64", start)
    if e.lanes > 1:
        numbers = f"<{', '.join(f'i64 {i}' for i in range(e.lanes))}>"
        block = block + VectorValue(e, "i64", numbers)
    draw, seed = _spread(e, "i64", "%draw"), _spread(e, "i64", "%seed")
    c0, c1, c2, c3 = draw & _WORD, e.logical_shift(draw, 32), block & _WORD, e.logical_shift(block, 32)
    k0, k1 = seed & _WORD, e.logical_shift(seed, 32)
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = e.logical_shift(p1, 32) ^ c1 ^ k0, e.logical_shift(p0, 32) ^ c3 ^ k1
        c1, c3 = p1 & _WORD, p0 & _WORD
        k0, k1 = (k0 + _KEY_STEPS[0]) & _WORD, (k1 + _KEY_STEPS[1]) & _WORD
    return [c0, c1, c2, c3]


def _pairs(words: list[VectorValue]) -> list[tuple[VectorValue, VectorValue]]:
    return [(words[0], words[1]), (words[2], words[3])]


def _words(e: FormulaEmitter, dtype: str) -> VectorValue:
    """Write a call for random words as wide as the dtype."""
    words, kind = (random_words(e.lanes), "i32") if dtype == "f32" else (random_words64(e.lanes), "i64")
    e.needs[words.name] = words
    return e.line(kind, f"call {e.type(kind)} @{words.name}(i64 %seed, i64 %draw, i64 %first)")


def _spread(e: FormulaEmitter, kind: str, scalar: str) -> VectorValue:
    """Write a scalar into all lanes."""
    if e.lanes == 1:
        return VectorValue(e, kind, scalar)
    first = e.line(kind, f"insertelement {e.type(kind)} poison, {kind} {scalar}, i32 0").text
    places = f"<{e.lanes} x i32> zeroinitializer"
    return e.line(kind, f"shufflevector {e.type(kind)} {first}, {e.type(kind)} poison, {places}")


def _unsigned_to_float(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write unsigned words (i32), or the upper 53 bits of i64, as float64."""
    if x.kind == "i32":
        wide = e.line("i64", f"zext {e.type('i32')} {x.text} to {e.type('i64')}")
        return e.convert(wide, "f64")
    return e.convert(e.logical_shift(x, 11), "f64")


def _every_other(e: FormulaEmitter, vector: str, kind: str, start: int, count: int) -> VectorValue:
    """Write elements start, start + 2, ... of a vector of `count`."""
    if e.lanes == 1:
        return e.line(kind, f"extractelement {_vector(kind, count)} {vector}, i32 {start}")
    places = ", ".join(f"i32 {i}" for i in range(start, count, 2))
    whole = _vector(kind, count)
    return e.line(kind, f"shufflevector {whole} {vector}, {whole} poison, <{e.lanes} x i32> <{places}>")


def _interleaved(e: FormulaEmitter, pair: list[VectorValue]) -> str:
    """Write x0 y0 x1 y1 ... as a vector of twice the lanes."""
    (x, y), kind, whole = pair, pair[0].kind, _vector(pair[0].kind, 2 * e.lanes)
    if e.lanes == 1:
        first = e.line(kind, f"insertelement {whole} poison, {ELEMENTS[kind]} {x.text}, i32 0").text
        return e.line(kind, f"insertelement {whole} {first}, {ELEMENTS[kind]} {y.text}, i32 1").text
    places = ", ".join(f"i32 {i}, i32 {i + e.lanes}" for i in range(e.lanes))
    t = e.type(kind)
    return e.line(kind, f"shufflevector {t} {x.text}, {t} {y.text}, <{2 * e.lanes} x i32> <{places}>").text


def _part(e: FormulaEmitter, vector: str, kind: str, count: int, lanes: int) -> str:
    """Write the `lanes` of `count` elements that `%first` means, where a block holds more than are wanted."""
    if lanes == count:
        return vector
    start = e.line("i64", f"and i64 %first, {count - 1}").text
    elements = [_chosen(e, vector, kind, count, start, range(i, count, lanes)) for i in range(lanes)]
    if lanes == 1:
        return elements[0]
    result = "poison"
    for i, element in enumerate(elements):
        result = e.line(
            kind, f"insertelement {_vector(kind, lanes)} {result}, {ELEMENTS[kind]} {element}, i32 {i}"
        ).text
    return result


def _chosen(e: FormulaEmitter, vector: str, kind: str, count: int, start: str, places: range) -> str:
    """Write the element at one of these places, the first of which is for a start of 0.

    By choices: a GPU goes through memory to take an element by a number that only the run knows.
    """
    found = ""
    for i in places:
        element = e.line(kind, f"extractelement {_vector(kind, count)} {vector}, i64 {i}").text
        here = e.line("i1", f"icmp eq i64 {start}, {i - places[0]}").text if found else ""
        t = ELEMENTS[kind]
        found = e.line(kind, f"select i1 {here}, {t} {element}, {t} {found}").text if found else element
    return found


def _vector(kind: str, lanes: int) -> str:
    return ELEMENTS[kind] if lanes == 1 else f"<{lanes} x {ELEMENTS[kind]}>"


def _finished(e: FormulaEmitter, name: str, result: str, kind: str, more: tuple[str, ...] = ()) -> Definition:
    parameters = ", ".join(f"{t} {x}" for t, x in (*_PLACE, *(("i64", f"%{x}") for x in more)))
    body = "\n".join(e.lines)
    head = f"define internal {kind} @{name}({parameters}) alwaysinline nounwind {{\nentry:"
    return Definition(name, f"{head}\n{body}\n  ret {kind} {result}\n}}", tuple(e.needs.values()))
