"""Products made for several turns of a loop together: each turn gets its own, whatever it does with it."""

import numpy as np
import pytest

import dy2st as paddle
from tests.runtime.backends.cpu.ops.test_weights import native, run_both, tensors

__all__ = ["native"]


def recurrent(x, w, u):
    h, i = paddle.zeros([x.shape[1], u.shape[0]]), 0
    while i < x.shape[0]:
        h = paddle.tanh(x[i] @ w + h @ u)
        i += 1
    return h


def counted(x, w, u):
    h = paddle.zeros([x.shape[1], u.shape[0]])
    for row in x:
        h = paddle.tanh(row @ w + h @ u)
    return h


def kept(x, w, u):
    made, i = [], 0
    while i < x.shape[0]:
        made.append(x[i] @ w)
        i += 1
    return paddle.stack(made) @ u


def written_into(x, w, u):
    total, i = paddle.zeros([x.shape[1], u.shape[0]]), 0
    while i < x.shape[0]:
        z = x[i] @ w
        z[0] = i * 0.1
        total = total + z @ u
        i += 1
    return total


def ended_early(x, w, u):
    h, i = paddle.zeros([x.shape[1], u.shape[0]]), 0
    while i < x.shape[0] and i < 5:
        if i == 3:
            break
        h = h * 0.5 + x[i] @ w
        i += 1
    return h @ u


def from_the_back(x, w, u):
    total, i = paddle.zeros([x.shape[1], u.shape[0]]), -3
    while i < 2:
        total = total * 0.5 + x[i] @ w
        i += 1
    return total @ u


def backwards(x, w, u):
    h, i = paddle.zeros([x.shape[1], u.shape[0]]), x.shape[0] - 1
    while i >= 0:
        h = paddle.tanh(x[i] @ w + h @ u)
        i -= 1
    return h


def mirrored(x, w, u):
    h = paddle.zeros([x.shape[1], u.shape[0]])
    for i in range(x.shape[0]):
        h = paddle.tanh(x[x.shape[0] - 1 - i] @ w + h @ u)
    return h


def to_and_fro(x, w, u):
    h, at = paddle.zeros([x.shape[1], u.shape[0]]), 0
    for i in range(x.shape[0]):
        h = paddle.tanh(x[at - i] @ w + h @ u)
        at = (at + 3) % x.shape[0]
    return h


def in_a_branch(x, w, u):
    total, i = paddle.zeros([x.shape[1], u.shape[0]]), 0
    while i < x.shape[0]:
        if i % 3 == 1:
            total = total * 0.5 + x[i] @ w
        i += 1
    return total @ u


def by_columns(x, w, u):
    h, i = paddle.zeros([x.shape[1], u.shape[0]]), 0
    while i < x.shape[0]:
        h = paddle.tanh(paddle.matmul(x[i], w, transpose_y=True) + h @ u)
        i += 1
    return h


def by_a_view(x, w, u):
    turned, h = w.t(), paddle.zeros([x.shape[1], u.shape[0]])
    for i in range(x.shape[0]):
        h = paddle.tanh(x[i] @ turned + h @ u)
    return h


def by_a_view_with_gaps(x, w, u):
    gaps = paddle.concat([w, w], axis=1).reshape([w.shape[0], w.shape[1], 2])[:, :, 1]
    h = paddle.zeros([x.shape[1], u.shape[0]])
    for i in range(x.shape[0]):
        h = paddle.tanh(x[i] @ gaps + h @ u)
    return h


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [
        by_a_view,
        by_a_view_with_gaps,
        recurrent,
        counted,
        kept,
        written_into,
        ended_early,
        from_the_back,
        in_a_branch,
        by_columns,
        backwards,
        mirrored,
        to_and_fro,
    ],
)
def test_each_turn_gets_its_own_product(function, dtype, rng):
    paddle.set_default_dtype(dtype)
    try:
        for turns, batch in ((5, 1), (90, 1), (7, 3), (40, 10), (4, 40)):
            run_both(function, *tensors(rng, (turns, batch, 20), (20, 20), (20, 20), dtype=dtype))
    finally:
        paddle.set_default_dtype("float32")


@pytest.mark.parametrize("width", [1, 2])
def test_matrices_as_small_as_registers(width, rng):
    def tiny(x, w, u):
        h = paddle.zeros([x.shape[1], width])
        for i in range(x.shape[0]):
            h = paddle.tanh(x[i] @ w.reshape([width, width]) + h @ u.reshape([width, width]))
        return h

    run_both(tiny, *tensors(rng, (90, 2, width), (width, width), (width, width)))


def test_nothing_to_run_through(rng):
    run_both(recurrent, *tensors(rng, (0, 2, 20), (20, 20), (20, 20)))
    run_both(recurrent, *tensors(rng, (4, 0, 20), (20, 20), (20, 20)))


def test_a_turn_past_the_end_is_refused(rng):
    def past(x, w, n):
        total, i = paddle.zeros([x.shape[1], w.shape[1]]), 0
        while i < n:
            total = total + x[i] @ w
            i += 1
        return total

    x, w = tensors(rng, (6, 2, 9), (9, 11))
    run_both(past, x, w, paddle.to_tensor(6))
    static = paddle.jit.to_static(past, full_graph=True)
    with pytest.raises(IndexError, match="out of"):
        static(x, w, paddle.to_tensor(7))


def test_gradients_go_through(rng):
    static = paddle.jit.to_static(lambda x, w, u: paddle.grad(recurrent(x, w, u).sum(), [w, u]), full_graph=True)
    inputs = tensors(rng, (40, 2, 20), (20, 20), (20, 20))
    for tensor in inputs:
        tensor.stop_gradient = False
    for _ in range(2):
        for got, want in zip(static(*inputs), paddle.grad(recurrent(*inputs).sum(), inputs[1:]), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_what_turns_ask_for_in_order_is_made_together(rng):
    inputs = tensors(rng, (6, 2, 20), (20, 20), (20, 20))
    for function in (recurrent, backwards, mirrored):
        assert "ahead" in run_both(function, *inputs).unit.module.text()
    assert "ahead" not in run_both(in_a_branch, *inputs).unit.module.text()


def test_a_window_for_all_turns_reads_the_matrix_as_it_lies(rng):
    counts = (recurrent, tensors(rng, (6, 2, 20), (20, 20), (20, 20)))
    assert "\nonce" in run_both(counts[0], *counts[1]).unit.module.text()
    assert "\nonce" not in run_both(ended_early, *counts[1]).unit.module.text()


def test_a_small_sequence_that_stands_in_registers_is_multiplied_turn_by_turn(rng):
    def looped(x, turns):
        x, h = paddle.tanh(x), paddle.zeros([1, 6])
        for i in range(turns):
            h = paddle.tanh(x[i] @ w + h @ u)
        return h

    x, w, u = tensors(rng, (3, 1, 4), (4, 6), (6, 6))
    specs = [paddle.static.InputSpec([3, 1, 4]), paddle.static.InputSpec([], "int64")]
    static = paddle.jit.to_static(looped, full_graph=True, input_spec=specs)
    for _ in range(2):
        np.testing.assert_allclose(static(x, paddle.to_tensor(3)).numpy(), looped(x, 3).numpy(), rtol=1e-5, atol=1e-6)
