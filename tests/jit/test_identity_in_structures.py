"""Tensors in tuples, dicts and objects that may be there or not are the caller's own, or one with another result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle

KEPT: dict[str, Any] = {}
LAST: Any = None


class Box:
    def __init__(self, v: Any = None):
        self.v = v


def tensors(x: Any) -> list[Any]:
    """Return the tensors in a result, in order, each as often as it is met."""
    if isinstance(x, paddle.Tensor):
        return [x]
    if isinstance(x, Box):
        return tensors(list(vars(x).values()))
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for item in items for t in tensors(item)]


def other_structures(x, given):
    if x.sum() > 2:
        return x
    if x.sum() > 0:
        return x, 1
    return [x, {"x": x}]


def a_tuple_or_none(x, given):
    found, y = None, x * 2
    if x.sum() > 0:
        found = (x, y)
    return found, y


def a_dict_or_none(x, given):
    found = None
    if x.sum() > 0:
        found = {"a": x, "b": given["t"]}
    return found


def other_keys(x, given):
    if x.sum() > 0:
        given["z"] = x
        given["l"] = [x]
    return given


def more_elements(x, given):
    items = [given["t"], x]
    if x.sum() > 0:
        items += [1, x * 2]
    return items


def a_tuple_that_grows(x, given):
    found, i = (x,), 0
    while i < 3:
        if x.sum() * i > 1:
            found += (i,)
        i += 1
    return found


def an_attribute_that_may_be_there(x, given):
    box = Box(x)
    if x.sum() > 0:
        box.w = x * 2
    return getattr(box, "w", None), box


def what_is_kept_and_returned(x, given):
    KEPT["y"] = x * 2
    return KEPT["y"]


def a_global_that_may_be_a_list(x, given):
    global LAST
    LAST = x if x.sum() > 0 else [x, x * 2]
    return LAST


def elements_of_a_deque(x, given):
    from collections import deque

    queue, i = deque([x], maxlen=3), 0
    while i < 4:
        queue.append(queue[-1] * 2)
        if queue[-1].sum() > 20:
            queue.popleft()
        i += 1
    return list(queue), queue[0]


def objects_of_two_classes(x, given):
    return Box((x, 1)) if x.sum() > 0 else Box([x, given["t"]])


Function = Callable[..., Any]
FUNCTIONS: list[Function] = [
    other_structures, a_tuple_or_none, a_dict_or_none, other_keys, more_elements, a_tuple_that_grows,
    an_attribute_that_may_be_there, what_is_kept_and_returned, a_global_that_may_be_a_list, elements_of_a_deque,
    objects_of_two_classes,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_one_tensor_in_eager_mode_is_one_tensor(function: Function) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for values in ([1.0, 2.0], [-1.0, -2.0], [0.5, 0.25], [3.0, 4.0], [-1.0, 0.5]):
        shown = []
        for way in (function, static):
            x = paddle.to_tensor(values, stop_gradient=False)
            given = {"t": paddle.to_tensor([7.0])}
            result = way(x, given)
            found = [x, given["t"], *tensors(result), *tensors(list(given.values())), *tensors(KEPT), *tensors(LAST)]
            first = {id(t): i for i, t in reversed([*enumerate(found)])}
            shown.append([(first[id(t)], t.stop_gradient, t.is_leaf, t.numpy().tolist()) for t in found])
        assert shown[1] == shown[0]


def test_the_gradient_of_what_may_be_there_is_that_of_eager_mode() -> None:
    def f(x):
        found = None
        if x.sum() > 0:
            found = {"a": x, "b": [x * 2, x]}
        return found

    for way in (f, paddle.jit.to_static(f, full_graph=True)):
        for _ in range(3):
            x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
            found = way(x)
            (found["a"] * found["b"][0] + found["b"][1]).sum().backward()
            assert x.grad.numpy().tolist() == [5.0, 9.0]
