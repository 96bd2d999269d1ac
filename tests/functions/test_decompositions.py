"""Factors multiply to their matrix, exponentials have derivatives of every order, and what is refused."""

import numpy as np
import pytest

import dy2st as paddle

linalg = paddle.linalg


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4), (2, 3, 3), (0, 3)])
def test_lu_factors_multiply_to_the_matrix(shape, rng):
    a = rng.normal(size=shape)
    p, lower, upper = linalg.lu_unpack(*linalg.lu(paddle.to_tensor(a)))
    np.testing.assert_allclose((p @ lower @ upper).numpy(), a, atol=1e-12)
    assert np.abs(lower.numpy()).max(initial=0) <= 1


def test_parts_that_are_not_asked_for_are_none(rng):
    found = linalg.lu(paddle.to_tensor(rng.normal(size=(3, 3))))
    assert linalg.lu_unpack(*found, unpack_ludata=False)[1:] == (None, None)
    assert linalg.lu_unpack(*found, unpack_pivots=False)[0] is None


def test_infos_name_the_first_pivot_that_is_0():
    a = paddle.to_tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]])
    assert linalg.lu(a, get_infos=True)[2].tolist() == [2, 0]


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
def test_the_exponential_has_derivatives_of_every_order(static, rng):
    a, direction = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))

    def slope(x):
        (g,) = paddle.grad((linalg.matrix_exp(x) * paddle.to_tensor(direction)).sum(), x, create_graph=True)
        return g

    def curve(x):
        return paddle.grad((slope(x) * paddle.to_tensor(direction)).sum(), x)[0]

    value = lambda x: (linalg.matrix_exp(paddle.to_tensor(x)) * paddle.to_tensor(direction)).sum().item()
    step = 1e-4
    first = (value(a + step * direction) - value(a - step * direction)) / (2 * step)
    second = (value(a + step * direction) - 2 * value(a) + value(a - step * direction)) / step**2
    made = [paddle.jit.to_static(f, full_graph=True) if static else f for f in (slope, curve)]
    at = paddle.to_tensor(a, stop_gradient=False)
    assert (made[0](at).numpy() * direction).sum() == pytest.approx(first, rel=1e-6)
    assert (made[1](at).numpy() * direction).sum() == pytest.approx(second, rel=1e-4)


def test_low_rank_factors_multiply_to_a_matrix_of_that_rank(rng):
    a = rng.normal(size=(2, 6, 3)) @ rng.normal(size=(2, 3, 5))
    u, s, v = linalg.svd_lowrank(paddle.to_tensor(a), q=3)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mT).numpy(), a, atol=1e-9)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: linalg.lu(paddle.ones([2])), ValueError, r"lu needs matrices, not a tensor of shape \[2\]"),
    (lambda: linalg.lu(paddle.eye(2), pivot=False), ValueError, "lu: pivot=False is not supported"),
    (lambda: linalg.lu_solve(paddle.eye(2), paddle.eye(2), paddle.ones([2]), "X"), ValueError, "trans is 'X', not 'N'"),
    (lambda: linalg.matrix_exp(paddle.ones([2, 3])), ValueError, r"matrix_exp needs square matrices, not \[2, 3\]"),
    (lambda: linalg.svd_lowrank(paddle.ones([2, 3]), 4), ValueError, "svd_lowrank: q must be from 0 to 2, not 4"),
])  # fmt: skip
def test_wrong_use_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
