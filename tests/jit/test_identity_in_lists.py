"""Elements of lists that leave a static function are the tensors that they are in eager mode, also when written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle

T = paddle.to_tensor
Function = Callable[[Any, Any], Any]


def last_of_the_rows(x: Any, n: Any) -> Any:
    rows, last = [], x * 1.0
    for _ in range(n):
        last = last * 2.0
        rows.append(last)
    return rows, last


def the_best(x: Any, n: Any) -> Any:
    rows, best = [], x * 0.0
    for i in range(n):
        y = x * i
        rows.append(y)
        if y.sum() > best.sum():
            best = y
    return best, rows


def both_ends(x: Any, n: Any) -> Any:
    rows = [x * 0.0]
    for _ in range(n):
        rows.append(rows[-1] + 1.0)
    return rows[0], rows[-1], rows


def an_argument(x: Any, n: Any) -> Any:
    rows = [x]
    while n > 0:
        rows.append(x * 2.0 if n > 1 else x)
        n = n - 1
    return rows


def two_lists(x: Any, n: Any) -> Any:
    rows, odd = [], []
    for i in range(n):
        y = x + i
        rows.append(y)
        if i % 2 > 0:
            odd.append(y)
    return rows, odd


def moved_about(x: Any, n: Any) -> Any:
    rows = [x * 1.0, x * 2.0]
    for i in range(n):
        rows.insert(0, x * i)
        if i > 0:
            rows.append(rows.pop(1))
    taken = rows.pop()
    rows[0] = taken
    rows.reverse()
    return rows, rows[1:], taken, rows + [taken]


def under_a_branch(x: Any, n: Any) -> Any:
    y = x * 3.0
    rows = [y] if n > 1 else [x, y]
    rows += [x]
    return rows, y


def equal_values(x: Any, n: Any) -> Any:
    rows = []
    for _ in range(n):
        rows.append(x * 2.0)
    return rows, x * 2.0


FUNCTIONS = [
    *(last_of_the_rows, the_best, both_ends, an_argument, two_lists, moved_about, under_a_branch, equal_values),
]  # fmt: skip


def tensors(found: Any) -> list[Any]:
    return [found] if isinstance(found, paddle.Tensor) else [t for x in found for t in tensors(x)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_one_tensor_in_eager_mode_is_one_tensor(function: Function) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for n in (3, 0, 2, 1, 4, 3):
        shown = []
        for way in (function, static):
            x: Any = T([1.0, 2.0])
            found = [x, *tensors(way(x, T(n)))]
            same = [a is b for a, b in itertools.combinations(found, 2)]
            for i, t in enumerate(found):
                t.add_(T(float(10 * i)))
            shown.append((same, [t.tolist() for t in found]))
        assert shown[0] == shown[1], n


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_go_through_elements_that_are_shared(function: Function) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for n in (3, 0, 2, 1, 4, 3):
        shown = []
        for way in (function, static):
            x: Any = T([1.0, 2.0], stop_gradient=False)
            found = tensors(way(x, T(n)))
            sum(((t * (i + 1.0)).sum() for i, t in enumerate(found)), x.sum()).backward()
            shown.append((x.grad.tolist(), [t.stop_gradient for t in found]))
        assert shown[0] == shown[1], n
