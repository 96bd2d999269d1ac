"""Stacks, splits, combinations and einsum against NumPy, eager and in a Program."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import dy2st as paddle

R = np.random.default_rng(0)
A, B, V, W = R.normal(size=(2, 3)), R.normal(size=(2, 3)), R.normal(size=3), R.normal(size=3)
T = R.normal(size=(2, 3, 4))
CASES = {
    "atleast_1d": (np.float64(2.0), lambda x: paddle.atleast_1d(x), np.atleast_1d),
    "atleast_2d": (V, paddle.atleast_2d, np.atleast_2d),
    "atleast_3d of a vector": (V, paddle.atleast_3d, np.atleast_3d),
    "atleast_3d of a matrix": (A, paddle.atleast_3d, np.atleast_3d),
    "hstack": (A, lambda x: paddle.hstack([x, x]), lambda x: np.hstack([x, x])),
    "hstack of vectors": (V, lambda x: paddle.hstack([x, x]), lambda x: np.hstack([x, x])),
    "vstack": (V, lambda x: paddle.vstack([x, x]), lambda x: np.vstack([x, x])),
    "row_stack": (A, lambda x: paddle.row_stack([x, x]), lambda x: np.vstack([x, x])),
    "dstack": (A, lambda x: paddle.dstack([x, x]), lambda x: np.dstack([x, x])),
    "column_stack": (V, lambda x: paddle.column_stack([x, x]), lambda x: np.column_stack([x, x])),
    "hsplit": (A, lambda x: paddle.hsplit(x, 3), lambda x: np.hsplit(x, 3)),
    "hsplit of a vector": (V, lambda x: paddle.hsplit(x, [1]), lambda x: np.hsplit(x, [1])),
    "vsplit": (A, lambda x: paddle.vsplit(x, [1]), lambda x: np.vsplit(x, [1])),
    "dsplit": (T, lambda x: paddle.dsplit(x, 2), lambda x: np.dsplit(x, 2)),
    "block_diag": (A, lambda x: paddle.block_diag([x, x[0], x]), lambda x: scipy.linalg.block_diag(x, x[0], x)),
    "cartesian_prod": (V, lambda x: paddle.cartesian_prod([x, x]), lambda x: np.array(list(itertools.product(x, x)))),
    "combinations": (V, paddle.combinations, lambda x: np.array(list(itertools.combinations(x, 2)))),
    "combinations with replacement": (
        V,
        lambda x: paddle.combinations(x, 3, True),
        lambda x: np.array(list(itertools.combinations_with_replacement(x, 3))),
    ),
    "unfold": (
        T,
        lambda x: paddle.unfold(x, 2, 2, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 2)[:, :, ::2],
    ),
    "unfold of the first axis": (
        A,
        lambda x: paddle.unfold(x, 0, 2, 1),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_value_is_numpys(name):
    x, ours, numpys = CASES[name]
    got, want = ours(paddle.to_tensor(x)), numpys(x)
    for g, w in zip(got, want, strict=True) if isinstance(got, (list, tuple)) else [(got, want)]:
        np.testing.assert_array_equal(g.numpy(), w)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("combinations", "combinations with replacement")])
def test_static_is_eager(name):
    x, ours, numpys = CASES[name]
    got = paddle.jit.to_static(lambda x: ours(x))(paddle.to_tensor(x))
    want = numpys(x)
    for g, w in zip(got, want, strict=True) if isinstance(got, (list, tuple)) else [(got, want)]:
        np.testing.assert_array_equal(g.numpy(), w)


EQUATIONS = {
    "ij,jk->ik": (A, B.T),
    "ij,jk": (A, B.T),
    "ij->ji": (A,),
    "ij->": (A,),
    "ij->j": (A,),
    "ii->i": (A @ B.T,),
    "ii": (A @ B.T,),
    "i,j->ij": (V, W),
    "i,i->": (V, W),
    "bij,bjk->bik": (T, T.swapaxes(1, 2)),
    "bij,j->b": (T, T[0, 0]),
    "...ij,...kj->...ik": (T, T[0]),
    "...j,jk->...k": (T, T[0].T),
    "ij,ij,j->i": (A, B, V),
    "ab,bc,cd->ad": (A, B.T, A),
    "i...->...": (T,),
    "ij,kj->ikj": (A, B),
    "ij,jk->k": (A[:, :1] * np.ones(3), B.T),
    "ij,ij->ij": (A, B[:1]),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_is_numpys(equation):
    operands = EQUATIONS[equation]
    want = np.einsum(equation, *operands)
    got = paddle.einsum(equation, *map(paddle.to_tensor, operands))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)
    static = paddle.jit.to_static(lambda *xs: paddle.einsum(equation, *xs))(*map(paddle.to_tensor, operands))
    np.testing.assert_allclose(static.numpy(), want, rtol=1e-10, atol=1e-12)


def test_nothing_can_be_combined():
    assert paddle.combinations(paddle.to_tensor([1, 2]), 0).shape == [1, 0]
    assert paddle.combinations(paddle.to_tensor([1, 2]), 3).shape == [0, 3]
    assert paddle.einsum("ij,jk->ik", paddle.zeros([0, 2]), paddle.ones([2, 3])).shape == [0, 3]


def test_einsum_has_gradients():
    a, b = (paddle.to_tensor(x, stop_gradient=False) for x in (A, B))
    paddle.einsum("ij,kj->ik", a, b).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), np.ones((2, 1)) * B.sum(0), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: paddle.einsum("ij,jk->ik", x), r"has 2 operands, 1 were given"),
        (lambda x: paddle.einsum("ijk->i", x), r"'ijk' does not name the axes of a tensor of shape \[2, 3\]"),
        (lambda x: paddle.einsum("...ijk->i", x), "names more axes than an operand has"),
        (lambda x: paddle.einsum("ij->ii", x), "the result 'ii' repeats a label"),
        (lambda x: paddle.einsum("ij->k", x), "has one that no operand has"),
        (lambda x: paddle.einsum("ij,ik->jk", x, x[:, :1].expand([2, 3]).t()), "stands for 2 and for 3 elements"),
        (lambda x: paddle.vsplit(x[0], 1), r"vsplit needs a tensor of 2 axes or more, not of shape \[3\]"),
        (lambda x: paddle.block_diag([x.reshape([1, 2, 3])]), "block_diag needs matrices, vectors or numbers"),
        (lambda x: paddle.cartesian_prod([x]), "cartesian_prod needs vectors"),
        (lambda x: paddle.combinations(x), "combinations needs a vector"),
        (lambda x: paddle.combinations(x[0], -1), "r must not be negative"),
        (lambda x: paddle.unfold(x, 0, 3, 1), "windows of 3 elements, 1 apart, do not fit an axis of 2"),
    ],
)
def test_what_does_not_fit_is_said(call, text):
    with pytest.raises(ValueError, match=text):
        call(paddle.to_tensor(A))
