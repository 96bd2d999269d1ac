"""What leaves a static function needs a gradient as it does in eager mode, where branches and loops decide it too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle
from dy2st.jit.static_function import FallbackWarning

T = paddle.to_tensor
Function = Callable[[Any, Any, Any], Any]


class Holder:
    def __init__(self, h: Any) -> None:
        self.h = h


def of_a_branch(x: Any, w: Any, n: Any) -> Any:
    y = x * 2.0
    if n > 1:
        y = x * w
    return y


def of_several_steps(x: Any, w: Any, n: Any) -> Any:
    if n > 1:
        y = x * w
    elif n > 0:
        y = (x * w).detach()
    else:
        y = x + 1.0
    z = paddle.sin(y) + x
    return z, y * w, y.reshape([2, 1]), x * 3.0


def of_a_counted_loop(x: Any, w: Any, n: Any) -> Any:
    h = x * 0.0
    for _ in range(n):
        h = h * w + x
    return h


def of_a_while_loop(x: Any, w: Any, n: Any) -> Any:
    h, k, before = x * 1.0, x * 2.0, x * 3.0
    while n > 0:
        before = k
        k = h
        h = h * w
        n = n - 1
    return h, k, before


def of_a_branch_in_a_loop(x: Any, w: Any, n: Any) -> Any:
    h, k = x * 1.0, x * 1.0
    for i in range(n):
        if i > 1:
            h = h * w
            continue
        k = k + h
    return h, k


def of_what_a_branch_takes(x: Any, w: Any, n: Any) -> Any:
    y = x * 2.0
    if n > 1:
        y = y * w
    if n > 0:
        z = y + 1.0
    else:
        z = y.detach()
    return y, z


def of_an_early_return(x: Any, w: Any, n: Any) -> Any:
    for i in range(n):
        if i > 1:
            return x * w
    return x * 2.0


def of_a_write(x: Any, w: Any, n: Any) -> Any:
    y = x * 2.0
    if n > 1:
        y[0] = w
    if n > 2:
        y.add_(x)
    return y


def of_a_write_without_gradients(x: Any, w: Any, n: Any) -> Any:
    y = x * 2.0
    if n > 1:
        y = y * w
    with paddle.no_grad():
        y.copy_(x)
        z = y * w
    return y, z


def of_a_leaf(x: Any, w: Any, n: Any) -> Any:
    y = x.detach()
    y.stop_gradient = w.stop_gradient
    z = x * 2.0
    if n > 1:
        z = z * y
    return z, z * 2.0


def of_a_handler(x: Any, w: Any, n: Any) -> Any:
    y = x * 2.0
    try:
        y = y * w
        if n > 1:
            raise ValueError("asked for")
        z = y * 1.0
    except ValueError:
        z = x * 1.0
    return y, z


def of_a_name_that_may_be_another(x: Any, w: Any, n: Any) -> Any:
    y, z = x * 2.0, x * w
    k = y
    if n > 1:
        k = z
    return y, z, k


def of_an_attribute(x: Any, w: Any, n: Any) -> Any:
    made = Holder(x * 1.0)
    if n > 1:
        made.h = made.h * w
    return made, {"h": made.h + 1.0}


def of_nested_loops(x: Any, w: Any, n: Any) -> Any:
    h = x * 1.0
    for i in range(n):
        for j in range(n):
            if i + j > 1:
                h = h * w
    return h + x


FUNCTIONS = [f for name, f in globals().copy().items() if name.startswith("of_")]


def told(found: Any) -> Any:
    if isinstance(found, paddle.Tensor):
        return found.stop_gradient, found.tolist()
    if isinstance(found, (list, tuple)):
        return [told(x) for x in found]
    if isinstance(found, Holder):
        found = vars(found)
    return {name: told(x) for name, x in found.items()}


def result(function: Function, n: int, x_stops: bool, w_stops: bool) -> Any:
    x, w = T([0.5, 0.75], stop_gradient=x_stops), T(2.0, stop_gradient=w_stops)
    made = function(x, w, T(n))
    first = made[0] if isinstance(made, tuple) else made
    loss = (first.h if isinstance(first, Holder) else first).sum()
    if not loss.stop_gradient:
        loss.backward()
    return told(made), [None if t.grad is None else t.grad.tolist() for t in (x, w)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_stop_gradient_of_what_leaves_is_that_of_the_way_that_was_taken(function: Function) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for stops in ((True, False), (True, True), (False, False), (False, True)):
        for n in (3, 0, 2, 1, 3, 0):
            assert result(static, n, *stops) == result(function, n, *stops), (n, stops)


def test_a_leaf_that_the_function_makes_leaves_it_as_one() -> None:
    def makes(x: Any) -> Any:
        y = x.detach() * 2.0
        y.stop_gradient = False
        return y, (y * y).sum()

    static = paddle.jit.to_static(makes)
    with pytest.warns(FallbackWarning, match="a tensor that was given stop_gradient=False in the function leaves it"):
        static(T([1.0, 2.0]))
    for x in (T([1.0, 2.0]), T([1.0, 2.0], stop_gradient=False)):
        y, loss = static(x)
        loss.backward()
        assert y.grad.tolist() == [4.0, 8.0]


def reads(t: Any) -> str:
    return "stops" if t.stop_gradient else "needs"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_called_between_parts_reads_what_eager_mode_has(function: Function) -> None:
    def split(x: Any, w: Any, n: Any) -> Any:
        y = function(x * 1.0, w * 1.0, n)
        first = y[0] if isinstance(y, tuple) else y
        first = getattr(first, "h", first)
        seen = [float(first.sum().numpy())]
        return seen, reads(first), first.stop_gradient

    static = paddle.jit.to_static(split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for n in (3, 0, 2, 1, 3, 0):
            x, w = T([0.5, 0.75]), T(2.0, stop_gradient=False)
            assert static(x, w, T(n)) == split(x, w, T(n)), n
    assert static.explain().split is not None


def test_what_a_list_holds_is_read_as_in_eager_mode() -> None:
    def split(x: Any, w: Any, n: Any) -> Any:
        rows, h = [], x * 1.0
        for _ in range(n):
            rows.append(h + 1.0)
            h = h * w
        count = len(rows)
        print(count, h.numpy().shape)
        return [reads(row) for row in rows]

    static = paddle.jit.to_static(split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for n in (3, 0, 2, 1, 3, 0):
            x, w = T([0.5, 0.75]), T(2.0, stop_gradient=False)
            assert static(x, w, T(n)) == split(x, w, T(n)), n
