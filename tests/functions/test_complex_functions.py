"""Functions of complex numbers: NumPy's and SciPy's values, derivatives beside differences, refusals."""

import numpy as np
import pytest
import scipy.linalg

import dy2st as paddle
import dy2st.linalg as linalg
import dy2st.nn.functional as F

RNG = np.random.default_rng(4)
V, M = (RNG.normal(size=s) + 1j * RNG.normal(size=s) for s in ((4,), (3, 3)))
INF = float("inf")
logistic = lambda z: 1 / (1 + np.exp(-z))
FUNCTIONS = {
    "sigmoid": (paddle.nn.functional.sigmoid, V, logistic),
    "silu": (F.silu, V, lambda z: z * logistic(z)),
    "vecdot": (lambda z: linalg.vecdot(z, z * z), V, lambda z: np.vecdot(z, z * z)),
    "var": (paddle.var, V, lambda z: np.var(z, ddof=1)),
    "std": (lambda z: paddle.std(z, 0), M, lambda z: np.std(z, 0, ddof=1)),
    "cov": (linalg.cov, M, np.cov),
    "matrix_exp": (linalg.matrix_exp, M, scipy.linalg.expm),
    "acosh": (paddle.acosh, V, np.arccosh),
    "acos": (paddle.acos, V, np.arccos),
    "asin": (paddle.asin, V, np.arcsin),
    "atanh": (paddle.atanh, V, np.arctanh),
    "asinh": (paddle.asinh, V, np.arcsinh),
    "sgn": (paddle.sgn, V, np.sign),
    "abs": (paddle.abs, V, np.abs),
    "size and angle": (lambda z: paddle.polar(z.abs() ** 2, 2 * paddle.angle(z)), V, lambda z: z * z),
    "rsqrt": (paddle.rsqrt, V, lambda z: z**-0.5),
    "pow": (lambda z: z**z, V, lambda z: z**z),
    "logsumexp": (paddle.logsumexp, V, lambda z: np.log(np.exp(z).sum())),
    "cumprod": (lambda z: paddle.cumprod(z, 0), V, np.cumprod),
    "normalize": (lambda z: F.normalize(z, axis=0), V, lambda z: z / np.linalg.norm(z)),
    "pairwise_distance": (lambda z: F.pairwise_distance(z, 0 * z, epsilon=0.0), V, np.linalg.norm),
    "round": (lambda z: paddle.round(z) * z, V, lambda z: np.round(z) * z),
    **{f"norm {p}": (lambda z, p=p: linalg.vector_norm(z, p), V, lambda z, p=p: np.linalg.norm(z, p))
       for p in (0.5, 1, 2, 3, INF, -INF)},
    **{f"matrix norm {p}": (lambda z, p=p: linalg.matrix_norm(z, p), M, lambda z, p=p: np.linalg.norm(z, p))
       for p in ("fro", 1, -1, INF, -INF)},
}  # fmt: skip


def weighed(made):
    """A real number that depends on all of a result."""
    rng = np.random.default_rng(7)
    real, imaginary = (paddle.to_tensor(rng.normal(size=tuple(made.shape))) for _ in range(2))
    return (made * real).sum() if not made.is_complex() else (made.real() * real + made.imag() * imaginary).sum()


def differences(function, z, step=1e-6):
    """DL / dRe z + i dL / dIm z by central differences."""
    found = np.zeros(z.shape, complex)
    for place in np.ndindex(*z.shape):
        for way in (1, 1j):
            moved = np.zeros_like(z)
            moved[place] = step * way
            change = float(function(paddle.to_tensor(z + moved))) - float(function(paddle.to_tensor(z - moved)))
            found[place] += change / (2 * step) * way
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_numpy_in_every_call(name):
    function, z, wanted = FUNCTIONS[name]
    static = paddle.jit.to_static(function, full_graph=True)
    for run in (function, static, static, static):
        for given in (z, 2.5 * z.conj(), z * 1j):
            found = run(paddle.to_tensor(given)).numpy()
            np.testing.assert_allclose(found, wanted(given), rtol=1e-11, atol=1e-12)
            assert found.dtype == np.asarray(wanted(given)).dtype


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_differences_in_both_parts(name):
    function, z, _ = FUNCTIONS[name]
    wanted = differences(lambda t: weighed(function(t)), z)
    static = paddle.jit.to_static(function, full_graph=True)
    for run in (function, static, static, static):
        t = paddle.to_tensor(z, stop_gradient=False)
        weighed(run(t)).backward()
        np.testing.assert_allclose(t.grad.numpy(), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_differences_of_first_ones(name):
    function, z, _ = FUNCTIONS[name]

    def slope(t):
        t = t.detach()
        t.stop_gradient = False
        return weighed(paddle.grad(weighed(function(t)), t, create_graph=True)[0]), t

    wanted = differences(lambda t: slope(t)[0], z)
    outer, t = slope(paddle.to_tensor(z))
    (found,) = paddle.grad(outer, t, allow_unused=True) if not outer.stop_gradient else (None,)
    found = np.zeros_like(z) if found is None else found.numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["sgn", "abs", "norm 2", "norm 3", "normalize"])
def test_gradients_at_zero_are_finite(name):
    z = paddle.to_tensor(np.zeros(3, complex), stop_gradient=False)
    weighed(FUNCTIONS[name][0](z)).backward()
    assert np.isfinite(z.grad.numpy()).all()


def test_large_numbers_do_not_overflow_in_sigmoid():
    z = np.array([800 + 1j, -800 + 1j, 0])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(F.sigmoid(paddle.to_tensor(z)).numpy(), [1, 0, 0.5], atol=1e-300)


def test_nan_to_num_looks_at_each_part():
    z = np.array([complex(np.nan, 1), complex(np.inf, -np.inf), complex(2, np.nan)])
    found = paddle.nan_to_num(paddle.to_tensor(z), 7.0)
    np.testing.assert_array_equal(found.numpy(), np.nan_to_num(z, nan=7.0))


REFUSED = {
    **{name: lambda z, name=name: getattr(paddle, name)(z) for name in (
        "max min amax amin argmax argmin sort argsort msort median nanmedian mode floor ceil trunc erf erfinv lgamma "
        "gammaln digamma cummax cummin logcumsumexp signbit i0 i0e i1 i1e histogram isposinf isneginf frac"
    ).split()},
    **{name: lambda z, name=name: getattr(paddle, name)(z, z) for name in (
        "maximum minimum fmax fmin mod remainder floor_divide less_than less_equal greater_than greater_equal "
        "heaviside copysign logaddexp atan2 hypot nextafter searchsorted"
    ).split()},
    **{name: lambda z, name=name: getattr(F, name)(z) for name in (
        "relu relu6 leaky_relu elu celu selu gelu mish softplus log_sigmoid hardsigmoid hardswish hardtanh hardshrink "
        "softshrink thresholded_relu softmax log_softmax"
    ).split()},
    "clip": lambda z: z.clip(0.0, 1.0),
    "topk": lambda z: paddle.topk(z, 2),
    "kthvalue": lambda z: paddle.kthvalue(z, 2),
    "quantile": lambda z: paddle.quantile(z, 0.5),
    "<": lambda z: z < z,
    "<=": lambda z: z <= 1.0,
    ">": lambda z: 0 > z,
    ">=": lambda z: z >= z,
    "//": lambda z: z // z,
    "%": lambda z: z % z,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_an_order_or_a_real_number_is_refused_in_every_call(name):
    static = paddle.jit.to_static(REFUSED[name], full_graph=True)
    for run in (REFUSED[name], static, static):
        with pytest.raises(TypeError, match="is not defined on complex128 tensors"):
            run(paddle.to_tensor(V))


@pytest.mark.parametrize("name", ["relu", "clip", "median", "softmax", "hardtanh", "elu", "mode", "logaddexp"])
def test_the_refusal_names_the_function(name):
    with pytest.raises(TypeError, match=f"^{name} is not defined on complex128 tensors"):
        REFUSED[name](paddle.to_tensor(V))
