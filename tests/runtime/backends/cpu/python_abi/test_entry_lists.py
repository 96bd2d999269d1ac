"""Lists and optionals that the builtin function of a Program reads and makes."""

import contextlib
import sys

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.in_threads import in_threads

LISTS = """program main
func main(%xs: list<float32[N, 3]>, %ns: list<int>, %y: float32[N, 3]) {
  %one: int = scalar_constant() {value=1}
  %x: float32[N, 3] = list_get(%xs, %one)
  %z: float32[N, 3] = add(%x, %y)
  %more: list<float32[N, 3]> = list_append(%xs, %z)
  %n: int = list_get(%ns, %one)
  %numbers: list<int> = list_append(%ns, %n)
  %set: variant<unset | float32[N, 3]> = variant_new(%z) {type=!variant<unset | float32[N, 3]>, tag=1}
  %unset: variant<unset | float32[N, 3]> = variant_new() {type=!variant<unset | float32[N, 3]>, tag=0}
  return %more, %numbers, %xs, %set, %unset
}
"""


@pytest.fixture(scope="module")
def plans():
    program = parse(LISTS)
    return NativePlan(program), compile_plan(program)


def inputs(rows=2, count=3):
    rng = np.random.default_rng(rows)
    return [[rng.normal(size=(rows, 3)).astype("float32") for _ in range(count)], [4, 5, -6],
            rng.normal(size=(rows, 3)).astype("float32")]  # fmt: skip


def check(made, wanted):
    for got, want in zip(made[:3], wanted[:3], strict=True):
        assert len(got) == len(want)
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    assert made[3][0] == 1
    assert np.array_equal(made[3][1], wanted[3][1])
    assert made[4] == wanted[4] == (0, None)


@pytest.mark.parametrize("rows", [0, 1, 2, 2000])
def test_lists_go_in_and_out(plans, rows):
    given = inputs(rows)
    native, plan = plans
    assert native._direct
    for _ in range(3):
        made = native.call(*given)
        assert type(made) is list  # by the builtin function, not by rows
        check(made, plan.run(given))


@pytest.mark.parametrize("wrong", [
    lambda xs, ns, y: (tuple(xs), ns, y), lambda xs, ns, y: ([*xs, 1], ns, y), lambda xs, ns, y: (xs, [True, 1.5], y),
    lambda xs, ns, y: ([x[:1] for x in xs], ns, y), lambda xs, ns, y: ([x.T.copy().T for x in xs], ns, y),
    lambda xs, ns, y: ([x.astype("float64") for x in xs], ns, y), lambda xs, ns, y: (xs, [2**70, 1], y),
])  # fmt: skip
def test_what_is_not_as_its_type_says_is_left_to_others(plans, wrong):
    assert plans[0].call(*wrong(*inputs())) is False


def test_an_error_inside_holds_nothing(plans):
    given = inputs(count=1)
    with pytest.raises(IndexError, match="out of range"):
        plans[0].run(given)
    held = sys.getrefcount(given[0][0])
    for _ in range(10):
        with contextlib.suppress(IndexError):
            plans[0].run(given)
    now = sys.getrefcount(given[0][0])
    assert now == held
    check(plans[0].run(inputs()), plans[1].run(inputs()))


@pytest.mark.parametrize("rows", [2, 2000])
def test_nothing_is_held_after_a_run(plans, rows):
    given = inputs(rows)
    objects = [None, given[0], given[0][0], given[2]]
    plans[0].run(given)
    before = [sys.getrefcount(x) for x in objects]
    for _ in range(50):
        plans[0].run(given)
    after = [sys.getrefcount(x) for x in objects]
    assert after[1:] == before[1:]
    assert abs(after[0] - before[0]) < 20


def test_results_live_on(plans):
    first = plans[0].run(inputs(2000))
    kept = [x.copy() for x in first[0]]
    for _ in range(5):
        plans[0].run(inputs(2000, count=7))
    assert all(np.array_equal(a, b) for a, b in zip(first[0], kept, strict=True))
    first[0][0] += 1  # the caller's own memory
    check(plans[0].run(inputs(2000)), plans[1].run(inputs(2000)))


def test_threads_share_one_list(plans):
    given, wrong = inputs(300), []
    wanted = plans[1].run(given)

    def work():
        for _ in range(100):
            made = plans[0].run(given)
            if not all(np.array_equal(a, b) for a, b in zip(made[0], wanted[0], strict=True)):
                wrong.append(made)

    in_threads(*[work] * 4)
    assert wrong == []


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.SimpleRNN])
def test_a_recurrent_layer_hands_its_turns_to_its_backward(layer, monkeypatch, rng):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    net = layer(6, 5)
    static = paddle.jit.to_static(lambda x: net(x)[0], full_graph=True)
    x = paddle.to_tensor(rng.normal(size=(2, 7, 6)).astype("float32"))
    for _ in range(3):
        made = paddle.grad((static(x) ** 2).mean(), net.parameters())
        wanted = paddle.grad((net(x)[0] ** 2).mean(), net.parameters())
        for got, want in zip(made, wanted, strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-6)
