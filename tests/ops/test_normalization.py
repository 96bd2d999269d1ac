"""softmax, layer and batch norm, cross entropy: formulas in NumPy and SciPy, large numbers, refused shapes."""

import numpy as np
import pytest
from scipy import special

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float32, float64, int64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol
from tests.ops.evaluate import run, tangent_block

N = symbol("N")


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


def infer(name, *types, **attributes):
    return lookup(name).infer(*types, **attributes)


def f64(*shape):
    return TensorType(float64, shape)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_against_scipy(rng, axis):
    x = rng.normal(size=(2, 3, 4)) * 50
    np.testing.assert_allclose(compute("softmax", x, axis=axis), special.softmax(x, axis))
    np.testing.assert_allclose(compute("log_softmax", x, axis=axis), special.log_softmax(x, axis), rtol=1e-12)


def test_softmax_of_huge_and_of_no_numbers():
    x = np.array([1e30, 1e30, -np.inf])
    np.testing.assert_array_equal(compute("softmax", x, axis=0), [0.5, 0.5, 0])
    assert compute("log_softmax", np.zeros((2, 0)), axis=1).shape == (2, 0)
    assert compute("softmax", np.zeros((2, 3), np.float32), axis=1).dtype == np.float32
    with pytest.raises(TypeError, match="softmax needs floats, not int64"):
        infer("softmax", TensorType(int64, (3,)), axis=0)


def test_layer_norm(rng):
    x, scale, bias = rng.normal(size=(5, 2, 3)) + 7, rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    y, mean, variance = compute("layer_norm", x, scale, bias, rank=2, epsilon=1e-3)
    np.testing.assert_allclose(mean, x.mean((1, 2), keepdims=True))
    np.testing.assert_allclose(variance, x.var((1, 2), keepdims=True))
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-3) * scale + bias)
    types = infer("layer_norm", f64(N, 2, 3), f64(2, 3), f64(2, 3), rank=2, epsilon=1e-3)
    assert [t.shape for t in types] == [(N, 2, 3), (N, 1, 1), (N, 1, 1)]


@pytest.mark.parametrize(("axis", "others"), [(1, (0, 2, 3)), (3, (0, 1, 2))])
def test_batch_norm(rng, axis, others):
    x = rng.normal(size=(4, 3, 5, 3)) * 2 + 1
    scale, bias = rng.normal(size=(2, 3))
    line = [3 if i == axis else 1 for i in range(4)]
    y, mean, variance = compute("batch_norm_train", x, scale, bias, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(mean, x.mean(others))
    np.testing.assert_allclose(variance, x.var(others))
    want = (x - mean.reshape(line)) / np.sqrt(variance.reshape(line) + 1e-3)
    np.testing.assert_allclose(y, want * scale.reshape(line) + bias.reshape(line), atol=1e-12)
    again = compute("batch_norm_infer", x, scale, bias, mean, variance, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(again, y)
    types = infer("batch_norm_train", f64(N, 3, 5, 3), f64(3), f64(3), axis=axis, epsilon=1e-3)
    assert [t.shape for t in types] == [(N, 3, 5, 3), (3,), (3,)]


def test_half_precision_moments_do_not_overflow():
    x = np.full((1, 4096), 60.0, np.float16)
    x[0, ::2] = -60
    y, mean, variance = compute("layer_norm", x, *np.ones((2, 4096), np.float16), rank=1, epsilon=1e-5)
    assert y.dtype == mean.dtype == variance.dtype == np.float16
    assert mean[0, 0] == 0
    assert variance[0, 0] == 3600


def test_softmax_of_many_half_precision_numbers():
    x = np.zeros((1, 100_000), np.float16)
    assert compute("softmax", x, axis=1).dtype == np.float16
    np.testing.assert_allclose(compute("log_softmax", x, axis=1)[0, 0], -np.log(1e5), rtol=1e-3)
    loss = compute("softmax_cross_entropy", x, np.array([[3]]), axis=1, ignore_index=-100)
    assert loss.dtype == np.float16


def test_parameters_of_a_wrong_shape_or_dtype_are_refused():
    with pytest.raises(ValueError, match=r"layer_norm: scale must have shape \[3\], not \[4\]"):
        infer("layer_norm", f64(2, 3), f64(4), f64(3), rank=1, epsilon=1e-5)
    with pytest.raises(ValueError, match=r"batch_norm_train: bias must have shape \[3\], not \[1\]"):
        compute("batch_norm_train", np.zeros((2, 3)), np.zeros(3), np.zeros(1), axis=1, epsilon=1e-5)
    with pytest.raises(TypeError, match="batch_norm_infer: variance must have the dtype float64, not float32"):
        infer("batch_norm_infer", f64(2, 3), *[f64(3)] * 3, TensorType(float32, (3,)), axis=1, epsilon=1e-5)


@pytest.mark.parametrize("axis", [1, 2])
def test_cross_entropy_against_log_softmax(rng, axis):
    logits = rng.normal(size=(4, 3, 5)) * 20
    shape = [1 if i == axis else e for i, e in enumerate(logits.shape)]
    labels = rng.integers(0, logits.shape[axis], size=shape)
    labels.reshape(-1)[0] = -100
    want = -np.take_along_axis(special.log_softmax(logits, axis), np.maximum(labels, 0), axis)
    want.reshape(-1)[0] = 0
    got = compute("softmax_cross_entropy", logits, labels, axis=axis, ignore_index=-100)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_an_ignored_example_has_no_gradient():
    b = Builder()
    logits, labels = b.argument(f64(2, 3)), b.argument(TensorType(int64, (2, 1)))
    b.block.results = [b.softmax_cross_entropy(logits, labels, axis=1, ignore_index=1)]
    x, y = np.array([[np.inf, 0, 0], [1.0, 2.0, 3.0]]), np.array([[1], [0]])
    (change,) = run(tangent_block(b.block), [x, y, np.ones((2, 3)) * [1, 2, 3]])
    assert change[0, 0] == 0
    np.testing.assert_allclose(change[1, 0], special.softmax(x[1]) @ [1, 2, 3] - 1)


def test_cross_entropy_refuses_labels_that_are_no_class():
    logits = np.zeros((2, 3))
    for label in (3, -1):
        with pytest.raises(ValueError, match=f"softmax_cross_entropy: label {label} is not one of 3 classes"):
            compute("softmax_cross_entropy", logits, np.array([[0], [label]]), axis=1, ignore_index=-100)
    with pytest.raises(ValueError, match=r"labels of shape \[2\] do not fit logits of shape \[2, 3\]"):
        infer("softmax_cross_entropy", f64(2, 3), TensorType(int64, (2,)), axis=1, ignore_index=-100)
    with pytest.raises(TypeError, match="softmax_cross_entropy needs integer labels, not float64"):
        infer("softmax_cross_entropy", f64(2, 3), f64(2, 1), axis=1, ignore_index=-100)
    with pytest.raises(TypeError, match="softmax_cross_entropy needs float logits, not int64"):
        infer("softmax_cross_entropy", TensorType(int64, (2, 3)), f64(2, 1), axis=1, ignore_index=-100)
