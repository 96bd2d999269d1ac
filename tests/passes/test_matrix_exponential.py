"""Exponentials of matrices as products, a solution and a loop: values, gradients, nothing that calls Python."""

import numpy as np
import pytest
import scipy.linalg

import dy2st as paddle
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import program


def text(kind, name="matrix_exp", operands=1):
    arguments = ", ".join(f"%x{i}: {kind}" for i in range(operands))
    given = ", ".join(f"%x{i}" for i in range(operands))
    return f"func main({arguments}) {{\n  %y: {kind} = {name}({given})\n  return %y\n}}\n"


@pytest.mark.parametrize("size", [1e-3, 1, 30])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [("float64[N, N]", (3, 3)), ("float64[5, 5]", (5, 5)), ("float64[B, N, N]", (4, 3, 3)), ("float32[N, N]", (4, 4))],
)
def test_values_are_those_of_scipy(kind, shape, size, rng):
    made, x = program(text(kind)), (rng.normal(size=shape) * size / shape[-1]).astype(kind.partition("[")[0])
    plan = NativePlan(made)
    assert not plan.host_calls
    found, wanted = plan.run([x])[0], scipy.linalg.expm(x.astype("float64"))
    assert found.dtype == x.dtype
    tolerance = 1e-12 if x.itemsize == 8 else 1e-6
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max() * max(size, 1))
    np.testing.assert_allclose(found, compile_plan(made).run([x])[0], rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 0), (2, 1, 1)])
def test_small_batches(shape, rng):
    made, x = program(text("float64[B, N, N]")), rng.normal(size=shape)
    np.testing.assert_allclose(NativePlan(made).run([x])[0], compile_plan(made).run([x])[0], rtol=1e-12)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_has_no_norm_gives_nan(special):
    x = np.full((3, 3), special)
    with np.errstate(all="ignore"):
        assert np.isnan(NativePlan(program(text("float64[N, N]"))).run([x])[0]).all()


def test_a_matrix_of_zeros_gives_the_identity():
    made = NativePlan(program(text("float64[N, N]"))).run([np.zeros((4, 4))])[0]
    np.testing.assert_allclose(made, np.eye(4), rtol=1e-15)


def test_matrices_of_which_the_types_do_not_tell_that_they_are_square_stay():
    assert "matrix_exp" in [o.name for o in prepared(program(text("float64[N, M]"))).walk()]


@pytest.mark.parametrize("kind", ["float64[3, 3]", "float64[N, N]"])
def test_the_slope(kind, rng):
    made = program(text(kind, "matrix_exp_slope", 2))
    given = [rng.normal(size=(3, 3)) for _ in range(2)]
    plan = NativePlan(made)
    assert not plan.host_calls
    np.testing.assert_allclose(plan.run(given)[0], scipy.linalg.expm_frechet(*given)[1], rtol=1e-10)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_matrices_that_are_not_square_are_refused_as_in_eager_mode(backend, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(lambda x: paddle.linalg.matrix_exp(x), full_graph=True)
    static(paddle.ones([3, 3]))
    for f in (paddle.linalg.matrix_exp, static):
        with pytest.raises(ValueError, match=r"matrix_exp needs square matrices, not \[3, 4\]"):
            f(paddle.ones([3, 4]))


def test_a_gradient_through_it_is_that_of_eager_mode(rng, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    def f(x):
        x.stop_gradient = False
        return paddle.grad((paddle.linalg.matrix_exp(x) ** 2).sum(), [x])[0]

    x = rng.normal(size=(2, 3, 3))
    static = paddle.jit.to_static(f, full_graph=True)
    for _ in range(3):
        np.testing.assert_allclose(static(paddle.to_tensor(x)).numpy(), f(paddle.to_tensor(x)).numpy(), rtol=1e-10)
