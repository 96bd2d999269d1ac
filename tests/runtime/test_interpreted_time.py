"""How long the interpreter is likely to take."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.program import Program
from dy2st.nn import functional as F
from dy2st.runtime.interpreted_time import bindings, seconds_of_elements, steps
from tests.runtime.programs import counting, looping, program_of

X = np.ones((2, 3), "float32")


def test_steps_are_counted():
    assert steps(Program()) == 0
    assert 1 <= steps(program_of(lambda x: paddle.tanh(x).sum(), X)) < 10
    assert steps(program_of(looping, X)) == float("inf")
    assert 1000 <= steps(program_of(counting(1000), X)) < 10_000


def test_elements_are_counted_by_what_they_cost():
    cheap, dear = program_of(paddle.abs, X), program_of(paddle.erf, X)
    x = np.ones((1000, 1000), "float32")
    assert seconds_of_elements(cheap, [x]) == pytest.approx(1e-3)
    assert seconds_of_elements(dear, [x]) == pytest.approx(90e-3)


def test_convolutions_are_counted_by_their_multiplications():
    x, w = np.ones((1, 8, 32, 32), "float32"), np.ones((8, 8, 3, 3), "float32")
    program = program_of(lambda x, w: F.conv2d(x, w, padding=1), x, w)
    small, large = (seconds_of_elements(program, [np.ones((n, 8, 32, 32), "float32"), w]) for n in (1, 64))
    assert small < 1e-3
    assert large == pytest.approx(64 * small, rel=0.1)
    assert large == pytest.approx(64 * 32 * 32 * 8 * 8 * 9 * 0.5e-9, rel=0.3)


def test_elements_that_only_the_run_tells_do_not_count():
    program = program_of(lambda x: x[x > 0], X)
    assert seconds_of_elements(program, [np.ones((1000, 1000), "float32")]) < 0.01


def test_inputs_that_are_not_as_the_types_say_bind_nothing():
    program = program_of(lambda x, y: x @ y, X, X.T)
    assert bindings(program, [X[0], X]) is None
    assert seconds_of_elements(program, [X[0], X]) == 0
