"""The plan of a loop nest: which sweep of a row computes what, and what is kept from one sweep for a later one."""

from __future__ import annotations

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.constant import Full
from dy2st.ops.shape.shape import Broadcast
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.fusion.gather_fusion import TableStrides
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup, even
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register
from dy2st.runtime.backends.cpu.vector_ops.elementwise import is_dear, is_long
from dy2st.runtime.backends.cpu.vector_ops.random import numbers_of, probabilities


@record(frozen=True)
class SweepWork:
    """What a sweep through a row does."""

    sweep: int
    ends: list[Operation]
    """Reductions of the row, which end with it."""
    columns: list[Operation]
    """Reductions over rows, which take in one more."""
    stores: list[Value]

    def __bool__(self) -> bool:
        return bool(self.ends or self.columns or self.stores)


@record
class NestLayout:
    """How a group's values are told apart and ordered, before a line of code is written."""

    group: FusedGroup
    outer: int
    sweeps: int = 1
    at: dict[Value, int] = field(default_factory=dict[Value, int])
    """The sweep that first computes a value; for one that is the same along a row, that before which it is known."""
    kept: list[Value] = field(default_factory=list[Value])
    """Rows that are copied to scratch memory."""
    reads: dict[Value, int] = field(default_factory=dict[Value, int])
    """The last sweep that reads an operand."""
    strides: dict[Value, tuple[str, ...]] = field(default_factory=dict[Value, tuple[str, ...]])
    """How many elements the axes are apart of operands that have gaps; a literal where code is to know it."""
    tables: dict[Value, TableStrides] = field(default_factory=dict[Value, TableStrides])
    """How the tensor stands in memory that each of the values is read of at places."""

    @property
    def read(self) -> list[Value]:
        apart = {v for o in self.group.members if o.op.random_elementwise for v in numbers_of(o)}
        apart |= {o.operands[0] for o in self.group.members if o.op.is_gather}
        return [
            v for v in self.group.operands
            if v in apart or (isinstance(v.type, TensorType) and (v in self.group.maps or in_register(v.type)))
        ]  # fmt: skip

    def is_row(self, value: Value) -> bool:
        """Return whether a value is the same along a row."""
        return value not in self.group.maps or self.group.is_row(value)

    def work(self, sweep: int) -> SweepWork:
        """Return what a sweep does."""
        group = self.group
        ends = [o for o in group.members if ends_row(o, group) and self.at[o.results[0]] == sweep + 1]
        columns = [o for o in group.members if o.results[0] in group.columns and self.at[o.results[0]] == sweep]
        stores = [
            v for v in [*group.results, *self.kept]
            if v not in group.columns and not self.is_row(v) and self.at[v] == sweep
        ]  # fmt: skip
        return SweepWork(sweep, ends, columns, stores)


def layout(group: FusedGroup) -> NestLayout:
    """Order the members of a group into sweeps."""
    space = group.space
    outer = group.outer
    if outer is None:
        outer = len(space)
        while outer and all(even(m, outer - 1, space) for m in group.maps.values()):
            outer -= 1
        outer = min(outer, len(space) - 1)
    made = NestLayout(group, outer)
    group.outer = outer
    makers = {v: o for o in group.members for v in o.results}
    for operation in group.members:
        (result,) = operation.results
        stage = max((made.at[v] for v in operation.operands if v in makers), default=0)
        made.at[result] = stage + (bool(operation.op.monoid) and result not in group.columns)
    made.sweeps = max((made.at[v] for o in group.members for v in o.results if not made.is_row(v)), default=-1) + 1
    made.sweeps = max(made.sweeps, *(made.at[v] for o in group.members if ends_row(o, group) for v in o.results), 0)
    made.sweeps = max(made.sweeps, *(made.at[v] + 1 for v in group.columns), 0)
    _keep(made, makers)
    return made


def ends_row(operation: Operation, group: FusedGroup) -> bool:
    """Return whether an operation is a reduction of a row, whose result the next sweep may use."""
    return bool(operation.op.monoid) and operation.results[0] not in group.columns


def _keep(made: NestLayout, makers: dict[Value, Operation]) -> None:
    """Decide which rows are copied: those that a later sweep needs and that are dear; note when operands are read."""
    group = made.group
    seen: set[tuple[Value, int]] = set()

    def needs(value: Value, sweep: int) -> None:
        if (value, sweep) in seen:
            return
        seen.add((value, sweep))
        if value not in makers:
            made.reads[value] = max(made.reads.get(value, 0), sweep)
            return
        if made.is_row(value):
            return
        operation = makers[value]
        stored = value in group.results or value in made.kept
        if made.at[value] < sweep:
            if stored:
                return
            if is_dear(operation.op):
                made.kept.append(value)
                needs(value, made.at[value])
                return
        for operand in operation.operands:
            needs(operand, sweep)

    for operation in group.members:
        (result,) = operation.results
        if operation.op.monoid:
            sweep = made.at[result] - (result not in group.columns)
            needs(operation.operands[0], sweep)
        elif not made.is_row(result) and (result in group.results):
            needs(result, made.at[result])
        elif made.is_row(result):
            for operand in operation.operands:
                if operand not in makers:
                    made.reads[operand] = max(made.reads.get(operand, 0), made.at[result])


def read_as_elements(operation: Operation) -> list[Value]:
    """Return the operands that are read element by element of the space; the others are extents and the like."""
    if operation.op.is_reshape or isinstance(operation.op, (Broadcast, Full)):
        return operation.operands[:1]
    if operation.op.random_elementwise:
        return probabilities(operation)
    if operation.op.is_gather:
        return operation.operands[1:]
    return [] if operation.op.splat is not None else operation.operands


# ---- how wide -------------------------------------------------------------------------------------------------------
def lanes_of(made: NestLayout, target: Target) -> int:
    """Return how many elements a register has: those of the narrowest number, but no more than a row has."""
    sizes = [tensor_type(v).dtype.itemsize for v in made.group.maps if not tensor_type(v).dtype.is_bool]
    lanes = target.lanes(max(4, min(sizes, default=4)))
    row = _row_length(made)
    while row is not None and lanes > 1 and lanes // 2 >= row:
        lanes //= 2
    return lanes


_VECTORS = 4
"""As many as registers have room for."""


def vectors_at_once(made: NestLayout, lanes: int) -> int:
    """Return how many vectors an iteration of a sweep computes."""
    long = any(is_long(o.op) and not made.is_row(o.results[0]) for o in made.group.members)
    row, count = _row_length(made), vectors(lanes) if long else 1
    while row is not None and count > 1 and count * lanes > row:
        count //= 2
    return count


def vectors(lanes: int) -> int:
    """Return how many vectors are computed at once where an operation takes long."""
    return _VECTORS if lanes >= 8 else 1  # before AVX there are few registers, and no stores under a mask


def _row_length(made: NestLayout) -> int | None:
    """Return how many elements a row has, where the types tell."""
    row = 1
    for extent in made.group.space[made.outer :]:
        if not isinstance(extent, int):
            return None
        row *= extent
    return row
