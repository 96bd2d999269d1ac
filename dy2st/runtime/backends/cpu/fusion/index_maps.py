"""A loop nest's space, and which axis of it each axis of a value is.

The space are the extents that the loops run over. An axis map has, for each axis of a value, an axis of the space, or
None for an extent of 1; so elementwise operations, broadcasts, axes of extent 1 put in or taken out, and reductions
over the first or the last axes fit into one nest.
"""

from __future__ import annotations

import math

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.core.constant import Full
from dy2st.ops.indexing.class_indices import KeepAt
from dy2st.ops.reduce.reduction import Max, Mean, Min, Sum
from dy2st.ops.shape.shape import Broadcast, SumTo
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.fusion.gather_fusion import pick_of
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register
from dy2st.runtime.backends.cpu.vector_ops.random import probabilities
from dy2st.shapes import Extent, Shape

AxisMap = tuple[int | None, ...]
_WHOLE_DRAWS = 64
"""Rows of random numbers begin at multiples of this, as the vectors do that are drawn at once."""


@record(eq=False)
class FusedGroup:
    """Operations that run as one loop nest over `space`."""

    space: Shape
    outer: int | None = None
    """How many axes stand outside of the rows; None while no reduction says so."""
    members: list[Operation] = field(default_factory=list[Operation])
    maps: dict[Value, AxisMap] = field(default_factory=dict[Value, AxisMap])
    """The axis maps of the members' results and of the tensors that they read."""
    columns: dict[Value, None] = field(default_factory=dict[Value, None])
    """Results that are complete when the group ends, in order: a set of values has another order in each process."""
    operands: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])

    def is_row(self, value: Value) -> bool:
        """Return whether a value is the same along a row."""
        outer = len(self.space) if self.outer is None else self.outer
        return not any(axis is not None and axis >= outer for axis in self.maps[value])


def place(operation: Operation, group: FusedGroup) -> AxisMap | None:
    """Return the axis map of an operation's result in a group, after noting its operands'; None where it has none."""
    op = operation.op
    if op.monoid:
        return _reduction(operation, group)
    if isinstance(op, Broadcast):
        return _broadcast(operation, group)
    if op.is_reshape:
        return _relabelled(operation, group)
    if isinstance(op, KeepAt):
        return _kept(operation, group)
    if op.random_elementwise:
        return _drawn(operation, group)
    if op.is_gather:
        return _picked(operation, group)
    made = operation.results[0]
    known = [group.maps[v] for v in operation.operands if v in group.maps]
    identity = _identity(tensor_type(made).shape, group)
    map_ = known[0] if known else identity
    if map_ is None or any(m != map_ for m in known) or not _agrees(tensor_type(made).shape, map_, group):
        return None
    if isinstance(op, Full):
        value = operation.operands[0]
        noted = in_register(value.type) or _noted([value], (), group) is not None
        return map_ if noted and _fits(map_, group) else None
    return _noted(operation.operands, map_, group)


def _noted(values: list[Value], map_: AxisMap, group: FusedGroup) -> AxisMap | None:
    """Note that operands are read with a map."""
    if not _fits(map_, group):
        return None
    for value in values:
        if group.maps.get(value, map_) != map_:
            return None
    group.maps.update((v, map_) for v in values)
    return map_


def _fits(map_: AxisMap, group: FusedGroup) -> bool:
    return group.outer is None or even(map_, group.outer, group.space)


def even(map_: AxisMap, outer: int, space: Shape) -> bool:
    """Return whether a value varies along all axes of a row (but those of extent 1) or along none."""
    present = {axis for axis in map_ if axis is not None and axis >= outer}
    return not present or present >= {axis for axis in range(outer, len(space)) if space[axis] != 1}


def _identity(shape: Shape, group: FusedGroup) -> AxisMap | None:
    """Return the map of a value that has the space's own shape, extents of 1 apart."""
    if len(shape) != len(group.space):
        return None
    if any(e not in (f, 1) for e, f in zip(shape, group.space, strict=True)):
        return None
    return tuple(None if e == 1 else i for i, e in enumerate(shape))


def _agrees(shape: Shape, map_: AxisMap, group: FusedGroup) -> bool:
    return len(shape) == len(map_) and all(
        (e == 1 if axis is None else e == group.space[axis]) for e, axis in zip(shape, map_, strict=True)
    )


def _broadcast(operation: Operation, group: FusedGroup) -> AxisMap | None:
    value, made = operation.operands[0], operation.results[0]
    small, large = tensor_type(value).shape, tensor_type(made).shape
    to = _identity(large, group)
    if to is None or any(axis is None and e != 1 for axis, e in zip(to, large, strict=True)):
        return None
    lead = len(large) - len(small)
    seen: list[int | None] = []
    for i, extent in enumerate(small):
        if extent == large[lead + i]:
            seen.append(to[lead + i])
        elif extent == 1:
            seen.append(None)
        else:
            return None  # one or the other, which is known only at run time
    map_ = tuple(seen)
    if not _fits(to, group):
        return None
    if in_register(tensor_type(value)):
        return to
    if _noted([value], map_, group) is None:
        return None
    return to


def _relabelled(operation: Operation, group: FusedGroup) -> AxisMap | None:
    """Return the map of a value with axes of extent 1 put in or taken out."""
    value, made = operation.operands[0], operation.results[0]
    old, new = tensor_type(value).shape, tensor_type(made).shape
    if _long(old) != _long(new) or value not in group.maps:
        return None
    map_ = group.maps[value]
    long_axes = iter(axis for e, axis in zip(old, map_, strict=True) if e != 1)
    return tuple(None if e == 1 else next(long_axes) for e in new)


def _kept(operation: Operation, group: FusedGroup) -> AxisMap | None:
    """Return the map of lines of which one element is kept: they are the rows, so that a row's counter is the place."""
    value, places = operation.operands
    outer = len(group.space) - 1
    map_ = group.maps.get(value) or _identity(tensor_type(value).shape, group)
    if map_ is None or not _agrees(tensor_type(value).shape, map_, group) or group.outer not in (None, outer):
        return None
    line = (*map_[:-1], None)
    if map_[-1] not in (outer, None) or group.maps.get(places, line) != line:
        return None
    if not all(even(m, outer, group.space) for m in (*group.maps.values(), map_, line)):
        return None
    group.outer = outer
    group.maps.update({value: map_, places: line})
    return map_


def _drawn(operation: Operation, group: FusedGroup) -> AxisMap | None:
    """Return the map of random numbers: their places in a draw are those in the space, rows begin at whole vectors."""
    read, shape = probabilities(operation), tensor_type(operation.results[0]).shape
    map_ = _identity(shape, group)
    if map_ is None or not _agrees(shape, map_, group) or any(group.maps.get(v, map_) != map_ for v in read):
        return None
    if {*map_} - {None} != {i for i, e in enumerate(group.space) if e != 1}:
        return None  # numbers of a row, whose places are not those of its elements
    outer = group.outer
    if outer is None:
        outer = len(group.space) - 1 if _are_whole(group.space[-1:]) else 0
    maps = (*group.maps.values(), map_)
    if (outer and not _are_whole(group.space[outer:])) or not all(even(m, outer, group.space) for m in maps):
        return None
    group.outer = outer
    group.maps.update((v, map_) for v in read)
    return map_


def _picked(operation: Operation, group: FusedGroup) -> AxisMap | None:
    """Return the map of what is read at places, of which each varies along whole rows or not at all."""
    pick, map_ = pick_of(operation), _identity(tensor_type(operation.results[0]).shape, group)
    if pick is None or map_ is None:
        return None
    if pick.along:
        group.outer = max((i for i, e in enumerate(group.space) if e != 1), default=0)  # rows lie along one axis
    elif any(axis is not None for axis in map_[: pick.first]) and None in map_[pick.first : pick.lead]:
        return None  # rows might reach from axes in front of the places to those behind
    for i, value in enumerate(pick.places):
        axes = pick.named(i)
        pairs = zip(tensor_type(value).shape, axes, strict=True)
        if any(e not in (1, group.space[axis]) for e, axis in pairs):
            return None  # one or the other, which is known only at run time
        own = tuple(None if e == 1 else map_[axis] for e, axis in zip(tensor_type(value).shape, axes, strict=True))
        if group.maps.setdefault(value, own) != own:
            return None
    return map_


def _are_whole(extents: Shape) -> bool:
    """Return whether rows of these extents are whole vectors of random numbers."""
    known = [e for e in extents if isinstance(e, int)]
    return len(known) == len(extents) and math.prod(known) % _WHOLE_DRAWS == 0


def _long(shape: Shape) -> list[Extent]:
    return [e for e in shape if e != 1]


def _reduced(operation: Operation) -> tuple[list[int], list[int | None]] | None:
    """Return the axes that a reduction takes away, and the operand's axis of each axis of the result."""
    shape, made = tensor_type(operation.operands[0]).shape, tensor_type(operation.results[0]).shape
    if not isinstance(operation.op, SumTo):
        axes = sorted(operation.attributes["axis"])
        keep = operation.attributes["keepdim"]
        return axes, [None if i in axes else i for i in range(len(shape)) if keep or i not in axes]
    lead = len(shape) - len(made)
    kept: list[int | None] = []
    for i, extent in enumerate(made):
        if extent not in (1, shape[lead + i]):
            return None  # one or the other, which is known only at run time
        kept.append(lead + i if extent == shape[lead + i] else None)
    return [i for i in range(len(shape)) if i not in kept], kept


def _reduction(operation: Operation, group: FusedGroup) -> AxisMap | None:
    value, space = operation.operands[0], group.space
    found = _reduced(operation)
    if found is None:
        return None
    axes, left = found
    map_ = group.maps.get(value) or _identity(tensor_type(value).shape, group)
    if map_ is None or not axes or not _agrees(tensor_type(value).shape, map_, group):
        return None
    over = {map_[a] for a in axes} - {None}
    kept = {axis for axis in map_ if axis is not None} - over
    if {axis for axis in map_ if axis is not None} != {i for i, e in enumerate(space) if e != 1} and over:
        return None  # a reduction of a row value
    rows = all(axis > max(kept, default=-1) for axis in over)  # type: ignore[type-var]
    columns = bool(kept) and all(axis < min(kept) for axis in over)  # type: ignore[type-var]
    if not over or not (rows or columns):
        return None
    outer = max(kept, default=-1) + 1 if rows else min(kept)
    if group.outer not in (None, outer) or not all(even(m, outer, space) for m in (*group.maps.values(), map_)):
        return None
    if columns and not isinstance(operation.op, (Max, Mean, Min, Sum, SumTo)):
        return None
    group.outer = outer
    group.maps[value] = map_
    if not rows:
        group.columns[operation.results[0]] = None
    return tuple(None if i is None else map_[i] for i in left)
