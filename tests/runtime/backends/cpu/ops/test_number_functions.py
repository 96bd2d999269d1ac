"""Powers, quotients, rounding and extrema of Python's numbers as native code: Python's results, and its errors."""

import math

import pytest

from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import FLOAT, INT
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

LARGE = [2**53 + 1, 2**53 + 3, -(2**62) - 1]
INTS = [0, 1, 2, 3, 7, -1, -2, -7, 40, 63]
FLOATS = [0.0, -0.0, 0.5, 1.0, 2.0, 2.5, 3.0, -0.3, -2.0, -7.5, 1e300, 1e-300, math.inf, -math.inf, math.nan]


def plans(name, types, attributes=None):
    b = Builder()
    b.block.results = [b.emit(name, [b.argument(t) for t in types], attributes or {})]
    program = Program({"main": b.block})
    native = NativePlan(program)
    assert all(call.rare for call in native.host_calls)
    return native, compile_plan(program)


def outcome(plan, *numbers):
    try:
        (made,) = plan.run(list(numbers))
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)
    return made


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        close = math.isclose(a, b, rel_tol=3e-16) and math.copysign(1, a) == math.copysign(1, b)
        return close or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("types", [(INT, INT), (FLOAT, FLOAT), (INT, FLOAT), (FLOAT, INT)])
@pytest.mark.parametrize("name", ["scalar_pow", "scalar_floordiv", "scalar_mod", "scalar_min", "scalar_max"])
def test_two_numbers(name, types):
    native, plan = plans(name, types)
    for a in INTS if types[0] is INT else FLOATS:
        for b in INTS if types[1] is INT else FLOATS:
            assert same(outcome(native, a, b), outcome(plan, a, b)), (a, b)


def test_squares_are_rounded_once():
    b = Builder()
    x = b.argument(FLOAT)
    b.block.results = [b.scalar_pow(x, 2), b.scalar_pow(x, 2.0)]
    native = NativePlan(Program({"main": b.block}))
    for number in (0.1, -1.1, 3.3, 1e-200):
        assert native.run([number]) == [number**2, number**2]


@pytest.mark.parametrize("number", [0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, 1e15 + 0.5, -3.7])
def test_rounding(number):
    native, plan = plans("scalar_round", [FLOAT], {"digits": None})
    assert same(outcome(native, number), outcome(plan, number))


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_what_is_no_number_is_not_rounded(number):
    native, plan = plans("scalar_round", [FLOAT], {"digits": None})
    with pytest.raises((OverflowError, ValueError), match="cannot convert float"):
        plan.run([number])
    with pytest.raises((OverflowError, ValueError), match="cannot convert float"):
        native.run([number])


def test_powers_of_more_than_64_bits_are_those_of_python():
    native, _ = plans("scalar_pow", [INT, INT])
    assert native.run([3, 39]) == [3**39]
    assert native.run([3, 50]) == [3**50]
    assert native.run([-2, 63]) == [-(2**63)]


@pytest.mark.parametrize("kinds", [(INT, INT), (INT, FLOAT), (FLOAT, INT)])
def test_quotients_of_large_ints_are_rounded_once(kinds):
    native, reference = plans("scalar_truediv", list(kinds))
    for n in LARGE:
        for d in (3, 5, 7, n):
            given = [number if kind is INT else float(number) for number, kind in zip((n, d), kinds, strict=True)]
            assert outcome(native, *given) == outcome(reference, *given)
