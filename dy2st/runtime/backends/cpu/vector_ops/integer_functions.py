"""Functions of whole numbers on registers, as NumPy has them: quotients, remainders, powers, divisors, shifts.

A number divided by zero gives 0; the least number divided by -1 wraps around; nothing traps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dy2st.dtypes import DType, bool_, float64
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Function = Callable[[VectorType, DType, str, str], str]


def _quotient_and_rest(v: VectorType, dtype: DType, x: str, y: str) -> tuple[str, str, str]:
    """Write x / y rounded towards zero, what it leaves, and where y is 0."""
    f, kind, zero = v.f, v.of(dtype), v.constant(0, dtype)
    nothing = f.value(f"icmp eq {kind} {y}, {zero}")
    if dtype.kind == "u":
        divisor = v.select(nothing, v.constant(1, dtype), y, dtype)
        quotient = f.value(f"udiv {kind} {x}, {divisor}")
        return quotient, f.value(f"sub {kind} {x}, {f.value(f'mul {kind} {quotient}, {divisor}')}"), nothing
    opposite = f.value(f"icmp eq {kind} {y}, {v.constant(-1, dtype)}")
    special = f.value(f"or {v.kind('i1')} {nothing}, {opposite}")
    divisor = v.select(special, v.constant(1, dtype), y, dtype)
    quotient = _divided(v, dtype, x, divisor)
    rest = f.value(f"sub {kind} {x}, {f.value(f'mul {kind} {quotient}, {divisor}')}")
    return v.select(opposite, f.value(f"sub {kind} {zero}, {x}"), quotient, dtype), rest, nothing


def _divided(v: VectorType, dtype: DType, x: str, divisor: str) -> str:
    """Write a quotient of signed numbers; short ones by float64, whose quotient is exact enough, for it has vectors."""
    if v.count == 1 or dtype.bits > 32:
        return v.f.value(f"sdiv {v.of(dtype)} {x}, {divisor}")
    a, b = (v.f.value(f"sitofp {v.of(dtype)} {n} to {v.of(float64)}") for n in (x, divisor))
    return v.f.value(f"fptosi {v.of(float64)} {v.f.value(f'fdiv {v.of(float64)} {a}, {b}')} to {v.of(dtype)}")


def _rounds_down(v: VectorType, dtype: DType, rest: str, y: str) -> str:
    """Write where the quotient rounded down is one less than that rounded towards zero."""
    f, kind = v.f, v.of(dtype)
    if dtype.kind == "u":
        return v.constant(False, bool_)
    left = f.value(f"icmp ne {kind} {rest}, {v.constant(0, dtype)}")
    apart = f.value(f"icmp slt {kind} {f.value(f'xor {kind} {rest}, {y}')}, {v.constant(0, dtype)}")
    return f.value(f"and {v.kind('i1')} {left}, {apart}")


def _floordiv(v: VectorType, dtype: DType, x: str, y: str) -> str:
    quotient, rest, nothing = _quotient_and_rest(v, dtype, x, y)
    less = v.f.value(f"sub {v.of(dtype)} {quotient}, {v.constant(1, dtype)}")
    down = v.select(_rounds_down(v, dtype, rest, y), less, quotient, dtype)
    return v.select(nothing, v.constant(0, dtype), down, dtype)


def _mod(v: VectorType, dtype: DType, x: str, y: str) -> str:
    _, rest, nothing = _quotient_and_rest(v, dtype, x, y)
    moved = v.f.value(f"add {v.of(dtype)} {rest}, {y}")
    down = v.select(_rounds_down(v, dtype, rest, y), moved, rest, dtype)
    return v.select(nothing, v.constant(0, dtype), down, dtype)


def _fmod(v: VectorType, dtype: DType, x: str, y: str) -> str:
    _, rest, nothing = _quotient_and_rest(v, dtype, x, y)
    return v.select(nothing, v.constant(0, dtype), rest, dtype)


@contextmanager
def _while_any(v: VectorType, dtype: DType, slot: str) -> Iterator[None]:
    """Write a loop that turns while a number in a slot is not zero, in any lane."""
    f, kind = v.f, v.of(dtype)
    head, body, done = f.label("test"), f.label("turn"), f.label("done")
    f.start(head)
    some = f.value(f"icmp ne {kind} {f.load(kind, slot)}, {v.constant(0, dtype)}")
    if v.count > 1:
        bits = f.value(f"bitcast {v.kind('i1')} {some} to i{v.count}")
        some = f.value(f"icmp ne i{v.count} {bits}, 0")
    f.branch(some, body, done)
    f.start(body)
    yield
    f.jump(head)
    f.start(done)


def _pow(v: VectorType, dtype: DType, x: str, y: str) -> str:
    """Write x ** y by squares; of a negative power, the whole part."""
    f, kind, zero, one = v.f, v.of(dtype), v.constant(0, dtype), v.constant(1, dtype)
    negative = f.value(f"icmp slt {kind} {y}, {zero}") if dtype.kind == "i" else None
    left, square, product = f.slot(kind), f.slot(kind), f.slot(kind)
    f.store(kind, y if negative is None else v.select(negative, zero, y, dtype), left)
    f.store(kind, x, square)
    f.store(kind, one, product)
    with _while_any(v, dtype, left):
        power, base, so_far = (f.load(kind, slot) for slot in (left, square, product))
        odd = f.value(f"icmp ne {kind} {f.value(f'and {kind} {power}, {one}')}, {zero}")
        f.store(kind, v.select(odd, f.value(f"mul {kind} {so_far}, {base}"), so_far, dtype), product)
        f.store(kind, f.value(f"mul {kind} {base}, {base}"), square)
        f.store(kind, f.value(f"lshr {kind} {power}, {one}"), left)
    result = f.load(kind, product)
    if negative is None:
        return result
    odd = f.value(f"icmp ne {kind} {f.value(f'and {kind} {y}, {one}')}, {zero}")
    unit = f.value(f"icmp eq {kind} {_absolute(v, dtype, x)}, {one}")
    below = v.select(unit, v.select(odd, x, one, dtype), zero, dtype)
    return v.select(negative, below, result, dtype)


def _absolute(v: VectorType, dtype: DType, x: str) -> str:
    if dtype.kind == "u":
        return x
    kind, zero = v.of(dtype), v.constant(0, dtype)
    below = v.f.value(f"icmp slt {kind} {x}, {zero}")
    return v.select(below, v.f.value(f"sub {kind} {zero}, {x}"), x, dtype)


def _gcd(v: VectorType, dtype: DType, x: str, y: str) -> str:
    """Write the greatest common divisor by Euclid's algorithm."""
    f, kind, zero = v.f, v.of(dtype), v.constant(0, dtype)
    larger, smaller = f.slot(kind), f.slot(kind)
    f.store(kind, _absolute(v, dtype, x), larger)
    f.store(kind, _absolute(v, dtype, y), smaller)
    with _while_any(v, dtype, smaller):
        a, b = f.load(kind, larger), f.load(kind, smaller)
        ended = f.value(f"icmp eq {kind} {b}, {zero}")
        rest = f.value(f"urem {kind} {a}, {v.select(ended, v.constant(1, dtype), b, dtype)}")
        f.store(kind, v.select(ended, a, b, dtype), larger)
        f.store(kind, rest, smaller)
    return f.load(kind, larger)


def _lcm(v: VectorType, dtype: DType, x: str, y: str) -> str:
    f, kind, zero = v.f, v.of(dtype), v.constant(0, dtype)
    common = _gcd(v, dtype, x, y)
    nothing = f.value(f"icmp eq {kind} {common}, {zero}")
    part = f.value(f"udiv {kind} {_absolute(v, dtype, x)}, {v.select(nothing, v.constant(1, dtype), common, dtype)}")
    return f.value(f"mul {kind} {part}, {_absolute(v, dtype, y)}")


def _shift(word: str) -> Function:
    """Return what writes a shift; by a negative number of places, or too many, it is one by all of them."""

    def write(v: VectorType, dtype: DType, x: str, y: str) -> str:
        f, kind = v.f, v.of(dtype)
        fits = f.value(f"icmp ult {kind} {y}, {v.constant(dtype.bits, dtype)}")
        if word == "ashr":
            places = v.select(fits, y, v.constant(dtype.bits - 1, dtype), dtype)
            return f.value(f"ashr {kind} {x}, {places}")
        moved = f.value(f"{word} {kind} {x}, {v.select(fits, y, v.constant(0, dtype), dtype)}")
        return v.select(fits, moved, v.constant(0, dtype), dtype)

    return write


def _shift_right(v: VectorType, dtype: DType, x: str, y: str) -> str:
    return _shift("lshr" if dtype.kind == "u" else "ashr")(v, dtype, x, y)


FUNCTIONS: dict[str, Function] = {
    "floordiv": _floordiv, "mod": _mod, "fmod": _fmod, "pow": _pow, "gcd": _gcd, "lcm": _lcm,
    "shift_left": _shift("shl"), "shift_right": _shift_right,
}  # fmt: skip
"""What writes an operation on two registers of whole numbers."""
