"""Functions that are differentiated inside of `to_static`: their control flow is converted too, and prints once."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.incubate.autograd import Hessian, Jacobian, jet, jvp, vjp


def turns(x):
    while x.sum() < 10:
        print("turn")
        x = x * x + x
    return x


MODES = {
    "jvp": lambda f, x: jvp(f, x)[1],
    "vjp": lambda f, x: vjp(f, x)[1],
    "jet": lambda f, x: jet(f, x, order=3)[1][2],
    "Jacobian": lambda f, x: Jacobian(f, x)[:],
    "Hessian": lambda f, x: Hessian(lambda u: f(u).sum(), x)[:],
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_derivatives_of_a_loop_in_a_program(mode, capsys):
    spec = paddle.static.InputSpec([2], "float64")
    static = paddle.jit.to_static(lambda x: mode(turns, x), input_spec=[spec], full_graph=True)
    for start in ([1.0, 0.5], [2.0, 1.0]):
        x = paddle.to_tensor(np.array(start))
        want = mode(turns, x)
        eager = capsys.readouterr().out
        np.testing.assert_allclose(static(x).numpy(), want.numpy(), rtol=1e-10)
        assert capsys.readouterr().out == eager
    assert len(static.program_cache) == 1


@pytest.mark.parametrize("mode", ["jvp", "vjp", "jet"])
def test_derivatives_of_a_converted_function_print_once(mode, capsys):
    static = paddle.jit.to_static(turns, full_graph=True)
    x = paddle.to_tensor(np.array([1.0, 0.5]))
    MODES[mode](static, x)
    found = capsys.readouterr().out
    MODES[mode](turns, x)
    assert found == capsys.readouterr().out


def attempts(x):
    try:
        if x.sum() > 5:
            raise ValueError("big")
        y = paddle.sin(x)
    except ValueError:
        y = x * x
    return y


@pytest.mark.parametrize("mode", ["jvp", "vjp", "jet"])
def test_a_derivative_inside_through_a_try(mode):
    def f(x):
        return MODES[mode](attempts, x)

    static = paddle.jit.to_static(f, full_graph=True)
    for value in (1.0, 6.0):
        x = paddle.to_tensor(np.array([value]))
        np.testing.assert_allclose(static(x).numpy(), f(x).numpy())
    assert len(static.program_cache) == 1


@pytest.mark.parametrize("mode", ["jvp", "vjp", "jet"])
def test_a_derivative_outside_through_a_try(mode):
    static = paddle.jit.to_static(attempts, full_graph=True)
    for value in (1.0, 6.0):
        x = paddle.to_tensor(np.array([value]))
        np.testing.assert_allclose(MODES[mode](static, x).numpy(), MODES[mode](attempts, x).numpy())
    assert len(static.program_cache) == 1
