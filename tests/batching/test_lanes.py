"""The forms in which a value stands for all lanes."""

import pytest

from dy2st.batching.lanes import Form, Lane, apart_type, stacked_type
from dy2st.batching.pushing import Batcher, NotStackable
from dy2st.ir.builder import Builder
from dy2st.ir.types import INT, ListType, TupleType, optional
from tests.autodiff.building import POINT, VECTOR


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
    lane = Lane(b.argument(apart_type(VECTOR)), Form.APART)
    with pytest.raises(NotStackable, match="what differs between lanes has no form that is one value: list<float64"):
        Batcher(b, 3).stacked(lane)


def test_a_shared_list_is_stacked_element_by_element():
    b = Builder()
    made = Batcher(b, 3).stacked(Lane(b.argument(ListType(POINT)), Form.SHARED))
    assert str(made.type) == "list<float64[3]>"
    assert [o.name for o in b.block.operations].count("counted_while") == 1
