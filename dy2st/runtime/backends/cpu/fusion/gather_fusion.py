"""Elements at places that tensors name, read inside of loops: `take`, `x[places]` and `take_along_axis`.

    %h = take(%table, %ids)                loops over [n, 64], rows behind axis 0
    %y = %h * 8                 becomes      %h: elements of row %ids[i] of %table
                                             %y = %h * 8

1. Places that stay the same along a row of the nest say where it begins in the tensor, and its elements are read as
   they lie. Places that vary along the row do so with each element: these are gathered (gather_loads.py).
2. Whoever runs the nest has looked whether all places are inside (gather_calls.py); so they stand in memory before.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.indexing.along_axis import TakeAlongAxis
from dy2st.ops.indexing.gather import Take
from dy2st.ops.indexing.getitem import Index
from dy2st.records import record
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_nests, is_native

_WHOLE = ("slice", None, None, None)


@record(frozen=True)
class FusedGather:
    """What is read of `table`: each of its axes is one of the result, or is named by places."""

    table: Value
    places: tuple[Value, ...]
    first: int
    """The table's axis that the first places name; the others name those behind it."""
    axes: tuple[int | None, ...]
    """The axis of the result that each axis of the table is; None for those that places name."""
    lead: int
    """The axis of the result that the places' axes end before."""
    along: bool = False
    """Whether places vary with the other axes of the table too."""

    def named(self, i: int) -> range:
        """Return the axes of the result that are those of its places number `i`."""
        return range(self.lead - tensor_type(self.places[i]).rank, self.lead)


def pick_of(operation: Operation) -> FusedGather | None:
    """Return what an operation reads within a loop nest; None where it cannot."""
    op = operation.op
    if not isinstance(op, (Take, Index, TakeAlongAxis)) or not all(
        isinstance(v.type, TensorType) for v in operation.operands
    ):
        return None
    table, *places = operation.operands
    t = tensor_type(table)
    dtypes = [tensor_type(v).dtype for v in places]
    if not t.rank or not in_nests(t.dtype) or not places or not all(d.is_integer and is_native(d) for d in dtypes):
        return None
    rank = max(tensor_type(v).rank for v in places)
    if isinstance(op, TakeAlongAxis):
        return _along(table, places[0], operation.attributes["axis"] % t.rank)
    first = operation.attributes["axis"] % t.rank if isinstance(op, Take) else _first(operation.attributes["spec"])
    if first is None or (isinstance(op, Index) and not rank):  # one row is a view
        return None
    more = rank - len(places)
    end = first + len(places)
    axes = tuple(None if first <= i < end else i + more * (i >= end) for i in range(t.rank))
    return FusedGather(table, tuple(places), first, axes, first + rank)


def pick_in_nest(operation: Operation) -> FusedGather:
    """Return what a member of a loop nest reads."""
    pick = pick_of(operation)
    if pick is None:
        raise AssertionError(f"{operation} is no read at places")
    return pick


def _along(table: Value, places: Value, axis: int) -> FusedGather | None:
    others = [e for i, e in enumerate(tensor_type(table).shape) if i != axis]
    if others != [e for i, e in enumerate(tensor_type(places).shape) if i != axis]:
        return None
    rank = len(others) + 1
    return FusedGather(table, (places,), axis, tuple(None if i == axis else i for i in range(rank)), rank, along=True)


def _first(spec: Sequence[tuple[object, ...]]) -> int | None:
    """Return the first axis that a tensor names, where only whole axes stand before and behind the tensors."""
    named = [i for i, part in enumerate(spec) if part == ("tensor",)]
    together = bool(named) and named[-1] - named[0] + 1 == len(named)
    whole = all(part == _WHOLE for i, part in enumerate(spec) if i not in named)
    return named[0] if together and whole else None


@record(frozen=True)
class TableStrides:
    """How a table stands in memory: literals, or registers."""

    strides: tuple[str, ...]
    """How many elements its axes are apart."""
    extents: tuple[str, ...]
    """Those of the axes that places name."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.strides, *self.extents)

    def renamed(self, names: Sequence[str]) -> TableStrides:
        """Return the same with other names for all numbers."""
        return TableStrides(tuple(names[: len(self.strides)]), tuple(names[len(self.strides) :]))
