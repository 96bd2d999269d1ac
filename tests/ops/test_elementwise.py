"""Elementwise ops against NumPy and SciPy: special values, empty and 0-D arrays, singular derivatives."""

import numpy as np
import pytest
import scipy.special

import dy2st as paddle
from dy2st.dtypes import complex128, float32, float64
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.types import TensorType
from dy2st.ops.core.elementwise_base import Unary
from tests.ops.evaluate import run, tangent_block

X = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -2.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.5, 30.0, -30.0])
Y = np.array([1.0, np.nan, 2.0, -0.0, 3.0, 2.0, 2.0, 0.0, -1.5, 1.0, 0.0, np.inf, -4.0, 7.0])


def compute(name, *operands, **attributes):
    with np.errstate(all="ignore"):
        return lookup(name).eval(np, *map(np.asarray, operands), **attributes)


def slope(name, x, dx=1.0, order=1, **attributes):
    """The derivative of an op of one operand, by its rules, times dx."""
    b = Builder()
    v = b.argument(TensorType(float64, ()))
    b.block.results = [b.apply(lookup(name), [v], attributes)]
    block = b.block
    for _ in range(order):
        block = tangent_block(block)
    primals = [np.asarray(float(x))]
    for k in range(order):
        primals += [np.asarray(dx if i == 0 else 0.0) for i in range(2**k)]
    return float(run(block, primals)[0])


NUMPY = {
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "rint": np.rint, "trunc": np.trunc,
    "abs": np.abs,
    "sign": np.sign, "square": np.square, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "neg": np.negative,
    "reciprocal": lambda x: 1 / x, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "logical_not": np.logical_not, "relu": lambda x: np.maximum(x, 0), "erf": scipy.special.erf,
    "sigmoid": scipy.special.expit, "log_sigmoid": scipy.special.log_expit,
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "pow": np.power,
    "floordiv": np.floor_divide, "mod": np.mod, "fmod": np.fmod, "maximum": np.maximum, "minimum": np.minimum,
    "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_unary_values_are_those_of_numpy(name):
    with np.errstate(all="ignore"):
        want = NUMPY[name](X)
    np.testing.assert_allclose(compute(name, X), want, rtol=1e-14)


@pytest.mark.parametrize("name", BINARY)
def test_binary_values_are_those_of_numpy_and_broadcast(name):
    with np.errstate(all="ignore"):
        want = BINARY[name](X[:, None], Y)
    np.testing.assert_array_equal(compute(name, X[:, None], Y), want)


@pytest.mark.parametrize("name", [*NUMPY, *BINARY])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_results_are_arrays_also_of_empty_and_0d_operands(name, shape):
    x = np.full(shape, 0.5)
    got = compute(name, *([x] if name in NUMPY else [x, x]))
    assert isinstance(got, np.ndarray)
    assert got.shape == shape


FLOATING = [n for n in NUMPY if not n.startswith(("is", "logical"))]


@pytest.mark.parametrize("name", [*FLOATING, "silu", "erfinv", "lgamma", "digamma"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_stay_narrow(name, dtype):
    x = np.array([0.25, 0.5, 0.75], dtype)
    got = compute(name, x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, compute(name, x.astype(np.float64)), rtol=4 * np.finfo(dtype).eps)


def test_float32_special_functions_are_right_to_one_unit():
    x = np.linspace(0.01, 30, 1001, dtype=np.float32)
    for name, reference in (("lgamma", scipy.special.gammaln), ("digamma", scipy.special.digamma)):
        np.testing.assert_array_max_ulp(compute(name, x), reference(x.astype(float)).astype(np.float32), 1)


def test_integers_divide_as_in_python_and_by_zero_give_zero():
    x, y = np.array([7, -7, 7, -7, 5]), np.array([3, 3, -3, -3, 0])
    np.testing.assert_array_equal(compute("floordiv", x, y), [2, -3, -3, 2, 0])
    np.testing.assert_array_equal(compute("mod", x, y), [1, 2, -2, -1, 0])
    np.testing.assert_array_equal(compute("fmod", x, y), [1, -1, 1, -1, 0])


def test_negative_powers_of_integers_are_truncated():
    got = compute("pow", np.array([2, 1, -1, -1, 0, 3]), np.array([-1, -5, -2, -3, -1, 2]))
    np.testing.assert_array_equal(got, [0, 1, 1, -1, 0, 9])
    assert got.dtype == np.int64


def test_bits_and_shifts():
    x, y = np.array([12, -3]), np.array([10, 1])
    np.testing.assert_array_equal(compute("bitwise_and", x, y), x & y)
    np.testing.assert_array_equal(compute("bitwise_or", x, y), x | y)
    np.testing.assert_array_equal(compute("bitwise_xor", x, y), x ^ y)
    np.testing.assert_array_equal(compute("bitwise_not", np.array([True, False])), [False, True])
    np.testing.assert_array_equal(compute("shift_left", x, y), x << y)
    np.testing.assert_array_equal(compute("shift_right", np.array([-8]), np.array([1])), [-4])


def test_bits_of_floats_are_refused():
    floats, flags = TensorType(float32, (2,)), TensorType(lookup("eq").result_dtype, (2,))
    with pytest.raises(TypeError, match="bitwise_and needs integer or bool tensors, not float32"):
        lookup("bitwise_and").infer(floats, floats)
    with pytest.raises(TypeError, match="shift_left needs integer tensors, not bool"):
        lookup("shift_left").infer(flags, flags)


def test_where_refuses_a_condition_that_is_no_bool_and_choices_of_two_dtypes():
    x, y = TensorType(float32, ()), TensorType(float64, ())
    flag = TensorType(lookup("eq").result_dtype, ())
    with pytest.raises(TypeError, match="where needs a bool condition, not float32"):
        lookup("where").infer(x, x, x)
    with pytest.raises(TypeError, match="where needs choices of one dtype, not float32 and float64"):
        lookup("where").infer(flag, x, y)


def test_a_shape_that_differs_is_refused():
    with pytest.raises(ValueError, match=r"add needs operands of one shape, not float32\[\] and float32\[2\]"):
        lookup("add").infer(TensorType(float32, ()), TensorType(float32, (2,)))


def test_the_square_of_a_bool_is_a_bool():
    found = lookup("square").eval(np, np.array([True, False]))
    assert found.dtype == bool
    assert found.tolist() == [True, False]


def test_abs_of_complex_numbers_is_real():
    assert compute("abs", np.array([3 + 4j])).dtype == np.float64
    b = Builder()
    assert b.abs(b.argument(TensorType(complex128, ()))).type == TensorType(float64, ())


@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (2.0, 3.0)])
def test_softplus_is_linear_above_the_threshold_and_never_overflows(beta, threshold):
    x = np.array([-1000.0, -1.0, 0.0, 1.0, 1.6, 1000.0, np.inf, -np.inf])
    with np.errstate(all="ignore"):
        want = np.where(beta * x > threshold, x, np.log1p(np.exp(beta * x)) / beta)
    np.testing.assert_allclose(compute("softplus", x, beta=beta, threshold=threshold), want, rtol=1e-15)


def test_gelu_is_right_also_far_below_zero():
    x = np.array([-30.0, -10.0, -1.0, 0.0, 1.0, 10.0])
    np.testing.assert_allclose(compute("gelu", x, approximate=False), x * scipy.special.ndtr(x), rtol=1e-12)
    cubic = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    np.testing.assert_allclose(compute("gelu", x, approximate=True), 0.5 * x * (1 + np.tanh(cubic)), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "x", "infinite"),
    [("sqrt", 0, True), ("rsqrt", 0, True), ("log", 0, True), ("log1p", -1, True), ("log2", 0, True),
     ("log10", 0, True), ("asin", 1, True), ("acos", -1, True), ("acosh", 1, True), ("atanh", 1, True),
     ("reciprocal", 0, True),
     ("erfinv", 1, True), ("sqrt", -1, False), ("log", np.nan, False), ("lgamma", -1, False)],
)  # fmt: skip
def test_a_zero_tangent_stays_zero_at_singular_points(name, x, infinite):
    assert slope(name, x, 0.0) == 0.0
    assert not infinite or np.isinf(slope(name, x, 1.0))


def test_division_by_zero_leaves_a_zero_tangent_zero():
    b = Builder()
    x, y = b.argument(TensorType(float64, ())), b.argument(TensorType(float64, ()))
    b.block.results = [b.div(x, y)]
    zero = np.asarray(0.0)
    assert run(tangent_block(b.block), [np.asarray(1.0), zero, zero, zero]) == [0.0]


def power_slopes(x, y):
    """The derivatives of x ** y in x and in y, and the second one in x."""
    b = Builder()
    u, v = b.argument(TensorType(float64, ())), b.argument(TensorType(float64, ()))
    b.block.results = [b.pow(u, v)]
    first = tangent_block(b.block)
    second = tangent_block(first)
    at = [np.asarray(float(x)), np.asarray(float(y))]
    zero, one = np.asarray(0.0), np.asarray(1.0)
    in_x, in_y = run(first, [*at, one, zero])[0], run(first, [*at, zero, one])[0]
    return float(in_x), float(in_y), float(run(second, [*at, one, zero, one, zero, zero, zero])[0])


@pytest.mark.parametrize(
    ("x", "y", "want"),
    [
        (0, 0, (0, 0, 0)),
        (0, 1, (1, 0, 0)),
        (0, 2, (0, 0, 2)),
        (0, 3, (0, 0, 0)),
        (5, 0, (0, np.log(5), 0)),
        (-2, 3, (12, np.nan, -12)),
        (-2, 0, (0, np.nan, 0)),
        (0, 0.5, (np.inf, 0, -np.inf)),
        (np.nan, 0, (0, np.nan, 0)),
    ],
)
def test_slopes_of_a_power(x, y, want):
    np.testing.assert_allclose(power_slopes(x, y), want, rtol=1e-15)


def test_a_power_of_a_negative_base_has_no_nan_where_the_exponent_does_not_move():
    b = Builder()
    u, v = b.argument(TensorType(float64, ())), b.argument(TensorType(float64, ()))
    b.block.results = [b.pow(u, v)]
    tangent = run(tangent_block(b.block), [np.asarray(v) for v in (-2.0, 3.0, 1.0, 0.0)])
    assert tangent == [12.0]


@pytest.mark.parametrize(
    ("name", "want"), [("maximum", (0, 1)), ("minimum", (0, 1)), ("fmax", (1, 0)), ("fmin", (1, 0))]
)
def test_ties_of_two_operands_go_to_one_of_them(name, want):
    b = Builder()
    x, y = b.argument(TensorType(float64, ())), b.argument(TensorType(float64, ()))
    b.block.results = [b.apply(lookup(name), [x, y], {})]
    one, zero = np.asarray(1.0), np.asarray(0.0)
    block = tangent_block(b.block)
    assert (run(block, [one, one, one, zero])[0], run(block, [one, one, zero, one])[0]) == want


@pytest.mark.parametrize("name", ["relu", "abs"])
def test_the_slope_at_a_kink_at_zero_is_zero(name):
    assert slope(name, 0.0) == 0.0


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "rint", "trunc", "sign"])
def test_steps_have_no_slope(name):
    assert slope(name, 1.3) == 0.0


def test_a_unary_op_without_a_slope_is_refused():
    with pytest.raises(TypeError, match="op class Flat lacks `slope`, its derivative"):
        type("Flat", (Unary,), {"name": "flat", "function": "sin"})


def test_polygamma_of_order_zero_is_refused():
    with pytest.raises(ValueError, match="polygamma needs n >= 1, not 0; the derivative of order 0 is digamma"):
        compute("polygamma", np.ones(2), n=0)


@pytest.mark.parametrize(("name", "x"), [("sign", True), ("floor", 1j), ("trunc", 1j), ("sgn", False)])
def test_a_function_says_which_dtypes_it_is_not_defined_on(name, x):
    function, t = getattr(paddle, name), paddle.to_tensor([x])
    expected = f"{'sign' if name == 'sgn' else name} is not defined on {t.dtype.name} tensors"
    for call in (function, paddle.jit.to_static(lambda x: function(x), full_graph=True)):
        with pytest.raises(TypeError, match=expected):
            call(t)


def test_a_function_of_two_operands_says_so_too():
    x = paddle.to_tensor([1j])
    for call in (paddle.mod, paddle.jit.to_static(lambda x, y: paddle.mod(x, y), full_graph=True)):
        with pytest.raises(TypeError, match="mod is not defined on complex64 tensors"):
            call(x, x)
