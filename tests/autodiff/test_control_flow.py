"""Derivatives through `cond`, `while_loop` and `counted_while`: reverse = forward = differences, to third order."""

import numpy as np
import pytest

from dy2st.ir.types import BOOL, INT
from tests.autodiff.building import POINT, VECTOR, cond, counted_while, program, while_loop
from tests.autodiff.checking import check

X = np.array([0.3, -0.7, 1.2])
Y = np.array([0.5, 0.4, -0.2])


def below(limit):
    return lambda b, i, *rest: b.scalar_lt(i, limit)


def test_straight_line():
    def body(b, x, y):
        return b.mul(b.exp(b.mul(x, y)), b.tanh(x)), b.sum(b.mul(x, x), axis=(0,), keepdim=False)

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


def test_broadcast_of_a_point():
    check(program([VECTOR, POINT], lambda b, x, s: b.mul(b.mul(x, s), b.exp(s))), X, np.array(0.4), order=3)


def test_an_extent_of_one_is_no_special_case():
    check(program([VECTOR, VECTOR], lambda b, x, y: b.mul(b.exp(x), y)), np.array([0.3]), np.array([0.5]), order=3)


@pytest.mark.parametrize("taken", [True, False])
def test_cond(taken):
    def body(b, p, x, y):
        return cond(b, p, lambda b: b.mul(b.exp(x), y), lambda b: b.tanh(b.mul(y, y)))

    check(program([BOOL, VECTOR, VECTOR], body), taken, X, Y, order=3)


@pytest.mark.parametrize("taken", [True, False])
def test_cond_of_which_one_branch_passes_on(taken):
    def body(b, p, x, y):
        z = cond(b, p, lambda b: x, lambda b: b.mul(y, y))
        return b.mul(b.exp(z), x)

    check(program([BOOL, VECTOR, VECTOR], body), taken, X, Y, order=3)


@pytest.mark.parametrize(("p", "q"), [(True, True), (True, False), (False, True), (False, False)])
def test_nested_cond(p, q):
    def body(b, p, q, x, y):
        inner = lambda b: cond(b, q, lambda b: b.exp(b.mul(x, y)), lambda b: b.tanh(y))
        return b.mul(cond(b, p, inner, lambda b: b.mul(x, b.mul(x, x))), x)

    check(program([BOOL, BOOL, VECTOR, VECTOR], body), p, q, X, Y, order=3)


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("reverse", [False, True])
def test_counted_while(turns, reverse):
    def body(b, n, x, y):
        def turn(b, i, s):
            return b.mul(b.tanh(s), b.add(y, b.scalar_to_tensor(i, dtype=VECTOR.dtype)))

        return counted_while(b, n, [x], turn, reverse)

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=3)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_while_loop(turns):
    def body(b, n, x, y):
        def turn(b, i, s):
            return b.scalar_add(i, 1), b.mul(b.exp(b.mul(s, y)), x)

        return while_loop(b, [b.scalar(0), x], below(n), turn)[1]

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=3, tolerance=1e-5)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_several_carried_values_that_swap(turns):
    def body(b, n, x, y):
        return counted_while(b, n, [x, y], lambda b, i, s, t: (t, b.mul(s, t)))

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=3)


def test_a_carried_value_that_becomes_active_late():
    def body(b, n, x, y):
        zero = b.zeros_like(x)
        return counted_while(b, n, [zero, zero, x], lambda b, i, r, s, t: (s, t, b.mul(t, y)))

    for turns in (0, 1, 2, 3, 5):
        check(program([INT, VECTOR, VECTOR], body), turns, X, Y)


@pytest.mark.parametrize("turns", [0, 2])
def test_nested_loops(turns):
    def body(b, n, x, y):
        def outer(b, i, s):
            def inner(b, k, t):
                return b.scalar_add(k, 1), b.mul(b.tanh(t), b.add(x, s))

            return b.mul(while_loop(b, [b.scalar(0), s], below(i), inner)[1], y)

        return counted_while(b, n, [x], outer)

    check(program([INT, VECTOR, VECTOR], body), turns + 1, X, Y, order=3, tolerance=1e-5)


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_cond_in_a_loop(turns):
    def body(b, n, x, y):
        def turn(b, i, s):
            even = b.scalar_eq(b.scalar_mod(i, 2), 0)
            return cond(b, even, lambda b: b.mul(b.tanh(s), x), lambda b: b.add(s, b.mul(y, y)))

        return counted_while(b, n, [x], turn)

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=3)


@pytest.mark.parametrize("taken", [True, False])
def test_loop_in_a_cond(taken):
    def body(b, p, n, x, y):
        looped = lambda b: counted_while(b, n, [x], lambda b, i, s: b.mul(b.tanh(s), y))
        return cond(b, p, looped, lambda b: b.mul(x, y))

    check(program([BOOL, INT, VECTOR, VECTOR], body), taken, 3, X, Y, order=3)


def test_an_early_exit():
    """Leave when the sum passes a limit: the trip count follows from tensors."""

    def body(b, x, y):
        def far(b, i, s):
            small = b.lt(b.sum(s, axis=(0,), keepdim=False), b.constant(4.0, VECTOR.dtype))
            return b.scalar_and(b.item(small), b.scalar_lt(i, 50))

        def turn(b, i, s):
            return b.scalar_add(i, 1), b.add(s, b.mul(b.exp(y), b.mul(x, x)))

        return while_loop(b, [b.scalar(0), x], far, turn)

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


def test_extents_that_change_from_turn_to_turn():
    """A carried tensor doubles its length at every turn."""

    def body(b, n, x, y):
        def turn(b, i, s, total):
            t = b.concat(b.tanh(s), b.mul(s, s), axis=0)
            return t, b.add(total, b.mul(b.sum(t, axis=(0,), keepdim=False), b.sum(y, axis=(0,), keepdim=False)))

        return counted_while(b, n, [x, b.sum(x, axis=(0,), keepdim=False)], turn, changing=True)

    for turns in (0, 1, 3):
        check(program([INT, VECTOR, VECTOR], body), turns, X, Y)
