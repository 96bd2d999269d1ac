"""Branches and loops over lanes: lanes that go different ways, finish early, and carry lists."""

import numpy as np
import pytest

from dy2st.batching.programs import vmap
from dy2st.dtypes import bool_, float64
from dy2st.ir.types import BOOL, INT, ListType, TensorType, optional
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import LIST, POINT, VECTOR, cond, counted_while, empty_list, program, while_loop
from tests.autodiff.test_calls import call, descend, with_functions
from tests.batching.lanes_of import check

XS = [np.array([0.3, -0.7]), np.array([1.5, 2.0]), np.array([-4.0, 0.5])]


def names(made):
    return [o.name for o in made.walk()]


def lanes(*rest):
    """The inputs of three lanes: a vector, then one of each of `rest`."""
    return [[x, *(one[k] for one in rest)] for k, x in enumerate(XS)]


def test_a_shared_predicate_keeps_one_cond():
    made = check(
        program([VECTOR, BOOL], lambda b, x, p: cond(b, p, lambda b: [b.exp(x)], lambda b: [b.neg(x)])),
        lanes([True] * 3),
        [True, False],
    )
    assert names(made).count("cond") == 1
    assert "where" not in names(made)


@pytest.mark.parametrize("takes", [[True, False, True], [False] * 3, [True] * 3])
def test_lanes_take_different_branches(takes):
    body = lambda b, x, p: cond(b, p, lambda b: [b.exp(x), x], lambda b: [b.neg(x), b.tanh(x)])
    made = check(program([VECTOR, BOOL], body), lanes(takes), [True, True])
    assert "counted_while" not in names(made)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_predicate_of_one_element_may_have_axes(shape):
    body = lambda b, x, p: cond(b, p, lambda b: [b.exp(x)], lambda b: [b.neg(x)])
    given = [np.full(shape, one) for one in (True, False, True)]
    check(program([VECTOR, TensorType(bool_, shape)], body), lanes(given), [True, True])


def test_what_would_raise_in_a_branch_that_is_not_taken_does_not():
    def body(b, x, i):
        inside = b.scalar_lt(i, 2)
        return cond(
            b, inside, lambda b: [b.index(x, i, spec=(("int", "?"),))], lambda b: [b.sum(x, axis=(0,), keepdim=False)]
        )

    for places in ([0, 5, 1], [7, 5, 9]):
        check(program([VECTOR, INT], body), lanes(places), [True, True])


def test_what_raises_in_a_branch_that_is_taken_does():
    def body(b, x, i):
        return cond(
            b,
            b.scalar_lt(i, 9),
            lambda b: [b.index(x, i, spec=(("int", "?"),))],
            lambda b: [b.constant(0.0, x.type.dtype)],
        )

    check(program([VECTOR, INT], body), lanes([0, 5, 10]), [True, True])


def test_extents_that_differ_between_lanes_run_lane_by_lane():
    def body(b, x, p):
        doubled = cond(b, p, lambda b: [b.concat(x, x, axis=0)], lambda b: [x])
        return b.sum(b.exp(doubled), axis=(0,), keepdim=False)

    made = check(program([VECTOR, BOOL], body), lanes([True, False, True]), [True, True])
    assert "counted_while" in names(made)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("limits", [[1.0, 50.0, 7.0], [-1.0, -1.0, -1.0], [-1.0, 3.0, -1.0]])
def test_lanes_finish_a_while_at_different_turns(limits, known):
    def body(b, x, limit):
        def test(b, s, n):
            return b.item(b.lt(b.sum(b.abs(s), axis=(0,), keepdim=False), b.use(limit)))

        return while_loop(b, [x, b.scalar(0)], test, lambda b, s, n: [b.mul(s, 2.0), b.scalar_add(n, 1)])

    made = check(program([VECTOR, POINT], body), lanes([np.array(v) for v in limits]), [True, True], known)
    loops = [o for o in made.walk() if o.name == "while_loop"]
    assert len(loops) == 1
    assert "counted_while" not in names(made)


def test_a_number_of_turns_stays_one_number_inside_of_the_loop():
    def body(b, x, limit):
        def test(b, s, n):
            return b.item(b.lt(b.sum(s, axis=(0,), keepdim=False), b.use(limit)))

        def turn(b, s, n):
            part = b.index(b.use(x), b.scalar_mod(n, 2), spec=(("int", "?"),))
            return [b.add(s, b.add(b.abs(part), 1.0)), b.scalar_add(n, 1)]

        return while_loop(b, [x, b.scalar(0)], test, turn)

    made = check(program([VECTOR, POINT], body), lanes([np.array(v) for v in (3.0, 60.0, 7.0)]), [True, True])
    reads = [o for o in made.walk() if o.name == "index" and ("int", "?") in o.attributes["spec"]]
    assert reads, "the turn's number became a tensor"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("turns", [[0, 3, 1], [0, 0, 0]])
def test_a_count_that_differs_between_lanes(turns, reverse):
    def body(b, x, n):
        def turn(b, i, s):
            return [b.add(b.mul(s, 0.5), b.scalar_to_tensor(i, dtype=x.type.dtype))]

        return counted_while(b, n, [x], turn, reverse)

    check(program([VECTOR, INT], body), lanes(turns), [True, True])


def test_what_a_turn_passes_on_stays_the_lanes_own():
    def body(b, x, limit):
        def test(b, s, kept):
            return b.item(b.lt(b.sum(b.abs(s), axis=(0,), keepdim=False), b.use(limit)))

        return while_loop(b, [x, x], test, lambda b, s, kept: [b.mul(s, 2.0), kept])

    check(program([VECTOR, POINT], body), lanes([np.array(v) for v in (1.0, 50.0, 7.0)]), [True, True])


def test_a_test_that_differs_at_first_and_then_no_more():
    """Only the first turn is a question to each lane; after it the loop counts."""

    def body(b, x, go):
        child = b.child()
        s, n = child.argument(x.type), child.argument(INT)
        more = child.scalar_add(n, 1)
        child.block.results = [child.scalar_lt(more, 3), child.mul(s, 2.0), more]
        attributes = {"carried": 2}
        return b.operation("while_loop", [go, x, b.scalar(0)], attributes, [child.block]).results

    check(program([VECTOR, BOOL], body), lanes([True, False, True]), [True, True])


def test_a_test_that_differs_at_first_with_carried_values_that_lanes_share():
    def body(b, x, go):
        child = b.child()
        n, s = child.argument(INT), child.argument(x.type)
        more = child.scalar_add(n, 1)
        child.block.results = [child.scalar_lt(more, 3), more, child.mul(s, 2.0)]
        return b.operation("while_loop", [go, b.scalar(0), x], {"carried": 2}, [child.block]).results

    given = [[XS[0], go] for go in (True, False, True)]
    check(program([VECTOR, BOOL], body), given, [False, True])


@pytest.mark.parametrize("compare", ["lt", "le", "eq", "ne", "gt", "ge"])
def test_numbers_are_compared_where_they_are_equal_too(compare):
    body = lambda b, m, n: [b.emit(f"scalar_{compare}", [m, n])]
    check(program([INT, INT], body), [[2, 2], [2, 3], [3, 2]], [True, True])


def test_a_list_that_all_lanes_grow_alike_stays_one_list():
    def body(b, x, y):
        items = counted_while(b, 4, [empty_list(b), x], lambda b, i, items, s: [b.list_append(items, s), b.mul(s, y)])[
            0
        ]
        return [items, b.list_stack(items), b.list_len(items)]

    made = check(program([VECTOR, POINT], body), lanes([np.array(0.5)] * 3), [True, False])
    assert names(made).count("counted_while") == 1


def test_lists_that_lanes_grow_differently():
    def body(b, x, limit):
        def test(b, s, items):
            return b.item(b.lt(b.sum(b.abs(s), axis=(0,), keepdim=False), b.use(limit)))

        return while_loop(b, [x, empty_list(b)], test, lambda b, s, items: [b.mul(s, 2.0), b.list_append(items, s)])

    check(program([VECTOR, POINT], body), lanes([np.array(v) for v in (1.0, 50.0, 7.0)]), [True, True])


def test_nested_loops_whose_lanes_part():
    def body(b, x, limit):
        def test(b, s):
            return b.item(b.lt(b.sum(b.abs(s), axis=(0,), keepdim=False), b.use(limit)))

        def turn(b, i, s):
            grown = while_loop(b, [s], test, lambda b, t: [b.mul(t, 1.5)])
            return [b.mul(grown, 0.4)]

        return counted_while(b, 3, [x], turn)

    check(program([VECTOR, POINT], body), lanes([np.array(v) for v in (1.0, 50.0, 7.0)]), [True, True])


@pytest.mark.parametrize("depths", [[2, 2, 2], [0, 3, 1]])
def test_a_function_that_calls_itself_is_one_for_all_lanes(depths):
    of = with_functions(
        [VECTOR, INT],
        lambda b, x, n: call(b, "descend", n, x, b.exp(x)),
        descend=([INT, VECTOR, VECTOR], descend),
    )
    made = check(of, lanes(depths), [True, len({*depths}) > 1])
    assert sum("__vmap" in name for name in made.functions) == 1
    assert "counted_while" not in names(made)


def test_numbers_of_the_lanes_in_a_list_are_one_column():
    def body(b, n):
        items = b.list_append(b.list_append(b.emit("list_new", [], {"type": ListType(INT)}), n), b.scalar(5))
        items = b.list_set(items, b.scalar(1), b.scalar_mul(n, 2))
        items = b.list_insert(items, b.scalar(0), b.scalar_add(n, 1))
        return [b.list_get(items, b.scalar(k)) for k in range(3)]

    made = check(program([INT], body), [[3], [-1], [7]], [True])
    assert "counted_while" not in names(made)


@pytest.mark.parametrize("turns", [[3, 3, 3], [1, 4, 2]])
def test_a_list_that_the_loop_which_reads_it_hands_on(turns):
    def body(b, x, n):
        def turn(b, i, tape):
            return [b.scalar_add(i, 1), b.list_append(tape, b.mul(b.use(x), b.scalar_to_tensor(i, dtype=float64)))]

        start = [b.scalar(0), empty_list(b)]
        count, tape = while_loop(b, start, lambda b, i, _: b.scalar_lt(i, b.use(n)), turn)
        read = lambda b, i, total, _: [b.add(total, b.list_get(b.use(tape), i)), b.use(tape)]
        total, kept = counted_while(b, count, [x, empty_list(b)], read)
        return [total, b.list_len(kept)]

    check(program([VECTOR, INT], body), lanes(turns), [True, True])


def test_a_list_read_at_a_place_of_its_own():
    def body(b, x, i):
        items = b.list_append(b.list_append(empty_list(b, LIST), b.exp(x)), b.neg(x))
        return b.list_get(items, i)

    check(program([VECTOR, INT], body), lanes([0, 1, -1]), [True, True])
    check(program([VECTOR, INT], body), lanes([0, 1, 2]), [True, True])


def test_no_lanes_at_all():
    def body(b, x, p):
        return cond(b, p, lambda b: [b.exp(x)], lambda b: [b.neg(x)])

    made, _ = vmap(program([VECTOR, BOOL], body), [True, True])
    assert evaluate(made, [np.zeros((0, 2)), np.zeros(0, bool)])[0].shape == (0, 2)


@pytest.mark.parametrize("batched", [[True, True], [True, False], [False, True]])
def test_slots_of_matrices_are_stacked_lane_by_lane(batched):
    matrix = TensorType(float64, (2, 3))
    types = [ListType(optional(matrix)), TensorType(float64, (4, 2, 3))]
    rng = np.random.default_rng(0)
    given = [[[(1, rng.normal(size=(2, 3))), (0, None)] * 2, rng.normal(size=(4, 2, 3))] for _ in range(3)]
    inputs = [
        [one if on else given[0][i] for i, (one, on) in enumerate(zip(lane, batched, strict=True))] for lane in given
    ]
    check(program(types, lambda b, slots, like: [b.list_stack_tangent(slots, like)]), inputs, batched)


@pytest.mark.parametrize("starts", [(0, 2, 1), (1, 2, 2), (3, 0, 2)])
def test_lanes_that_are_through_read_nothing_behind_the_end(starts):
    def body(b, x, start):
        turn = lambda b, i, s: [b.scalar_add(i, 1), b.add(s, b.index(b.use(x), i, spec=(("int", "?"),)))]
        zero = b.sum(b.mul(x, 0.0), axis=(0,), keepdim=False)
        return while_loop(b, [start, zero], lambda b, i, s: b.scalar_lt(i, 3), turn)[1]

    given = [[np.array([0.5, 1.5, -2.0]) * (k + 1), start] for k, start in enumerate(starts)]
    check(program([VECTOR, INT], body), given, [True, True])
