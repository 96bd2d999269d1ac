"""Gradients that are taken inside of branches and loops, of what was computed outside of all of them."""

import numpy as np
import pytest

import dy2st as paddle

CREATED = {"create_graph": True}


def in_two_branches(x, t, n):
    a, b = x * 1.0, x * 2.0
    if t > 0.3:
        if t > 0.4:
            a = paddle.grad((b * b * x).sum(), x, **CREATED)[0]
    return a


def in_a_loop_in_a_branch(x, t, n):
    a, b = x * 1.0, x * 2.0
    if t > 0.3:
        for i in range(n):
            a = a + paddle.grad((b * b * x).sum() * i, x, **CREATED)[0]
    return a


def in_a_branch_in_a_loop(x, t, n):
    a, b = x * 1.0, x * 2.0
    while n > 0:
        if t > 0.3:
            a = a * 0.5 + paddle.grad((b * x).sum(), x, **CREATED)[0]
        n = n - 1
    return a


def with_what_each_block_computes(x, t, n):
    b = x * 2.0
    if t > 0.3:
        c = paddle.sin(b)
        if t > 0.4:
            d = c * x
            if t > 0.45:
                return paddle.grad((b * c * d).sum(), x, **CREATED)[0]
    return b


FUNCTIONS = [in_two_branches, in_a_loop_in_a_branch, in_a_branch_in_a_loop, with_what_each_block_computes]


def called(function, t):
    x = paddle.to_tensor([1.0, -0.5], stop_gradient=False)
    return function(x, paddle.to_tensor(t), paddle.to_tensor(3)).numpy()


@pytest.mark.parametrize("t", [0.5, 0.0])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_grad(function, t):
    static = paddle.jit.to_static(function, full_graph=True)
    np.testing.assert_allclose(called(static, t), called(function, t), rtol=1e-6)


@pytest.mark.parametrize("t", [0.5, 0.0])
def test_backward(t):
    def f(x, t):
        b = x * 2.0
        if t > 0.3:
            if t > 0.4:
                (b * b).sum().backward()
        return x.grad

    static = paddle.jit.to_static(f, full_graph=True)
    found = []
    for function in (f, static):
        grad = function(paddle.to_tensor([1.0, -0.5], stop_gradient=False), paddle.to_tensor(t))
        found.append(None if grad is None else grad.numpy().tolist())
    assert found[1] == found[0] == ([8.0, -4.0] if t else None)


@pytest.mark.parametrize(
    "parts",
    [
        lambda x: paddle.split(x, 3),
        lambda x: paddle.unbind(x, 1),
        lambda x: paddle.linalg.svd(x),
        lambda x: paddle.linalg.qr(x),
        lambda x: paddle.linalg.eigh(x + x.t()),
        lambda x: paddle.linalg.slogdet(x),
        lambda x: paddle.topk(x, 2),
    ],
)
def test_one_of_several_results_is_used_in_a_branch_alone(parts):
    def f(x, c):
        first, second = parts(x)[:2]
        y = (first * first).sum()
        if c > 0:
            y = y + (second * second * second).sum()
        return paddle.grad(y, x)[0]

    static = paddle.jit.to_static(f, full_graph=True)
    for c in (1.0, -1.0, 2.0):
        x = paddle.to_tensor(np.array([[1.0, 2.0, 3.5], [4.0, 1.0, 0.3], [0.7, 2.0, 9.0]]), stop_gradient=False)
        found, wanted = (g(x, paddle.to_tensor(c)).numpy() for g in (static, f))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
def test_one_test_around_two_branches_of_which_one_has_another_inside(signs):
    def f(x, a, b):
        v, y, up = paddle.sin(x), x * 1.0, a > 0
        if up:
            y = y * y
        if up:
            if b > 0:
                y = y + v
        return paddle.grad(y.sum(), x)[0]

    x = paddle.to_tensor([0.3, -0.7], stop_gradient=False)
    given = [x, *map(paddle.to_tensor, signs)]
    np.testing.assert_allclose(paddle.jit.to_static(f, full_graph=True)(*given).numpy(), f(*given).numpy(), rtol=1e-6)


def lists_under_keys_of_the_run(x, c):
    found = {"a": [x], "n": {}}
    for i in range(3):
        if c > i:
            found["n"][i] = x * i
            found[f"k{i}"] = found["a"]
        found["a"].append(x * i)
    return sum((v * v * v).sum() for v in found["a"]) + found["n"].get(1, x).sum() * x.sum()


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_a_variant_with_fewer_alternatives_has_cotangents_of_its_own(backend, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(lists_under_keys_of_the_run, full_graph=True)
    for c in (-1.0, 1.0, 2.0):
        seconds = []
        for f in (lists_under_keys_of_the_run, static):
            x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
            (slope,) = paddle.grad(f(x, paddle.to_tensor(c)), x, create_graph=True)
            (second,) = paddle.grad((slope * slope).sum(), x)
            seconds.append((slope.tolist(), second.tolist()))
        assert seconds[0] == seconds[1]


@pytest.mark.parametrize("in_loop", [True, False])
def test_an_item_that_a_slice_replaces_has_no_gradient(in_loop):
    def function(x, n, other):
        items = []
        for _ in range(n):
            items.append(x * 1.0)
            items.append(x * 2.0)
            if in_loop:
                items[1:2] = [other]
        items[1:2] = [other]
        return items

    def gradient(f):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        sum((y * (i + 1)).sum() for i, y in enumerate(f(x, paddle.to_tensor(3), paddle.ones([2])))).backward()
        return x.grad.tolist()

    static = paddle.jit.to_static(function, full_graph=True)
    assert [gradient(static) for _ in range(3)] == [gradient(function)] * 3
