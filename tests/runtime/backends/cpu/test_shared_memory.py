"""Results that a loop nest puts into the memory of an operand: whose memory that is, and who else reads it."""

import numpy as np
import pytest

import dy2st as paddle


def of_one_twice(y):
    doubled = y * 2
    return paddle.exp(y).sum() + paddle.exp(doubled).sum(), paddle.tanh(y) + paddle.tanh(doubled)


def in_the_other_order(y):
    doubled = y * 2
    return paddle.exp(doubled).sum(), paddle.tanh(doubled) + paddle.tanh(y), paddle.tanh(doubled)


def of_a_copy_of_a_view(y):
    part = y[1:] * 2  # a loop over all elements reads a copy of the view, which is gone after it
    return (part.sum() * 2) * part, part


@pytest.mark.parametrize("shape", [(8, 1), (5,), (3, 40)])
@pytest.mark.parametrize("function", [of_one_twice, in_the_other_order, of_a_copy_of_a_view])
def test_operands_are_read_before_results_take_their_place(function, shape, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    y = paddle.to_tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype="float32").reshape(shape), stop_gradient=False)
    static = paddle.jit.to_static(function, full_graph=True)
    for _ in range(2):
        for got, want in zip(static(y), function(y), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
