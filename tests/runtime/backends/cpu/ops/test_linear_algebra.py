"""Linear algebra in native code: NumPy's loops without Python, on batches; errors and NaN as in the interpreter."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.tracing.output_choices import NO_OTHER
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of

LINALG = {
    "inverse": paddle.linalg.inv,
    "det": paddle.linalg.det,
    "slogdet": paddle.linalg.slogdet,
    "solve": lambda x: paddle.linalg.solve(x, x[..., :2]),
    "cholesky": lambda x: paddle.linalg.cholesky(paddle.matmul(x, x, transpose_y=True)),
    "eigh": lambda x: paddle.linalg.eigh(x + x.transpose([0, 2, 1]))[0],
    "svd": lambda x: paddle.linalg.svd(x)[1],
    "qr": lambda x: paddle.linalg.qr(x),
}
SIZES = (1, 2, 15, 16, 17)


def plans(function, *inputs):
    program = program_of(function, *inputs)
    return NativePlan(program), compile_plan(program)


def close(found, wanted, tolerance):
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LINALG)
def test_batches_of_every_size_without_python(name, dtype, rng, guarded):
    native, plan = plans(LINALG[name], rng.normal(size=(2, 4, 4)).astype(dtype))
    assert [call.name for call in native.host_calls] == []
    for size in SIZES:
        x = (rng.normal(size=(3, size, size)) + 3 * size**0.5 * np.eye(size)).astype(dtype)
        close(native.run([x]), plan.run([x]), 1e-4 if dtype == "float32" else 1e-9)
    assert native.elsewhere == 0


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 3, 4, 2), (0, 3, 3)])
@pytest.mark.parametrize("name", ["svd", "qr"])
def test_oblong_matrices(name, shape, rng, guarded):
    function = {"svd": paddle.linalg.svd, "qr": paddle.linalg.qr}[name]
    x = rng.normal(size=shape)
    native, plan = plans(function, x)
    close(native.run([x]), plan.run([x]), 1e-9)


@pytest.mark.parametrize("name", ["inverse", "det", "solve", "cholesky"])
def test_no_rows_are_left_to_the_interpreter(name, rng):
    native, plan = plans(LINALG[name], rng.normal(size=(2, 4, 4)))
    x = np.ones((2, 0, 0))
    if name == "solve":
        native, plan = plans(paddle.linalg.solve, *(rng.normal(size=(2, 4, 4)) for _ in range(2)))
        compare(native.run([x, x]), plan.run([x, x]))
    else:
        compare(native.run([x]), plan.run([x]))


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf])
def test_eigenvalues_of_what_is_not_finite_are_refused_before_lapack_sees_it(wild, rng):
    x = rng.normal(size=(2, 5, 5))
    native, _ = plans(paddle.linalg.eigvals, x)
    x[1, 4, 4] = wild
    with pytest.raises(np.linalg.LinAlgError, match="must not contain infs or NaNs"):
        native.run([x])


def test_general_eigenvalues(rng):
    x = rng.normal(size=(2, 5, 5))
    native, plan = plans(paddle.linalg.eig, x)
    assert [call.name for call in native.host_calls] == []
    close(native.run([x]), plan.run([x]), 1e-9)


def test_transposed_matrices(rng):
    x = rng.normal(size=(3, 4, 4))
    native, plan = plans(lambda x: paddle.linalg.inv(x.transpose([0, 2, 1])[::2]), x)
    close(native.run([x]), plan.run([x]), 1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["inverse", "solve", "det", "qr"])
def test_numbers_that_are_not_finite(name, value, rng):
    native, plan = plans(LINALG[name], rng.normal(size=(2, 4, 4)))
    x = rng.normal(size=(2, 4, 4))
    x[1, 0, 0] = value
    with np.errstate(all="ignore"):
        close(native.run([x]), plan.run([x]), 1e-9)


@pytest.mark.parametrize(
    ("function", "matrix", "said"),
    [
        (lambda x: paddle.linalg.inv(x), np.ones((2, 3, 3)), "Singular matrix"),
        (lambda x: paddle.linalg.solve(x, x), np.zeros((2, 3, 3)), "Singular matrix"),
        (lambda x: paddle.linalg.cholesky(x), -np.stack([np.eye(3)] * 2), "not positive definite"),
    ],
    ids=["inverse", "solve", "cholesky"],
)
def test_what_cannot_be_done_is_raised_at_the_users_line(function, matrix, said, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    static = paddle.jit.to_static(function, full_graph=True)
    good = paddle.to_tensor(np.stack([2 * np.eye(3)] * 2))
    before = np.asarray(static(good))
    with pytest.raises(ValueError, match=said) as caught:
        static(paddle.to_tensor(matrix))
    assert caught.traceback[-1].path.name == "test_linear_algebra.py"
    np.testing.assert_array_equal(np.asarray(static(good)), before)


def test_in_a_loop_a_program_stays_native(rng):
    def newton(a, x):
        while paddle.linalg.norm(paddle.linalg.solve(a, x) - x) > 1e-9:
            x = (x + paddle.linalg.solve(a, x)) / 2
        return x

    a, x = np.eye(4) * 2 + 0.1 * rng.normal(size=(4, 4)), rng.normal(size=(4, 1))
    native, plan = plans(newton, a, x)
    assert native.is_worth_it
    (*found, told), (*wanted, told_by_plan) = native.run([a, x]), plan.run([a, x])
    close(found, wanted, 1e-8)
    assert told == told_by_plan == NO_OTHER


def test_every_cpu(rng, monkeypatch):
    x = rng.normal(size=(2, 5, 5))
    program = program_of(lambda x: (paddle.linalg.inv(x), *paddle.linalg.qr(x), paddle.linalg.det(x)), x)
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        close(NativePlan(program).run([x]), compile_plan(program).run([x]), 1e-9)


def test_any_number_of_threads_gives_the_same_bits(rng):
    x = rng.normal(size=(300, 6, 6))
    native = NativePlan(program_of(lambda x: (paddle.linalg.inv(x), paddle.linalg.svd(x)[1]), x))
    runs = [[made.tobytes() for made in native.run([x])] for _ in thread_counts()]
    assert runs[0] == runs[1] == runs[2]
