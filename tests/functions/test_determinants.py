"""Determinants of singular matrices have derivatives: those of the polynomial that a determinant is."""

import itertools

import numpy as np
import pytest

import dy2st as paddle

OF_RANK = {
    "2 of 3": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    "1 of 3": np.outer([1.0, -2.0, 0.5], [3.0, 1.0, 2.0]),
    "0 of 3": np.zeros((3, 3)),
    "1 of 2": np.array([[1.0, 2.0], [2.0, 4.0]]),
    "almost 3": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0 + 1e-13]]),
    "3": np.array([[2.0, 1.0, 0.0], [0.5, -3.0, 1.0], [1.0, 1.0, 4.0]]),
    "a batch": np.array([[[1.0, 2.0], [2.0, 4.0]], [[3.0, 1.0], [1.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]]),
    "0 of 1": np.zeros((1, 1)),
}


def polynomial(a):
    """The determinant by its definition, a sum over permutations."""
    size, total = a.shape[-1], 0.0
    for order in itertools.permutations(range(size)):
        even = sum(p > q for p, q in itertools.combinations(order, 2)) % 2 == 0
        term = 1.0 if even else -1.0
        for row, column in enumerate(order):
            term = term * a[..., row, column]
        total = total + term
    return total


def derivatives(det, a, static):
    """The gradient, and that of a weighed sum of its elements."""
    weights = paddle.to_tensor(np.random.default_rng(0).normal(size=a.shape))
    x = paddle.to_tensor(a, stop_gradient=False)
    f = (
        paddle.jit.to_static(lambda x: (det(x) * 1.5).sum(), full_graph=True)
        if static
        else lambda x: (det(x) * 1.5).sum()
    )
    for _ in range(3 if static else 1):
        (first,) = paddle.grad(f(x), x, create_graph=True)
        (second,) = paddle.grad((first * weights).sum(), x, allow_unused=True)
    return first.numpy(), np.zeros_like(a) if second is None else second.numpy()


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("rank", OF_RANK)
def test_derivatives_are_those_of_the_polynomial(rank, static):
    for found, wanted in zip(
        derivatives(paddle.linalg.det, OF_RANK[rank], static),
        derivatives(polynomial, OF_RANK[rank], False),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_third_derivatives_where_there_is_an_inverse():
    a, v = OF_RANK["3"], np.random.default_rng(1).normal(size=(3, 3))
    along = [paddle.incubate.autograd.jet(f, paddle.to_tensor(a), paddle.to_tensor(v), order=3)[1]
             for f in (paddle.linalg.det, polynomial)]  # fmt: skip
    for found, wanted in zip(*along, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9)
