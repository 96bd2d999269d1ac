"""Derivatives of calls of functions, recursion included."""

import numpy as np
import pytest

from dy2st.autodiff.programs import vjp
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import INT
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import LIST, VECTOR, cond, empty_list, program
from tests.autodiff.checking import check, gradient_program

X = np.array([0.3, -0.7, 1.2])
Y = np.array([0.5, 0.4, -0.2])


def with_functions(types, body, **functions):
    """Return the Program of `body` with functions, each given as (argument types, body)."""
    made = program(types, body)
    others = {name: program(*one).block for name, one in functions.items()}
    return Program({"main": made.block, **others})


def call(b, name, *operands, types=(VECTOR,)):
    results = b.operation("call", list(operands), {"function": name, "types": tuple(types)}).results
    return results[0] if len(results) == 1 else results


def scaled(b, x, y):
    return b.mul(b.tanh(x), b.exp(y))


def descend(b, n, x, y):
    """Return x where n is 0, else tanh(descend(n - 1, x * y, y)) * x."""

    def deeper(b):
        return b.mul(b.tanh(call(b, "descend", b.scalar_sub(n, 1), b.mul(x, y), y)), x)

    return cond(b, b.scalar_le(n, 0), lambda b: x, deeper)


def test_a_call():
    body = lambda b, x, y: b.mul(call(b, "scaled", b.mul(x, y), y), x)
    check(with_functions([VECTOR, VECTOR], body, scaled=([VECTOR, VECTOR], scaled)), X, Y, order=3)


def test_two_calls_share_one_gradient():
    body = lambda b, x, y: call(b, "scaled", call(b, "scaled", x, y), y)
    made = with_functions([VECTOR, VECTOR], body, scaled=([VECTOR, VECTOR], scaled))
    check(made, X, Y, order=2)
    back = vjp(made, (0, 1), [(0, False)]).backward
    assert sum("__vjp" in name for name in back.functions) <= 2


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_recursion(depth):
    body = lambda b, n, x, y: call(b, "descend", n, x, y)
    made = with_functions([INT, VECTOR, VECTOR], body, descend=([INT, VECTOR, VECTOR], descend))
    check(made, depth, X, Y, order=2, tolerance=1e-5)


@pytest.mark.parametrize("depth", [0, 3])
def test_recursion_that_fills_a_list(depth):
    def fill(b, n, items, x):
        def deeper(b):
            return call(b, "fill", b.scalar_sub(n, 1), b.list_append(items, b.mul(x, x)), b.tanh(x), types=(LIST,))

        return cond(b, b.scalar_le(n, 0), lambda b: items, deeper)

    def body(b, n, x):
        items = call(b, "fill", n, b.list_append(empty_list(b), x), x, types=(LIST,))
        return b.mul(b.list_get(items, -1), b.list_get(items, 0))

    check(with_functions([INT, VECTOR], body, fill=([INT, LIST, VECTOR], fill)), depth, X, order=2)


def test_what_a_function_prints_is_printed_once(capsys):
    def noisy(b, x):
        b.operation("print", [], {"template": (), "sep": " ", "end": "!"})
        return b.mul(x, x)

    made = with_functions([VECTOR], lambda b, x: call(b, "noisy", x), noisy=([VECTOR], noisy))
    pulled = vjp(made, (0,), [(0, False)])
    values = evaluate(pulled.forward, [X])
    (dx,) = evaluate(pulled.backward, [*values[1:], np.ones(3)])
    assert capsys.readouterr().out == "!"
    np.testing.assert_allclose(dx, 2 * X)


def test_a_call_without_its_program_is_refused():
    b = Builder()
    x = b.argument(VECTOR)
    b.block.results = [call(b, "scaled", x, x)]
    with pytest.raises(AutodiffError, match="the call of function 'scaled' is differentiated without the Program"):
        gradient_program(Program({"other": b.block}, "other"), functions=False)
