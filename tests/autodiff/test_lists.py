"""Derivatives through lists that grow: append, pop, read, set, stack, at orders 1 to 3."""

import numpy as np
import pytest

from dy2st.autodiff.programs import vjp
from dy2st.ir.types import BOOL, INT, ListType, TupleType
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import VECTOR, cond, counted_while, empty_list, program, while_loop
from tests.autodiff.checking import check

X = np.array([0.3, -0.7, 1.2])
Y = np.array([0.5, 0.4, -0.2])


def test_append_and_read():
    def body(b, x, y):
        items = b.list_append(b.list_append(empty_list(b), b.exp(x)), b.mul(x, y))
        return b.mul(b.list_get(items, 0), b.list_get(items, -1))

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


def test_one_element_read_twice():
    def body(b, x, y):
        items = b.list_append(empty_list(b), b.mul(x, y))
        return b.mul(b.list_get(items, 0), b.exp(b.list_get(items, 0)))

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


def test_set_replaces_an_element():
    def body(b, x, y):
        items = b.list_append(b.list_append(empty_list(b), b.exp(x)), b.mul(x, y))
        first = b.list_get(items, 0)
        items = b.list_set(items, -2, b.tanh(y))
        return b.mul(first, b.add(b.list_get(items, 0), b.list_get(items, 1)))

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


@pytest.mark.parametrize("at", [-1, 0, 1, -3])
def test_pop(at):
    def body(b, x, y):
        items = empty_list(b)
        for one in (b.exp(x), b.mul(x, y), b.tanh(y)):
            items = b.list_append(items, one)
        items, popped = b.list_pop(items, at)
        return b.mul(popped, b.mul(b.list_get(items, 0), b.exp(b.list_get(items, 1))))

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


def test_stack_of_a_list():
    def body(b, x, y):
        items = b.list_append(b.list_append(empty_list(b), b.exp(x)), b.mul(x, y))
        stacked = b.list_stack(items)
        return b.sum(b.mul(stacked, stacked), axis=(0, 1), keepdim=False)

    check(program([VECTOR, VECTOR], body), X, Y, order=2)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop_appends_and_the_next_one_reads(turns):
    def body(b, n, x, y):
        def grow(b, i, s, items):
            s = b.mul(b.tanh(s), y)
            return s, b.list_append(items, s)

        last, items = counted_while(b, n, [x, empty_list(b)], grow)

        def read(b, i, total):
            return b.add(total, b.mul(b.list_get(items, i), x))

        return b.mul(counted_while(b, n, [b.zeros_like(x)], read), b.exp(last))

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=3, tolerance=1e-5)


def test_a_loop_pops_until_the_list_is_empty():
    def body(b, n, x, y):
        items = counted_while(b, n, [empty_list(b)], lambda b, i, items: b.list_append(items, b.mul(x, b.tanh(y))))

        def more(b, items, total):
            return b.scalar_gt(b.list_len(items), 0)

        def turn(b, items, total):
            items, top = b.list_pop(items, -1)
            return items, b.mul(b.add(total, top), top)

        return while_loop(b, [items, x], more, turn)[1]

    for turns in (0, 1, 3):
        check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=2)


@pytest.mark.slow
def test_a_stack_machine():
    """Push and pop in one loop; which of both a turn does follows from its number."""

    def body(b, n, x, y):
        def turn(b, i, items):
            even = b.scalar_eq(b.scalar_mod(i, 2), 0)

            def push(b):
                return b.list_append(items, b.mul(b.list_get(items, -1), x))

            def combine(b):
                rest, top = b.list_pop(items, -1)
                rest, below = b.list_pop(rest, -1)
                return b.list_append(rest, b.add(b.mul(top, below), y))

            return cond(b, even, push, combine)

        items = counted_while(b, n, [b.list_append(empty_list(b), x)], turn)
        return b.list_get(items, -1)

    for turns in (0, 1, 2, 5):
        check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=2, tolerance=1e-5)


@pytest.mark.parametrize("turns", [0, 2, 4])
def test_an_element_is_set_in_every_turn(turns):
    def body(b, n, x, y):
        items = b.list_append(b.list_append(empty_list(b), x), y)

        def turn(b, i, items):
            at = b.scalar_mod(i, 2)
            other = b.scalar_sub(1, at)
            return b.list_set(items, at, b.mul(b.tanh(b.list_get(items, other)), b.list_get(items, at)))

        items = counted_while(b, n, [items], turn)
        return b.mul(b.list_get(items, 0), b.list_get(items, 1))

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=2)


@pytest.mark.parametrize("taken", [True, False])
def test_a_list_that_one_branch_extends(taken):
    def body(b, p, x, y):
        items = b.list_append(empty_list(b), b.mul(x, x))
        items = cond(b, p, lambda b: b.list_append(items, b.exp(y)), lambda b: items)
        return b.mul(b.list_get(items, -1), x)

    check(program([BOOL, VECTOR, VECTOR], body), taken, X, Y, order=3)


@pytest.mark.parametrize("taken", [True, False])
def test_a_list_that_is_read_in_one_branch_of_a_loop(taken):
    def body(b, p, x, y):
        items = b.list_append(b.list_append(empty_list(b), b.exp(x)), b.tanh(y))

        def turn(b, i, total):
            return cond(b, p, lambda b: b.add(total, b.mul(b.list_get(items, i), x)), lambda b: b.mul(total, y))

        return counted_while(b, 2, [x], turn)

    check(program([BOOL, VECTOR, VECTOR], body), taken, X, Y, order=2)


def test_a_list_of_lists():
    inner = ListType(VECTOR)

    def body(b, x, y):
        first = b.list_append(b.list_append(empty_list(b), x), b.exp(y))
        outer = b.list_append(b.list_append(empty_list(b, ListType(inner)), first), b.list_append(first, b.mul(x, y)))
        again = b.list_get(outer, 1)
        return b.mul(b.list_get(again, 2), b.mul(b.list_get(again, 0), b.list_get(b.list_get(outer, 0), 1)))

    check(program([VECTOR, VECTOR], body), X, Y, order=2)


def test_a_list_of_tuples():
    pair = TupleType((VECTOR, INT))

    def body(b, x, y):
        items = empty_list(b, ListType(pair))
        items = b.list_append(items, b.tuple_new(b.mul(x, y), b.scalar(3)))
        tensor, number = b.operation("tuple_get", [b.list_get(items, 0)]).results
        return b.mul(b.exp(tensor), b.scalar_to_tensor(number, dtype=VECTOR.dtype))

    check(program([VECTOR, VECTOR], body), X, Y, order=2)


def test_a_list_result_has_a_list_of_cotangents():
    def body(b, x, y):
        return b.list_append(b.list_append(empty_list(b), b.mul(x, y)), b.mul(x, x))

    made = vjp(program([VECTOR, VECTOR], body), (0, 1), [(0, False)])
    values = evaluate(made.forward, [X, Y])
    ct = np.ones(3)
    dx, dy = evaluate(made.backward, [*values[1:], [(0, None), (1, ct)]])
    assert dx[0] == 1
    np.testing.assert_allclose(dx[1], 2 * X)
    assert dy == (0, None)
