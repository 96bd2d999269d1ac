"""Pooling against plain loops: padding, ceil mode, places of the maxima, adaptive cells; what is refused."""

import itertools
import math

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol

N, H = symbol("N"), symbol("H")
CASES = [
    ((2, 3, 7), (3,), (2,), ((1, 1),)),
    ((1, 2, 6, 5), (2, 3), (2, 2), ((0, 1), (1, 0))),
    ((1, 1, 6, 6), (3, 3), (3, 2), ((1, 1), (2, 2))),
    ((1, 2, 4, 3, 4), (2, 2, 2), (2, 1, 2), ((0, 0), (1, 1), (0, 0))),
    ((2, 1, 8), (1,), (3,), ((0, 0),)),
]


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


def bounds(n, k, s, low, high, ceil):
    """The first and last place (exclusive, in the padded axis) of each window."""
    exact = (n + low + high - k) / s
    count = (math.ceil(exact) if ceil else math.floor(exact)) + 1
    starts = [i * s - low for i in range(count)]
    if ceil and starts[-1] >= n:
        starts.pop()
    return [(a, min(a + k, n + high)) for a in starts]


def by_loops(x, kernel, stride, padding, ceil):
    """Yield the place in the result, the elements of the window, their numbers, and its size with the padding."""
    spatial = x.shape[2:]
    axes = [bounds(n, k, s, *p, ceil) for n, k, s, p in zip(spatial, kernel, stride, padding, strict=True)]
    numbers = np.arange(math.prod(spatial)).reshape(spatial)
    for place in itertools.product(*(range(len(a)) for a in axes)):
        spans = [axis[i] for axis, i in zip(axes, place, strict=True)]
        cut = tuple(slice(max(a, 0), min(z, n)) for (a, z), n in zip(spans, spatial, strict=True))
        yield place, x[(..., *cut)].reshape(*x.shape[:2], -1), numbers[cut].ravel(), math.prod(z - a for a, z in spans)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_max_pool(rng, case, ceil):
    shape, *how = case
    x = rng.normal(size=shape)
    attributes = dict(zip(("kernel", "stride", "padding"), how, strict=True), ceil_mode=ceil)
    values, places = compute("max_pool", x, **attributes)
    seen = 0
    for place, found, numbers, _ in by_loops(x, *how, ceil):
        np.testing.assert_array_equal(values[(..., *place)], found.max(-1))
        np.testing.assert_array_equal(places[(..., *place)], numbers[found.argmax(-1)])
        seen += 1
    assert seen * shape[0] * shape[1] == values.size
    assert places.dtype == np.int64
    types = lookup("max_pool").infer(TensorType(float64, shape), **attributes)
    assert [t.shape for t in types] == [values.shape, places.shape]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_avg_pool_and_its_transpose(rng, case, ceil, exclusive):
    shape, *how = case
    x = rng.normal(size=shape)
    attributes = dict(zip(("kernel", "stride", "padding"), how, strict=True), ceil_mode=ceil, exclusive=exclusive)
    got = compute("avg_pool", x, **attributes)
    for place, found, numbers, size in by_loops(x, *how, ceil):
        want = found.sum(-1) / (numbers.size if exclusive else size)
        np.testing.assert_allclose(got[(..., *place)], want, atol=1e-14)
    c = rng.normal(size=got.shape)
    back = compute("avg_pool_grad", c, shape=shape, **attributes)
    np.testing.assert_allclose(np.vdot(back, x), np.vdot(c, got))


def test_special_values_in_max_pool():
    attributes = {"kernel": (2,), "stride": (2,), "padding": ((0, 0),), "ceil_mode": False}
    x = np.array([[[1.0, np.nan, np.nan, np.nan, -np.inf, -np.inf, 3.0, 3.0]]])
    values, places = compute("max_pool", x, **attributes)
    np.testing.assert_array_equal(values[0, 0], [np.nan, np.nan, -np.inf, 3])
    assert places[0, 0].tolist() == [1, 2, 4, 6]
    padded = {**attributes, "padding": ((1, 0),)}
    assert compute("max_pool", np.full((1, 1, 3), -np.inf), **padded)[1].tolist() == [[[0, 1]]]
    values, _ = compute("max_pool", np.array([[[-5, -7, -6]]]), **padded)
    assert values.tolist() == [[[-5, -6]]]


@pytest.mark.parametrize("output", [(3,), (5,), (1,), (7,), (9,)])
def test_adaptive_cells(rng, output):
    x = rng.normal(size=(2, 3, 7))
    mean = compute("adaptive_avg_pool", x, output=output)
    largest, places = compute("adaptive_max_pool", x, output=output)
    for i in range(output[0]):
        cell = x[:, :, math.floor(i * 7 / output[0]) : math.ceil((i + 1) * 7 / output[0])]
        np.testing.assert_allclose(mean[..., i], cell.mean(-1))
        np.testing.assert_array_equal(largest[..., i], cell.max(-1))
    np.testing.assert_array_equal(np.take_along_axis(x, places, 2), largest)


def test_adaptive_pooling_of_planes(rng):
    x = rng.normal(size=(1, 2, 4, 6))
    np.testing.assert_allclose(compute("adaptive_avg_pool", x, output=(1, 1))[..., 0, 0], x.mean((2, 3)))
    halves = x.reshape(1, 2, 2, 2, 3, 2)
    np.testing.assert_allclose(compute("adaptive_avg_pool", x, output=(2, 3)), halves.mean((3, 5)))
    largest, places = compute("adaptive_max_pool", x, output=(2, 3))
    np.testing.assert_array_equal(largest, halves.max((3, 5)))
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(1, 2, -1), places.reshape(1, 2, -1), 2).ravel(),
                                  largest.ravel())  # fmt: skip


def test_symbolic_extents():
    attributes = {"kernel": (2, 3), "stride": (2, 1), "padding": ((0, 0), (1, 1)), "ceil_mode": False}
    values, _ = lookup("max_pool").infer(TensorType(float64, (N, 3, H * 2, H)), **attributes)
    assert values.shape == (N, 3, H, H)
    loose, _ = lookup("max_pool").infer(TensorType(float64, (N, 3, H, 4)), **{**attributes, "ceil_mode": True})
    assert loose.shape == (N, 3, None, 4)
    pooled = lookup("adaptive_avg_pool").infer(TensorType(float64, (N, 3, H, H)), output=(2, 2))
    assert pooled.shape == (N, 3, 2, 2)


@pytest.mark.parametrize(
    ("shape", "change", "text"),
    [
        ((1, 1, 2), {}, r"max_pool: a window of 3 \(dilation 1\) does not fit 0 \+ 2 \+ 0"),
        ((1, 1, 5), {"padding": ((3, 0),)}, r"padding \(3, 0\) must be smaller than the window's extent 3"),
        ((1, 1, 5), {"stride": (0,)}, r"needs stride of at least 1, not \[0\]"),
        ((1, 1, 5, 5), {}, "max_pool over 2 axes needs 2 items of kernel, not 1"),
        ((1, 5), {}, r"needs \[batch, channels, \*spatial\], not a tensor of rank 2"),
        ((1, 1, 0), {"ceil_mode": True}, r"a window of 3 does not fit 0 \+ 0 \+ 0"),
    ],
)
def test_windows_that_do_not_fit_are_refused(shape, change, text):
    attributes = {"kernel": (3,), "stride": (2,), "padding": ((0, 0),), "ceil_mode": False, **change}
    with pytest.raises(ValueError, match=text):
        lookup("max_pool").infer(TensorType(float64, shape), **attributes)


def test_cotangents_and_outputs_that_do_not_fit_are_refused():
    attributes = {"kernel": (2,), "stride": (2,), "padding": ((0, 0),), "ceil_mode": False, "exclusive": True}
    with pytest.raises(ValueError, match=r"pooling \[1, 1, 6\] gives \[1, 1, 3\], which is not \[1, 1, 4\]"):
        compute("avg_pool_grad", np.zeros((1, 1, 4)), shape=(1, 1, 6), **attributes)
    with pytest.raises(ValueError, match=r"pooling \[1, 1, 6\] gives \[1, 1, 2\], which is not \[1, 1, 4\]"):
        compute("adaptive_avg_pool_grad", np.zeros((1, 1, 4)), shape=(1, 1, 6), output=(2,))
    with pytest.raises(ValueError, match=r"adaptive_max_pool to \[2\] needs a tensor of rank 3, not 4"):
        lookup("adaptive_max_pool").infer(TensorType(float64, (1, 1, 2, 2)), output=(2,))
    with pytest.raises(ValueError, match=r"adaptive_avg_pool cannot pool extents \[0\] to \[2\]"):
        compute("adaptive_avg_pool", np.zeros((1, 1, 0)), output=(2,))
