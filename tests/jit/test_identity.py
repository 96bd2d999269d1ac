"""A result that is an argument, or a tensor from outside, is that very tensor, as in eager mode."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle

T = paddle.to_tensor


class Box:
    """Holds a tensor and a list."""

    def __init__(self) -> None:
        self.state = T([0.5])
        self.kept = []


def test_a_returned_argument_is_that_tensor() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x, y):
        return x, y * 2, [y, {"x": x}]

    x, y = T([1.0], stop_gradient=False), T([2.0])
    for _ in range(3):
        first, double, (second, more) = function(x, y)
        assert first is x
        assert second is y
        assert more["x"] is x
        assert double.tolist() == [4.0]


def test_an_argument_that_a_branch_left_alone_is_that_tensor() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x, y):
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return x, y

    x = T([1.0])
    assert function(x, T([1.0]))[0] is x


def test_a_stored_argument_is_that_tensor() -> None:
    box = Box()

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        box.state = x
        box.kept.append(x)
        return x * 2

    for _ in range(2):
        x = T([1.0], stop_gradient=False)
        function(x).sum().backward()
        assert box.state is x
        assert box.kept[-1] is x
        assert x.grad.tolist() == [2.0]


def test_an_argument_that_is_written_is_that_tensor_after_it() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x):
        x[0] = 5.0
        return x

    x = T([1.0, 2.0])
    assert function(x) is x
    assert x.tolist() == [5.0, 2.0]


def test_a_returned_parameter_is_that_parameter() -> None:
    layer = paddle.nn.Linear(2, 2)

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        return layer(x).sum(), layer.weight

    loss, weight = function(T([[1.0, 2.0]]))
    assert weight is layer.weight
    loss.backward()
    assert weight.grad is not None


def test_a_detached_argument_is_another_tensor() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x):
        return x.detach(), x.clone(), x + 0

    x = T([1.0], stop_gradient=False)
    assert all(y is not x for y in function(x))


def test_views_of_arguments_and_of_other_results_are_views() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x, n):
        double = x * 2
        return x.reshape([-1])[n:], double, double[0]

    for _ in range(4):  # step by step first, natively then
        x = T([[1.0, 2.0], [3.0, 4.0]])
        flat, double, row = function(x, 1)
        flat[0], row[1] = 7.0, 8.0
        x[1, 1] = 9.0
        assert x.tolist() == [[1.0, 7.0], [3.0, 9.0]]
        assert flat.tolist() == [7.0, 3.0, 9.0]
        assert double.tolist() == [[2.0, 8.0], [6.0, 8.0]]


def test_what_the_run_keeps_can_be_a_view() -> None:
    box = Box()

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        box.state = x[1]
        box.kept.append(x[0])
        x[0] = x[0] * 2

    for _ in range(3):
        x = T([[1.0], [3.0]])
        function(x)
        x[1] = 5.0
        assert box.state.tolist() == [5.0]
        assert box.kept[-1].tolist() == [2.0]


def test_gradients_reach_the_tensor_that_a_result_shows() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x, w):
        x.multiply_(w)
        return x[0:1], x.sum(), x.detach()[1], w[1]

    w = T([2.0, 3.0], stop_gradient=False)
    for _ in range(3):
        x = T([5.0, 7.0], stop_gradient=False)
        first, total, still, part = function(x * 1, w)
        w.clear_grad()
        (first * first + total + part).sum().backward()
        assert still.stop_gradient
        assert w.grad.tolist() == [105.0, 8.0]
        assert x.grad.tolist() == [42.0, 3.0]


def test_an_argument_with_views_can_be_written_before_its_gradient() -> None:
    @paddle.jit.to_static(full_graph=True)
    def scale(x, w):
        x.multiply_(w)

    w = T([2.0, 3.0], stop_gradient=False)
    x = T([5.0, 7.0])
    part = x[0:1]
    scale(x, w)
    (x * x).sum().backward()
    assert part.tolist() == [10.0]
    assert w.grad.tolist() == [100.0, 294.0]


def test_a_view_of_a_view_many_times_over():
    static = paddle.jit.to_static(_many_slices, full_graph=True)
    x = paddle.to_tensor(np.arange(1300.0, dtype="float32"))
    made = static(x)
    assert made.numpy().tolist() == list(range(1200, 1300))
    made[0] = -1.0
    assert x.numpy()[1200] == -1


def _many_slices(x):
    for _ in range(1200):
        x = x[1:]
    return x


def structure(x: Any, numbers: dict[int, int]) -> Any:
    """Return what a result is made of, with a number for each object in it."""
    if isinstance(x, tuple):
        return tuple(structure(i, numbers) for i in x)
    number = numbers.setdefault(id(x), len(numbers))
    if isinstance(x, (list, dict)):
        return number, [structure(i, numbers) for i in (x.values() if isinstance(x, dict) else x)]
    return (number, structure(x.kept, numbers)) if isinstance(x, Box) else number


def the_callers_list(x: Any, items: Any) -> Any:
    items.append(x * 2)
    return items, {"again": items, "first": items[0]}


def the_callers_list_or_none(x: Any, items: Any) -> Any:
    return items if x.sum() > 1 else None


def a_list_twice(x: Any, items: Any) -> Any:
    made = [x * 2, *items]
    return made, [made, x], made


def a_list_that_grew_twice(x: Any, items: Any) -> Any:
    made = []
    while len(made) < x.sum():
        made.append(x * 2)
    return made, [made, made]


def an_object_and_what_it_holds(x: Any, items: Any) -> Any:
    box = Box()
    box.kept.append(x * 3)
    return box, box.kept, box.kept[0], box


def a_tensor_twice(x: Any, items: Any) -> Any:
    y = x * 2
    return y, [y, x], {"y": y, "x": x}


def tensors_of_one_value(x: Any, items: Any) -> Any:
    y = x * 2
    z = y.clone()
    w = paddle.zeros_like(x)
    w.copy_(y)
    return y, z, w, w


@pytest.mark.parametrize("function", [
    the_callers_list, the_callers_list_or_none, a_list_twice, a_list_that_grew_twice, an_object_and_what_it_holds,
    a_tensor_twice, tensors_of_one_value,
])  # fmt: skip
@pytest.mark.parametrize("stop_gradient", [True, False])
def test_what_is_one_object_is_one_at_each_call(function: Any, stop_gradient: bool) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for values in ([0.25, 0.5], [1.0, 2.0], [1.0, 0.5], [0.1, 0.1], [2.0, 1.0]):
        found = []
        for call in (function, static):
            x, items = T(values, stop_gradient=stop_gradient), [T([1.0, 1.0]), T([2.0, 0.5])]
            numbers: dict[int, int] = {}
            structure((x, items), numbers)
            result = call(x, items)
            found.append((structure(result, numbers), structure(items, numbers)[0], len(items)))
        assert found[1] == found[0]
