"""Order and indices along an axis: ties, NaN, both directions; taking, putting and combining."""

import numpy as np
import pytest

from dy2st.dtypes import float32, float64, int64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from tests.ops.evaluate import run, tangent_block


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *map(np.asarray, operands), **attributes)


def test_equal_elements_keep_their_order_in_both_directions():
    x = [2.0, 1.0, 2.0, 1.0]
    np.testing.assert_array_equal(compute("argsort", x, axis=0, descending=False), [1, 3, 0, 2])
    np.testing.assert_array_equal(compute("argsort", x, axis=0, descending=True), [0, 2, 1, 3])


def test_nan_counts_as_the_largest():
    x = [1.0, np.nan, np.inf, -np.inf]
    np.testing.assert_array_equal(compute("sort", x, axis=0, descending=False), [-np.inf, 1, np.inf, np.nan])
    np.testing.assert_array_equal(compute("sort", x, axis=0, descending=True), [np.nan, np.inf, 1, -np.inf])
    np.testing.assert_array_equal(compute("argsort", x, axis=0, descending=True), [1, 2, 0, 3])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("descending", [False, True])
def test_sorted_elements_stand_at_the_sorting_indices(rng, axis, descending):
    x = rng.integers(0, 5, size=(4, 6))
    indices = compute("argsort", x, axis=axis, descending=descending)
    assert indices.dtype == np.int64
    values = compute("sort", x, axis=axis, descending=descending)
    np.testing.assert_array_equal(np.take_along_axis(x, indices, axis), values)
    ordered = np.sort(x, axis=axis)
    np.testing.assert_array_equal(values, np.flip(ordered, axis) if descending else ordered)


def test_topk_takes_the_largest_or_smallest_first():
    x = np.array([[3.0, 1.0, 3.0, 2.0]])
    values, indices = compute("topk", x, k=3, axis=1, largest=True, sorted=True)
    np.testing.assert_array_equal(values, [[3, 3, 2]])
    np.testing.assert_array_equal(indices, [[0, 2, 3]])
    values, indices = compute("topk", x, k=2, axis=1, largest=False, sorted=True)
    np.testing.assert_array_equal(values, [[1, 2]])
    np.testing.assert_array_equal(indices, [[1, 3]])
    assert indices.dtype == np.int64


def test_topk_of_too_few_is_refused():
    text = "topk: k is 5, but axis 0 has 3 elements"
    attributes = {"k": 5, "axis": 0, "largest": True, "sorted": True}
    with pytest.raises(ValueError, match=text):
        compute("topk", np.zeros(3), **attributes)
    with pytest.raises(ValueError, match=text):
        lookup("topk").infer(TensorType(float32, (3,)), **attributes)


def test_take_is_that_of_numpy_and_broadcasts(rng):
    x, indices = rng.normal(size=(3, 4)), rng.integers(-4, 4, size=(1, 6))
    np.testing.assert_array_equal(compute("take_along_axis", x, indices, axis=1), np.take_along_axis(x, indices, 1))


@pytest.mark.parametrize("index", [4, -5])
def test_an_index_outside_is_refused(index):
    x, indices = np.zeros((1, 4)), np.array([[index]])
    text = f"index {index} is out of range for axis 1 with 4 elements"
    with pytest.raises(IndexError, match=text):
        compute("take_along_axis", x, indices, axis=1)
    for name, mode in (("put_along_axis", "add"), ("combine_along_axis", "mul")):
        with pytest.raises(IndexError, match=text):
            compute(name, x, indices, np.ones((1, 1)), axis=1, mode=mode)


@pytest.mark.parametrize(
    ("name", "mode", "want"),
    [
        ("put_along_axis", "assign", [7, 2, 5]),
        ("put_along_axis", "add", [1 + 4 + 7, 2, 3 + 5]),
        ("combine_along_axis", "mul", [1 * 4 * 7, 2, 3 * 5]),
        ("combine_along_axis", "amax", [7, 2, 5]),
        ("combine_along_axis", "amin", [1, 2, 3]),
    ],
)
def test_each_mode_of_putting(name, mode, want):
    x = np.array([1.0, 2.0, 3.0])
    got = compute(name, x, [0, 2, -3], [4.0, 5.0, 7.0], axis=0, mode=mode)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(x, [1, 2, 3])


def test_the_last_writer_is_the_one_whose_value_stays(rng):
    indices = rng.integers(-5, 5, size=(4, 20))
    values = np.arange(80.0).reshape(4, 20)
    put = compute("put_along_axis", np.full((4, 5), -1.0), indices, values, axis=1, mode="assign")
    last = compute("last_writer", indices, shape=(5,), axis=1)
    assert sorted(values[last]) == sorted(put[put >= 0])


def test_equal_extrema_that_were_put_share_the_derivative():
    b = Builder()
    x, v = b.argument(TensorType(float64, (1,))), b.argument(TensorType(float64, (2,)))
    i = b.constant(np.array([0, 0]), int64)
    b.block.results = [b.combine_along_axis(x, i, v, axis=0, mode="amax")]
    operands = [np.array([2.0]), np.array([2.0, 2.0]), np.array([3.0]), np.array([6.0, 9.0])]
    assert run(tangent_block(b.block), operands)[0] == 6.0


X, I, F = TensorType(float32, (2, 3)), TensorType(int64, (2, 5)), TensorType(float32, (2, 5))


@pytest.mark.parametrize(
    ("types", "mode", "error", "text"),
    [
        ((X, F, F), "add", TypeError, "needs integer indices, not float32"),
        ((X, TensorType(int64, (5,)), F), "add", ValueError, "needs indices of the tensor's rank, not int64"),
        ((X, TensorType(int64, (4, 5)), F), "add", ValueError, "axis 0 of the indices has 4 elements"),
        ((X, I, TensorType(float64, (2, 5))), "add", TypeError, "needs values of the tensor's dtype float32"),
        ((X, I, TensorType(float32, (2, 4))), "add", ValueError, "needs values of the indices' shape, not float32"),
        ((X, I, F), "mean", ValueError, "mode is 'mean', not"),
    ],
)
def test_what_does_not_fit_is_refused(types, mode, error, text):
    with pytest.raises(error, match=f"put_along_axis.*{text}"):
        lookup("put_along_axis").infer(*types, axis=1, mode=mode)
    with pytest.raises(error, match=f"combine_along_axis.*{text}"):
        lookup("combine_along_axis").infer(*types, axis=1, mode="mul" if mode == "add" else mode)
