"""Matrix products: batches, transposed operands, dtypes, and the errors that name both shapes."""

import numpy as np
import pytest

from dy2st.dtypes import float32, float64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol

MATMUL = lookup("matmul")
PLAIN = {"transpose_x": False, "transpose_y": False}


def tensor(*shape, dtype=float32):
    return TensorType(dtype, shape)


@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_y", [False, True])
def test_values_are_those_of_numpy_and_batches_broadcast(rng, transpose_x, transpose_y):
    x, y = rng.normal(size=(6, 1, 2, 3)), rng.normal(size=(5, 3, 4))
    given_x = x.swapaxes(-1, -2) if transpose_x else x
    given_y = y.swapaxes(-1, -2) if transpose_y else y
    got = MATMUL.eval(np, given_x, given_y, transpose_x=transpose_x, transpose_y=transpose_y)
    np.testing.assert_allclose(got, x @ y, rtol=1e-14)


def test_an_inner_extent_of_zero_gives_zeros():
    np.testing.assert_array_equal(MATMUL.eval(np, np.ones((2, 0)), np.ones((0, 3)), **PLAIN), np.zeros((2, 3)))


def test_float16_is_accumulated_in_float32():
    got = MATMUL.eval(np, np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16), **PLAIN)
    assert (got.dtype, float(got[0, 0])) == (np.float16, 4096.0)


def test_inner_extents_that_differ_are_refused_by_the_type_rule_and_by_the_run():
    text = r"matmul: the inner extents differ: \[1, 2\] and \[7, 7\] \(2 against 7\)"
    with pytest.raises(ValueError, match=text):
        MATMUL.infer(tensor(1, 2), tensor(7, 7), **PLAIN)
    with pytest.raises(ValueError, match=text):
        MATMUL.eval(np, np.ones((1, 2)), np.ones((7, 7)), **PLAIN)


def test_transposes_count_when_inner_extents_are_compared():
    with pytest.raises(ValueError, match=r"the inner extents differ: \[3, 2\] and \[2, 3\] \(3 against 2\)"):
        MATMUL.infer(tensor(3, 2), tensor(2, 3), transpose_x=True, transpose_y=False)


def test_symbolic_extents_are_left_to_the_run():
    n, k = symbol("N"), symbol("K")
    assert MATMUL.infer(tensor(n, k), tensor(4, n), **PLAIN) == tensor(n, n)


def test_vectors_are_refused():
    with pytest.raises(ValueError, match=r"matmul needs operands of rank 2 or more, not \[3\] and \[3, 4\]"):
        MATMUL.infer(tensor(3), tensor(3, 4), **PLAIN)


def test_two_dtypes_are_refused():
    with pytest.raises(TypeError, match="matmul needs operands of one dtype, not float32 and float64"):
        MATMUL.infer(tensor(2, 2), tensor(2, 2, dtype=float64), **PLAIN)


def test_batches_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"matmul: the batch extents differ: \[5, 2, 2\] and \[1, 2, 2\]"):
        MATMUL.infer(tensor(5, 2, 2), tensor(1, 2, 2), **PLAIN)
    with pytest.raises(ValueError, match=r"the batch extents cannot be broadcast: \[5, 2, 2\] and \[4, 2, 2\]"):
        MATMUL.eval(np, np.ones((5, 2, 2)), np.ones((4, 2, 2)), **PLAIN)
