"""Lists made of lists natively, values and gradients: extend, insert, slices, reverse; and slots of tangent lists."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import program


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def collected(x, n):
    made, i = [], 0
    while i < n:
        made.append(x * i + 1)
        i += 1
    return made


def extended(x, n):
    made, i = [], 0
    while i < n:
        made.extend(collected(x + i, i % 3))
        if i == 2:
            made.extend(made)
        i += 1
    return sum(made, x * len(made))


def turned(x, n):
    there = collected(x, n)
    back, total, i = there[::-1], x * 0, 0
    there.reverse()
    for y in reversed(there):
        total = total * 0.5 + y
    while i < n:
        total = total + back[i] * there[i] * i
        i += 1
    there.append(x)
    return paddle.stack(there).sum(0) + total


def cut(x, n):
    made, total, i = collected(x, n), x * 0, 0
    while i < n:
        for y in made[i:-1]:
            total = total + y
        for y in made[-2:i]:
            total = total * y
        for y in made[100:]:
            total = total * 7
        i += 1
    return total * (len(made[1:3]) + 10 * len(made[-1:0]))


def looked_up(x, n):
    made, total, i = collected(x, n), x * 0, 0
    while i < n:
        total = total * 0.5 + made[i] * made[-1] + made[n // 2]
        i += 1
    return total


def put_in(x, n):
    made, total, i = [x], x * 0, 0
    while i < n:
        made.insert(0, x * i)
        made.insert(-1, x + i)
        made.insert(i * 5, x - i)
        if i == 2:
            made.pop(1)
        i += 1
    for y in made:
        total = total * 0.9 + y
    return total


@pytest.mark.parametrize("n", [0, 1, 4, 7])
@pytest.mark.parametrize("function", [extended, turned, cut, looked_up, put_in])
def test_lists_and_their_gradients_are_those_of_eager_mode(function, n):
    static = paddle.jit.to_static(function, full_graph=True)
    found = []
    for call in (function, static, static):
        x = paddle.to_tensor([0.5, -1.0, 2.0], stop_gradient=False)
        y = call(x, paddle.to_tensor(n))
        (y * y).sum().backward()
        found.append((y.numpy(), x.grad.numpy()))
    for value, gradient in found[1:]:
        np.testing.assert_allclose(value, found[0][0], rtol=1e-5)
        np.testing.assert_allclose(gradient, found[0][1], rtol=1e-4)
    assert not NativePlan(static.concrete_program.main_program).host_calls


SLOTS = """
func main(%x: float32[N], %n: int, %at: int) {
  %v: variant<unset | float32[N]> = variant_new(%x) {tag=1, type=!variant<unset | float32[N]>}
  %u: variant<unset | float32[N]> = variant_new() {tag=0, type=!variant<unset | float32[N]>}
  %none: list<variant<unset | float32[N]>> = list_new() {type=!list<variant<unset | float32[N]>>}
  %one: list<variant<unset | float32[N]>> = list_new(%v, %v) {type=!list<variant<unset | float32[N]>>}
  %made: list<variant<unset | float32[N]>> = OPERATION
  %count: int = list_len(%made)
  %c: list<variant<unset | float32[N]>> = list_append(%made, %v)
  return %count, %c
}
"""


@pytest.mark.parametrize("at", [0, 1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize(
    "operation",
    ["slots_extend(%one, %n, %one)", "slots_part(%one, %at, %n)", "slots_reverse(%one, %n)", "list_spread(%one, %at)",
     "list_remove(%one, %at)", "list_put(%one, %at, %x)", "list_put(%one, %at, %v)", "list_accumulate(%one, %at, %x)",
     "list_accumulate(%one, %at, %v)", "list_accumulate(%none, %at, %v)", "list_accumulate(%one, %at, %u)"],
)  # fmt: skip
def test_slots(operation, n, at):
    made = program(SLOTS.replace("OPERATION", operation))
    plan, inputs = NativePlan(made), [np.arange(3, dtype="float32"), n, at]
    assert not plan.host_calls
    count, slots = plan.run(inputs)
    wanted, theirs = compile_plan(made).run(inputs)
    assert count == wanted
    assert [tag for tag, _ in slots] == [tag for tag, _ in theirs]
    for (_, mine), (_, other) in zip(slots, theirs, strict=True):
        assert (mine is None) == (other is None)
        assert mine is None or np.array_equal(mine, other)
