"""Loops that only count are not run: the same numbers as turn by turn, whatever they begin with."""

import itertools
import math

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.tracing.output_choices import NO_OTHER
from dy2st.passes.loops.licm import HoistInvariants
from dy2st.passes.simplify.constant_fold import FoldConstants
from dy2st.passes.specialize_shapes import narrowed
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.ops.control.closed_form_loops import induction_loop
from dy2st.runtime.interpreter.cost_model import bindings
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of


def up(i, n):
    j = n
    while i < n:
        i = i + 3
        j = j - 1
    return i, j


def up_by_one(i, n):
    while n > i:
        i = 1 + i
    return i


def down(i, n):
    while i > n:
        i = i - 2
    return i


def of_python(i, n):
    k, m = 0, 7
    while k < n:
        k += 1
        m -= 2
    return k, m, i


def loops(program):
    return [o for o in program.walk() if o.op.name == "while_loop"]


@pytest.mark.parametrize("f", [up, up_by_one, down])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_small_numbers(f, dtype):
    program = program_of(f, *np.zeros((2,), dtype))
    assert all(induction_loop(loop) for loop in loops(program))
    native, plan = NativePlan(program), compile_plan(program)
    for i, n in itertools.product(range(-4, 5), repeat=2):
        inputs = [np.array(i, dtype), np.array(n, dtype)]
        compare(native.run(inputs), plan.run(inputs))


@pytest.mark.parametrize("n", [-1, 0, 1, 12])
def test_python_numbers(n):
    program = program_of(of_python, np.array(0), np.array(5))
    assert all(induction_loop(loop) for loop in loops(program))
    inputs = [np.array(3), np.array(n)]
    compare(NativePlan(program).run(inputs), compile_plan(program).run(inputs))


@pytest.mark.parametrize("n", [-1, 0, 1, 2**40])
def test_what_all_turns_leave_as_one_int(n):
    def settles(n):
        k, m, large = 0, 7, 8
        while k < n:
            k, m, large = k + 1, -7, 2**62
        return k, m, large

    program = program_of(settles, np.array(5))
    (loop,) = loops(program)
    assert [*induction_loop(loop).settled.values()] == [-7, 2**62]
    compare(NativePlan(program).run([np.array(n)]), [n, -7, 2**62] if n > 0 else [0, 7, 8])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_that_are_no_whole_numbers(dtype):
    program = program_of(up_by_one, *np.zeros((2,), dtype))
    native, plan = NativePlan(program), compile_plan(program)
    numbers = [0.5, -0.0, 2.25, -3.5, 5.0, math.nan, -math.inf]
    for i, n in itertools.product(numbers, repeat=2):
        if not (math.isinf(i) and i < n):
            inputs = [np.array(i, dtype), np.array(n, dtype)]
            made, wanted = native.run(inputs), plan.run(inputs)
            compare(made, wanted)
            assert np.signbit(made[0]) == np.signbit(wanted[0])


@pytest.mark.parametrize(("dtype", "end"), [("int32", 2**31 - 1), ("int64", 2**63 - 1), ("float32", 2**24)])
def test_the_largest_numbers(dtype, end):
    program = program_of(up_by_one, *np.zeros((2,), dtype))
    inputs = [np.array(end - 4, dtype), np.array(end, dtype)]
    compare(NativePlan(program).run(inputs), [np.array(end, dtype), NO_OTHER])


def test_a_million_turns_take_no_time():
    native = NativePlan(program_of(up_by_one, np.array(0), np.array(5)))
    compare(native.run([np.array(0), np.array(2**40)]), [np.array(2**40), NO_OTHER])


def other_work(i, n):
    while i < n:
        i = i + i + 1
    return i


def other_order(i, n):
    while i <= n:
        i = i + 1
    return i


def settled_driver(i, n):
    while i < n:
        i = 20
    return i


def settled_float(i, n):
    a = 1.5
    while i < n:
        i, a = i + 1, 2.5
    return i, a


def moving_limit(i, n):
    while i < n:
        i = i + 2
        n = n + 1
    return i, n


@pytest.mark.parametrize("size", [1, 2])
def test_small_tensors_beside_a_counter(size):
    def f(x, n):
        i = 0
        while i < n:
            x = x + 2
            i += 1
        return x, i

    x, n = np.arange(size, dtype="float32"), np.array(4)
    program = program_of(f, x, n)
    narrow = narrowed(program, bindings(program, [x, n]) or {})
    for change in (FoldConstants(), HoistInvariants()):
        change.apply(narrow)
    compare(NativePlan(narrow).run([x, n]), compile_plan(program).run([x, n]))


@pytest.mark.parametrize("f", [other_work, other_order, settled_driver, settled_float, moving_limit])
def test_other_loops_are_run(f):
    program = program_of(f, np.array(0), np.array(9))
    assert not any(induction_loop(loop) for loop in loops(program))
    inputs = [np.array(1), np.array(11)]
    compare(NativePlan(program).run(inputs), compile_plan(program).run(inputs))


def test_a_halted_step_is_run():
    def f(i, n):
        while i < n:
            i = i + 0.5
        return i

    program = program_of(f, *np.zeros((2,), "float32"))
    inputs = [np.array(0, "float32"), np.array(3, "float32")]
    compare(NativePlan(program).run(inputs), [np.array(3, "float32"), NO_OTHER])
    assert paddle.jit.to_static(f)(paddle.to_tensor(0.0), paddle.to_tensor(1.2)) == 1.5


def test_tensors_of_one_element_count_natively():
    def f(i, j):
        while i < j:
            i = i + 1
            j = j - 1
        return i, j

    whole = paddle.jit.to_static(f, full_graph=True)
    inputs = [np.array([0]), np.array([11])]
    whole(*map(paddle.to_tensor, inputs))
    program = whole.concrete_program.main_program
    compare(NativePlan(program).run(inputs), compile_plan(program, np).run(inputs))


def sum_of_counts(i, n):
    total = i - i
    while i < n:
        total = total + i
        i = i + 1
    return total, i


def doubled(i, n):
    a = i - i + 1
    while i < n:
        a = a + a
        i = i + 1
    return a, i


def crossed(i, n):
    a, b = i - i, i - i + 1
    while i < n:
        a, b = b, a
        i = i + 1
    return a, b, i


def each_by_the_one_before(i, n):
    a, b = 0, 3
    while i < n:
        a = a + b
        b = b - 2
        i = i + 1
    return a, b, i


@pytest.mark.parametrize("f", [sum_of_counts, doubled, crossed, each_by_the_one_before])
@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_steps_that_turns_change_are_taken(f, shape, dtype, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    static = paddle.jit.to_static(f, full_graph=True)
    for begin, end in [(0, 3), (0, 3), (0, 10), (2, 1), (1, 7)]:
        i, n = (paddle.full(shape, x, dtype) for x in (begin, end))
        compare([paddle.to_tensor(x).numpy() for x in static(i, n)], [paddle.to_tensor(x).numpy() for x in f(i, n)])


@pytest.mark.parametrize(("begin", "step"), [(0, lambda i, a: a + i), (1, lambda i, a: a + a), (5, lambda i, a: i - a)])
def test_loops_that_are_built_by_hand(main, begin, step, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    n = paddle.static.data("n", [1], "int64")
    i, a = paddle.full([1], 0, "int64"), paddle.full([1], begin, "int64")
    outs = paddle.static.nn.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, step(i, a)], [i, a])
    executor = paddle.static.Executor()
    for turns in (3, 3, 10, 0, 5):
        wanted = begin
        for i in range(turns):
            wanted = step(i, wanted)
        found = executor.run(main, feed={"n": np.array([turns])}, fetch_list=outs)
        compare([np.asarray(x) for x in found], [np.array([turns]), np.array([wanted])])


def test_adding_zero_turns_the_sign_of_zero():
    def f(a, n):
        i = 0
        while i < n:
            a = a + 0.0
            i += 1
        return a

    program = program_of(f, np.array(0.0, "float32"), np.array(3))
    for zero in (0.0, -0.0):
        inputs = [np.array(zero, "float32"), np.array(3)]
        made, told = NativePlan(program).run(inputs)
        assert told == NO_OTHER
        assert np.signbit(made) == np.signbit(compile_plan(program).run(inputs)[0])
