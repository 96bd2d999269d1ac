"""Attention of queries, keys, values and masks that are inputs each: only a call tells how their extents meet."""

import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn.functional import scaled_dot_product_attention

Q, K, V = (2, 5, 2, 4), (2, 7, 2, 4), (2, 7, 2, 3)


@pytest.fixture(autouse=True)
def natively(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def tensors(*shapes):
    made = [paddle.to_tensor(np.random.default_rng(i).normal(size=s)) for i, s in enumerate(shapes)]
    for t in made:
        t.stop_gradient = False
    return made


def mask_of(shape, dtype):
    x = np.random.default_rng(9).normal(size=shape)
    return paddle.to_tensor(x > -0.5 if dtype == "bool" else x)


def first_and_second_derivatives(loss, *inputs):
    inputs, mask = inputs[:3], inputs[3:]
    value = loss(*inputs, *mask)
    first = paddle.grad(value, inputs, create_graph=True)
    second = paddle.grad(sum((g * g).sum() for g in first), inputs)
    return [x.numpy() for x in (value, *first, *second)]


def squares(q, k, v, mask=None):
    return (scaled_dot_product_attention(q, k, v, attn_mask=mask) ** 2).sum()


@pytest.mark.parametrize(
    ("shapes", "mask"),
    [
        ((Q, K, V), None),
        (((1, 5, 2, 4), (3, 7, 2, 4), (1, 7, 2, 3)), None),
        ((Q, (2, 0, 2, 4), (2, 0, 2, 3)), None),
        (((2, 0, 2, 4), K, V), None),
        ((Q, K, V), (2, 1, 1, 7)),
        ((Q, K, V), (5, 7)),
        ((Q, K, V), (1, 1, 5, 1)),
        (((2, 1, 2, 4), K, V), (2, 1, 5, 7)),
        ((Q, (2, 1, 2, 4), V), (2, 1, 5, 7)),
        (((1, 5, 2, 4), (1, 7, 2, 4), (1, 7, 2, 3)), (3, 1, 5, 7)),
    ],
)
@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_it_is_that_of_eager_mode(shapes, mask, dtype):
    inputs = [*tensors(*shapes), *([] if mask is None else [mask_of(mask, dtype)])]
    static = paddle.jit.to_static(squares, full_graph=True)
    wanted = first_and_second_derivatives(squares, *inputs)
    for _ in range(3):
        for made, want in zip(first_and_second_derivatives(static, *inputs), wanted, strict=True):
            np.testing.assert_allclose(made, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("shapes", "mask", "error"),
    [
        ((Q, (2, 7, 2, 3), V), None, r"matmul: the inner extents differ: .* \(4 against 3\)"),
        ((Q, (2, 7, 2, 1), V), None, r"matmul: the inner extents differ: .* \(4 against 1\)"),
        ((Q, K, (2, 6, 2, 3)), None, r"matmul: the inner extents differ: .* \(7 against 6\)"),
        ((Q, K, V), (2, 1, 3, 7), "could not be broadcast together"),
    ],
)
def test_what_does_not_fit_is_refused_as_in_eager_mode(shapes, mask, error):
    static = paddle.jit.to_static(squares, full_graph=True)
    fitting = tensors(Q, K, V)
    static(*fitting, *([] if mask is None else [mask_of((2, 1, 5, 7), "bool")])).backward()
    wrong = [*tensors(*shapes), *([] if mask is None else [mask_of(mask, "bool")])]
    for function in (squares, static):
        with pytest.raises(ValueError, match=error):
            function(*wrong)


@pytest.mark.parametrize(("mask", "dtype"), [(None, None), ((1, 1, 1, -1), "bool"), ((1, 1, 1, -1), "float32")])
def test_a_step_holds_no_weights(mask, dtype):
    static = paddle.jit.to_static(squares, full_graph=True)
    for length in (16, 2048):
        inputs = [t.astype("float32").detach() for t in tensors(*[(1, length, 2, 4)] * 3)]
        for t in inputs:
            t.stop_gradient = False
        extents = None if mask is None else tuple(length if e < 0 else e for e in mask)
        given = [] if extents is None else [mask_of(extents, dtype).astype(dtype)]
        for _ in range(2):
            static(*inputs, *given).backward()
    held = [float(size) for size in re.findall(r"at most ([0-9.]+) MB beside", str(static.explain()))]
    assert len(held) == 2  # the forward and the backward Program
    assert max(held) < 2048**2 * 4 / 1e6  # the weights of one head
