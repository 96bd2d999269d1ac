"""Variables that a function rebinds in another one, or globally, while a branch or loop around its call is traced."""

from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import TraceError

total = 0


def bump_total():
    global total
    total += 1


def of_a_branch(x):
    n = 0

    def bump():
        nonlocal n
        n += 1

    def maybe(v):
        if v > 0:
            bump()

    maybe(x.sum())
    return n


def of_a_loop(x):
    n = 0

    def bump():
        nonlocal n
        n += 1

    def count(v):
        while v < 10:
            bump()
            v = v + 3

    count(x.sum())
    return n


def of_branches_in_loops(x):
    n = x * 0

    def add(v):
        nonlocal n
        n = n + v

    def rows(items):
        for v in items:
            if v > 0:
                add(v)
            elif v < -1:
                add(-v)
                if v < -2:
                    break

    rows(x)
    return n


def a_tensor(x):
    n = x

    def double():
        nonlocal n
        n = n * 2

    def maybe(v):
        if v > 0:
            double()
        return v + 1

    return maybe(x.sum()), n


def a_global(x):
    if x.sum() > 0:
        bump_total()
    return x + total


def a_global_twice(x):
    global total
    if x.sum() > 0:
        bump_total()
        total += 10
    return x


def in_a_conditional_expression(x):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    def either(v):
        return bump() if v > 0 else 0

    return either(x.sum()), either(-x.sum()), n


def inside_of_the_branch_only(x):
    def counts(v):
        n = 0

        def bump():
            nonlocal n
            n += 1

        bump()
        if v > 1:
            bump()
        return n

    return counts(x.sum()) if x.sum() > 0 else counts(x.sum() + 5)


def in_a_generator_expression(x):
    n = 0

    def seen(v):
        nonlocal n
        n += 1
        return v > 1

    return any(seen(v) for v in x), all(seen(v) for v in x), n


def counter() -> Any:
    n = 0

    def bump():
        nonlocal n
        n += 1

    def counted(x):
        if x.sum() > 0:
            bump()
        return x + n

    return counted


FUNCTIONS = [of_a_branch, of_a_loop, of_branches_in_loops, a_tensor, a_global, a_global_twice,
             in_a_conditional_expression, inside_of_the_branch_only, in_a_generator_expression]  # fmt: skip
VALUES = ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0, 4.0], [0.5, -0.25])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_rebound_is_as_eager_leaves_it(function: Any) -> None:
    for values in VALUES:
        assert paddle.jit.verify(function, paddle.to_tensor(values, stop_gradient=False)).check()


def test_a_closure_that_outlives_the_calls() -> None:
    eager, plain = counter(), counter()
    static = paddle.jit.to_static(plain, full_graph=True)
    for values in (*VALUES, *VALUES):
        assert static(paddle.to_tensor(values)).tolist() == eager(paddle.to_tensor(values)).tolist()


def test_a_global_over_several_calls() -> None:
    global total
    static = paddle.jit.to_static(a_global, full_graph=True)
    found: list[Any] = []
    for call in (a_global, static):
        total = 0
        found.append([call(paddle.to_tensor(v)).tolist() for v in (*VALUES, *VALUES)])
    assert found[0] == found[1]


def test_in_a_recursion_it_is_refused() -> None:
    def f(x):
        n = 0

        def deeper(v):
            nonlocal n
            n += 1
            return deeper(v / 2) if v > 1 else v

        return deeper(x.sum()), n

    with pytest.raises(TraceError, match="`deeper` rebinds `n` of another function where that is not handed over"):
        paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor([8.0]))
