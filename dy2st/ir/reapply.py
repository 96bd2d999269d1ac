"""Operations appended once more, to other values in another shape, without asking each op for its types again.

What a rule does to every parameter of an optimizer, say, is the same but for the shape: operations element by element
on tensors of that shape and on 0-D ones. So a copy of them has the same types, with another shape in the place of the
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import TensorType, Type
from dy2st.records import record
from dy2st.shapes import Shape


@record(frozen=True)
class Segment:
    """Operations that follow each other, the values from elsewhere that they use, and their one shape but for 0-D."""

    operations: list[Operation]
    inputs: list[Value]
    shape: Shape


def repeatable(operations: Sequence[Operation], shape: Shape) -> Segment | None:
    """Return operations as a segment; None where another shape may ask for other operations, or other types.

    >>> from dy2st.ir.types import INT
    >>> b = Builder()
    >>> repeatable([b.operation("scalar_add", [b.argument(INT), b.argument(INT)])], (2, 3)) is None
    True
    """
    if not shape or not all(isinstance(extent, int) for extent in shape):
        return None
    made: set[Value] = set()
    inputs: dict[Value, None] = {}
    for operation in operations:
        if not _is_plain(operation, shape):
            return None
        inputs.update((v, None) for v in operation.operands if v not in made)
        made.update(operation.results)
    if not all(_fits(v.type, shape) for v in (*inputs, *made)):
        return None
    return Segment(list(operations), list(inputs), shape)


def _is_plain(operation: Operation, shape: Shape) -> bool:
    if len(operation.results) != 1 or operation.blocks:
        return False
    if operation.name == "broadcast":
        return len(operation.operands) == 1 and operation.attributes["shape"] == shape
    op = operation.op
    return op.elementwise or op.is_constant or op.is_identity or op.splat is not None


def _fits(t: Type, shape: Shape) -> bool:
    return isinstance(t, TensorType) and t.shape in ((), shape)


def again(b: Builder, segment: Segment, inputs: Sequence[Value], shape: Shape) -> Mapping[Value, Value]:
    """Append a segment's operations to `b`, on `inputs` in the place of its own; return what stands for its values.

    An input of the segment's shape stands for one of `shape`, which is known and not that of a 0-D tensor; others have
    the types of those that they stand for.
    """
    values = {old: b.use(new) for old, new in zip(segment.inputs, inputs, strict=True)}
    types: dict[int, Type] = {}
    for operation in segment.operations:
        (result,) = operation.results
        kind = types.get(id(result.type))
        if kind is None:
            kind = types[id(result.type)] = _moved(result.type, shape)
        attributes = {"shape": shape} if operation.name == "broadcast" else dict(operation.attributes)
        used = [values[v] for v in operation.operands]
        made = Operation(operation.op, used, attributes, [], b.location or operation.location)
        values[result] = Value(kind, b.block, made)
        made.results.append(values[result])
        b.block.operations.append(made)
    return values


def _moved(t: Type, shape: Shape) -> Type:
    assert isinstance(t, TensorType)
    return TensorType(t.dtype, shape) if t.shape else t
