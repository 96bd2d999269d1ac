"""Loops that are cut into segments for the way back: the same derivatives, of any order, with less kept."""

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

from dy2st.autodiff.programs import vjp
from dy2st.autodiff.segments import cut
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.ir.types import INT, TensorType
from dy2st.ops.control.host_call import Host
from dy2st.runtime.interpreter.planned import compile_plan
from tests.autodiff.building import VECTOR, N, cond, counted_while, empty_list, program, while_loop
from tests.autodiff.checking import check, dense, gradient_program, pulled, same
from tests.autodiff.test_calls import call, with_functions

X = np.array([0.3, -0.7, 1.2])
Y = np.array([0.5, 0.4, -0.2])
POLICIES: tuple[Any, ...] = ("sqrt", 1, 3, 100)


def with_policy(made: Program, policy: Any) -> Program:
    """Ask for checkpoints in every loop."""
    for operation in made.walk():
        if operation.name in ("while_loop", "counted_while"):
            operation.attributes["checkpoint"] = policy
    return made


def growing(b, n, x, y):
    def turn(b, i, s):
        return [b.scalar_add(i, 1), b.mul(b.tanh(s), b.add(y, b.sin(s)))]

    return while_loop(b, [b.scalar(0), x], lambda b, i, s: b.scalar_lt(i, n), turn)[1]


def counted(reverse):
    def body(b, n, x, y):
        def turn(b, i, s):
            weight = b.scalar_to_tensor(b.scalar_mul(b.scalar_float(i), 0.1), dtype=s.type.dtype)
            return b.mul(b.tanh(s), b.add(y, b.mul(b.sin(s), weight)))

        return counted_while(b, n, [x], turn, reverse=reverse)

    return body


@pytest.mark.parametrize("turns", [0, 1, 3, 8])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_while_has_the_same_derivatives(policy, turns):
    check(with_policy(program([INT, VECTOR, VECTOR], growing), policy), turns, X, Y, order=2 if turns < 4 else 1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 3, 8])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_counted_loop_has_the_same_derivatives(policy, turns, reverse):
    made = with_policy(program([INT, VECTOR, VECTOR], counted(reverse)), policy)
    check(made, turns, X, Y, order=2 if turns < 4 else 1)


@pytest.mark.slow
def test_third_order():
    check(with_policy(program([INT, VECTOR, VECTOR], growing), "sqrt"), 2, X, Y, order=3)


def test_the_policy_changes_no_bit_of_a_gradient():
    found = [
        pulled(with_policy(program([INT, VECTOR, VECTOR], growing), policy), [9, X, Y], [np.ones(3)])
        for policy in ("all", *POLICIES)
    ]
    for one in found[1:]:
        np.testing.assert_array_equal(one[0], found[0][0])
        np.testing.assert_allclose(one[1], found[0][1], rtol=1e-12)  # segments are summed, then their sums


def test_extents_that_change_from_turn_to_turn():
    def body(b, n, x):
        def turn(b, i, s):
            return [b.scalar_add(i, 1), b.concat(b.tanh(s), b.sin(s), axis=0)]

        return while_loop(b, [b.scalar(0), x], lambda b, i, s: b.scalar_lt(i, n), turn, changing=True)[1]

    check(with_policy(program([INT, VECTOR], body), "sqrt"), 4, X, order=2)


def test_what_a_loop_carries_first_keeps_its_extents():
    def body(b, n, x):
        turn = lambda b, s, i: [b.mul(b.tanh(s), s), b.scalar_add(i, 1)]
        return while_loop(b, [b.sin(x), b.scalar(0)], lambda b, s, i: b.scalar_lt(i, n), turn)[0]

    made = with_policy(program([INT, VECTOR], body), 2)
    check(made, 5, X)
    segment = next(f for name, f in gradient_program(made).functions.items() if "segment" in name)
    assert {str(v.type) for v in segment.arguments if isinstance(v.type, TensorType)} == {"float64[N]"}


def test_lists_that_a_loop_carries():
    def body(b, n, x):
        def turn(b, i, items):
            return b.list_append(items, b.mul(b.tanh(b.list_get(items, -1)), x))

        items = counted_while(b, n, [b.list_append(empty_list(b), x)], turn)
        return b.add(b.list_get(items, -1), b.list_get(items, 2))

    check(with_policy(program([INT, VECTOR], body), "sqrt"), 5, X, order=2)


def test_a_loop_inside_of_a_loop():
    def body(b, n, x, y):
        def inner(b, s):
            return counted_while(b, n, [s], lambda b, j, t: b.mul(b.tanh(t), b.add(t, y)))

        return counted_while(b, n, [x], lambda b, i, s: b.add(inner(b, s), b.sin(s)))

    check(with_policy(program([INT, VECTOR, VECTOR], body), "sqrt"), 3, X, Y, order=2)


def test_a_loop_in_a_branch():
    def body(b, n, x, y):
        return cond(b, b.scalar_gt(n, 2), lambda b: growing(b, n, x, y), lambda b: b.mul(x, x))

    made = with_policy(program([INT, VECTOR, VECTOR], body), "sqrt")
    check(made, 4, X, Y)
    check(made, 1, X, Y)


def test_a_predicate_that_is_a_tensor():
    def body(b, x):
        def test(b, s):
            return b.lt(b.sum(b.mul(s, s), axis=(0,), keepdim=False), 40.0)

        return while_loop(b, [x], test, lambda b, s: b.mul(s, b.add(b.mul(s, 0.1), 1.5)))

    check(with_policy(program([VECTOR], body), "sqrt"), X, order=2)


def test_an_invariant_has_no_cotangent_where_the_loop_did_not_turn():
    made = vjp(with_policy(program([INT, VECTOR, VECTOR], growing), "sqrt"), (1, 2), [(0, False)])
    values = compile_plan(made.forward).run([0, X, Y])
    found = compile_plan(made.backward).run([*values[1:], np.ones(3)])
    assert found[1] == (0, None)
    np.testing.assert_array_equal(dense(found[0], X), np.ones(3))


def test_tapes_hold_what_enters_segments_alone():
    """100 turns: 14 segments of 1 to 14 turns; each tape has one entry a segment."""
    made = vjp(with_policy(program([INT, VECTOR, VECTOR], growing), "sqrt"), (1, 2), [(0, False)])
    kept = compile_plan(made.forward).run([100, X, Y])[1:]
    assert {len(tape) for tape in kept if isinstance(tape, list)} == {14}


def test_what_a_turn_prints_is_printed_once():
    def body(b, n, x):
        def turn(b, i, s):
            b.emit("print", [i], {"template": (("", "s", ""),), "sep": " ", "end": "\n"})
            return b.tanh(s)

        return counted_while(b, n, [x], turn)

    made = vjp(with_policy(program([INT, VECTOR], body), "sqrt"), (1,), [(0, False)])
    seen = io.StringIO()
    with redirect_stdout(seen):
        values = compile_plan(made.forward).run([3, X])
        compile_plan(made.backward).run([*values[1:], np.ones(3)])
    assert seen.getvalue() == "0\n1\n2\n"


@pytest.mark.parametrize("inside", [False, True], ids=["here", "in a function"])
def test_a_loop_that_calls_python_functions_runs_them_once(inside):
    calls: list[int] = []

    def double(x):
        calls.append(1)
        return 2 * x

    def doubled(b, s):
        return b.operation(lookup("host_call"), [s], {"host": Host(double), "types": (s.type,)}).results[0]

    def body(b, n, x):
        def turn(b, i, s):
            return b.mul(b.tanh(s), call(b, "doubled", s) if inside else doubled(b, s))

        return counted_while(b, n, [x], turn)

    of = with_functions([INT, VECTOR], body, doubled=([VECTOR], doubled))
    made = vjp(with_policy(of, "sqrt"), (1,), [(0, False)])
    values = compile_plan(made.forward).run([3, X])
    compile_plan(made.backward).run([*values[1:], np.ones(3)])
    assert len(calls) == (6 if inside else 3)  # the gradient of a function computes again what it needs


def test_random_numbers_are_those_of_the_first_run():
    def body(b, n, x, seed):
        def turn(b, i, s):
            length = b.extent(N)
            drawn = b.emit("random_uniform", [seed, i, length], {"shape": (None,), "dtype": s.type.dtype})
            return b.mul(b.tanh(s), drawn)

        return counted_while(b, n, [x], turn)

    found = [
        pulled(with_policy(program([INT, VECTOR, INT], body), policy), [7, X, 5], [np.ones(3)])
        for policy in ("all", "sqrt")
    ]
    same(found[1], found[0])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_attribute_survives_the_text_form(policy):
    made = with_policy(program([INT, VECTOR, VECTOR], growing), policy)
    again = parse(str(made))
    assert [o.attributes.get("checkpoint") for o in again.walk() if o.name == "while_loop"] == [policy]
    assert str(again) == str(made)


@pytest.mark.parametrize(("policy", "growth"), [("sqrt", 1), (1, 0), (3, 0)])
@pytest.mark.parametrize("loop", [growing, counted(False)])
def test_segments_grow_by_a_turn_each_or_not_at_all(loop, policy, growth):
    made = with_policy(program([INT, VECTOR, VECTOR], loop), policy)
    (operation,) = (o for o in made.block.operations if o.name in ("while_loop", "counted_while"))
    b = Builder(made.block)
    b.functions = made.functions
    cut(b, operation)
    sums = [v.operation for v in operation.blocks[0].results if v.operation and v.operation.name == "scalar_add"]
    numbers = [o.operands[1].operation for o in sums]
    assert [o.attributes["value"] for o in numbers if o and o.name == "scalar_constant"] == [growth]
