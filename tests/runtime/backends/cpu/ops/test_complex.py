"""Complex numbers and Fourier transforms in native code: NumPy's loops without Python."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ops.core.base import Sample
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.ops.test_registry import built
from tests.passes.test_pairs import CASES as MOVES
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, compare

DTYPES = ("complex64", "complex128")
UNARY = (
    *("neg", "conj", "abs", "sign", "real", "imag", "exp", "log", "sin", "cos", "tanh", "sqrt", "reciprocal", "square"),
    *("isnan", "isfinite"),
)
BINARY = ("add", "sub", "mul", "div", "safe_mul", "pow", "eq", "ne")


def numbers(rng, shape, dtype):
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def check(name, operands, attributes=None, python=(), exact=True):
    """Compare one operation, natively and step by step."""
    program = Program({"main": built(lookup(name), Sample(operands, attributes or {}), symbolic=True)})
    native = NativePlan(program)
    assert tuple(call.name for call in native.host_calls) == python
    with np.errstate(all="ignore"):
        for found, wanted in zip(native.run(list(operands)), compile_plan(program).run(list(operands)), strict=True):
            if exact:
                compare(found, wanted, exact=True)
            else:
                assert found.dtype == wanted.dtype
                assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name, dtype, rng, guarded):
    for shape in ((), *((size,) for size in SIZES), (3, 2, 0)):
        check(name, (numbers(rng, shape, dtype),))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name, dtype, rng, guarded):
    for shape in ((), *((size,) for size in SIZES), (3, 2, 0)):
        x, y = (numbers(rng, shape, dtype) for _ in range(2))
        if shape == (17,):
            x[3], y[5], x[7], y[7] = 0, 0, np.inf, 0
        check(name, (x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (17,), (0, 3)])
def test_numbers_put_together(shape, dtype, rng, guarded):
    check("complex", tuple(np.asarray(rng.normal(size=shape).astype(dtype)) for _ in range(2)))


@pytest.mark.parametrize("into", ["complex64", "complex128", "float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("given", [*DTYPES, "float32", "int64", "bool"])
def test_casts(given, into, rng, guarded):
    if not {given, into} & set(DTYPES):
        pytest.skip("no complex numbers")
    for shape in ((), (17,)):
        x = np.asarray(10 * rng.normal(size=shape) + (1j * rng.normal(size=shape) if given in DTYPES else 0))
        check("cast", (x.astype(given),), {"dtype": getattr(paddle, into)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_fourier_transforms(axis, inverse, norm, dtype, rng, guarded):
    for length in (1, 2, 15, 16, 17, 255):
        shape = [3, 4, 5]
        shape[axis] = length
        attributes = {"axis": axis % 3, "norm": norm, "inverse": inverse}
        check("fft", (numbers(rng, shape, dtype),), attributes, exact=dtype == "complex128")  # NumPy's wider for some


def test_a_place_outside_of_its_axis_is_evals_error(rng):
    x, places = numbers(rng, (2, 4), "complex128"), np.array([[0, 3], [1, 2]])
    made = built(lookup("take_along_axis"), Sample((x, places), {"axis": 1}), symbolic=True)
    native, plan = NativePlan(Program({"main": made})), compile_plan(Program({"main": made}))
    for run in (native.run, plan.run):
        with pytest.raises(IndexError, match="index -5 is out of range for axis 1 with 4 elements"):
            run([x, places - 5])


def test_a_transform_of_nothing_is_refused_as_by_the_op():
    program = Program({"main": built(lookup("fft"), Sample((np.ones((2, 3), complex),),
                                     {"axis": 1, "norm": "backward", "inverse": False}), symbolic=True)})  # fmt: skip
    with pytest.raises(ValueError, match="Invalid number of FFT data points"):
        NativePlan(program).run([np.ones((2, 0), complex)])


@pytest.mark.parametrize(("name", "operands", "attributes"), MOVES)
def test_moves_and_sums_without_python(name, operands, attributes, guarded):
    check(name, operands, attributes, exact=False)
    single = [x.astype("complex64") if np.iscomplexobj(x) else x for x in operands]
    if name != "complex":
        check(name, tuple(single), attributes, exact=False)


@pytest.mark.parametrize("size", SIZES)
def test_products_of_matrices(size, rng, guarded):
    x, y = numbers(rng, (3, size), "complex128"), numbers(rng, (size, 5), "complex128")
    check("matmul", (x, y), {"transpose_x": False, "transpose_y": False}, exact=False)


def test_every_cpu(rng, monkeypatch):
    x = numbers(rng, (3, 17), "complex64")
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        check("div", (x, x[::-1].copy()))
        check("fft", (x,), {"axis": 1, "norm": "ortho", "inverse": False})


def test_any_number_of_threads_gives_the_same_bits(rng):
    x = numbers(rng, (400, 300), "complex128")
    for _ in thread_counts():
        check("exp", (x,))
        check("fft", (x,), {"axis": 0, "norm": "backward", "inverse": False})


def test_a_filter_in_a_train_step_runs_without_python(rng):
    signal, window = rng.normal(size=(4, 32)), numbers(rng, (4, 17), "complex128")

    def f(signal, window):
        spectrum = paddle.fft.rfft(signal) * window
        return paddle.fft.irfft(spectrum), spectrum.abs()

    static = paddle.jit.to_static(f, full_graph=True)
    given = [paddle.to_tensor(x) for x in (signal, window)]
    for found, wanted in zip(static(*given), f(*given), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted))
    plan = NativePlan(static.concrete_program.main_program)
    compare(plan.run([signal, window]), compile_plan(static.concrete_program.main_program).run([signal, window]))


@pytest.mark.parametrize("dtype", ["float16", *DTYPES])
def test_arrays_go_in_and_out_as_they_are(dtype, rng):
    x = rng.normal(size=(3, 4)).astype(dtype)
    plan = NativePlan(Program({"main": built(lookup("transpose"), Sample((x,), {"perm": (1, 0)}), symbolic=True)}))
    (made,) = plan.call(x)
    assert made.dtype == x.dtype
    np.testing.assert_array_equal(made, x.T)
    assert plan.call(x.real.astype("float64")) is False
