"""What the tape keeps alive: the elements that a pull-back needs, and no others."""

import weakref

import numpy as np
import pytest

import dy2st as paddle

LARGE = 4096


def made(function, array):
    """Apply a function to a tensor of the array; give the result and a reference that dies with the array."""
    x = paddle.to_tensor(array, stop_gradient=False) + 1.0
    kept = weakref.ref(x.payload if x.payload.base is None else x.payload.base)
    return function(x), kept


@pytest.mark.parametrize(
    "function", [lambda x: x + 1.0, lambda x: x.sum(), lambda x: -x, lambda x: x.reshape([2, -1]).sum()]
)
def test_a_linear_op_lets_go_of_large_operands(function):
    y, kept = made(function, np.ones(LARGE))
    assert not y.stop_gradient
    assert kept() is None


def test_a_small_view_does_not_keep_its_large_base():
    y, kept = made(lambda x: x[:2] + x[2:4], np.ones(LARGE))
    assert not y.stop_gradient
    assert kept() is None


def test_an_op_that_is_not_linear_keeps_what_its_derivative_needs():
    y, kept = made(lambda x: (x * x).sum(), np.full(LARGE, 2.0))
    assert kept() is not None
    y.backward()
    assert kept() is None


def test_the_gradient_after_letting_go_is_right():
    x = paddle.to_tensor(np.ones(LARGE), stop_gradient=False)
    (-(x + x)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(LARGE, -2.0))
