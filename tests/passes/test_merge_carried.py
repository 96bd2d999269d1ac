"""What a loop carries twice."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.loops.merge_carried import MergeCarried
from dy2st.passes.pipelines import optimise
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.texts import becomes, program, stays

MERGE = MergeCarried()


def counted(begun: str, turns: str, left: str, results: str = "%p, %q", head: str = "%k: int, %z: float32[N]") -> str:
    """Return a loop that carries two vectors and has a third beside them."""
    return f"""{head}, %x: float32[N]
        %p: float32[N], %q: float32[N] = counted_while(%k, {begun}, %x) {{carried=2, reverse=false}} {{
          body(%i: int, %a: float32[N], %b: float32[N], %x1: float32[N]) {{
            {turns}
            return {left}
          }}
        }}
        %s: float32[N] = mul(%p, %q)
        return {results}"""


ONE = """%k: int, %z: float32[N], %x: float32[N]
        %p: float32[N] = counted_while(%k, %z, %x) {carried=1, reverse=false} {
          body(%i: int, %a: float32[N], %x1: float32[N]) {
            BODY
            return %c
          }
        }
        %s: float32[N] = mul(%p, %p)
        return %s"""
EACH = "%c: float32[N] = add(%a, %x1)\n            %d: float32[N] = add(%b, %x1)"


def test_values_that_begin_and_go_on_alike_become_one() -> None:
    after = ONE.replace("BODY", "%c: float32[N] = add(%a, %x1)\n            %d: float32[N] = add(%a, %x1)")
    becomes(MERGE, counted("%z, %z", EACH, "%c, %d", "%s"), after)


def test_values_that_are_computed_from_each_other_become_one() -> None:
    after = ONE.replace("BODY", "%c: float32[N] = sub(%a, %x1)\n            %d: float32[N] = sub(%a, %x1)")
    crossed = "%c: float32[N] = sub(%b, %x1)\n            %d: float32[N] = sub(%a, %x1)"
    becomes(MERGE, counted("%z, %z", crossed, "%c, %d", "%s"), after)


def test_another_start_another_step_or_another_order_keeps_them_apart() -> None:
    stays(MERGE, counted("%z, %x", EACH, "%c, %d", "%s"))
    stays(MERGE, counted("%z, %z", EACH.replace("add(%b", "mul(%b"), "%c, %d", "%s"))
    stays(MERGE, counted("%z, %z", EACH.replace("add(%b, %x1)", "sub(%b, %a)"), "%c, %d", "%s"))


def test_what_differs_later_takes_apart_what_is_computed_from_it() -> None:
    text = """%k: int, %z: float32[]
        %p: float32[], %q: float32[], %r: float32[], %s: float32[] = counted_while(%k, %z, %z, %z, %z)
        {carried=4, reverse=false} {
          body(%i: int, %a: float32[], %b: float32[], %c: float32[], %d: float32[]) {
            %e: float32[] = exp(%a)
            %f: float32[] = neg(%b)
            %g: float32[] = add(%a, %c)
            %h: float32[] = add(%b, %d)
            return %e, %f, %g, %h
          }
        }
        %t: float32[] = add(%p, %q)
        %u: float32[] = add(%r, %s)
        %v: float32[] = add(%t, %u)
        return %v"""
    stays(MERGE, text.replace(")\n        {carried", ") {carried"))


def test_two_results_stay_two_arrays() -> None:
    stays(MERGE, counted("%z, %z", EACH, "%c, %d"))


def test_two_numbers_that_count_become_one() -> None:
    before = """%more: bool, %zero: int, %n: int
        %p: int, %q: int = while_loop(%more, %zero, %zero, %n) {carried=2} {
          body(%a: int, %b: int, %n1: int) {
            %one: int(1) = scalar_constant() {value=1}
            %c: int = scalar_add(%a, %one)
            %d: int = scalar_add(%b, %one)
            %again: bool = scalar_lt(%c, %n1)
            return %again, %c, %d
          }
        }
        return %p, %q"""
    after = """%more: bool, %zero: int, %n: int
        %p: int = while_loop(%more, %zero, %n) {carried=1} {
          body(%a: int, %n1: int) {
            %one: int(1) = scalar_constant() {value=1}
            %c: int = scalar_add(%a, %one)
            %d: int = scalar_add(%a, %one)
            %again: bool = scalar_lt(%c, %n1)
            return %again, %c
          }
        }
        return %p, %p"""
    becomes(MERGE, before, after)


def test_a_loop_in_a_loop_is_looked_at() -> None:
    def nested(inner: str) -> str:
        return f"""%m: int, %z: float32[N], %x: float32[N]
        %out: float32[N] = counted_while(%m, %z, %m, %x) {{carried=1, reverse=false}} {{
          body(%j: int, %z1: float32[N], %k: int, %y: float32[N]) {{
            {inner}
            return %s
          }}
        }}
        return %out"""

    two = """%p: float32[N], %q: float32[N] = counted_while(%k, %z1, %z1, %y) {carried=2, reverse=false} {
              body(%i: int, %a: float32[N], %b: float32[N], %x1: float32[N]) {
                %c: float32[N] = add(%a, %x1)
                %d: float32[N] = add(%b, %x1)
                return %c, %d
              }
            }
            %s: float32[N] = mul(%p, %q)"""
    one = """%p: float32[N] = counted_while(%k, %z1, %y) {carried=1, reverse=false} {
              body(%i: int, %a: float32[N], %x1: float32[N]) {
                %c: float32[N] = add(%a, %x1)
                %d: float32[N] = add(%a, %x1)
                return %c
              }
            }
            %s: float32[N] = mul(%p, %p)"""
    becomes(MERGE, nested(two), nested(one))


@pytest.mark.parametrize("turns", [0, 1, 5])
@pytest.mark.parametrize("start", [0.5, float("nan"), -0.0])
def test_the_values_stay_the_same(turns: int, start: float) -> None:
    source = program(counted("%z, %z", EACH, "%c, %d", "%s"))
    given = [turns, np.array([start, 2.0], "float32"), np.array([0.25, float("inf")], "float32")]
    (before,), (after,) = evaluate(source, given), evaluate(optimise(source, verify=True), given)
    np.testing.assert_array_equal(before, after)


def test_a_derivative_that_can_be_taken_again_keeps_each_turn_once() -> None:
    w = paddle.to_tensor(np.array([[0.5, 0.1], [-0.2, 0.3]], "float32"), stop_gradient=False)

    @paddle.jit.to_static(full_graph=True)
    def slopes(x: Any, n: Any) -> Any:
        h, i = x, paddle.zeros([], "int64")
        while i < n:
            h = paddle.tanh(h @ w)
            i += 1
        loss = (h * h).sum()
        return loss, *paddle.grad(loss, [w], retain_graph=True)

    loss, slope = slopes(paddle.ones([3, 2]), paddle.to_tensor(4))
    loss.backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), slope.numpy(), rtol=1e-6)
    (pullback,) = slopes.concrete_program.compiled._pullbacks.values()
    (loop,) = (o for o in pullback.forward.program.walk() if o.op.name == "while_loop")
    lists = [v for v in loop.results if "list" in str(v.type)]
    assert len(lists) == 2  # what enters and what leaves a turn, each for both derivatives
