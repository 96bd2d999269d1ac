"""Reductions and scans against NumPy and SciPy: dtypes, empty axes, NaN, ties."""

import numpy as np
import pytest
import scipy.special

from dy2st.dtypes import float32, float64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from tests.ops.evaluate import run, tangent_block

X = np.random.default_rng(0).normal(size=(2, 3, 4))
AXES = [(), (0,), (2,), (0, 2), (0, 1, 2)]


def compute(name, *operands, **attributes):
    with np.errstate(all="ignore"):
        return lookup(name).eval(np, *map(np.asarray, operands), **attributes)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "all", "any"])
def test_values_and_shapes_are_those_of_numpy(name, axis, keepdim):
    got = compute(name, X, axis=axis, keepdim=keepdim)
    want = np.asarray(getattr(np, name)(X, axis=axis, keepdims=keepdim))
    assert isinstance(got, np.ndarray)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_logsumexp_is_that_of_scipy(axis, keepdim):
    got = compute("logsumexp", X, axis=axis, keepdim=keepdim)
    want = scipy.special.logsumexp(X, axis=axis, keepdims=keepdim) if axis else X
    np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize(
    ("x", "want"),
    [([1000.0, 1000.0], 1000 + np.log(2)), ([-np.inf, -np.inf], -np.inf), ([np.inf, 0.0], np.inf), ([], -np.inf),
     ([np.nan, 0.0], np.nan)],
)  # fmt: skip
def test_logsumexp_neither_overflows_nor_loses_infinities(x, want):
    np.testing.assert_equal(float(compute("logsumexp", np.array(x), axis=(0,), keepdim=False)), want)


def test_logsumexp_over_minus_infinities_has_a_slope_of_zero_there():
    assert tangent("logsumexp", [-np.inf, -np.inf], [1.0, 1.0]) == 0.0
    assert tangent("logsumexp", [-np.inf, 3.0], [1.0, 2.0]) == 2.0


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_integers_and_booleans_give_int64(name, dtype):
    got = compute(name, np.full(300, 1, dtype), axis=(0,), keepdim=False)
    assert got.dtype == np.int64
    assert got == (300 if name == "sum" else 1)


def test_float16_is_accumulated_in_float32():
    x = np.ones(4096, np.float16)
    assert compute("sum", x, axis=(0,), keepdim=False) == 4096
    assert compute("sum", x, axis=(0,), keepdim=False).dtype == np.float16
    assert compute("cumsum", x, axis=0, reverse=False)[-1] == 4096
    assert compute("mean", np.full(4096, 100, np.float16), axis=(0,), keepdim=False) == 100
    with np.errstate(over="ignore"):
        assert compute("sum", np.full(9, 30000, np.float16), axis=(0,), keepdim=False) == np.inf


def test_means_of_integers_are_float32():
    got = compute("mean", np.array([1, 2]), axis=(0,), keepdim=False)
    assert (got.dtype, float(got)) == (np.float32, 1.5)


def test_sums_over_nothing():
    empty = np.zeros((0, 3))
    assert list(compute("sum", empty, axis=(0,), keepdim=False)) == [0, 0, 0]
    assert list(compute("prod", empty, axis=(0,), keepdim=False)) == [1, 1, 1]
    assert np.isnan(compute("mean", empty, axis=(0, 1), keepdim=False))
    assert bool(compute("all", empty, axis=(0, 1), keepdim=False))
    assert not bool(compute("any", empty, axis=(0, 1), keepdim=False))


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_over_an_empty_axis_are_refused(name):
    with pytest.raises(ValueError, match=rf"{name}: axis 0 of a tensor of shape \[0, 3\] is empty"):
        compute(name, np.zeros((0, 3)), axis=(0,), keepdim=False)
    assert compute(name, np.zeros((0, 3)), axis=(1,), keepdim=False).shape == (0,)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_of_extrema(name):
    function = getattr(np, name)
    for axis in (None, 0, 1, 2):
        got = compute(name, X, axis=axis, keepdim=True)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, function(X, axis=axis, keepdims=True))
        np.testing.assert_array_equal(compute(name, X, axis=axis, keepdim=False), function(X, axis=axis))
    assert compute(name, np.array([1.0, np.nan, 1.0]), axis=0, keepdim=False) == 1
    assert compute(name, np.array([2, 2]), axis=None, keepdim=False) == 0
    with pytest.raises(ValueError, match=rf"{name}: axis 0 of a tensor of shape \[0\] is empty"):
        compute(name, np.zeros(0), axis=None, keepdim=False)


def tangent(name, x, dx):
    b = Builder()
    v = b.argument(TensorType(float64, (len(x),)))
    b.block.results = [b.apply(lookup(name), [v], {"axis": (0,), "keepdim": False})]
    return float(run(tangent_block(b.block), [np.array(x), np.array(dx)])[0])


@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_extrema_share_the_derivative_evenly(name):
    assert tangent(name, [2.0, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 6.0]) == 3.0


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_derivative_of_a_nan_goes_to_the_nan(name):
    assert tangent(name, [1.0, np.nan], [5.0, 7.0]) == 7.0


def test_the_derivative_of_a_product_is_exact_beside_zeros():
    assert tangent("prod", [0.0, 2.0, 3.0], [1.0, 0.0, 0.0]) == 6.0
    assert tangent("prod", [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]) == 0.0


def test_running_sums_and_products_go_both_ways():
    x = np.array([[2.0, 3.0, 5.0]])
    np.testing.assert_array_equal(compute("cumsum", x, axis=1, reverse=False), [[2, 5, 10]])
    np.testing.assert_array_equal(compute("cumsum", x, axis=1, reverse=True), [[10, 8, 5]])
    np.testing.assert_array_equal(compute("cumprod", x, axis=1, exclusive=False, reverse=False), [[2, 6, 30]])
    np.testing.assert_array_equal(compute("cumprod", x, axis=1, exclusive=False, reverse=True), [[30, 15, 5]])
    np.testing.assert_array_equal(compute("cumprod", x, axis=1, exclusive=True, reverse=False), [[1, 2, 6]])
    np.testing.assert_array_equal(compute("cumprod", x, axis=1, exclusive=True, reverse=True), [[15, 5, 1]])


def test_a_linear_scan_is_its_recurrence():
    a, c = np.array([2.0, 3.0, 5.0]), np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(compute("linear_scan", a, c, axis=0, reverse=False), [0, 1, 13])
    np.testing.assert_array_equal(compute("linear_scan", a, c, axis=0, reverse=True), [310, 100, 0])


def test_a_linear_scan_refuses_operands_of_two_types():
    x, y = TensorType(float32, (3,)), TensorType(float64, (3,))
    with pytest.raises(ValueError, match=r"linear_scan needs operands of one type, not float32\[3\] and float64\[3\]"):
        lookup("linear_scan").infer(x, y, axis=0, reverse=False)


@pytest.mark.parametrize(
    ("x", "largest", "at", "smallest", "low"),
    [
        ([1.0, 3.0, 2.0, 3.0, 0.0], [1, 3, 3, 3, 3], [0, 1, 1, 3, 3], [1, 1, 1, 1, 0], [0, 0, 0, 0, 4]),
        ([1.0, np.nan, 2.0], [1, np.nan, np.nan], [0, 1, 1], [1, np.nan, np.nan], [0, 1, 1]),
    ],
)
def test_running_extrema_and_their_indices(x, largest, at, smallest, low):
    x = np.array(x)
    for name, values, indices in (("cummax", largest, at), ("cummin", smallest, low)):
        got = compute(name, x, axis=0)
        np.testing.assert_array_equal(got[0], values)
        np.testing.assert_array_equal(got[1], indices)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 64, 65])
def test_running_extrema_are_those_of_numpy(count):
    x = np.random.default_rng(1).integers(0, 9, size=(3, count)).astype(float)
    np.testing.assert_array_equal(compute("cummax", x, axis=1)[0], np.maximum.accumulate(x, axis=1))
    np.testing.assert_array_equal(compute("cummin", x, axis=1)[0], np.minimum.accumulate(x, axis=1))
