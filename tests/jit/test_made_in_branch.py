"""Objects that a branch makes and that lead to each other: what cannot be a value of a Program runs eagerly."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle


class Node:
    def __init__(self, value: Any, left: Any = None, right: Any = None):
        self.value, self.left, self.right = value, left, right


def leading_to_itself(x):
    if x.sum() > 0:
        a = Node(x)
        a.left = a
    else:
        a = Node(-x)
        a.left = a
    a.value = x * 10
    return a.left.value


def each_to_two(x):
    a, b, c = Node(x), Node(x * 2), Node(x * 3)
    if x.sum() > 0:
        a, b, c = Node(x), Node(x * 2), Node(x * 3)
        a.left = b.left = c.left = a
        a.right = b.right = c.right = b
    return c.value


def twice_the_same(x):
    if x.sum() > 0:
        inner, a = Node(x), Node(x * 2)
        a.left = a.right = inner
    else:
        inner, a = Node(x * 3), Node(x)
        a.left = a.right = inner
    a.left.value = x * 10
    return a.right.value


def endless_content(x):
    a = []
    if x.sum() > 0:
        a = [x]
        a.append(a)
    return a[0] if a else x


def many(x):
    a = [x]
    if x.sum() > 0:
        a = [x * 2]
        for _ in range(20):
            a = [a, a]
    return x * len(a)


def deep(x):
    a = [x]
    if x.sum() > 0:
        for _ in range(60):
            a = [a]
    return x * len(a)


TEXTS = {
    leading_to_itself: "a Node that is made inside of a branch or loop leads to itself",
    each_to_two: "a Node that is made inside of a branch or loop leads to itself",
    twice_the_same: "an object is changed in place, and only the run will tell whether another variable, item or "
    "attribute is the same object",
    endless_content: "a list that is made inside of a branch or loop leads to itself",
    many: "a list that is made inside of a branch or loop has too many parts",
    deep: "a list that is made inside of a branch or loop has too many parts",
}


@pytest.mark.parametrize("function", TEXTS, ids=lambda f: f.__name__)
def test_it_runs_eagerly_and_says_why(function: Callable[..., Any]) -> None:
    static = paddle.jit.to_static(function)
    for x in (paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([-1.0, 0.5])):
        wanted = function(x)
        if static.code and x[0] > 0:
            with pytest.warns(UserWarning, match=TEXTS[function]):
                found = static(x)
        else:
            found = static(x)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_objects_that_nobody_changes_may_be_reached_twice() -> None:
    def f(x):
        if x.sum() > 0:
            inner = Node(x)
        else:
            inner = Node(-x)
        a = Node(x, inner, inner)
        return a.left.value + a.right.value

    static = paddle.jit.to_static(f, full_graph=True)
    for x in (paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([-1.0, 0.5])):
        np.testing.assert_array_equal(static(x).numpy(), f(x).numpy())


def test_objects_that_each_branch_makes_anew_are_changed_in_place() -> None:
    def f(x):
        if x.sum() > 0:
            a, b = Node(x), Node(x * 2)
        else:
            a, b = Node(-x), Node(x * 3)
        a.value = a.value * 10
        return a.value + b.value

    static = paddle.jit.to_static(f, full_graph=True)
    for x in (paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([-1.0, 0.5])):
        np.testing.assert_array_equal(static(x).numpy(), f(x).numpy())


def test_a_loop_follows_a_chain_that_a_branch_made() -> None:
    def total(x):
        if x.sum() > 0:
            node = Node(x)
            node = Node(x * 2, node)
            node = Node(x * 3, node)
        else:
            node = Node(x - 1)
        s = paddle.zeros_like(x)
        while node is not None:
            s = s + node.value
            node = node.left
        return s

    static = paddle.jit.to_static(total, full_graph=True)
    for given in ([1.0, 2.0], [-1.0, -2.0], [3.0, 0.5]):
        x = paddle.to_tensor(given)
        np.testing.assert_array_equal(static(x).numpy(), total(x).numpy())


def test_lists_that_hold_each_other_many_levels_deep_are_refused_at_once() -> None:
    def linked(x):
        nodes = [Node(x * i, []) for i in range(8)]
        if x.sum() > 0:
            for node in nodes:
                node.left = nodes
        return sum((other.value for node in nodes for other in node.left), x * 0)

    x = paddle.to_tensor([1.0, 2.0])
    with pytest.warns(match="lists inside of each other, 4 deep, hold what differs between two paths"):
        found = paddle.jit.to_static(linked)(x)
    np.testing.assert_array_equal(found.numpy(), linked(x).numpy())
