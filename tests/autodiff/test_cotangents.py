"""Forms of cotangents: what can be missing, and the errors about it."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.autodiff import loops
from dy2st.autodiff.cotangents import as_optional, conform, missing
from dy2st.autodiff.loops import CarryForm
from dy2st.autodiff.programs import vjp
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import INT, ListType, TensorType, TupleType, optional
from dy2st.ir.verifier import verify
from dy2st.runtime.interpreter.reference import evaluate
from dy2st.shapes import symbol
from tests.autodiff.building import VECTOR, counted_while, program


def test_a_list_and_a_tuple_in_which_nothing_is_there():
    b = Builder()
    b.block.results = [missing(b, ListType(optional(VECTOR))), missing(b, TupleType((optional(VECTOR),)))]
    program = Program({"main": b.block})
    verify(program)
    items, pair = evaluate(program, [])
    assert items == []
    assert pair.items == ((0, None),)


def test_a_tensor_cannot_be_missing_without_an_optional():
    with pytest.raises(AutodiffError, match=r"a cotangent of type float64\[N\] cannot be missing"):
        missing(Builder(), VECTOR)


def test_a_cotangent_of_the_right_type_stays_as_it_is():
    b = Builder()
    x, ct = b.argument(VECTOR), b.argument(VECTOR)
    assert conform(b, ct, x) is ct
    assert b.block.operations == []


def test_an_optional_stays_as_it_is():
    b = Builder()
    ct = b.argument(optional(VECTOR))
    assert as_optional(b, ct, optional(VECTOR)) is ct


def test_a_cotangent_gets_the_extents_of_its_primal():
    b = Builder()
    x = b.argument(VECTOR)
    ct = b.argument(TensorType(dtypes.float64, (symbol("M"),)))
    found = conform(b, ct, x)
    assert found.type == VECTOR
    assert found.operation.name == "reshape"


def test_what_is_fresh_is_typed_for_nothing():
    b = Builder()
    x = b.argument(VECTOR)
    ct = b.argument(TensorType(dtypes.float64, (symbol("M"),)))
    assert conform(b, ct, x, fresh=True) is ct
    assert ct.type == VECTOR


def test_forms_that_never_settle_are_refused(monkeypatch):
    turns = iter(range(1, 100))
    monkeypatch.setattr(loops, "_next", lambda *_: (CarryForm.DENSE, CarryForm.OPTIONAL)[next(turns) % 2])
    made = program([INT, VECTOR], lambda b, n, x: counted_while(b, n, [x], lambda b, i, s: b.tanh(s)))
    with pytest.raises(AutodiffError, match="the cotangents that a loop carries do not settle"):
        vjp(made, (1,), [(0, False)])


def test_an_optional_cotangent_of_a_result():
    made = vjp(program([VECTOR, VECTOR], lambda b, x, y: b.mul(b.exp(x), y)), (0, 1), [(0, True)])
    x, y = np.array([0.1, 0.2]), np.array([3.0, 4.0])
    values = evaluate(made.forward, [x, y])
    assert evaluate(made.backward, [*values[1:], (0, None)]) == [(0, None), (0, None)]
    dx, dy = evaluate(made.backward, [*values[1:], (1, np.ones(2))])
    np.testing.assert_allclose(dx[1], np.exp(x) * y)
    np.testing.assert_allclose(dy[1], np.exp(x))
