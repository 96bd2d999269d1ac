"""Programs over lanes are differentiated like any other: reverse, forward, differences, second order."""

import json

import numpy as np
import pytest

from dy2st.batching.programs import vmap
from dy2st.ir.parser import parse
from dy2st.ir.types import INT
from tests.autodiff.building import POINT, VECTOR, cond, counted_while, empty_list, program, while_loop
from tests.autodiff.checking import check, gradient_program
from tests.batching.lanes_of import check as over_lanes

XS = np.array([[0.3, -0.7], [1.5, 2.0], [-4.0, 0.5]])


def test_lanes_of_different_branches():
    def body(b, x, s):
        pred = b.item(b.gt(s, 0.0))
        return cond(b, pred, lambda b: [b.exp(b.mul(x, s))], lambda b: [b.mul(x, b.tanh(s))])

    made, _ = vmap(program([VECTOR, POINT], body), [True, True])
    check(made, XS, np.array([0.5, -0.3, 0.8]), order=2)


def test_what_is_infinite_in_a_branch_that_is_not_taken_has_no_part():
    def body(b, x):
        return cond(b, b.item(b.gt(x, 0.0)), lambda b: [b.sqrt(x)], lambda b: [b.exp(x)])

    made, _ = vmap(program([POINT], body), [True])
    check(made, np.array([0.5, -0.3, -2.0, 1e-3 + 4.0]), order=2)


def test_lanes_that_leave_a_loop_early():
    def body(b, x, limit):
        def test(b, s):
            return b.item(b.lt(b.sum(b.mul(s, s), axis=(0,), keepdim=False), b.use(limit)))

        return while_loop(b, [x], test, lambda b, s: [b.mul(b.mul(s, 1.5), b.use(x))])

    made, _ = vmap(program([VECTOR, POINT], body), [True, True])
    check(made, np.abs(XS) + 1, np.array([1.0, 50.0, 300.0]), order=2)


@pytest.mark.parametrize("turns", [[0, 2, 1], [3, 3, 0]])
def test_lanes_that_count_differently(turns):
    def body(b, x, n):
        return counted_while(b, n, [x], lambda b, i, s: [b.mul(s, b.tanh(b.use(x)))])

    made, _ = vmap(program([VECTOR, INT], body), [True, True])
    check(made, XS, np.array(turns), order=2)


def test_lists():
    def body(b, x):
        items = counted_while(b, 3, [empty_list(b), x], lambda b, i, items, s: [b.list_append(items, s), b.exp(s)])[0]
        return b.mul(b.sum(b.list_stack(items), axis=(0,), keepdim=False), b.list_get(items, -1))

    made, _ = vmap(program([VECTOR], body), [True])
    check(made, XS * 0.1, order=2)


def test_lane_by_lane():
    def body(b, x):
        positive = b.masked_select(x, b.gt(x, 0.0))
        return b.sum(b.exp(positive), axis=(0,), keepdim=False)

    made, _ = vmap(program([VECTOR], body), [True])
    assert any(o.name == "counted_while" for o in made.walk())
    check(made, XS, order=2)


def test_the_gradient_of_a_loop_whose_lanes_part_has_no_loop_over_lanes():
    """The tapes of reverse mode are read by the turns that wrote them, so they need not be as long for every lane."""

    def body(b, x, limit):
        def test(b, s):
            return b.item(b.lt(b.sum(b.mul(s, s), axis=(0,), keepdim=False), b.use(limit)))

        return while_loop(b, [x], test, lambda b, s: [b.mul(b.mul(s, 1.5), b.use(x))])

    of = gradient_program(program([VECTOR, POINT], body))
    limits = [np.array(v) for v in (1.0, 50.0, 300.0)]
    inputs = [[np.abs(x) + 1, limit, np.ones(2)] for x, limit in zip(XS, limits, strict=True)]
    made = over_lanes(of, inputs, [True, True, True])
    assert len([o for o in made.block.operations if o.name == "counted_while"]) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_of_a_counted_loop_whose_lanes_part(reverse):
    def body(b, x, n):
        def turn(b, i, s):
            return [b.mul(b.tanh(s), b.add(b.scalar_to_tensor(i, dtype=x.type.dtype), 1.0))]

        return counted_while(b, n, [x], turn, reverse)

    of = gradient_program(program([VECTOR, INT], body))
    made = over_lanes(of, [[x, n, np.ones(2)] for x, n in zip(XS, (0, 3, 2), strict=True)], [True, True, True])
    assert reverse or len([o for o in made.walk() if o.name == "counted_while"]) == 2


BACK = """program main
func main(%d: float64[N], %r: float64[N]) {
  %a: float64[N] = mul(%d, %r)
  %y: float64[N] = BODY
  return %y
}
"""
OWN = """program main
func main(%x: float64[N]) {
  %a: float64[N] = mul(%x, %x)
  %y: float64[N] = with_gradient(%a, %x) {inputs=1, values=1, whose="f", pushforward="", pullback=TEXT}
  return %y
}
"""


@pytest.mark.parametrize("body", ["add(%a, %d)", "sin(%a)"])
def test_a_derivative_of_ones_own_is_one_for_all_lanes(body):
    back = json.dumps(BACK.replace("BODY", body))
    made = over_lanes(parse(OWN.replace("TEXT", back)), [[x] for x in XS], [True])
    assert [o.name for o in made.walk()].count("counted_while") == 0
    (values,) = (o for o in made.walk() if o.name == "with_gradient")
    assert "float64[3, N]" in values.attributes["pullback"]
