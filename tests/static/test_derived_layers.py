"""Spectral norms, and functions with a gradient of their own, in Programs that are built by hand."""

from collections.abc import Iterator

import numpy as np
import pytest

import dy2st as paddle
from dy2st import static


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with static.scope_guard(static.Scope()):
        yield
    paddle.disable_static()


@pytest.mark.proves("static.nn.spectral_norm")
@pytest.mark.parametrize("dim", [0, 1])
def test_a_spectral_norm_divides_by_the_largest_singular_value(dim: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(3, 4, 2)).astype("float32")
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup):
        weight = static.data("w", [3, 4, 2])
        found = static.nn.spectral_norm(weight, dim=dim, power_iters=60)
    executor = static.Executor()
    executor.run(startup)
    (got,) = executor.run(program, feed={"w": matrix}, fetch_list=[found])
    flat = np.moveaxis(matrix, dim, 0).reshape(matrix.shape[dim], -1)
    np.testing.assert_allclose(got, matrix / np.linalg.svd(flat, compute_uv=False)[0], rtol=1e-4)
    assert [p.trainable for p in program.all_parameters()] == [False, False]


@pytest.mark.proves("static.nn.static_pylayer")
@pytest.mark.parametrize("own", [True, False])
def test_a_function_has_the_gradient_it_is_given(own: bool) -> None:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x = static.data("x", [3])
        x.stop_gradient = False
        out = static.nn.static_pylayer(lambda t: t * t, [x], (lambda g: 5 * g) if own else None)
        grads = static.gradients([out.sum() + x.sum()], [x])
    given = np.array([1.0, 2.0, 3.0], "float32")
    value, grad = static.Executor().run(program, feed={"x": given}, fetch_list=[out, *grads])
    np.testing.assert_allclose(value, given**2)
    np.testing.assert_allclose(grad, np.full(3, 6.0 if own else 1.0))
    with static.program_guard(program), pytest.raises(TypeError, match="inputs must be a list of variables"):
        static.nn.static_pylayer(lambda t: t, x)  # type: ignore[arg-type]
