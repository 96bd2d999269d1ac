"""Derivatives of high order: every way to nest the modes agrees with mpmath."""

import mpmath
import numpy as np
import pytest

import dy2st as paddle
from dy2st.incubate.autograd import jet, jvp, vjp

AT = 0.3
TANH = [float(c * mpmath.factorial(k)) for k, c in enumerate(mpmath.taylor(mpmath.tanh, AT, 20))]
"""The derivatives of tanh at `AT`, by their order."""


def point(x=AT):
    return paddle.to_tensor(np.array(x), stop_gradient=False)


def forward(f):
    return lambda x: jvp(f, x)[1]


def reverse(f):
    return lambda x: vjp(f, x)[1]


def by_grad(f):
    def slope(x):
        return paddle.grad([f(x)], [x], create_graph=True)[0]

    return slope


def nest(f, modes):
    for mode in modes:
        f = mode(f)
    return f


def grads(x, order):
    """The derivatives 1 to `order` of tanh by `grad` of `grad`."""
    found, y = [], paddle.tanh(x)
    for _ in range(order):
        (y,) = paddle.grad([y], [x], create_graph=True)
        found.append(y)
    return found


def test_nested_grad_to_order_7():
    for k, d in enumerate(grads(point(), 7), 1):
        assert float(d) == pytest.approx(TANH[k], rel=1e-13)


@pytest.mark.slow
def test_nested_grad_to_order_10():
    assert float(grads(point(), 10)[-1]) == pytest.approx(TANH[10], rel=1e-13)


def test_nested_grad_in_one_program_to_order_8():
    static = paddle.jit.to_static(lambda x: grads(x, 8), full_graph=True)
    for k, d in enumerate(static(point()), 1):
        assert float(d) == pytest.approx(TANH[k], rel=1e-13)


def test_nested_forward_mode_to_order_10():
    f = paddle.tanh
    for k in range(1, 11):
        f = forward(f)
        assert float(f(point())) == pytest.approx(TANH[k], rel=1e-13)


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
def test_taylor_mode_to_order_20(static):
    def series(x):
        return jet(paddle.tanh, x, order=20)[1]

    run = paddle.jit.to_static(series, full_graph=True) if static else series
    for k, d in enumerate(run(point()), 1):
        assert float(d) == pytest.approx(TANH[k], rel=1e-12)


@pytest.mark.parametrize(
    "modes",
    [
        (reverse,) * 5,
        (forward, reverse) * 3,
        (reverse, forward) * 3,
        (forward, forward, reverse),
        (reverse, reverse, forward),
    ],
    ids=lambda modes: "-".join(m.__name__ for m in modes),
)
def test_mixed_modes(modes):
    assert float(nest(paddle.tanh, modes)(point())) == pytest.approx(TANH[len(modes)], rel=1e-13)


@pytest.mark.parametrize("mode", [forward, reverse, by_grad])
def test_a_mode_over_taylor_mode(mode):
    third = mode(lambda x: jet(paddle.tanh, x, order=3)[1][2])
    assert float(third(point())) == pytest.approx(TANH[4], rel=1e-13)


@pytest.mark.parametrize("mode", [forward, reverse, by_grad])
def test_taylor_mode_over_a_mode(mode):
    found = jet(mode(paddle.tanh), point(), order=4)[1]
    assert [float(d) for d in found] == pytest.approx(TANH[2:6], rel=1e-13)


def test_taylor_mode_over_taylor_mode():
    found = jet(lambda x: jet(paddle.tanh, x, order=2)[1][1], point(), order=3)[1]
    assert [float(d) for d in found] == pytest.approx(TANH[3:6], rel=1e-13)


def turns(x):
    """A loop whose number of turns depends on x, with a branch: a polynomial of sines around AT."""
    y, n = x, 0
    while y < 4.0:
        if n % 2 == 0:
            y = y + paddle.exp(x * y / 4)
        else:
            y = y * 1.5 + paddle.sin(y)
        n += 1
    return y


def turned(x):
    """The same for mpmath, with the branches that are taken at AT."""
    y, n, at = x, 0, mpmath.mpf(AT)
    while at < 4:
        step = (lambda v, u: v + mpmath.exp(u * v / 4)) if n % 2 == 0 else (lambda v, u: v * 1.5 + mpmath.sin(v))
        y, at, n = step(y, x), step(at, mpmath.mpf(AT)), n + 1
    return y


LOOP = [float(c * mpmath.factorial(k)) for k, c in enumerate(mpmath.taylor(turned, AT, 6))]
STATIC = paddle.jit.to_static(turns, full_graph=True)


@pytest.mark.parametrize("f", [turns, STATIC], ids=["eager", "static"])
def test_taylor_mode_through_a_loop(f):
    y, found = jet(f, point(), order=6)
    assert float(y) == pytest.approx(LOOP[0], rel=1e-13)
    assert [float(d) for d in found] == pytest.approx(LOOP[1:], rel=1e-11)


@pytest.mark.parametrize("f", [turns, STATIC], ids=["eager", "static"])
@pytest.mark.parametrize(
    "modes",
    [(reverse,) * 3, (forward,) * 4, (reverse, forward, reverse)],
    ids=lambda m: "-".join(o.__name__ for o in m),
)
def test_other_modes_through_a_loop(f, modes):
    assert float(nest(f, modes)(point())) == pytest.approx(LOOP[len(modes)], rel=1e-11)


def test_modes_nested_inside_of_one_program_through_a_loop():
    @paddle.jit.to_static(full_graph=True)
    def inside(x):
        return nest(turns, (forward, reverse))(x), jet(turns, x, order=3)[1]

    second, found = inside(point())
    assert float(second) == pytest.approx(LOOP[2], rel=1e-11)
    assert [float(d) for d in found] == pytest.approx(LOOP[1:4], rel=1e-11)
