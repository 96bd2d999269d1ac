"""How long the interpreter is likely to take."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.program import Program
from dy2st.nn import functional as F
from dy2st.runtime.interpreter.cost_model import bindings, seconds
from tests.runtime.programs import counting, looping, program_of

X = np.ones((2, 3), "float32")


def test_operations_are_counted():
    assert seconds(Program(), []) == 0
    assert 1e-6 <= seconds(program_of(lambda x: paddle.tanh(x).sum(), X), [X]) < 10e-6
    assert 1e-3 <= seconds(program_of(counting(1000), X), [X]) < 10e-3


def test_what_a_loop_does_is_counted_as_often_as_it_turns():
    def f(x, w):
        for _ in range(x.shape[0]):
            w = paddle.tanh(w @ w)
        return w

    w = np.ones((300, 300), "float32")
    program = program_of(f, X, w[:2, :2])
    small, large = (seconds(program, [np.ones((n, 3), "float32"), w]) for n in (10, 100))
    assert large == pytest.approx(10 * small, rel=0.05)
    assert small == pytest.approx(10 * (300**3 * 0.005e-9 + 300**2 * 2 * 0.4e-9 + 5e-6), rel=0.3)


def test_a_loop_that_only_the_run_ends_takes_for_ever():
    assert seconds(program_of(looping, X), [X]) == float("inf")


def test_a_loop_that_is_not_entered_takes_no_time():
    def f(x):
        t = 1
        for _ in range(x.shape[0]):
            while t < x.shape[1]:
                t = t + 1
        return x * t

    assert seconds(program_of(f, X), [np.ones((0, 3), "float32")]) < 20e-6


def test_elements_are_counted_by_what_they_cost():
    cheap, dear = program_of(paddle.abs, X), program_of(paddle.erf, X)
    x = np.ones((1000, 1000), "float32")
    assert seconds(cheap, [x]) == pytest.approx(1e-3, rel=0.01)
    assert seconds(dear, [x]) == pytest.approx(90e-3, rel=0.01)


def test_convolutions_are_counted_by_their_multiplications():
    x, w = np.ones((1, 8, 32, 32), "float32"), np.ones((8, 8, 3, 3), "float32")
    program = program_of(lambda x, w: F.conv2d(x, w, padding=1), x, w)
    small, large = (seconds(program, [np.ones((n, 8, 32, 32), "float32"), w]) for n in (1, 64))
    assert small < 1e-3
    assert large == pytest.approx(64 * small, rel=0.1)
    assert large == pytest.approx(64 * 32 * 32 * 8 * 8 * 9 * 0.5e-9, rel=0.3)


def test_elements_that_only_the_run_tells_do_not_count():
    program = program_of(lambda x: x[x > 0], X)
    assert seconds(program, [np.ones((1000, 1000), "float32")]) < 0.01


def test_inputs_that_are_not_as_the_types_say_bind_nothing():
    program = program_of(lambda x, y: x @ y, X, X.T)
    assert bindings(program, [X[0], X]) is None
    assert seconds(program, [X[0], X]) == 0
