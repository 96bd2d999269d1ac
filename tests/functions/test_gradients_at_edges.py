"""Gradients where a derivative is singular or one-sided: the origin of a norm, behind a `where`, bounds, ties."""

import numpy as np
import pytest

import dy2st as paddle

O = np.zeros(3)
NORMS = {
    "norm": lambda x: paddle.norm(x),
    "frobenius": lambda x: paddle.norm(x.reshape([1, 3]), "fro", [0, 1]),
    "vector_norm": lambda x: paddle.linalg.vector_norm(x, 2, 0),
    "p = 1": lambda x: paddle.linalg.vector_norm(x, 1),
    "p = 3": lambda x: paddle.linalg.vector_norm(x, 3),
    "dist": lambda x: paddle.dist(x, 2 * x),
    "cdist": lambda x: paddle.cdist(x.reshape([1, 3]), 2 * x.reshape([1, 3])),
    "hypot": lambda x: paddle.hypot(x, 2 * x),
}
SINGULAR = {
    "sqrt": (lambda x: paddle.where(x > 0, paddle.sqrt(x), x), [0.0, 4.0], [1.0, 0.25]),
    "rsqrt": (lambda x: paddle.where(x > 0, paddle.rsqrt(x), x), [0.0, 4.0], [1.0, -1 / 16]),
    "log": (lambda x: paddle.where(x > 0, paddle.log(x), x), [0.0, 2.0, -4.0], [1.0, 0.5, 1.0]),
    "division": (lambda x: paddle.where(x != 0, 1 / x, x), [0.0, 2.0], [1.0, -0.25]),
    "power": (lambda x: paddle.where(x > 0, x**0.5, x), [0.0, 4.0], [1.0, 0.25]),
    "asin": (lambda x: paddle.where(x < 1, paddle.asin(x), x), [1.0, 0.0], [1.0, 1.0]),
    "acosh": (lambda x: paddle.where(x > 1, paddle.acosh(x), x), [1.0, np.sqrt(2)], [1.0, 1.0]),
    "acosh of a complex number": (
        lambda x: paddle.acosh(paddle.complex(x, x * 0)).real() * (x > 1),
        [2.0, 1.0],
        [3**-0.5, 0.0],
    ),
}
ONE_SIDED = {
    "elu": (paddle.nn.functional.elu, [0.0], [1.0], [1.0]),
    "elu, alpha": (lambda x: paddle.nn.functional.elu(x, 0.5), [0.0], [0.5], [0.5]),
    "celu": (lambda x: paddle.nn.functional.celu(x, 0.5), [0.0], [1.0], [2.0]),
    "selu": (lambda x: paddle.nn.functional.selu(x, 1.5, 2.0), [0.0], [3.0], [3.0]),
    "leaky_relu": (paddle.nn.functional.leaky_relu, [0.0, -1.0], [1.0, 0.01], [0.0, 0.0]),
    "clip": (lambda x: paddle.clip(x, -1.0, 2.0), [-1.0, 0.0, 2.0, 3.0], [1.0, 1.0, 1.0, 0.0], [0.0] * 4),
    "mode": (lambda x: paddle.mode(x)[0], [1.0, 2.0, 2.0, 1.0], [0.0, 0.0, 0.0, 1.0], [0.0] * 4),
}
"""A function, points, first and second derivatives (of the sum, against itself) there."""


def gradient(f, x, static):
    run = paddle.jit.to_static(f, full_graph=True) if static else f
    x = paddle.to_tensor(np.asarray(x, "float64"), stop_gradient=False)
    return paddle.grad(run(x).sum(), x)[0].numpy()


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("f", NORMS.values(), ids=NORMS)
def test_a_norm_has_the_gradient_zero_at_the_origin(f, static):
    np.testing.assert_array_equal(gradient(f, O, static), O)


def test_a_norm_that_is_not_there_is_not_zero():
    assert np.isnan(gradient(paddle.norm, [np.nan, 1.0], False)).all()


def test_a_norm_of_rows_of_which_one_is_zero():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    f = lambda x: paddle.linalg.vector_norm(x, 2, 1)
    np.testing.assert_allclose(gradient(f, x, False), [[0.6, 0.8], [0.0, 0.0]])


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize(("f", "x", "wanted"), SINGULAR.values(), ids=SINGULAR)
def test_a_singular_derivative_behind_a_where_has_no_part(f, x, wanted, static):
    np.testing.assert_allclose(gradient(f, x, static), wanted)
    second = gradient(lambda x: paddle.incubate.autograd.vjp(f, x)[1], x, static)
    assert np.isfinite(second).all()


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize(("f", "x", "first", "second"), ONE_SIDED.values(), ids=ONE_SIDED)
def test_at_a_bound_or_tie_the_derivative_is_that_of_the_side_that_holds_there(f, x, first, second, static):
    np.testing.assert_allclose(gradient(f, x, static), first)
    np.testing.assert_allclose(gradient(lambda x: paddle.incubate.autograd.vjp(f, x)[1] + 0 * x, x, static), second)
