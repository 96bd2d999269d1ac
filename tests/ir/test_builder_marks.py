"""Marks to go back to, captures under another type, and values of which more is said later."""

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol

VECTOR = TensorType(dtypes.float64, (symbol("N"),))


def test_rollback_forgets_what_came_since():
    b = Builder()
    x = b.argument(VECTOR)
    b.exp(x)
    mark = b.checkpoint()
    b.tanh(x)
    b.rollback(mark)
    assert [o.name for o in b.block.operations] == ["exp"]


def test_rollback_keeps_what_was_put_before_an_older_operation():
    b = Builder()
    x = b.argument(VECTOR)
    b.exp(x)
    mark = b.checkpoint()
    made = b.operation("neg", [x])
    b.block.operations.remove(made)
    b.block.operations.insert(0, made)
    b.tanh(x)
    b.rollback(mark)
    assert [o.name for o in b.block.operations] == ["neg", "exp"]


def test_rollback_to_an_empty_block():
    b = Builder()
    mark = b.checkpoint()
    b.exp(b.argument(VECTOR))
    b.rollback(mark)
    assert b.block.operations == []


def test_a_value_is_captured_under_another_type():
    b = Builder()
    x = b.argument(VECTOR)
    child = b.child()
    other = TensorType(dtypes.float64, (symbol("M"),))
    assert not child.holds(x)
    found = child.capture(x, other)
    assert found.type == other
    assert child.use(x) is found
    assert child.holds(x)
    assert child.extent(symbol("M")).operation.name == "dim"


def test_a_value_tells_an_extent_once_its_type_names_it():
    b = Builder()
    x = b.argument(VECTOR)
    b.retype(x, TensorType(dtypes.float64, (symbol("M"),)))
    assert b.extent(symbol("M")).operation.operands == [x]
