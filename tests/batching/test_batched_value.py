"""The forms in which a value stands for all lanes."""

import numpy as np
import pytest

from dy2st.batching.batched_value import BatchedValue, LaneForm, apart_type, stacked_type
from dy2st.batching.batcher import Batcher, NotBatchable
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import BOOL, FLOAT, INT, UNSET, ListType, TupleType, VariantType, optional
from dy2st.ir.verifier import verify
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import POINT, VECTOR, program
from tests.batching.lanes_of import check, outcomes


def test_the_lanes_are_the_first_axis_of_every_tensor():
    assert str(stacked_type(VECTOR, 3)) == "float64[3, N]"
    assert str(stacked_type(INT, 3)) == "int64[3]"
    kind = ListType(TupleType((POINT, optional(VECTOR))))
    assert str(stacked_type(kind, 3)) == "list<tuple<float64[3], variant<unset | float64[3, N]>>>"


def test_what_stands_apart_leaves_extents_open():
    assert str(apart_type(VECTOR)) == "list<float64[None]>"
    assert str(apart_type(ListType(POINT))) == "list<list<float64[]>>"


def test_what_stands_apart_is_no_one_value():
    b = Builder()
    lane = BatchedValue(b.argument(apart_type(VECTOR)), LaneForm.APART)
    with pytest.raises(NotBatchable, match="what differs between lanes has no form that is one value: list<float64"):
        Batcher(b, 3).stacked(lane)


def test_a_shared_list_is_stacked_element_by_element():
    b = Builder()
    made = Batcher(b, 3).stacked(BatchedValue(b.argument(ListType(POINT)), LaneForm.SHARED))
    assert str(made.type) == "list<float64[3]>"
    assert [o.name for o in b.block.operations].count("counted_while") == 1


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (optional(POINT), (0, None)),
        (optional(POINT), (1, np.array(2.0))),
        (VariantType((UNSET, POINT, INT)), (0, None)),
        (VariantType((UNSET, POINT, INT)), (1, np.array(2.0))),
        (VariantType((UNSET, POINT, INT)), (2, 7)),
    ],
)
def test_a_shared_tuple_of_what_may_differ_is_stacked_part_by_part(kind, given):
    b = Builder()
    x, y = b.argument(kind), b.argument(POINT)
    pair = b.tuple_new(x, y)
    b.block.results = [Batcher(b, 3).stacked(BatchedValue(pair, LaneForm.SHARED))]
    program = Program({"main": b.block})
    verify(program)
    ((tag, held), beside) = evaluate(program, [given, np.array(5.0)])[0].items
    assert tag == given[0]
    assert (held is None) == (given[1] is None)
    for found, one in ((held, given[1]), (beside, 5.0)):
        if one is not None:
            assert np.asarray(found).tolist() == [one] * 3


@pytest.mark.parametrize("kinds", [(INT, INT), (FLOAT, FLOAT), (INT, FLOAT), (BOOL, INT)])
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "min", "max", "lt", "le", "eq", "ne"]
)
def test_numbers_of_lanes_are_pythons(name, kinds):
    numbers = {INT: (3, 0, -2), FLOAT: (0.5, 0.0, -3.25), BOOL: (True, False, True)}
    rows = [[x, y] for x in numbers[kinds[0]] for y in numbers[kinds[1]]]
    made = program(kinds, lambda b, x, y: b.emit(f"scalar_{name}", [x, y]))
    raised = [row for row in rows if outcomes(made, [row])[1]]
    check(made, [row for row in rows if row not in raised], [True, True])
    for row in raised:
        check(made, [rows[0], row], [True, True])
