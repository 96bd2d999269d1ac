"""Builders: what they know of extents."""

import pytest

import dy2st.ops  # noqa: F401  fills the registry
from dy2st.dtypes import float32
from dy2st.errors import TraceError
from dy2st.ir.builder import Builder
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol

ROWS = TensorType(float32, (symbol("N"),))


def test_rolling_back_forgets_operations_and_what_they_told() -> None:
    b = Builder()
    x = b.argument(ROWS)
    mark = b.checkpoint()
    first = b.extent(symbol("N"))
    b.rollback(mark)
    assert b.block.operations == []
    assert b.extent(symbol("N")) is not first
    assert [(o.op.name, o.operands) for o in b.block.operations] == [("dim", [x])]


def test_extents_that_differ_are_refused_by_their_numbers() -> None:
    b = Builder()
    two, three = (b.argument(TensorType(float32, (n, symbol("N")))) for n in (2, 3))
    with pytest.raises(ValueError, match="operands could not be broadcast together: extents 2 and 3 differ"):
        b.add(two, three)


def test_an_argument_made_since_tells_its_extents_after_rolling_back() -> None:
    b = Builder()
    mark = b.checkpoint()
    x = b.argument(ROWS)
    b.rollback(mark)
    b.extent(symbol("N"))
    assert [(o.op.name, o.operands) for o in b.block.operations] == [("dim", [x])]


def test_a_tensor_tells_an_extent_whose_symbol_nothing_tells() -> None:
    b, extent = Builder(), 2 * symbol("N") + 1
    x = b.argument(TensorType(float32, (3, extent)))
    b.extent(extent)
    b.extent(extent)
    assert [(o.op.name, o.operands, o.attributes) for o in b.block.operations] == [("dim", [x], {"axis": 1})]


def test_an_extent_that_nothing_tells_is_refused() -> None:
    with pytest.raises(TraceError, match="no value in reach tells the extent N"):
        Builder().extent(symbol("N"))
