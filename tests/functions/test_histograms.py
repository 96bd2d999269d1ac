"""Counts in cells, most frequent elements, quantiles without NaN, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.stats

import dy2st as paddle

R = np.random.default_rng(0)
X = R.normal(size=(4, 5))
N = np.where(R.uniform(size=(4, 5)) < 0.3, np.nan, X)
N[2] = np.nan
K = R.integers(0, 3, (4, 7))


@pytest.mark.parametrize(
    "how", [{"bins": 5}, {"bins": 4, "min": -1, "max": 1}, {"bins": 3, "density": True}, {"bins": 1}]
)
def test_histogram_is_numpys(how):
    reach = (how["min"], how["max"]) if "min" in how else None
    want, edges = np.histogram(X, how["bins"], reach, density=how.get("density"))
    for run in (paddle.histogram, paddle.jit.to_static(lambda x: paddle.histogram(x, **how), full_graph=True)):
        got = run(paddle.to_tensor(X), **how) if run is paddle.histogram else run(paddle.to_tensor(X))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
        assert got.dtype == ("float64" if how.get("density") else "int64")
    bounds = {key: value for key, value in how.items() if key != "density"}
    np.testing.assert_allclose(paddle.histogram_bin_edges(paddle.to_tensor(X), **bounds).numpy(), edges, rtol=1e-12)


def test_histogram_of_weights_of_one_value_and_of_nothing():
    w = R.uniform(size=X.shape)
    got = paddle.histogram(paddle.to_tensor(X), 4, weight=paddle.to_tensor(w))
    np.testing.assert_allclose(got.numpy(), np.histogram(X, 4, weights=w)[0], rtol=1e-12)
    assert paddle.histogram(paddle.to_tensor([2.0, 2.0]), 3).tolist() == [0, 2, 0]
    assert paddle.histogram(paddle.zeros([0]), 2).tolist() == [0, 0]
    assert paddle.histogram(paddle.to_tensor([1, 2, 9]), 2, 0, 4).tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_leave_nan_out(axis, method):
    want = np.nanquantile(N, [0.25, 0.6], axis, method=method, keepdims=True)
    got = paddle.nanquantile(paddle.to_tensor(N), [0.25, 0.6], axis, True, method)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")
def test_medians_leave_nan_out():
    x = paddle.to_tensor(N, stop_gradient=False)
    np.testing.assert_allclose(paddle.nanmedian(x, 1).numpy(), np.nanmedian(N, 1), rtol=1e-12)
    np.testing.assert_allclose(x.nanmedian().numpy(), np.nanmedian(N), rtol=1e-12)
    assert paddle.nanmedian(paddle.to_tensor([4.0, float("nan"), 1.0]), mode="min").item() == 1.0
    paddle.nanmedian(x).backward()
    np.testing.assert_allclose(x.grad.numpy().sum(), 1.0)
    static = paddle.jit.to_static(lambda x: paddle.nanmedian(x, 1), full_graph=True)
    np.testing.assert_allclose(static(paddle.to_tensor(N)).numpy(), np.nanmedian(N, 1), rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_mode_is_scipys(axis):
    value, place = paddle.mode(paddle.to_tensor(K), axis)
    np.testing.assert_array_equal(value.numpy(), scipy.stats.mode(K, axis).mode)
    lines = np.moveaxis(K, axis, -1)
    last = [np.flatnonzero(line == best)[-1] for line, best in zip(lines, value.numpy(), strict=True)]
    np.testing.assert_array_equal(place.numpy(), last)
    kept = paddle.to_tensor(K).mode(axis, keepdim=True)[0]
    assert kept.shape == [1 if i == axis else e for i, e in enumerate(K.shape)]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: paddle.histogram(x, 0), "histogram: bins must be positive, not 0"),
        (lambda x: paddle.histogram(x, 2, 3, 1), "min 3 is above max 1"),
        (lambda x: paddle.nanquantile(x, 2.0), r"q must be from 0 to 1, not 2\.0"),
        (lambda x: paddle.nanquantile(x, 0.5, interpolation="cubic"), "interpolation is 'cubic', not one of linear"),
        (lambda x: paddle.nanmedian(x, mode="max"), "nanmedian: mode is 'max', not 'avg' or 'min'"),
    ],
)
def test_what_cannot_be_done_is_said(call, text):
    with pytest.raises(ValueError, match=text):
        call(paddle.to_tensor(X))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("how", [{}, {"axis": 0}, {"axis": -1, "keepdim": True}])
def test_the_median_of_what_may_be_empty_is_that_of_eager_mode(how, dtype):
    static = paddle.jit.to_static(lambda x: paddle.median(x, **how), full_graph=True)
    for shape in ((3, 4), (0, 4), (4, 0), (1, 5), (0, 0)):
        x = paddle.to_tensor(np.resize(X, shape).astype(dtype))
        got, want = static(x), paddle.median(x, **how)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_quantiles_where_another_axis_is_empty():
    x = paddle.zeros([0, 3, 4])
    assert paddle.nanmedian(x, axis=-1).shape == [0, 3]
    assert paddle.nanquantile(x, 0.5, axis=[1, 2]).shape == [0]
    assert paddle.quantile(x, 0.5, axis=[1, 2]).shape == [0]


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("function", [paddle.quantile, paddle.nanquantile])
def test_quantiles_of_nothing_are_nan_in_programs_too(function, method):
    def ask(x):
        return function(x, [0.0, 0.3, 1.0], axis=0, interpolation=method), function(x, 0.5, interpolation=method)

    static = paddle.jit.to_static(ask, full_graph=True)
    for rows in (3, 0, 4):
        x = paddle.to_tensor(np.random.default_rng(rows).normal(size=(rows, 2)))
        for got, want in zip(static(x), ask(x), strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())
            assert bool(got.isnan().all()) is (rows == 0)
    assert len(static.program_cache) == 1
