"""Programs whose attention drops weights or has cotangents of masks: values, threads, memory used."""

import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn.functional import scaled_dot_product_attention
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.attention.test_attention import native_names
from tests.runtime.backends.cpu.native import thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of


def slopes(x, mask):
    x.stop_gradient = mask.stop_gradient = False
    y = scaled_dot_product_attention(x, x * 2, x - 1, attn_mask=mask, dropout_p=0.3)
    return paddle.grad((y**3).sum(), [x, mask])


@pytest.mark.parametrize("mask", [(1, 2, 9, 9), (2, 2, 9, 9), (9, 9), (2, 1, 1, 9)])
def test_a_step_is_that_of_eager_mode_and_of_the_interpreter(mask, rng):
    x, m = rng.normal(size=(2, 9, 2, 4)), rng.normal(size=mask)
    static = paddle.jit.to_static(slopes, full_graph=True)
    made = []
    for f in (slopes, static, static, static):
        paddle.seed(5)
        made.append([np.asarray(y) for y in f(paddle.to_tensor(x), paddle.to_tensor(m))])
    for other in made[1:]:
        for found, wanted in zip(other, made[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    program = static.concrete_program.main_program
    names = native_names(program)
    assert {"attention", "attention_grad", "attention_mask_grad"} <= {*names}
    assert {"softmax", "random_bernoulli"}.isdisjoint(names)
    inputs = [np.asarray(v) if v.shape else v for v in (x, m)]
    seeds = [3, 7][: len(program.block.arguments) - 2]
    compare(NativePlan(program).run([*inputs, *seeds]), compile_plan(program).run([*inputs, *seeds]))


def test_any_number_of_threads_gives_the_same_bits(rng):
    x, m = (paddle.to_tensor(rng.normal(size=s).astype("float32")) for s in ((2, 130, 2, 8), (2, 130, 130)))
    static = paddle.jit.to_static(slopes, full_graph=True)
    runs = []
    for _ in thread_counts(1, 1, 1, 2, 4):
        paddle.seed(1)
        runs.append([np.asarray(y).tobytes() for y in static(x, m)])
    assert runs[2] == runs[3] == runs[4]


def test_a_value_of_more_batches_than_the_draw_is_weighted_alike(rng):
    def f(q, v):
        q.stop_gradient = v.stop_gradient = False
        weights = paddle.nn.functional.softmax(paddle.matmul(q, q, transpose_y=True))
        y = paddle.matmul(paddle.nn.functional.dropout(weights, 0.4), v)
        return paddle.grad((y**2).sum(), [q, v])

    q, v = rng.normal(size=(1, 6, 4)), rng.normal(size=(3, 6, 4))
    made = []
    for g in (f, *[paddle.jit.to_static(f, full_graph=True)] * 3):
        paddle.seed(2)
        made.append([np.asarray(y) for y in g(paddle.to_tensor(q), paddle.to_tensor(v))])
    for other in made[1:]:
        for found, wanted in zip(other, made[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_values(special, rng):
    x, m = rng.normal(size=(2, 5, 2, 4)), rng.normal(size=(5, 5))
    program = program_of(slopes, x, m)
    x[1, 2, 0, 3] = special
    seeds = [3, 7][: len(program.block.arguments) - 2]
    with np.errstate(all="ignore"):
        compare(NativePlan(program).run([x, m, *seeds]), compile_plan(program).run([x, m, *seeds]))


@pytest.mark.parametrize("learns", ["nothing", "a mask of rows", "a mask of all"])
def test_a_step_holds_no_weights(learns, rng, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    def loss(x, *mask):
        y = scaled_dot_product_attention(x, x, x, attn_mask=mask[0] if mask else None, dropout_p=0.2)
        return (y**2).sum()

    static, length = paddle.jit.to_static(loss, full_graph=True), 1024
    shape = {"nothing": None, "a mask of rows": (1, 1, 1, length), "a mask of all": (length, length)}[learns]
    given = [(1, length, 8, 4), *([] if shape is None else [shape])]
    inputs = [paddle.to_tensor(rng.normal(size=s).astype("float32"), stop_gradient=False) for s in given]
    for _ in range(3):
        static(*inputs).backward()
    held = [float(size) for size in re.findall(r"at most ([0-9.]+) MB beside", str(static.explain()))]
    assert len(held) == 2  # the forward and the backward Program
    assert max(held) < 8 * length**2 * 4 / 1e6 / 3  # the weights of 8 heads


def test_multi_head_attention_with_dropout_trains_as_eager_mode(rng):
    paddle.seed(0)
    layer = paddle.nn.MultiHeadAttention(8, 2, dropout=0.5)
    static, x = paddle.jit.to_static(layer.forward, full_graph=True), rng.normal(size=(2, 7, 8)).astype("float32")
    made = []
    for forward in (layer.forward, static, static, static):
        paddle.seed(4)
        (forward(paddle.to_tensor(x)) ** 2).sum().backward()
        made.append([p.grad.numpy() for p in layer.parameters() if p.grad is not None])
        layer.clear_gradients()
    for other in made[1:]:
        for found, wanted in zip(other, made[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
