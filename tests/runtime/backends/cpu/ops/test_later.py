"""Products that a loop adds up: put by for several turns, and added all the same."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan


def gradient(x, w):
    h = paddle.zeros([x.shape[1], w.shape[1]])
    for row in x:
        h = paddle.tanh(row @ w + 0.1 * h)
    return paddle.grad((h * h).sum(), w)[0]


def summed(x, w):
    total = paddle.zeros_like(w)
    for row in x:
        total = total + paddle.matmul(row, paddle.tanh(row @ w), transpose_x=True)
    return total


def of_several_lengths(x, w):
    total, i = paddle.zeros_like(w), 0
    while i < x.shape[0]:
        part = x[i][: i + 1]
        total = total + paddle.matmul(part, part @ w, transpose_x=True)
        i += 1
    return total


def nested(x, w):
    total = paddle.zeros_like(w)
    for row in x:
        inner, j = total * 0.5, 0
        while j < x.shape[1]:
            inner = inner + paddle.matmul(row, row @ w, transpose_x=True)
            j += 1
        total = inner + 1.0
    return total


def read_on_the_way(x, w):
    total = paddle.zeros_like(w)
    seen = paddle.zeros([])
    for row in x:
        total = total + paddle.matmul(row, row @ w, transpose_x=True)
        seen = seen + total.sum()
    return total * seen


def of_a_given_one(x, w):
    total = w
    for row in x:
        total = total + paddle.matmul(row, row @ w, transpose_x=True)
    return total - w


FUNCTIONS = [gradient, summed, of_several_lengths, nested, read_on_the_way, of_a_given_one]


def plans(function, dtype, *inputs):
    specs = [paddle.static.InputSpec(shape, dtype, stop_gradient=False) for shape in ([None, None, 9], [9, 7])]
    static = paddle.jit.to_static(function, input_spec=specs, full_graph=True)
    static(*[paddle.to_tensor(x, stop_gradient=False) for x in inputs])
    program = static.concrete_program.main_program
    return NativePlan(program), compile_plan(program)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [gradient, summed, of_several_lengths, nested, read_on_the_way, of_a_given_one],
    ids=lambda f: f.__name__,
)
def test_sums_of_products(function, dtype, rng):
    paddle.set_default_dtype(dtype)
    try:
        w = (rng.normal(size=(9, 7)) * 0.2).astype(dtype)
        native, plan = plans(function, dtype, (rng.normal(size=(3, 2, 9)) * 0.2).astype(dtype), w)
        for turns, rows in ((1, 1), (5, 1), (70, 1), (40, 3), (3, 31), (4, 32), (3, 50), (0, 2), (3, 0)):
            x = (rng.normal(size=(turns, rows, 9)) * 0.2).astype(dtype)
            made, wanted = native.run([x, w])[0], plan.run([x, w])[0]
            close = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-11}
            np.testing.assert_allclose(made, wanted, **close)
    finally:
        paddle.set_default_dtype("float32")


def test_the_callers_matrix_is_not_written_into(rng):
    w = rng.normal(size=(9, 7)).astype("float32")
    x = rng.normal(size=(50, 2, 9)).astype("float32")
    native, _ = plans(of_a_given_one, "float32", x, w)
    before = w.copy()
    native.run([x, w])
    assert np.array_equal(w, before)


def test_what_nobody_reads_on_the_way_is_put_by(rng):
    w, x = rng.normal(size=(9, 7)).astype("float32"), rng.normal(size=(5, 2, 9)).astype("float32")
    texts = [plans(f, "float32", x, w)[0].unit.module.text() for f in FUNCTIONS]
    assert ["\nlater" in text for text in texts] == [True, True, True, True, False, True]
