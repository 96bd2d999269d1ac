"""Reductions of rows in native code: NaN, infinities, signs of zero, rows of every length."""

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.cpu.native import NativePlan


@pytest.fixture(scope="module", params=["float32", "float64"])
def extrema(request):
    return NativePlan(
        parse(f"""program main
func main(%x: {request.param}[N, M]) {{
  %0: {request.param}[N] = max(%x) {{axis=(1,), keepdim=false}}
  %1: {request.param}[N] = min(%x) {{axis=(1,), keepdim=false}}
  return %0, %1
}}
""")
    )


def of(plan, x):
    return plan.run([x.astype(plan.program.block.arguments[0].type.dtype.name)])


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 31, 33, 64, 65, 127, 1000])
def test_extrema_are_numpys_for_rows_of_any_length(extrema, rng, length):
    x = rng.normal(size=(3, length)).astype("float32")
    high, low = of(extrema, x)
    np.testing.assert_array_equal(high, x.max(1))
    np.testing.assert_array_equal(low, x.min(1))


@pytest.mark.parametrize("place", [0, 5, 16, 40, 66])
def test_a_nan_anywhere_is_the_extremum_of_its_row(extrema, rng, place):
    x = rng.normal(size=(3, 67))
    x[1, place] = -np.nan if place % 2 else np.nan
    for found in of(extrema, x):
        np.testing.assert_array_equal(np.isnan(found), [False, True, False])


def test_infinities_are_numbers(extrema):
    x = np.full((3, 40), np.inf)
    x[1] = -np.inf
    x[2, 7] = -np.inf
    high, low = of(extrema, x)
    np.testing.assert_array_equal(high, [np.inf, -np.inf, np.inf])
    np.testing.assert_array_equal(low, [np.inf, -np.inf, -np.inf])
