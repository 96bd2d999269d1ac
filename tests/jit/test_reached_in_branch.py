"""Objects that code reaches in a branch first, through globals, other objects and classes: their writes count."""

from typing import Any

import pytest

import dy2st as paddle


class Box:
    def __init__(self) -> None:
        self.n, self.items, self.mean = 0, [], paddle.zeros([1])


class Shared:
    n = 0


box, table = Box(), {"box": Box()}
outer: Any = Box()
outer.inner = Box()


def count(one: Any, x: Any) -> Any:
    one.n += 1
    return x


def of_a_global(x):
    if x.sum() > 0:
        box.n += 1
        box.mean = box.mean * 0.9 + x.mean().detach() * 0.1
    return x - box.mean


def of_another_object(x):
    if x.sum() > 0:
        outer.inner.n += 1
    return x


def of_a_class(x):
    if x.sum() > 0:
        Shared.n += 1
    return x


def of_an_item(x):
    if x.sum() > 0:
        table["box"].n += 1
    return x


def in_a_function(x):
    return count(box, x) if x.sum() > 0 else x


def under_another_name(x):
    if x.sum() > 0:
        one = outer.inner
        one.n += 2
    else:
        one = box
    one.n += 1
    return x


def in_a_loop(x):
    while x.sum() < 10:
        outer.inner.n += 1
        x = x.abs() + 1
    return x


def state() -> list[Any]:
    boxes = [box, outer, outer.inner, table["box"]]
    return [Shared.n, *((b.n, b.items, b.mean.tolist()) for b in boxes)]


def reset() -> None:
    Shared.n = 0
    for one in (box, outer, outer.inner, table["box"]):
        one.n, one.items, one.mean = 0, [], paddle.zeros([1])


FUNCTIONS = [of_a_global, of_another_object, of_a_class, of_an_item, in_a_function, under_another_name, in_a_loop]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_write_reaches_the_object(function: Any) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    seen: list[Any] = []
    for call in (function, static):
        reset()
        found = [call(paddle.to_tensor(v)).tolist() for v in ([1.0, 2.0], [-1.0, -2.0], [3.0, 2.0])]
        seen.append((found, state()))
    assert seen[0] == seen[1]


def test_an_operator_of_a_users_class_in_place() -> None:
    class Total:
        def __init__(self) -> None:
            self.sum, self.turns = 0.0, 0

        def __iadd__(self, x: Any) -> Any:
            if x > 0:
                self.turns += 1
            self.sum = self.sum + x
            return self

    total = Total()

    @paddle.jit.to_static(full_graph=True)
    def f(x: Any) -> Any:
        nonlocal total
        total += x
        return x

    for value in (1.0, -2.0, 4.0):
        f(paddle.to_tensor(value))
    assert (float(total.sum), total.turns) == (3.0, 2)
