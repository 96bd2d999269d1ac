"""Convolution and its transposes against plain loops and SciPy; inferred extents; shapes that do not fit."""

import itertools

import numpy as np
import pytest
from scipy import signal

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float32, float64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from dy2st.shapes import parse_extent, symbol

N, H = symbol("N"), symbol("H")
PLAIN = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


def f64(*shape):
    return TensorType(float64, shape)


def by_loops(x, w, stride, padding, dilation, groups):
    """The definition, one element at a time."""
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    kernel, filters = w.shape[2:], w.shape[0]
    axes = zip(x.shape[2:], kernel, stride, dilation, strict=True)
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in axes]
    out = np.zeros((x.shape[0], filters, *counts))
    for b, o, *at in np.ndindex(out.shape):
        group = o // (filters // groups)
        for c, *k in np.ndindex(w.shape[1:]):
            place = [a * s + i * d for a, s, i, d in zip(at, stride, k, dilation, strict=True)]
            out[(b, o, *at)] += x[(b, group * w.shape[1] + c, *place)] * w[(o, c, *k)]
    return out


CASES = [
    ((2, 3, 7), (4, 3, 3), (2,), ((1, 0),), (1,), 1),
    ((1, 4, 6), (4, 1, 2), (1,), ((0, 0),), (3,), 4),
    ((2, 4, 5, 6), (6, 2, 3, 2), (2, 1), ((1, 1), (0, 2)), (1, 2), 2),
    ((1, 2, 5, 5), (3, 2, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 2, 1), ((0, 0), (0, 1), (1, 0)), (1, 1, 2), 1),
]


@pytest.mark.parametrize("case", CASES)
def test_conv_is_its_definition(rng, case):
    x, w, *how = case
    x, w = rng.normal(size=x), rng.normal(size=w)
    want = by_loops(x, w, *how)
    attributes = dict(zip(("stride", "padding", "dilation", "groups"), how, strict=True))
    np.testing.assert_allclose(compute("conv", x, w, **attributes), want, rtol=1e-12, atol=1e-12)
    assert lookup("conv").infer(f64(*x.shape), f64(*w.shape), **attributes).shape == want.shape


@pytest.mark.parametrize("case", CASES)
def test_the_grads_are_the_adjoints_of_the_definition(rng, case):
    x, w, *how = case
    x, w = rng.normal(size=x), rng.normal(size=w)
    attributes = dict(zip(("stride", "padding", "dilation", "groups"), how, strict=True))
    c = rng.normal(size=by_loops(x, w, *how).shape)
    dx = compute("conv_input_grad", c, w, shape=x.shape, **attributes)
    dw = compute("conv_weight_grad", x, c, shape=w.shape, **attributes)
    want = np.vdot(c, by_loops(x, w, *how))
    for grad, factor in ((dx, x), (dw, w)):
        assert grad.shape == factor.shape
        np.testing.assert_allclose(np.vdot(grad, factor), want, rtol=1e-10)
    probe = rng.normal(size=x.shape)
    np.testing.assert_allclose(np.vdot(dx, probe), np.vdot(c, by_loops(probe, w, *how)), rtol=1e-10)


def test_conv_agrees_with_scipy(rng):
    x, w = rng.normal(size=(1, 1, 8, 9)), rng.normal(size=(1, 1, 3, 4))
    got = compute("conv", x, w, **PLAIN)[0, 0]
    np.testing.assert_allclose(got, signal.correlate2d(x[0, 0], w[0, 0], "valid"))
    full = compute("conv_input_grad", x, w, shape=(1, 1, 10, 12), **PLAIN)[0, 0]
    np.testing.assert_allclose(full, signal.convolve2d(x[0, 0], w[0, 0], "full"))


def test_an_empty_batch_and_float32(rng):
    w = rng.normal(size=(4, 3, 2, 2)).astype(np.float32)
    assert compute("conv", np.zeros((0, 3, 5, 5), np.float32), w, **PLAIN).shape == (0, 4, 4, 4)
    assert compute("conv", np.zeros((1, 3, 5, 5), np.float32), w, **PLAIN).dtype == np.float32
    grad = compute("conv_weight_grad", np.zeros((0, 3, 5, 5)), np.zeros((0, 4, 4, 4)), shape=(4, 3, 2, 2), **PLAIN)
    np.testing.assert_array_equal(grad, np.zeros((4, 3, 2, 2)))


def test_symbolic_extents():
    infer = lookup("conv").infer
    assert infer(f64(N, 3, H, 8), f64(4, 3, 3, 3), **PLAIN).shape == (N, 4, H - 2, 6)
    same = {**PLAIN, "padding": ((1, 1), (1, 1))}
    assert infer(f64(N, 3, H, H), f64(4, 3, 3, 3), **same).shape == (N, 4, H, H)
    half, point = {**same, "stride": (2, 2)}, {**PLAIN, "stride": (2, 2)}
    narrow, direct = infer(f64(N, 3, H, H), f64(4, 3, 3, 3), **half), infer(f64(N, 3, H, H), f64(4, 3, 1, 1), **point)
    assert narrow.shape == direct.shape == (N, 4, (H + 1) // 2, (H + 1) // 2)
    valid = infer(f64(N, 3, H, H), f64(4, 3, 4, 4), **point).shape
    assert str(valid[2]) == "floordiv(H - 2, 2)"
    assert parse_extent(str(valid[2])) == valid[2]


@pytest.mark.parametrize(
    ("x", "w", "change", "text"),
    [
        ((2, 3, 5, 5), (4, 2, 3, 3), {}, r"\[2, 3, 5, 5\] has 3 channels, but filters \[4, 2, 3, 3\] in 1 groups"),
        ((2, 4, 5, 5), (3, 2, 3, 3), {"groups": 2}, r"3 filters cannot be split into 2 groups"),
        ((2, 3, 5), (4, 3, 3, 3), {}, r"of one rank, 3 to 5, not \[2, 3, 5\] and \[4, 3, 3, 3\]"),
        ((2, 3, 2, 5), (4, 3, 3, 3), {}, r"a window of 3 \(dilation 1\) does not fit 0 \+ 2 \+ 0"),
        ((2, 3, 5, 5), (4, 3, 3, 3), {"stride": (1,)}, "over 2 axes needs 2 items of stride, not 1"),
        ((2, 3, 5, 5), (4, 3, 3, 3), {"stride": (1, 0)}, r"needs stride of at least 1, not \[1, 0\]"),
        ((2, 3, 5, 5), (4, 3, 3, 3), {"padding": ((0, -1), (0, 0))}, "needs padding of at least 0"),
        ((2, 3, 5, 5), (4, 3, 3, 3), {"groups": 0}, "conv needs groups of at least 1, not 0"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(x, w, change, text):
    with pytest.raises(ValueError, match=text):
        lookup("conv").infer(f64(*x), f64(*w), **{**PLAIN, **change})
    with pytest.raises(ValueError, match=text):
        compute("conv", np.zeros(x), np.zeros(w), **{**PLAIN, **change})


def test_dtypes_and_cotangents_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="an input and filters of one dtype, not float64 and float32"):
        lookup("conv").infer(f64(2, 3, 5, 5), TensorType(float32, (4, 3, 3, 3)), **PLAIN)
    x, w, c = np.zeros((2, 3, 5, 5)), np.zeros((4, 3, 3, 3)), np.zeros((2, 4, 4, 3))
    for name, operands, shape in (("conv_input_grad", (c, w), x.shape), ("conv_weight_grad", (x, c), w.shape)):
        with pytest.raises(ValueError, match=r"give \[2, 4, 3, 3\], which is not \[2, 4, 4, 3\]"):
            compute(name, *operands, shape=shape, **PLAIN)


def test_every_pair_of_stride_and_dilation(rng):
    x, w = rng.normal(size=(1, 2, 9)), rng.normal(size=(2, 2, 3))
    for stride, dilation in itertools.product((1, 2, 3), (1, 2, 3)):
        how = ((stride,), ((2, 1),), (dilation,), 1)
        attributes = dict(zip(("stride", "padding", "dilation", "groups"), how, strict=True))
        np.testing.assert_allclose(compute("conv", x, w, **attributes), by_loops(x, w, *how))
