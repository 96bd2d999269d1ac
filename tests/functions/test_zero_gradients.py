"""Functions that are constant between their jumps have a gradient, of zeros, in every tier and order."""

import numpy as np
import pytest

import dy2st as paddle

STEPS = {
    "floor": paddle.floor, "ceil": paddle.ceil, "round": paddle.round, "trunc": paddle.trunc, "sign": paddle.sign,
    "sgn": paddle.sgn, "round to decimals": lambda x: paddle.round(x, 1), "rint": lambda x: x.round(),
}  # fmt: skip
X = np.array([-1.5, -0.2, 0.0, 2.7, np.inf])


@pytest.mark.parametrize("name", STEPS)
def test_gradient_is_zeros(name):
    static = paddle.jit.to_static(STEPS[name], full_graph=True)
    for run in (STEPS[name], static, static, static):
        x = paddle.to_tensor(X, stop_gradient=False)
        y = run(x)
        assert not y.stop_gradient
        (y * paddle.to_tensor([1.0, 2.0, 3.0, 4.0, np.inf], dtype="float64")).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.zeros(5))


@pytest.mark.parametrize("name", STEPS)
def test_the_rest_of_a_sum_keeps_its_gradient(name):
    def f(x):
        return (x * STEPS[name](x) + x * x).sum()

    static = paddle.jit.to_static(f, full_graph=True)
    finite = X[:4]
    for run in (f, static, static, static):
        x = paddle.to_tensor(finite, stop_gradient=False)
        (slope,) = paddle.grad(run(x), x, create_graph=True)
        np.testing.assert_allclose(slope.numpy(), STEPS[name](paddle.to_tensor(finite)).numpy() + 2 * finite)
        np.testing.assert_allclose(paddle.grad(slope.sum(), x)[0].numpy(), np.full(4, 2.0))


def test_integers_have_none():
    assert paddle.floor(paddle.to_tensor([1, 2])).stop_gradient
