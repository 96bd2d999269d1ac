"""Derivatives through optionals, variants and tuples: what did not run has no cotangent."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.autodiff.programs import vjp
from dy2st.ir.types import BOOL, INT, NONE, UNSET, TensorType, TupleType, VariantType
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import POINT, VECTOR, N, cond, counted_while, maybe, program, variant, while_loop
from tests.autodiff.checking import check, differences, pulled, pushed, tensors

X = np.array([0.3, -0.7, 1.2])
Y = np.array([0.5, 0.4, -0.2])
SMALL = TensorType(dtypes.float32, (N,))
MIXED = VariantType((UNSET, NONE, VECTOR, INT, POINT))


def get(b, v, tag=1):
    return b.variant_get(v, tag=tag, message="`v` was not set")


def is_tag(b, v, tag):
    return b.scalar_eq(b.variant_tag(v), tag)


def gradients(made, inputs, *cts):
    values = evaluate(made.forward, inputs)
    return evaluate(made.backward, [*values[len(values) - made.residuals :], *cts])


@pytest.mark.parametrize("taken", [True, False])
def test_an_optional_that_one_branch_sets(taken):
    def body(b, p, x, y):
        kept = cond(b, p, lambda b: variant(b, maybe(VECTOR), 1, b.mul(x, y)), lambda b: variant(b, maybe(VECTOR), 0))
        return cond(b, is_tag(b, kept, 1), lambda b: b.mul(get(b, kept), b.exp(y)), lambda b: b.tanh(x))

    check(program([BOOL, VECTOR, VECTOR], body), taken, X, Y, order=3)


@pytest.mark.parametrize("turns", [0, 1, 2, 4])
def test_a_total_that_starts_as_none(turns):
    def body(b, n, x, y):
        def turn(b, i, total):
            term = b.mul(b.tanh(x), b.add(y, b.scalar_to_tensor(i, dtype=VECTOR.dtype)))
            new = cond(b, is_tag(b, total, 1), lambda b: b.mul(get(b, total), term), lambda b: term)
            return variant(b, maybe(VECTOR), 1, new)

        total = counted_while(b, n, [variant(b, maybe(VECTOR), 0)], turn)
        return cond(b, is_tag(b, total, 1), lambda b: get(b, total), lambda b: b.mul(x, x))

    check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=2)


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_a_variant_of_none_tensors_and_a_number(which):
    def body(b, k, x, y):
        def choose(b):
            other = lambda b: cond(
                b,
                b.scalar_eq(k, 2),
                lambda b: variant(b, MIXED, 3, b.scalar(5)),
                lambda b: variant(b, MIXED, 4, b.sum(b.mul(x, y), axis=(0,), keepdim=False)),
            )
            return cond(b, b.scalar_eq(k, 1), lambda b: variant(b, MIXED, 2, b.mul(b.exp(x), y)), other)

        chosen = cond(b, b.scalar_eq(k, 0), lambda b: variant(b, MIXED, 1), choose)

        def read(b):
            point = lambda b: b.mul(b.broadcast_to(get(b, chosen, 4), b.shape(x)), x)
            return cond(b, is_tag(b, chosen, 2), lambda b: b.mul(get(b, chosen, 2), x), lambda b: cond(
                b, is_tag(b, chosen, 4), point, lambda b: b.mul(y, y)))  # fmt: skip

        return cond(b, is_tag(b, chosen, 1), lambda b: b.tanh(x), read)

    check(program([INT, VECTOR, VECTOR], body), which, X, Y, order=2)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_alternatives_that_become_one(which):
    """The cotangent goes back to the alternative that the variant was."""
    wide, narrow = VariantType((UNSET, VECTOR, VECTOR, NONE)), maybe(VECTOR)

    def body(b, k, x, y):
        first = lambda b: variant(b, wide, 1, b.mul(x, y))
        second = lambda b: variant(b, wide, 2, b.exp(b.mul(x, x)))
        rest = lambda b: cond(b, b.scalar_eq(k, 1), second, lambda b: variant(b, wide, 3))
        chosen = cond(b, b.scalar_eq(k, 0), first, rest)
        kept = b.emit("variant_cast", [chosen], {"type": narrow, "tags": (0, 1, 1, 0)})
        return cond(b, is_tag(b, kept, 1), lambda b: b.mul(get(b, kept), y), lambda b: b.tanh(x))

    check(program([INT, VECTOR, VECTOR], body), which, X, Y, order=3)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_dtype_that_changes_in_the_first_turn(turns):
    """A loop carries float32 at first and float64 from then on."""
    of = VariantType((UNSET, SMALL, VECTOR))

    def body(b, n, x, y):
        def turn(b, i, s):
            wide = cond(
                b,
                is_tag(b, s, 1),
                lambda b: b.cast(get(b, s, 1), dtype=dtypes.float64),
                lambda b: get(b, s, 2),
            )
            return variant(b, of, 2, b.mul(b.tanh(wide), y))

        start = variant(b, of, 1, b.cast(x, dtype=dtypes.float32))
        s = counted_while(b, n, [start], turn)
        return cond(b, is_tag(b, s, 2), lambda b: get(b, s, 2), lambda b: b.cast(get(b, s, 1), dtype=dtypes.float64))

    made = program([INT, VECTOR, VECTOR], body)
    inputs = (turns, X, Y)
    tangents = [np.array([0.1, 0.2, -0.3]), np.array([1.0, -0.5, 0.25])]
    ct = np.array([0.7, -0.2, 0.4])
    back = pulled(made, inputs, [ct])
    (forward,) = pushed(made, inputs, tangents)
    np.testing.assert_allclose(np.vdot(forward, ct), sum(map(np.vdot, back, tangents)), rtol=1e-6)
    assert tensors(made) == ([1, 2], [0])


@pytest.mark.parametrize("taken", [True, False])
def test_tuples_through_a_branch(taken):
    pair = TupleType((VECTOR, INT, VECTOR))

    def body(b, p, x, y):
        made = cond(
            b,
            p,
            lambda b: b.tuple_new(b.mul(x, y), b.scalar(1), x),
            lambda b: b.tuple_new(b.exp(y), b.scalar(2), b.mul(y, y)),
        )
        assert made.type == pair
        first, number, second = b.operation("tuple_get", [made]).results
        return b.mul(b.mul(first, second), b.scalar_to_tensor(number, dtype=VECTOR.dtype))

    check(program([BOOL, VECTOR, VECTOR], body), taken, X, Y, order=3)


def test_a_tuple_that_a_loop_carries():
    def body(b, n, x, y):
        def turn(b, i, pair):
            s, t = b.operation("tuple_get", [pair]).results
            return b.tuple_new(b.mul(b.tanh(t), y), s)

        pair = counted_while(b, n, [b.tuple_new(x, b.exp(y))], turn)
        return b.operation("tuple_get", [pair]).results[0]

    for turns in (0, 1, 4):
        check(program([INT, VECTOR, VECTOR], body), turns, X, Y, order=2)


@pytest.mark.parametrize("taken", [True, False])
def test_what_did_not_run_has_no_cotangent(taken):
    def body(b, p, x, y):
        return cond(b, p, lambda b: b.mul(x, x), lambda b: b.exp(y))

    made = vjp(program([BOOL, VECTOR, VECTOR], body), (1, 2), [(0, False)])
    dx, dy = gradients(made, [taken, X, Y], np.ones(3))
    assert dx[0] == taken
    assert dy[0] == (not taken)


@pytest.mark.parametrize("turns", [0, 2])
def test_what_a_loop_without_turns_uses_has_no_cotangent(turns):
    def body(b, n, x, y):
        return counted_while(b, n, [x], lambda b, i, s: b.mul(b.tanh(s), b.exp(y)))

    made = vjp(program([INT, VECTOR, VECTOR], body), (1, 2), [(0, False)])
    dx, dy = gradients(made, [turns, X, Y], np.ones(3))
    assert isinstance(dx, np.ndarray)
    assert dy[0] == (turns > 0)


def test_a_weight_used_in_some_turns_of_a_nested_loop():
    def body(b, n, x, y):
        def outer(b, i, s):
            return counted_while(b, i, [s], lambda b, k, t: b.mul(b.tanh(t), b.exp(y)))

        return counted_while(b, n, [x], outer)

    made = vjp(program([INT, VECTOR, VECTOR], body), (1, 2), [(0, False)])
    assert [gradients(made, [n, X, Y], np.ones(3))[1][0] for n in (0, 1, 2, 3)] == [0, 0, 1, 1]
    check(program([INT, VECTOR, VECTOR], body), 3, X, Y, order=2)


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_tensor_used_by_one_branch_and_by_a_loop(turns):
    def body(b, p, n, x, y):
        z = b.exp(b.mul(y, y))
        s = cond(b, p, lambda b: b.mul(z, x), lambda b: x)
        return while_loop(
            b,
            [b.scalar(0), s],
            lambda b, i, s: b.scalar_lt(i, n),
            lambda b, i, s: (b.scalar_add(i, 1), b.mul(b.tanh(s), z)),
        )[1]

    for taken in (True, False):
        check(program([BOOL, INT, VECTOR, VECTOR], body), taken, turns, X, Y, order=2)


def test_a_singular_derivative_in_the_branch_that_did_not_run_gives_no_nan():
    def body(b, p, x):
        root = b.sqrt(x)
        return cond(b, p, lambda b: b.mul(root, root), lambda b: b.mul(x, x))

    made = vjp(program([BOOL, VECTOR], body), (1,), [(0, False)])
    (dx,) = gradients(made, [False, np.zeros(3)], np.ones(3))
    np.testing.assert_array_equal(dx, np.zeros(3))


def test_a_chain_before_a_branch_is_pulled_back_in_one_cond():
    def body(b, p, x, y):
        z = x
        for _ in range(10):
            z = b.tanh(b.mul(z, x))
        return cond(b, p, lambda b: b.mul(z, y), lambda b: y)

    made = vjp(program([BOOL, VECTOR, VECTOR], body), (1, 2), [(0, False)])
    assert [operation.name for operation in made.backward.block.operations].count("cond") == 1
    check(program([BOOL, VECTOR, VECTOR], body), False, X, Y, order=2)


def test_the_differences_that_these_tests_use_are_derivatives():
    made = program([VECTOR], lambda b, x: b.mul(x, x))
    (found,) = differences(made, [X], [np.ones(3)])
    np.testing.assert_allclose(found, 2 * X, rtol=1e-9)


@pytest.mark.parametrize(("p", "q"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_chain_that_one_branch_uses_always_and_the_other_sometimes(p, q):
    def body(b, p, q, x, y):
        z = b.tanh(b.mul(x, y))
        inner = lambda b: cond(b, q, lambda b: b.mul(z, z), lambda b: y)
        return cond(b, p, lambda b: b.exp(z), inner)

    check(program([BOOL, BOOL, VECTOR, VECTOR], body), p, q, X, Y, order=2)
