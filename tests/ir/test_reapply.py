"""Operations appended again are what their ops would have made of the other operands."""

import pytest

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program
from dy2st.ir.reapply import again, repeatable
from dy2st.ir.types import TensorType


def _rule(b: Builder, x, rate):
    return b.mul(b.sqrt(b.add(x, x)), b.cast(b.mul(rate, 2.0), dtype=dtypes.float32))


def _block(shapes, repeated: bool) -> str:
    b = Builder()
    rate = b.argument(TensorType(dtypes.float64, ()), "rate")
    xs = [b.argument(TensorType(dtypes.float32, shape)) for shape in shapes]
    b.constant(2.0, dtypes.float64)
    first = _rule(b, xs[0], rate)
    segment = repeatable(b.block.operations[1:], shapes[0]) if repeated else None
    made = [first]
    for x, shape in zip(xs[1:], shapes[1:], strict=True):
        if segment is None:
            made.append(_rule(b, x, rate))
            continue
        given = {xs[0]: x, rate: rate}
        inputs = [given.get(v, v) for v in segment.inputs]
        made.append(again(b, segment, inputs, shape)[first])
    b.block.results = made
    return to_text(Program({"main": b.block}))


@pytest.mark.parametrize("shapes", [[(2, 3), (5,)], [(4,), (2, 1, 3), (0, 2)], [(1,), (7,)]])
def test_what_is_repeated_is_what_the_rule_makes(shapes):
    assert _block(shapes, repeated=True) == _block(shapes, repeated=False)


def test_a_reduction_is_not_repeated():
    b = Builder()
    b.sum(b.argument(TensorType(dtypes.float32, (2, 3))), axis=(0, 1), keepdim=False)
    assert repeatable(b.block.operations, (2, 3)) is None


def test_nothing_is_repeated_for_scalars_or_open_extents():
    b = Builder()
    x = b.argument(TensorType(dtypes.float32, (b.names.symbol(),)))
    b.add(x, x)
    assert repeatable(b.block.operations, x.type.shape) is None
    assert repeatable(b.block.operations, ()) is None


def test_what_uses_another_shape_is_not_repeated():
    b = Builder()
    x, row = (b.argument(TensorType(dtypes.float32, shape)) for shape in ((2, 3), (3,)))
    b.add(x, row)
    assert repeatable(b.block.operations, (2, 3)) is None
