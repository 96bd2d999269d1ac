"""`arange`, `linspace`, `eye`: values against Python and NumPy, extents that scalars make known."""

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float32, float64, int32, int64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import ScalarType
from dy2st.shapes import symbol

N = symbol("N")


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


@pytest.mark.parametrize("bounds", [(0, 5, 1), (2, 11, 3), (5, -4, -2), (3, 3, 1), (4, 0, 1), (-7, 2, 4)])
@pytest.mark.parametrize("dtype", [int32, int64, float32])
def test_arange_of_ints_is_range(bounds, dtype):
    got = compute("arange", *bounds, dtype=dtype)
    assert got.dtype == dtype.numpy
    assert got.tolist() == list(range(*bounds))


def test_arange_of_floats_has_every_number_before_the_end():
    np.testing.assert_array_equal(compute("arange", 0.5, 2, 0.5, dtype=float64), [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(compute("arange", 1.0, 0.0, -0.25, dtype=float64), [1, 0.75, 0.5, 0.25])
    assert compute("arange", 0.0, -1.0, 0.5, dtype=float32).shape == (0,)


@pytest.mark.parametrize(
    ("bounds", "want"),
    [
        ((0, N, 1), N),
        ((2, N + 2, 1), N),
        ((0, N, 2), (N + 1) // 2),
        ((N, 0, -1), N),
        ((1, N, 1), None),
        ((0, None, 1), None),
        ((0, 7, 2), 4),
    ],
)
def test_the_extent_of_arange_follows_from_its_bounds(bounds, want):
    types = [ScalarType("int", b) for b in bounds]
    assert lookup("arange").infer(*types, dtype=int64).shape == (want,)


def test_linspace_and_eye_against_numpy():
    np.testing.assert_allclose(compute("linspace", 1, 2.5, 7, dtype=float32), np.linspace(1, 2.5, 7), rtol=1e-7)
    np.testing.assert_array_equal(compute("linspace", 3, 9, 1, dtype=int64), [3])
    np.testing.assert_array_equal(compute("eye", 2, 3, dtype=float32), np.eye(2, 3))
    assert lookup("eye").infer(ScalarType("int", N), ScalarType("int", 3), dtype=float32).shape == (N, 3)
    unknown, known = ScalarType("int"), ScalarType("int", N)
    assert lookup("linspace").infer(unknown, unknown, known, dtype=float32).shape == (N,)


def test_ranges_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="arange: step must not be 0"):
        compute("arange", 0, 5, 0, dtype=int64)
    with pytest.raises(ValueError, match="linspace: num must not be negative, but is -2"):
        compute("linspace", 0, 5, -2, dtype=float32)
