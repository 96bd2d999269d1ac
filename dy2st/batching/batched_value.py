"""How a value of one lane stands for all lanes.

SHARED    the lanes have it in common: the value itself
STACKED   one value for all of them: a tensor [*shape] is one of [lanes, *shape], a Python number is a tensor
          [lanes], a list (tuple, variant) is one of stacked elements: the lanes have its length (its tag) in common
APART     a list with a value for each lane: for what differs between lanes in more than its elements, such as the
          extents of a tensor or the length of a list
"""

from __future__ import annotations

from enum import Enum

from dy2st.batching.leaves import Rebuilder
from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import ListType, ScalarType, TensorType, Type, over_leaves
from dy2st.records import record
from dy2st.shapes import Dim, Extent, symbol

NUMBERS: dict[str, DType] = {"int": int64, "float": float64, "bool": bool_}
"""The dtypes of stacked Python numbers."""


class LaneForm(Enum):
    """How one value stands for all lanes."""

    SHARED = "shared"
    STACKED = "stacked"
    APART = "apart"


@record(frozen=True, slots=True)
class BatchedValue:
    """What a value of one lane became."""

    value: Value
    form: LaneForm

    @property
    def shared(self) -> bool:
        return self.form is LaneForm.SHARED

    @property
    def stacked(self) -> bool:
        return self.form is LaneForm.STACKED

    @property
    def apart(self) -> bool:
        return self.form is LaneForm.APART


def stacked_type(t: Type, lanes: Extent) -> Type:
    """Return the type of the stacked form of values of type `t`."""

    def stacked(leaf: Type) -> Type:
        if isinstance(leaf, TensorType):
            return TensorType(leaf.dtype, (lanes, *leaf.shape))
        return TensorType(NUMBERS[leaf.kind], (lanes,)) if isinstance(leaf, ScalarType) else leaf

    return over_leaves(t, stacked)


def apart_type(t: Type) -> ListType:
    """Return the type of the list that holds a value of type `t` for each lane; what lanes differ in is left open."""
    return ListType(over_leaves(t, _open))


def form_type(t: Type, form: LaneForm, lanes: Extent) -> Type:
    """Return the type that a value of type `t` has in a form."""
    if form is LaneForm.SHARED:
        return t
    return stacked_type(t, lanes) if form is LaneForm.STACKED else apart_type(t)


def _open(t: Type) -> Type:
    if isinstance(t, TensorType):
        return TensorType(t.dtype, tuple(None if isinstance(e, Dim) else e for e in t.shape))  # type: ignore[arg-type]
    return ScalarType(t.kind) if isinstance(t, ScalarType) else t


def known_outside(b: Builder, t: TensorType) -> bool:
    """Return whether values in reach of `b` tell every extent of a tensor."""
    return all(tells(b, e) for e in t.shape)


def tells(b: Builder, extent: Extent) -> bool:
    """Return whether values in reach of `b` tell an extent."""
    return isinstance(extent, int) or all(b.knows(symbol(name)) for name in extent.symbols())


def stack_shared(b: Builder, value: Value, lanes: Extent) -> Value:
    """Emit the stacked form of a shared value."""

    def leaf(b: Builder, value: Value, kind: Type) -> Value:
        if isinstance(kind, ScalarType):
            value = b.scalar_to_tensor(value, dtype=NUMBERS[kind.kind])
        return b.broadcast_to(value, [b.extent(lanes), *b.shape(value)])

    return Rebuilder(leaf, lambda kind: stacked_type(kind, lanes)).value(b, b.use(value), value.type)


def column(b: Builder, x: Value, rank: int) -> Value:
    """Emit a vector over the lanes with axes of extent 1 behind it, so that it broadcasts with stacked tensors."""
    axes = tuple(range(1, 1 + rank))
    return b.emit("expand_dims", [x], {"axes": axes}) if axes else x


def moved(b: Builder, x: Value, source: int, target: int) -> Value:
    """Emit a tensor with its axis `source` moved to `target`."""
    if source == target:
        return x
    order = [i for i in range(tensor_type(x).rank) if i != source]
    order.insert(target, source)
    return b.emit("transpose", [x], {"perm": tuple(order)})
