"""Random numbers that several threads draw: the same as those that one draws."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.cpu.native import NativePlan
from dy2st.runtime.plan import compile_plan


@pytest.mark.parametrize("draw", [paddle.rand, paddle.randn])
def test_any_number_of_threads_gives_the_same_bits(draw):
    static = paddle.jit.to_static(lambda x: draw(x.shape), full_graph=True)
    static(paddle.ones([2, 3]))
    program = static.concrete_program.main_program
    native, plan = NativePlan(program), compile_plan(program)
    inputs = [np.zeros((171, 333), "float32"), 3, 5]  # and the number of the draw, and the seed
    before = paddle.get_num_threads()
    made = []
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        made.append(native.run(inputs)[0])
    paddle.set_num_threads(before)
    np.testing.assert_allclose(made[0], plan.run(inputs)[0], rtol=1e-6)
    assert all(np.array_equal(made[0], other) for other in made)


@pytest.mark.parametrize("draw", [
    lambda x: paddle.bernoulli(x), lambda x: paddle.nn.functional.dropout(x, 0.3), lambda x: paddle.exponential_(x + 0),
    lambda x: paddle.randint(-3, 9, x.shape),
], ids=["bernoulli", "dropout", "exponential", "whole numbers"])  # fmt: skip
def test_what_is_made_of_draws_has_the_same_bits_too(draw):
    static = paddle.jit.to_static(draw, full_graph=True)
    static(paddle.ones([2, 3]))
    program = static.concrete_program.main_program
    native, plan = NativePlan(program), compile_plan(program)
    assert native.host_calls == []
    inputs = [np.full((171, 333), 0.5, "float32"), 3, 5]
    before = paddle.get_num_threads()
    made = []
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        made.append(native.run(inputs)[0])
    paddle.set_num_threads(before)
    np.testing.assert_allclose(made[0], plan.run(inputs)[0], rtol=1e-5)
    assert all(np.array_equal(made[0], other) for other in made)
