"""Derivatives of converted functions are those of eager mode, from outside and inside of one trace, to third order."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from tests import shares

Function = Callable[[Any, Any], Any]


def leaf(values: list[float]) -> Any:
    return paddle.to_tensor(np.asarray(values, dtype="float64"), stop_gradient=False)


def arguments() -> tuple[Any, Any]:
    return leaf([0.3, -0.7, 1.2]), leaf([0.5, 0.9, 0.8])


def early_exit(x, w):
    s = x
    for _ in range(50):
        s = paddle.tanh(s * w) + x
        if s.sum() > 3.0:
            break
        if s.sum() < -3.0:
            return s * 2
    return s * s


def nested_loops(x, w):
    s = x
    i = paddle.to_tensor(0)
    while i < 3:
        j = paddle.to_tensor(0)
        while j < i + 1:
            s = s * w if s.sum() > 0.5 else paddle.exp(s) - x
            j = j + 1
        i = i + 1
    return s


def lists(x, w):
    out = []
    i = paddle.to_tensor(0)
    while i < 4:
        out.append(paddle.tanh(x * w) * (i.astype("float64") + 1))
        if len(out) > 2:
            t = out.pop()
            out[0] = out[0] * t
        i = i + 1
    s = out[0]
    for o in out:
        s = s + o * o
    return s


def written_in_place(x, w):
    rows = paddle.zeros([4, 3], dtype="float64")
    i = paddle.to_tensor(0)
    while i < 4:
        rows[i] = x * w + (rows[i - 1] if i > 0 else x)
        i = i + 1
    return rows.sum(axis=0) * w


def none_at_first(x, w):
    h = None
    i = paddle.to_tensor(0)
    while i < 3:
        h = x * w if h is None else paddle.sin(h) * w
        i = i + 1
    return h


def growing(x, w):
    s = x
    i = paddle.to_tensor(0)
    while i < 3:
        s = paddle.concat([s, s * s * w.sum()])
        i = i + 1
    return s.sum() * w


def recursion(x, w):
    def f(x, n):
        if n <= 0:
            return x
        return paddle.tanh(f(x * w, n - 1)) + x

    return f(x, paddle.to_tensor(3))


def integers_between(x, w):
    n = (x * 10).astype("int64")
    s = paddle.where(n > 0, x * w, x)
    return s * n.astype("float64") * x


def singular(x, w):
    return paddle.where(x > 0, paddle.sqrt(paddle.abs(x) * (x > 0).astype("float64")), w * x) * paddle.log(w)


def a_tuple_of_state(x, w):
    state = (x, w * 1.0)
    i = paddle.to_tensor(0)
    while i < 3:
        a, b = state
        state = (paddle.tanh(b) * x, a * b)
        i = i + 1
    return state[0] * state[1]


FUNCTIONS = [
    early_exit, nested_loops, lists, written_in_place, none_at_first, growing, recursion, integers_between, singular,
    a_tuple_of_state,
]  # fmt: skip


@cache
def wanted(function: Function) -> list[np.ndarray | None]:
    """Return what eager mode gives, to third order (in `--fast` to second)."""
    return derivatives(function, shares.order(3))


def derivatives(function: Function, order: int = 3) -> list[np.ndarray | None]:
    """Return a value and the gradients of it, of the sum of squares of these, and so on."""
    ins = arguments()
    y = function(*ins)
    found = [y.numpy()]
    current = y.sum()
    for _ in range(order):
        gradients = paddle.grad(current, list(ins), create_graph=True, allow_unused=True)
        found += [None if g is None else g.numpy() for g in gradients]
        current = sum((g * g).sum() for g in gradients if g is not None)
    return found


def with_gradients(function: Function) -> Function:
    """Return a function that differentiates twice inside of itself."""

    def both(x, w):
        first = paddle.grad(function(x, w).sum(), [x, w], create_graph=True, allow_unused=True)
        first = [x * 0 if g is None else g for g in first]
        total = (first[0] * first[0]).sum() + (first[1] * first[1]).sum()
        second = paddle.grad(total, [x, w], allow_unused=True)
        return [*first, *[x * 0 if g is None else g for g in second]]

    return both


def same(got: Any, want: Any) -> None:
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_from_outside(function: Function) -> None:
    same(derivatives(paddle.jit.to_static(function, full_graph=True), shares.order(3)), wanted(function))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_inside_of_one_trace(function: Function) -> None:
    both = with_gradients(function)
    static = paddle.jit.to_static(both, full_graph=True)
    same([g.numpy() for g in static(*arguments())], [g.numpy() for g in both(*arguments())])


def test_a_loop_that_does_not_turn_gives_its_weight_no_gradient() -> None:
    @paddle.jit.to_static(full_graph=True)
    def f(x, w, n):
        while n > 0:
            x = x * w
            n = n - 1
        return x

    x, w = arguments()
    f(x, w, paddle.to_tensor(0)).sum().backward()
    assert w.grad is None
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    f(x, w, paddle.to_tensor(1)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), x.numpy())


def test_the_branch_that_did_not_run_gives_its_weight_no_gradient() -> None:
    @paddle.jit.to_static(full_graph=True)
    def f(x, w):
        z = paddle.exp(w) * w
        return z * x if x.sum() > 100 else x * x

    x, w = arguments()
    f(x, w).sum().backward()
    assert w.grad is None
