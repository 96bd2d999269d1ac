"""Differences, integrals, distances and written parts against NumPy and SciPy, eager and in a Program."""

import numpy as np
import pytest
import scipy.integrate
import scipy.spatial.distance as distance
import scipy.special

import dy2st as paddle

R = np.random.default_rng(0)
A, B, V = R.normal(size=(4, 3)), R.normal(size=(5, 3)), np.sort(R.normal(size=4))
I, J = R.integers(-20, 20, (2, 3)), R.integers(-20, 20, (3,))


def changed(x, at, value):
    x = x.copy()
    x[at] = value
    return x


def on_diagonal(x, offset, y):
    x = x.copy()
    for i, value in enumerate(y):
        x[i, i + offset] = value
    return x


CASES = {
    "diff": ((A,), paddle.diff, np.diff),
    "diff twice": ((A,), lambda x: paddle.diff(x, 2, 0), lambda x: np.diff(x, 2, 0)),
    "diff between": ((A, B[:1]), lambda x, y: paddle.diff(x, axis=0, prepend=y, append=y),
                     lambda x, y: np.diff(x, axis=0, prepend=y, append=y)),
    "diff of bools": ((A > 0,), paddle.diff, np.diff),
    "trapezoid": ((A,), lambda y: paddle.trapezoid(y, dx=0.5), lambda y: np.trapezoid(y, dx=0.5)),
    "trapezoid at places": ((A, V), lambda y, x: paddle.trapezoid(y, x, axis=0),
                            lambda y, x: np.trapezoid(y, x, axis=0)),
    "cumulative_trapezoid": ((A, V), lambda y, x: paddle.cumulative_trapezoid(y, x, axis=0),
                             lambda y, x: scipy.integrate.cumulative_trapezoid(y, x, axis=0)),
    "sinc": ((np.array([0.0, 0.5, -1.3]),), paddle.sinc, np.sinc),
    "multigammaln": ((A**2 + 2,), lambda x: paddle.multigammaln(x, 3),
                     lambda x: np.vectorize(lambda v: scipy.special.multigammaln(v, 3))(x)),
    "gcd": ((I, J), paddle.gcd, np.gcd),
    "lcm": ((I, J), paddle.lcm, np.lcm),
    "nextafter": ((A, A + 1), paddle.nextafter, np.nextafter),
    "isin": ((I, J), paddle.isin, np.isin),
    "isin inverted": ((I, J), lambda x, y: paddle.isin(x, y, invert=True), lambda x, y: np.isin(x, y, invert=True)),
    "vander": ((V,), paddle.vander, np.vander),
    "vander increasing": ((V,), lambda x: paddle.vander(x, 2, True), lambda x: np.vander(x, 2, True)),
    "cdist": ((A, B), paddle.cdist, distance.cdist),
    "cdist 1": ((A, B), lambda x, y: paddle.cdist(x, y, 1.0), lambda x, y: distance.cdist(x, y, "cityblock")),
    "cdist inf": ((A, B), lambda x, y: paddle.cdist(x, y, float("inf")),
                  lambda x, y: distance.cdist(x, y, "chebyshev")),
    "cdist 3 of batches": ((A[None], B), lambda x, y: paddle.cdist(x, y, 3.0),
                           lambda x, y: distance.cdist(x[0], y, "minkowski", p=3)[None]),
    "pdist": ((A,), paddle.pdist, distance.pdist),
    "reduce_as": ((A, A[:1]), paddle.reduce_as, lambda x, y: x.sum(0, keepdims=True)),
    "reduce_as vector": ((A, A[0]), paddle.reduce_as, lambda x, y: x.sum(0)),
    "renorm": ((A,), lambda x: paddle.renorm(x, 2.0, 0, 1.0),
               lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)),
    "shard_index": ((np.array([0, 7, 12, 19]),), lambda x: paddle.shard_index(x, 20, 2, 1), lambda x: [-1, -1, 2, 9]),
    "select_scatter": ((A, B[0]), lambda x, y: paddle.select_scatter(x, y, 0, -1), lambda x, y: changed(x, -1, y)),
    "slice_scatter": ((A, B[:2, :2]), lambda x, y: paddle.slice_scatter(x, y, [0, 1], [0, 1], [4, 3], [2, 1]),
                      lambda x, y: changed(x, (slice(0, 4, 2), slice(1, 3)), y)),
    "diagonal_scatter": ((A, B[0, :2]), lambda x, y: paddle.diagonal_scatter(x, y, 1),
                         lambda x, y: on_diagonal(x, 1, y)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_value_is_numpys(name):
    operands, ours, numpys = CASES[name]
    got = ours(*map(paddle.to_tensor, operands))
    np.testing.assert_allclose(got.numpy(), numpys(*operands), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("pdist", "reduce_as")])
def test_static_is_eager(name):
    operands, ours, numpys = CASES[name]
    got = paddle.jit.to_static(lambda *xs: ours(*xs), full_graph=True)(*map(paddle.to_tensor, operands))
    np.testing.assert_allclose(got.numpy(), numpys(*operands), rtol=1e-6, atol=1e-12)


def test_written_parts_have_gradients_and_leave_the_original():
    x, y = paddle.to_tensor(A, stop_gradient=False), paddle.to_tensor(B[0], stop_gradient=False)
    (paddle.select_scatter(x, y, 0, 1) * 2).sum().backward()
    assert x.grad.numpy()[1].tolist() == [0.0] * 3
    assert y.grad.tolist() == [2.0] * 3
    np.testing.assert_array_equal(x.numpy(), A)


def test_distances_of_equal_rows_have_a_gradient_of_zero():
    x = paddle.to_tensor(A[:1], stop_gradient=False)
    paddle.cdist(x, x.detach()).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: paddle.diff(x, -1), ValueError, "diff needs an axis and n >= 0"),
        (lambda x: paddle.trapezoid(x, x, 0.5), ValueError, "trapezoid: give one of x and dx"),
        (lambda x: paddle.multigammaln(x, 0), ValueError, "p must be positive, not 0"),
        (lambda x: paddle.gcd(x, x), TypeError, "gcd needs integers, not float64"),
        (lambda x: paddle.vander(x), ValueError, "vander needs a vector"),
        (lambda x: paddle.vander(x[0], -1), ValueError, "n must not be negative"),
        (lambda x: paddle.renorm(x, 0, 0, 1.0), ValueError, "p must be positive and max_norm not negative"),
        (lambda x: paddle.cdist(x, x, compute_mode="fast"), ValueError, "compute_mode is 'fast'"),
        (lambda x: paddle.cdist(x[0], x), ValueError, "cdist needs rows"),
        (lambda x: paddle.cdist(x, x, -1), ValueError, "cdist: p must not be negative"),
        (lambda x: paddle.pdist(x[0]), ValueError, "pdist needs a matrix"),
        (lambda x: paddle.reduce_as(x, x[:2]), ValueError, r"shape \[4, 3\] cannot be summed to \[2, 3\]"),
        (lambda x: paddle.reduce_as(x[0], x), ValueError, r"shape \[3\] cannot be summed to \[4, 3\]"),
        (lambda x: paddle.shard_index(x, 20, 2, 2), ValueError, "shard 2 is not one of 2"),
        (lambda x: paddle.select_scatter(x, x, 0, 0), ValueError, r"the part has shape \[3\], the values \[4, 3\]"),
        (lambda x: paddle.slice_scatter(x, x, [0], [0], [1], []), ValueError, "must be of one length"),
        (lambda x: paddle.diagonal_scatter(x, x), ValueError, r"the diagonal has shape \[3\], the values \[4, 3\]"),
        (lambda x: paddle.asarray([1], copy=False), ValueError, "copy=False, but what is given is no tensor"),
    ],
)
def test_what_does_not_fit_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call(paddle.to_tensor(A))


def test_other_names_take_other_arguments():
    x = paddle.to_tensor(A)
    assert paddle.as_tensor(x) is x
    assert paddle.asarray(x, copy=True) is not x
    assert paddle.as_tensor(x, "float32").dtype == "float32"
    np.testing.assert_allclose(paddle.softmax(x).numpy(), scipy.special.softmax(A, 1))
    np.testing.assert_allclose(paddle.softmax(x[0]).numpy(), scipy.special.softmax(A[0]))
    assert paddle.softmax(x, 0, "float32").dtype == "float32"
    assert paddle.softmax(paddle.to_tensor(3.0)).item() == 1.0
    assert paddle.broadcast_shapes([2, 1], [3], [1, 1]) == [2, 3]
