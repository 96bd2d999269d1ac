"""Reading at places and adding there: `take`, `gather_nd`, `one_hot`, `nonzero`, `masked_select`."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.dtypes import bool_, float32, float64, int64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


def infer(name, *types, **attributes):
    return lookup(name).infer(*types, **attributes)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_and_take_add_against_numpy(rng, axis):
    x = rng.normal(size=(4, 3, 5))
    indices = rng.integers(-x.shape[axis], x.shape[axis], size=(2, 6)).astype(np.int32)
    got = compute("take", x, indices, axis=axis)
    np.testing.assert_array_equal(got, np.take(x, indices, axis))
    values = rng.normal(size=got.shape)
    want = x.copy()
    np.add.at(np.moveaxis(want, axis, 0), indices, np.moveaxis(values, (axis, axis + 1), (0, 1)))
    np.testing.assert_allclose(compute("take_add", x, values, indices, axis=axis), want)


def test_take_add_of_distinct_and_of_no_indices(rng):
    x = rng.normal(size=(4, 3))
    np.testing.assert_allclose(compute("take_add", x, x[:2], np.array([3, 1]), axis=0)[[3, 1]], x[[3, 1]] + x[:2])
    np.testing.assert_array_equal(compute("take_add", x, x[:0], np.zeros(0, np.int64), axis=0), x)


def test_take_of_integers_counts_in_their_dtype():
    x = np.zeros((2, 2), np.int32)
    got = compute("take_add", x, np.ones((3, 2), np.int32), np.array([1, 1, -1]), axis=0)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, [[0, 0], [3, 3]])


@pytest.mark.parametrize("name", ["take", "take_add"])
def test_take_outside_names_index_axis_and_extent(name):
    x, indices = np.zeros((2, 3)), np.array([0, 3])
    operands = (x, indices) if name == "take" else (x, np.zeros((2, 2)), indices)
    with pytest.raises(IndexError, match=f"{name}: index 3 is out of range for axis 1 of extent 3"):
        compute(name, *operands, axis=1)


def test_values_of_a_wrong_shape_or_dtype_are_refused():
    x, indices = TensorType(float64, (4, 3)), TensorType(int64, (2,))
    with pytest.raises(ValueError, match=r"take_add needs values of shape \[2, 3\], not \[3, 3\]"):
        infer("take_add", x, TensorType(float64, (3, 3)), indices, axis=0)
    with pytest.raises(ValueError, match=r"take_add needs values of shape \[2, 3\], not \[3, 3\]"):
        compute("take_add", np.zeros((4, 3)), np.zeros((3, 3)), np.array([0, 1]), axis=0)
    with pytest.raises(TypeError, match="needs values of the tensor's dtype, not float32 for float64"):
        infer("take_add", x, TensorType(float32, (2, 3)), indices, axis=0)
    with pytest.raises(TypeError, match="take needs integer indices, not float64"):
        infer("take", x, x, axis=0)
    with pytest.raises(ValueError, match=r"scatter_nd_add needs values of shape \[2\], not \[3\]"):
        compute("scatter_nd_add", np.zeros((4, 3)), np.zeros(3), np.zeros((2, 2), np.int64), depth=2)


def test_gather_nd_and_scatter_nd_add_against_loops(rng):
    x, indices = rng.normal(size=(3, 4, 2)), np.array([[[0, 1], [2, -1]], [[0, 1], [1, 0]]])
    got = compute("gather_nd", x, indices, depth=2)
    values = rng.normal(size=got.shape)
    want = x.copy()
    for place in np.ndindex(2, 2):
        np.testing.assert_array_equal(got[place], x[tuple(indices[place])])
        want[tuple(indices[place])] += values[place]
    np.testing.assert_allclose(compute("scatter_nd_add", x, values, indices, depth=2), want)


def test_gather_nd_refuses_places_that_do_not_fit():
    x = np.zeros((2, 3))
    with pytest.raises(IndexError, match="gather_nd: index 3 is out of range for axis 1 of extent 3"):
        compute("gather_nd", x, np.array([[0, 3]]), depth=2)
    with pytest.raises(IndexError, match="scatter_nd_add: index 2 is out of range for axis 0 of extent 2"):
        compute("scatter_nd_add", x, np.zeros((1, 3)), np.array([[2]]), depth=1)
    with pytest.raises(ValueError, match=r"on 3 axes of a tensor of rank 2 cannot use indices of shape \[4, 3\]"):
        infer("gather_nd", TensorType(float64, (2, 3)), TensorType(int64, (4, 3)), depth=3)


def test_one_hot():
    got = compute("one_hot", np.array([[0, 2]]), num_classes=3, dtype=float32)
    np.testing.assert_array_equal(got, np.eye(3, dtype=np.float32)[[[0, 2]]])
    assert got.dtype == np.float32
    with pytest.raises(ValueError, match="one_hot: -1 is not one of 3 classes"):
        compute("one_hot", np.array([0, -1]), num_classes=3, dtype=float32)
    with pytest.raises(TypeError, match="one_hot needs integer class numbers, not float32"):
        infer("one_hot", TensorType(float32, (2,)), num_classes=3, dtype=float32)


@pytest.mark.parametrize("shape", [(3, 4), (0, 2), ()])
def test_nonzero(rng, shape):
    x = np.asarray(rng.integers(0, 2, size=shape))
    got = compute("nonzero", x)
    assert got.dtype == np.int64
    if shape:
        np.testing.assert_array_equal(got, np.argwhere(x))
    assert got.shape == (np.count_nonzero(x), len(shape))


def test_masked_select(rng):
    x = rng.normal(size=(2, 3))
    np.testing.assert_array_equal(compute("masked_select", x, x > 0), x[x > 0])
    np.testing.assert_array_equal(compute("masked_select", x, np.array([True, False, True])), x[:, [0, 2]].ravel())
    n = symbol("N")
    assert infer("masked_select", TensorType(float64, (n, 3)), TensorType(bool_, (n, 3))).shape == (None,)
    with pytest.raises(TypeError, match="masked_select needs a bool mask, not float64"):
        infer("masked_select", TensorType(float64, (2,)), TensorType(float64, (2,)))
    with pytest.raises(ValueError, match="masked_select needs a mask of the tensor's shape"):
        infer("masked_select", TensorType(float64, (2,)), TensorType(bool_, (3,)))


def test_one_hot_of_as_many_classes_as_the_call_says_refuses_others():
    static = paddle.jit.to_static(lambda x, y: paddle.nn.functional.one_hot(x, y.shape[0]), full_graph=True)
    x = paddle.to_tensor([0, 3])
    for classes in (4, 5, 4, 6):
        assert static(x, paddle.ones([classes])).tolist() == np.eye(classes)[[0, 3]].tolist()
    for classes in (3, 3, 1):
        with pytest.raises(ValueError, match=f"3 is not one of {classes} classes"):
            static(x, paddle.ones([classes]))
    with pytest.raises(ValueError, match="must be positive"):
        static(x, paddle.ones([0]))


@pytest.mark.parametrize("extent", [-2, -(2**63)])
def test_a_negative_extent_is_no_minus_one(extent):
    static = paddle.jit.to_static(lambda x, n: x.reshape([n]), full_graph=True)
    x = paddle.ones([2, 3])
    for n in (6, -1, 6):
        assert static(x, n).shape == [6]
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot reshape"):
            static(x, extent)


def test_negative_repeats_and_differences_of_nothing():
    with pytest.raises(ValueError, match="repeats must not be negative"):
        paddle.repeat_interleave(paddle.ones([3]), -1)
    assert paddle.diff(paddle.ones([3]), 2**62).shape == [0]
