"""Loops that multiply by the same matrix in every turn: what they keep packed is right wherever it is made and used."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def tensors(rng, *shapes, dtype="float32"):
    return [paddle.to_tensor((rng.normal(size=shape) * 0.15).astype(dtype)) for shape in shapes]


def run_both(function, *inputs):
    """Run a function eagerly and as native code; return the native plan."""
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        for _ in range(2):
            np.testing.assert_allclose(static(*inputs).numpy(), function(*inputs).numpy(), rtol=1e-4, atol=1e-5)
    return NativePlan(static.concrete_program.main_program)


def rows(h, w, n):
    i = 0
    while i < n:
        h = paddle.tanh(h @ w)
        i += 1
    return h


def columns(h, w, n):
    for _ in range(n):
        h = paddle.tanh(paddle.matmul(h, w, transpose_y=True))
    return h


def both(h, w, n):
    i = 0
    while i < n:
        h = paddle.tanh(h @ w)
        if h.sum() > 0:
            h = paddle.matmul(h, w, transpose_y=True) * 0.5
        i += 1
    return h


def nested(h, w, n):
    for i in range(n):
        j = 0
        while j < i:
            h = paddle.tanh(h @ w)
            j += 1
    return h


def changing(h, w, n):
    i = 0
    while i < n:
        h = paddle.tanh(h @ w)
        w = w * 0.9
        i += 1
    return h


def both_of_a_view(h, w, n):
    turned = w.t()
    for _ in range(n):
        h = paddle.tanh(h @ turned) + paddle.matmul(h, turned, transpose_y=True) * 0.5
    return h


def both_of_a_view_with_gaps(h, w, n):
    gaps = paddle.concat([w, w], axis=1).reshape([w.shape[0], w.shape[1], 2])[:, :, 1]
    for _ in range(n):
        h = paddle.tanh(h @ gaps) + paddle.matmul(h, gaps, transpose_y=True) * 0.5
    return h


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [rows, columns, both, nested, changing, both_of_a_view, both_of_a_view_with_gaps])
def test_loops_with_matrices_that_stay(function, dtype, rng):
    for batch, size in ((1, 20), (5, 16), (40, 33)):
        h, w = tensors(rng, (batch, size), (size, size), dtype=dtype)
        run_both(function, h, w, paddle.to_tensor(5))


def test_a_matrix_that_stays_is_packed(rng):
    h, w = tensors(rng, (2, 20), (20, 20))
    assert "gemm.f32.packed.n" in run_both(rows, h, w, paddle.to_tensor(3)).unit.library
    assert "gemm.f32.packed.n" not in run_both(changing, h, w, paddle.to_tensor(3)).unit.library


def test_a_loop_without_turns_packs_nothing(rng):
    h, w = tensors(rng, (2, 20), (20, 20))
    run_both(rows, h, w, paddle.to_tensor(0))


def test_one_program_takes_matrices_of_any_size(rng):
    def f(h, w):
        for _ in range(h.shape[0]):
            h = h @ w
        return h

    static = paddle.jit.to_static(f, full_graph=True)
    for batch, size in ((2, 20), (3, 7), (1, 300), (4, 1), (2, 0)):
        h, w = tensors(rng, (batch, size), (size, size))
        np.testing.assert_allclose(static(h, w).numpy(), f(h, w).numpy(), rtol=1e-4, atol=1e-6)


def test_extents_that_differ_are_refused_in_the_loop(rng):
    def f(x, w, n):
        total, i = paddle.zeros([2, 4]), 0
        while i < n:
            total = total + paddle.matmul(x[i], w)
            i += 1
        return total

    static = paddle.jit.to_static(f, full_graph=True)
    x, w, wrong = tensors(rng, (3, 2, 4), (4, 4), (5, 4))
    assert static(x, w, paddle.to_tensor(3)).shape == [2, 4]
    with pytest.raises(ValueError, match="inner extents differ"):
        static(x, wrong, paddle.to_tensor(1))
    assert static(x, wrong, paddle.to_tensor(0)).shape == [2, 4]


def test_recursion_has_packed_matrices_of_its_own(rng):
    def descend(h, w, n):
        i = 0
        while i < 2:
            h = paddle.tanh(h @ w)
            i += 1
        if n > 0:
            h = descend(h, w * 0.5, n - 1)
        return h

    run_both(lambda h, w, n: descend(h, w, n), *tensors(rng, (2, 20), (20, 20)), paddle.to_tensor(3))
