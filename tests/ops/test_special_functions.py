"""erf, erfinv, lgamma, digamma, polygamma against mpmath, in units in the last place; and their special values."""

import mpmath
import numpy as np
import pytest
import scipy.special

import dy2st as paddle
from dy2st.ops.elementwise.erf import erf_values, erfc_values, erfinv_values
from dy2st.ops.elementwise.gamma import digamma_values, lgamma_values, polygamma_values


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def ulps(got, exact, floor=0.0):
    """The largest error in units in the last place of max(|exact|, floor)."""
    with mpmath.workdps(40):
        want = [exact(mpmath.mpf(float(x))) for x in got[0]]
        return max(
            abs(float((mpmath.mpf(float(g)) - w) / mpmath.mpf(float(np.spacing(max(abs(float(w)), floor or 1e-300))))))
            for g, w in zip(got[1], want, strict=True)
        )


def spread(low, high, count=400):
    return np.random.default_rng(0).uniform(low, high, count)


@pytest.mark.parametrize(("low", "high"), [(-1e-8, 1e-8), (-0.6, 0.6), (0.4, 4.5), (-6, 6)])
def test_erf_is_right_to_two_units(low, high):
    x = spread(low, high)
    assert ulps((x, erf_values(np, x)), mpmath.erf) <= 2


@pytest.mark.parametrize(("low", "high", "bound"), [(-6, 0.5, 4), (0.4, 4.5, 6), (4, 26, 4)])
def test_erfc_is_right_also_in_its_tail(low, high, bound):
    x = spread(low, high)
    assert ulps((x, erfc_values(np, x)), mpmath.erfc) <= bound


def test_erfinv_is_right_near_zero_in_the_middle_and_in_the_tails():
    y = np.concatenate([spread(-1e-9, 1e-9, 50), spread(-0.9, 0.9), 1 - 10.0 ** -spread(1, 15, 100)])
    assert ulps((y, erfinv_values(np, y)), mpmath.erfinv) <= 6


@pytest.mark.parametrize(
    ("low", "high", "bound"), [(1e-9, 0.5, 4), (0.5, 1.5, 4), (1.5, 3, 4), (3, 12, 4), (10, 1e3, 2), (1e3, 1e15, 2)]
)
def test_lgamma_is_right_for_positive_arguments(low, high, bound):
    x = spread(low, high)
    assert ulps((x, lgamma_values(np, x)), mpmath.loggamma) <= bound


def test_lgamma_is_right_beside_its_zeros_at_one_and_two():
    x = np.concatenate([1 + spread(-1e-7, 1e-7, 50), 2 + spread(-1e-7, 1e-7, 50)])
    assert ulps((x, lgamma_values(np, x)), mpmath.loggamma) <= 4


def test_lgamma_of_negative_arguments_is_right_against_one():
    x = spread(-20, 0)
    assert ulps((x, lgamma_values(np, x)), lambda v: mpmath.log(abs(mpmath.gamma(v))), floor=1.0) <= 32


@pytest.mark.parametrize(
    ("low", "high", "bound"),
    [(1e-9, 1, 4), (1.0, 1.46, 4), (1.4616, 1.4617, 4), (1.47, 4, 4), (4, 12, 4), (10, 1e9, 2)],
)
def test_digamma_is_right_also_beside_its_root(low, high, bound):
    x = spread(low, high)
    assert ulps((x, digamma_values(np, x)), lambda v: mpmath.psi(0, v)) <= bound


def test_digamma_of_negative_arguments_is_right_against_one():
    x = spread(-10, 0)
    x = x[np.abs(x - np.rint(x)) > 1e-2]
    assert ulps((x, digamma_values(np, x)), lambda v: mpmath.psi(0, v), floor=1.0) <= 32


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_polygamma_is_right_for_positive_arguments(n):
    x = np.concatenate([spread(1e-3, 1, 50), spread(1, 40, 100), spread(40, 1e4, 50)])
    assert ulps((x, polygamma_values(np, x, n)), lambda v: mpmath.psi(n, v)) <= 16


@pytest.mark.parametrize("n", [1, 2, 3])
def test_polygamma_of_negative_arguments_is_that_of_mpmath(n):
    x = spread(-6, 0, 60)
    x = x[np.abs(x - np.rint(x)) > 0.05]
    np.testing.assert_allclose(polygamma_values(np, x, n), [float(mpmath.psi(n, v)) for v in x], rtol=1e-11)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 2.0, 1.5, -1.5])


@pytest.mark.parametrize(
    ("ours", "theirs", "x"),
    [
        (erf_values, scipy.special.erf, SPECIAL),
        (erfc_values, scipy.special.erfc, SPECIAL),
        (erfinv_values, scipy.special.erfinv, SPECIAL),
        (lgamma_values, scipy.special.gammaln, SPECIAL[SPECIAL != -np.inf]),
        (digamma_values, scipy.special.digamma, SPECIAL),
    ],
)
def test_special_values_are_those_of_scipy(ours, theirs, x):
    got = ours(np, x)
    np.testing.assert_allclose(got, theirs(x), rtol=1e-14)
    if ours is erfinv_values:  # SciPy drops the sign of -0.0 here
        assert list(np.signbit(got[x == 0])) == [False, True]
    else:
        np.testing.assert_array_equal(np.signbit(got[x == 0]), np.signbit(theirs(x[x == 0])))


def test_lgamma_of_minus_infinity_is_infinite_as_in_c():
    assert lgamma_values(np, np.array([-np.inf])) == np.inf


def test_polygamma_at_its_poles():
    got = polygamma_values(np, np.array([0.0, -1.0, np.inf, np.nan]), 1)
    np.testing.assert_array_equal(got, [np.inf, np.inf, 0, np.nan])
    assert polygamma_values(np, np.array([0.0]), 2) == -np.inf


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_bessel_functions_are_within_a_few_units_in_the_last_place(name):
    x = np.concatenate([np.linspace(-8, 8, 81), np.linspace(8.01, 40, 40), 1 / np.linspace(2e-3, 0.125, 40)])
    with mpmath.workdps(40):
        exact = [mpmath.besseli(int(name[1]), v) * (mpmath.exp(-abs(v)) if name[2:] else 1) for v in map(mpmath.mpf, x)]
        found = getattr(paddle, name)(paddle.to_tensor(x)).numpy()
        error = [float(abs(y - z) / (abs(z) or 1) * 2**52) for y, z in zip(map(mpmath.mpf, found), exact, strict=True)]
    assert max(error) < 4
