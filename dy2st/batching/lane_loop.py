"""The loop over the lanes: an operation without a rule runs once for each lane, in the order of the lanes.

Before                          After
    %y = nonzero(%x)                %empty = list_new()
                                    %ys = counted_while(%lanes, %empty, %x) { (%i, %so_far, %x)
                                        %lane = index(%x, %i)
                                        %y = nonzero(%lane)
                                        %next = list_append(%so_far, %y)
                                        -> %next }

What the lanes give is stacked again where it has one shape for all of them (1), numbers become a tensor (2); anything
else stays apart (3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.autodiff.cotangents import close_cond
from dy2st.batching.batched_value import NUMBERS, BatchedValue, LaneForm, apart_type, known_outside, stacked_type
from dy2st.batching.leaves import Rebuilder, counted
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import INT, ScalarType, TensorType, Type
from dy2st.ops.core.transpose_helpers import zeros
from dy2st.shapes import Extent


def each_lane(b: Builder, lanes: Extent, operation: Operation, operands: Sequence[BatchedValue]) -> list[BatchedValue]:
    """Emit a loop that runs an operation for each lane; return what its results became."""
    body = b.child()
    i = body.argument(INT, "lane")
    types = [apart_type(v.type) for v in operation.results]
    so_far = [body.argument(t) for t in types]
    given = [of_lane(body, one, i, v.type) for one, v in zip(operands, operation.operands, strict=True)]
    blocks = [clone_block(inner) for inner in operation.blocks]
    made = body.operation(operation.op, given, dict(operation.attributes), blocks, operation.location)
    for old, new in zip(operation.results, made.results, strict=True):
        body.retype(new, old.type)
    pairs = zip(so_far, made.results, strict=True)
    body.block.results = [body.emit("list_append", [total, one]) for total, one in pairs]
    initial = [b.emit("list_new", [], {"type": t}) for t in types]
    lists = counted(b, b.extent(lanes), body, initial)
    return [together(b, lanes, one, v.type) for one, v in zip(lists, operation.results, strict=True)]


def of_lane(b: Builder, lane: BatchedValue, i: Value, kind: Type) -> Value:
    """Emit the value, of type `kind`, that lane number `i` has."""
    if lane.shared:
        return b.use(lane.value)
    if lane.stacked:
        return _unstacked(b, lane.value, i, kind)
    value = b.list_get(lane.value, i)
    b.retype(value, kind)
    return value


def together(b: Builder, lanes: Extent, items: Value, kind: Type) -> BatchedValue:
    """Return what stands for the values, of type `kind`, that a list has for each lane."""
    if isinstance(kind, ScalarType):  # 2
        made = b.list_to_tensor(items, dtype=NUMBERS[kind.kind])
        b.retype(made, stacked_type(kind, lanes))
        return BatchedValue(made, LaneForm.STACKED)
    if not isinstance(kind, TensorType) or not known_outside(b, kind):  # 3
        return BatchedValue(items, LaneForm.APART)
    return BatchedValue(stack_list(b, lanes, items, kind), LaneForm.STACKED)  # 1


def stack_list(b: Builder, lanes: Extent, items: Value, kind: TensorType) -> Value:
    """Emit the tensor of a list of tensors, one for each lane, also where there is no lane."""
    if isinstance(lanes, int) and lanes > 0:
        made = b.list_stack(items)
    else:
        some, none = b.child(), b.child()
        some.block.results = [some.list_stack(items)]
        none.block.results = [zeros(none, kind.dtype, [0, *none.shape(kind)])]
        made = close_cond(b, b.scalar_gt(b.list_len(items), 0), some, none)[0]
    b.retype(made, stacked_type(kind, lanes))
    return made


def _unstacked(b: Builder, value: Value, i: Value, kind: Type) -> Value:
    """Emit what one lane has of a stacked value."""

    def leaf(b: Builder, value: Value, kind: Type) -> Value:
        made = b.index(value, i, spec=(("int", "?"),))
        if isinstance(kind, ScalarType):
            made = b.item(made)
        b.retype(made, kind)
        return made

    return Rebuilder(leaf, lambda kind: kind).value(b, value, kind)


def lane_numbers(b: Builder, lanes: Extent) -> Value:
    """Emit the numbers of the lanes, an int64 vector."""
    if isinstance(lanes, int):
        return b.constant(np.arange(lanes), NUMBERS["int"])
    made = b.arange(b.scalar(0), b.scalar(b.extent(lanes)), b.scalar(1), dtype=NUMBERS["int"])
    b.retype(made, stacked_type(INT, lanes))
    return made
