"""Lists, tuples and variants: what moves values does the same with stacked ones.

The lanes have the length of a list and the tag of a variant in common; numbers of slots must be the same for all lanes.
"""

from __future__ import annotations

from typing import Any

from dy2st.batching.batched_value import BatchedValue, LaneForm, moved
from dy2st.batching.batcher import Batcher, rule
from dy2st.batching.rules import Lanes, stacked
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ScalarType, Type
from dy2st.ops.control.list_cotangents import ListAccumulate, ListPut
from dy2st.ops.control.list_slicing import ListInsert
from dy2st.ops.control.list_stack import ListConcatTangent, ListExtents, ListSplit
from dy2st.ops.control.lists import ListAppend, ListNew, ListSet
from dy2st.ops.control.optional import VariantNew
from dy2st.ops.control.tuples import TupleNew


def _is_place(operation: Operation, i: int) -> bool:
    """Return whether an operand is the number of a slot, not an element."""
    kind = operation.operands[i].type
    if not isinstance(kind, ScalarType):
        return False
    return not isinstance(operation.op, (ListAppend, ListNew, TupleNew, VariantNew)) and not (
        isinstance(operation.op, (ListAccumulate, ListInsert, ListPut, ListSet)) and i == 2
    )


@rule(
    *("list_new", "list_append", "list_len", "list_index", "list_get", "list_set", "list_pop", "list_popped"),
    *("list_put", "list_take", "list_clear", "list_remove", "list_spread", "list_accumulate"),
    *("list_extend", "slots_extend", "list_bounds", "list_part", "slots_part", "list_reverse", "slots_reverse"),
    *("list_insert", "list_widen", "slots_widen", "slots_narrow"),
    *("variant_new", "variant_tag", "variant_get", "variant_or_zeros", "variant_ct", "variant_wrap", "variant_cast"),
    *("tuple_new", "tuple_of_tangents", "tuple_get", "optional_add"),
)
def moving(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """The same op on stacked values; the types that it is told are of stacked values too."""
    operands: list[Value] = []
    for i, lane in enumerate(lanes):
        if _is_place(operation, i):
            if not lane.shared:
                return None
            operands.append(lane.value)
        else:
            operands.append(at.stacked(lane))
    attributes = {k: _told(at, v) for k, v in operation.attributes.items()}
    made = at.b.operation(operation.op, operands, attributes).results
    form = LaneForm.SHARED if operation.op.tells_structure else LaneForm.STACKED
    return [BatchedValue(v, form) for v in made]


def _told(at: Batcher, value: Any) -> Any:
    return at.type(value) if isinstance(value, Type) else value


@rule("list_stack")
def list_stack(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """The new axis stands behind that of the lanes."""
    return stacked(moved(at.b, at.b.list_stack(lanes[0].value), 0, 1))


@rule("list_to_tensor")
def list_to_tensor(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Numbers of all lanes, side by side."""
    made = moved(at.b, at.b.list_stack(lanes[0].value), 0, 1)
    return stacked(at.b.cast(made, dtype=operation.attributes["dtype"]))


@rule("list_stack_tangent")
def list_stack_tangent(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """As `list_stack`, in the shape of a tensor whose first two axes change places."""
    slots, like = at.stacked(lanes[0]), at.stacked(lanes[1])
    return stacked(moved(at.b, at.b.list_stack_tangent(slots, moved(at.b, like, 0, 1)), 0, 1))


@rule("list_unstack")
def list_unstack(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """The inverse of `list_stack_tangent`."""
    x = moved(at.b, lanes[0].value, 0, 1)
    return stacked(at.b.list_unstack(x, type=_told(at, operation.attributes["type"])))


@rule("list_concat", "list_extents", "list_concat_tangent", "list_split")
def along_axis(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Elements end to end along an axis, which the lanes have at the same places."""
    operands: list[Value] = []
    for i, lane in enumerate(lanes):
        extents = isinstance(operation.op, (ListConcatTangent, ListSplit)) and i == 1
        if extents and not lane.shared:
            return None
        operands.append(lane.value if extents else at.stacked(lane))
    attributes = {k: _told(at, v) for k, v in operation.attributes.items()}
    attributes["axis"] += 1
    made = at.b.operation(operation.op, operands, attributes).results
    return [BatchedValue(made[0], LaneForm.SHARED if isinstance(operation.op, ListExtents) else LaneForm.STACKED)]
