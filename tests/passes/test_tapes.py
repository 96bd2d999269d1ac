"""What a loop keeps for a later one, and what that one makes again."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes import run_pipeline
from dy2st.passes.loops.rematerialize import Rematerialize
from dy2st.passes.pipelines import optimise
from dy2st.passes.simplify.dce import RemoveDeadCode
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.texts import becomes, program, stays

TAPES = Rematerialize()


def loops(
    value: str, kind: str, body: str, *, turns: str = "%n", begun: str = "%zero", more: tuple[str, str] = ("", "")
) -> str:
    """Return a loop that keeps a value of each turn, and one with this body, to which the list and `more` are given."""
    return f"""%p: bool, %k: int, %a: float32[M], %x: float32[N, M]
        %zero: int(0) = scalar_constant() {{value=0}}
        %new: list<{kind}> = list_new() {{type=!list<{kind}>}}
        %h: float32[M], %n: int, %kept: list<{kind}> = while_loop(%p, %a, {begun}, %new, %x, %k) {{carried=3}} {{
          body(%b: float32[M], %i: int, %list: list<{kind}>, %x1: float32[N, M], %k1: int) {{
            %one: int(1) = scalar_constant() {{value=1}}
            %row: float32[M] = index(%x1, %i) {{spec=(("int", "?"),)}}
            %e: float32[M] = exp(%row)
            %double: int = scalar_add(%i, %i)
            %s: float32[M] = add(%b, %row)
            %j: int = scalar_add(%i, %one)
            %again: bool = scalar_lt(%j, %k1)
            %longer: list<{kind}> = list_append(%list, {value})
            return %again, %s, %j, %longer
          }}
        }}
        %d: float32[M] = counted_while({turns}, %h, %kept{more[0]}) {{carried=1, reverse=true}} {{
          body(%t: int, %f: float32[M], %list1: list<{kind}>{more[1]}) {{
            {body}
            return %g
          }}
        }}
        return %d"""


READ = "%r: float32[M] = list_get(%list1, %t)\n"
USED = READ + "%g: float32[M] = mul(%f, %r)"
UNUSED = READ + "%g: float32[M] = neg(%f)"
NUMBER = """%w: float32[] = scalar_to_tensor({}) {{dtype=float32}}
            %m: int = dim(%f) {{axis=0}}
            %v: float32[M] = broadcast(%w, %m) {{shape=(none,)}}
            %g: float32[M] = add(%f, %v)"""


def test_a_row_of_what_stays_is_read_again() -> None:
    again = USED.replace("list_get(%list1, %t)", 'index(%x2, %t) {spec=(("int", "?"),)}')
    after = loops("%row", "float32[M]", again, more=(", %x", ", %x2: float32[N, M]"))
    becomes(TAPES, loops("%row", "float32[M]", USED), after)


@pytest.mark.parametrize(
    ("value", "before", "made"), [("%i", "", "%t"), ("%double", "%u: int = scalar_add(%t, %t)\n", "%u")]
)
def test_a_number_that_counts_turns_is_the_turn(value: str, before: str, made: str) -> None:
    read = "%r: int = list_get(%list1, %t)\n"
    becomes(TAPES, loops(value, "int", read + NUMBER.format("%r")), loops(value, "int", before + NUMBER.format(made)))


def test_a_read_that_nobody_uses_goes() -> None:
    before = loops("%e", "float32[M]", UNUSED)
    becomes(TAPES, before, before.replace(READ, ""))


def test_what_takes_arithmetic_is_kept() -> None:
    stays(TAPES, loops("%e", "float32[M]", USED))


def test_what_changes_from_turn_to_turn_is_kept() -> None:
    stays(TAPES, loops("%b", "float32[M]", USED))


@pytest.mark.parametrize("value", ["%row", "%e"])
def test_a_loop_of_another_number_of_turns_may_read_too_far(value: str) -> None:
    stays(TAPES, loops(value, "float32[M]", UNUSED, turns="%k"))
    stays(TAPES, loops(value, "float32[M]", USED, turns="%k"))
    stays(TAPES, loops(value, "float32[M]", USED, begun="%k"))


COUNTED = """%n: int, %k: int, %a: float32[M], %x: float32[N, M]
        %new: list<float32[M]> = list_new() {type=!list<float32[M]>}
        %kept: list<float32[M]> = counted_while(%n, %new, %x) {carried=1, reverse=false} {
          body(%i: int, %list: list<float32[M]>, %x1: float32[N, M]) {
            %row: float32[M] = index(%x1, %i) {spec=(("int", "?"),)}
            %longer: list<float32[M]> = list_append(%list, %row)
            return %longer
          }
        }
        %d: float32[M] = counted_while(TURNS, %a, %kept) {carried=1, reverse=true} {
          body(%t: int, %f: float32[M], %list1: list<float32[M]>) {
            %r: float32[M] = list_get(%list1, %t)
            %g: float32[M] = mul(%f, %r)
            return %g
          }
        }
        return %d"""


def test_loops_that_count_turn_as_often_where_they_count_to_the_same_number() -> None:
    made = program(COUNTED.replace("TURNS", "%n"))
    assert TAPES.apply(made)
    stays(TAPES, COUNTED.replace("TURNS", "%k"))


def test_a_read_at_another_place_stays() -> None:
    other = "%two: int(2) = scalar_constant() {value=2}\n" + USED.replace("%t)", "%two)")
    stays(TAPES, loops("%row", "float32[M]", other))


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_the_values_stay_the_same(turns: int) -> None:
    x = np.random.default_rng(turns).normal(size=(5, 3)).astype("float32")
    source, shorter = (program(loops("%row", "float32[M]", USED)) for _ in range(2))
    run_pipeline(shorter, (TAPES, RemoveDeadCode()), verify=True)
    assert "list" not in str(shorter)
    given = [True, turns, np.array([1.0, np.nan, -0.0], "float32"), x]
    np.testing.assert_array_equal(evaluate(source, given)[0], evaluate(shorter, given)[0])


def recurrent(names: Any, x: Any, h: Any, w: Any) -> Any:
    t = 0
    while t < x.shape[0]:
        h = names.tanh(x[t] + h @ w)
        t += 1
    return (h * h).sum()


@pytest.mark.parametrize("turns", [1, 2, 6])
def test_derivatives_through_what_is_read_again_are_those_of_eager_mode(turns: int) -> None:
    random = np.random.default_rng(turns)
    arrays = [random.normal(size=s).astype("float32") for s in ((turns, 2, 3), (2, 3), (3, 3))]

    def second(x: Any, h: Any, w: Any) -> Any:
        first = paddle.grad(recurrent(paddle, x, h, w), [x, h, w], create_graph=True)
        total = paddle.add_n([(g * g).sum() for g in first if g is not None])
        return [*first, *paddle.grad(total, [x, h, w])]

    def found(run: Any) -> Any:
        return [g.numpy() for g in run(*(paddle.to_tensor(a, stop_gradient=False) for a in arrays))]

    for a, b in zip(found(second), found(paddle.jit.to_static(second, full_graph=True)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def kept(static: Any) -> int:
    """Return how many values a turn appends to tapes."""
    program = optimise(static.concrete_program.main_program, verify=True)
    return sum(operation.op.name == "list_append" for operation in program.walk())


def test_a_gradient_keeps_what_takes_arithmetic_alone() -> None:
    @paddle.jit.to_static(full_graph=True)
    def slopes(x: Any, h: Any, w: Any, u: Any) -> Any:
        t = 0
        while t < x.shape[0]:
            h = paddle.tanh(x[t] @ u + h @ w)
            t += 1
        return paddle.grad((h * h).sum(), [w, u])

    w, u = (paddle.to_tensor(np.eye(3, dtype="float32"), stop_gradient=False) for _ in range(2))
    slopes(paddle.ones([4, 2, 3]), paddle.ones([2, 3]), w, u)
    assert kept(slopes) == 2  # what enters a turn, and tanh


def backwards(x: Any, h: Any, w: Any, first: int) -> Any:
    t = x.shape[0] - 1
    while t >= 0:
        h = paddle.tanh(x[t] + h @ w)
        t -= 1
    return h


def every_second(x: Any, h: Any, w: Any, first: int) -> Any:
    t, k = 1, 0
    while k < x.shape[0] // 2:
        h = paddle.tanh(x[t] + h @ w)
        t, k = t + 2, k + 1
    return h


def from_some_place_on(x: Any, h: Any, w: Any, first: int) -> Any:
    t = first
    while t < x.shape[0]:
        h = paddle.tanh(x[t] * (0.1 * t) + h @ w * 0.3)
        t += 1
    return h


@pytest.mark.parametrize("function", [backwards, every_second, from_some_place_on], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_numbers_that_count_from_elsewhere_or_by_more_are_computed_from_the_turn(
    function: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    random = np.random.default_rng(0)
    tensors = [paddle.to_tensor(random.normal(size=s).astype("float32")) for s in ((7, 2, 3), (2, 3), (3, 3))]
    for tensor in tensors:
        tensor.stop_gradient = False

    def slopes(x: Any, h: Any, w: Any, first: int) -> Any:
        h = function(x, h, w, first)
        return paddle.grad((h * h).sum(), [x, w])

    static = paddle.jit.to_static(slopes, full_graph=True)
    for first in (2, 4, 1):
        given: list[Any] = [*tensors, first]
        for a, b in zip(slopes(*given), static(*given), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-6)
    assert kept(static) == 2  # what enters a turn, and tanh
