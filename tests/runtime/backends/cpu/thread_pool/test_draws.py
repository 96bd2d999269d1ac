"""Random numbers that several threads draw: the same as those that one draws."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import thread_counts


@pytest.mark.parametrize(("draw", "tolerance"), [
    (lambda x: paddle.rand(x.shape), 1e-6), (lambda x: paddle.randn(x.shape), 1e-6),
    (lambda x: paddle.bernoulli(x), 1e-5), (lambda x: paddle.nn.functional.dropout(x, 0.3), 1e-5),
    (lambda x: paddle.exponential_(x + 0), 1e-5), (lambda x: paddle.randint(-3, 9, x.shape), 1e-5),
], ids=["rand", "randn", "bernoulli", "dropout", "exponential", "whole numbers"])  # fmt: skip
def test_any_number_of_threads_gives_the_same_bits(draw, tolerance):
    static = paddle.jit.to_static(draw, full_graph=True)
    static(paddle.ones([2, 3]))
    program = static.concrete_program.main_program
    native = NativePlan(program)
    assert native.host_calls == []
    inputs = [np.full((171, 333), 0.5, "float32"), 3, 5]  # and the number of the draw, and the seed
    made = [native.run(inputs)[0] for _ in thread_counts()]
    np.testing.assert_allclose(made[0], compile_plan(program).run(inputs)[0], rtol=tolerance)
    assert all(np.array_equal(made[0], other) for other in made)
