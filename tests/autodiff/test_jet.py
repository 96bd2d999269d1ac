"""Taylor mode: the coefficients of every op and of control flow are those of nested forward mode and of mpmath."""

import math

import mpmath
import numpy as np
import pytest

from dy2st.autodiff.programs import jet, jvp
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import INT
from dy2st.ir.verifier import verify
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import POINT, VECTOR, cond, counted_while, empty_list, program, while_loop
from tests.autodiff.test_calls import call, descend, with_functions
from tests.ops.evaluate import type_of
from tests.ops.test_registry import cases, has_derivative, is_float
from tests.passes.checked import optimised

ORDER = 3
ONE = np.array(1.0)


def coefficients(of, inputs, order):
    """The coefficients of each result when the first argument is t, by the interpreter and by a plan, which agree."""
    made, found = jet(of, ((0, (1,)),), order)
    verify(made)
    arguments = [*inputs, ONE]
    values = evaluate(made, arguments)
    for fast, slow in zip(compile_plan(optimised(made)).run(arguments), values, strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-11)
    count = len(of.block.results)
    rest = iter(values[count:])
    series = [[np.zeros_like(v) for _ in range(order)] for v in values[:count]]
    for i, orders in found:
        for k in orders:
            series[i][k - 1] = next(rest)
    return series


def nested(of, inputs, order):
    """The same by forward mode of forward mode, over and over."""
    made, places = of, list(range(len(of.block.results)))
    series = [[np.zeros_like(v) for _ in range(order)] for v in evaluate(of, inputs)]
    for k in range(1, order + 1):
        made, live = jvp(made, [0])
        made.block.results = made.block.results[len(made.block.results) - len(live) :]
        places = [places[i] for i in live]
        for i, v in zip(places, evaluate(made, [*inputs, *[ONE] * k]), strict=True):
            series[i][k - 1] = v / math.factorial(k)
    return series


def along_a_curve(op, sample):
    """The Program (t, operands) -> the op's results, its float operands moved by v t + w t**2."""
    rng = np.random.default_rng(3)
    b = Builder()
    t = b.argument(POINT)
    operands = []
    for x in sample.operands:
        value = b.argument(type_of(x, symbolic=False))
        if is_float(x):
            for power in (t, b.mul(t, t)):
                direction = b.constant(rng.normal(size=x.shape) * 0.5, value.type.dtype)
                value = b.add(value, b.mul(direction, power))
        operands.append(value)
    b.block.results = b.operation(op, operands, sample.attributes).results
    return Program({"main": b.block})


def same(got, want):
    for ours, theirs in zip(got, want, strict=True):
        for c, d in zip(ours, theirs, strict=True):
            assert c.shape == d.shape
            np.testing.assert_allclose(c, d, rtol=1e-8, atol=1e-8 * (1 + np.max(np.abs(d), initial=0)))


@pytest.mark.parametrize(("op", "sample"), cases(has_derivative))
def test_every_op_has_the_coefficients_of_nested_forward_mode(op, sample):
    of, inputs = along_a_curve(op, sample), [np.array(0.0), *sample.operands]
    same(coefficients(of, inputs, ORDER), nested(of, inputs, ORDER))


@pytest.mark.parametrize(
    ("name", "function", "at"),
    [
        ("tanh", mpmath.tanh, 0.3),
        ("sin", mpmath.sin, 0.3),
        ("exp", mpmath.exp, 0.3),
        ("log", mpmath.log, 0.7),
        ("sqrt", mpmath.sqrt, 0.7),
        ("tan", mpmath.tan, 0.4),
        ("asin", mpmath.asin, 0.3),
        ("acosh", mpmath.acosh, 1.5),
        ("atan", mpmath.atan, 0.3),
        ("erf", mpmath.erf, 0.3),
        ("erfinv", mpmath.erfinv, 0.2),
        ("lgamma", mpmath.loggamma, 1.3),
        ("digamma", mpmath.digamma, 1.2),
        ("sigmoid", lambda x: 1 / (1 + mpmath.exp(-x)), 0.3),
        ("silu", lambda x: x / (1 + mpmath.exp(-x)), 0.4),
        ("reciprocal", lambda x: 1 / x, 0.8),
    ],
)
def test_order_10_agrees_with_mpmath(name, function, at):
    of = program([POINT], lambda b, x: getattr(b, name)(x))
    found = coefficients(of, [np.array(at)], 10)[0]
    for c, want in zip(found, mpmath.taylor(function, at, 10)[1:], strict=True):
        assert float(c) == pytest.approx(float(want), rel=1e-13, abs=1e-15)


def size(of, order):
    made, _ = jet(of, ((0, (1,)),), order)
    return len(made.block.operations)


@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "reciprocal", "sqrt", "asin", "gelu"])
def test_the_cost_grows_as_the_square_of_the_order(name):
    attributes = {"approximate": False} if name == "gelu" else {}
    of = program([POINT], lambda b, x: getattr(b, name)(x, **attributes))
    assert size(of, 32) < 4.5 * size(of, 16)


def test_a_power_costs_less_than_the_cube_of_the_order():
    of = program([POINT], lambda b, x: b.pow(x, b.constant(2.5, POINT.dtype)))
    assert size(of, 32) < 8 * size(of, 16)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "sin", "erf", "reciprocal", "silu", "lgamma", "asinh"])
def test_a_series_that_begins_with_a_square(name):
    x, a = np.array([0.3, 1.7]), np.array([2.0, -0.5])
    of = program([VECTOR], lambda b, x: b.mul(b.emit(name, [x]), x))
    made, ((_, orders),) = jet(of, ((0, (2,)),), 4)
    found = dict(zip(orders, evaluate(made, [x, a])[1:], strict=True))
    whole = program(
        [POINT, VECTOR, VECTOR], lambda b, t, x, a: b.mul(b.emit(name, [y := b.add(x, b.mul(a, b.mul(t, t)))]), y)
    )
    wanted = nested(whole, [np.array(0.0), x, a], 4)[0]
    for k in range(1, 5):
        np.testing.assert_allclose(found.get(k, np.zeros(2)), wanted[k - 1], rtol=1e-8, atol=1e-10)


def test_what_is_zero_is_not_computed():
    of = program([POINT], lambda b, x: b.add(b.mul(x, b.constant(3.0, POINT.dtype)), x))
    made, found = jet(of, ((0, (1,)),), 5)
    assert found == ((0, (1,)),)
    assert len(made.block.results) == 2


def test_a_polynomial_ends():
    of = program([POINT], lambda b, x: b.mul(b.mul(x, x), x))
    assert [float(c) for c in coefficients(of, [np.array(2.0)], 5)[0]] == [12.0, 6.0, 1.0, 0.0, 0.0]


def test_what_does_not_depend_on_t_has_no_coefficients():
    of = program([POINT, POINT], lambda b, t, x: [b.exp(x), b.exp(t)])
    made, found = jet(of, ((0, (1,)),), 2)
    assert found == ((1, (1, 2)),)
    assert len(made.block.results) == 4


@pytest.mark.parametrize("at", [-0.4, 0.4])
def test_through_cond(at):
    def body(b, t):
        positive = b.item(b.gt(t, b.constant(0.0, POINT.dtype)))
        y, z = cond(b, positive, lambda s: [s.sin(s.use(t)), s.use(t)], lambda s: [s.exp(s.use(t)), s.mul(t, t)])
        return [b.mul(y, t), z]

    of = program([POINT], body)
    same(coefficients(of, [np.array(at)], 4), nested(of, [np.array(at)], 4))


def test_through_while_loop():
    def body(b, t, x):
        start = b.mul(x, t)
        total = while_loop(
            b,
            [start, b.scalar(0)],
            lambda s, y, n: s.scalar_lt(n, 4),
            lambda s, y, n: [s.add(s.sin(y), s.mul(y, s.use(t))), s.scalar_add(n, 1)],
        )[0]
        return b.exp(total)

    of, inputs = program([POINT, VECTOR], body), [np.array(0.5), np.array([0.3, -1.0, 2.0])]
    same(coefficients(of, inputs, 4), nested(of, inputs, 4))


def test_through_counted_while_that_turns_backwards():
    def body(b, t):
        return counted_while(b, 3, [b.exp(t)], lambda s, i, y: [s.mul(s.sin(y), s.use(t))], reverse=True)

    of = program([POINT], body)
    same(coefficients(of, [np.array(0.5)], 4), nested(of, [np.array(0.5)], 4))


def test_a_loop_that_does_not_turn():
    def body(b, t):
        return counted_while(b, 0, [b.exp(t)], lambda s, i, y: [s.mul(y, y)])

    of = program([POINT], body)
    same(coefficients(of, [np.array(0.5)], 3), nested(of, [np.array(0.5)], 3))


def test_through_a_list():
    def body(b, t, x):
        items = empty_list(b)
        for k in range(3):
            items = b.list_append(items, b.mul(x, b.exp(b.mul(t, b.constant(float(k), POINT.dtype)))))
        items = b.list_set(items, b.scalar(1), b.mul(x, t))
        items, last = b.list_pop(items, b.scalar(-1))
        return b.mul(last, b.mul(b.list_get(items, b.scalar(1)), b.list_get(items, b.scalar(0))))

    of, inputs = program([POINT, VECTOR], body), [np.array(0.5), np.array([0.3, -1.0])]
    same(coefficients(of, inputs, 4), nested(of, inputs, 4))


@pytest.mark.parametrize("depth", [0, 3])
def test_through_a_function_that_calls_itself(depth):
    of = with_functions(
        [POINT, VECTOR, INT],
        lambda b, t, x, n: b.mul(call(b, "descend", n, b.mul(x, t), x), b.exp(t)),
        descend=([INT, VECTOR, VECTOR], descend),
    )
    inputs = [np.array(0.5), np.array([0.3, -1.0, 2.0]), depth]
    same(coefficients(of, inputs, 3), nested(of, inputs, 3))


def test_no_elements():
    of, inputs = (
        program([POINT, VECTOR], lambda b, t, x: b.sum(b.exp(b.mul(x, t)), axis=(0,), keepdim=False)),
        [
            np.array(0.5),
            np.zeros(0),
        ],
    )
    assert [float(c) for c in coefficients(of, inputs, 3)[0]] == [0.0, 0.0, 0.0]


def test_a_rule_that_branches_is_refused_by_name(monkeypatch):
    def rule(self, b, primals, tangents, outs, **attributes):
        return cond(b, b.item(b.gt(primals[0], 0)), lambda s: [s.use(tangents[0])], lambda s: [s.neg(tangents[0])])

    monkeypatch.setattr(type(lookup("sin")), "jvp", rule)
    of = program([POINT], lambda b, t: b.sin(t))
    with pytest.raises(AutodiffError, match="Taylor mode has no rule for 'cond', which the derivative of 'sin' uses"):
        jet(of, ((0, (1,)),), 2)
