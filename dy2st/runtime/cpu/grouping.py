"""Which operations of a block share a loop nest, and in which order the block's steps run.

A group has a space, the extents that its loops run over. An axis map says which axis of the space each axis of a value
is (None for an extent of 1), so a group can hold elementwise operations, broadcasts, axes of extent 1 put in or taken
out, and reductions:

    over the last axes    rows: the loops over the kept axes go outside, and what follows may use the result again
                          (softmax and layer_norm are one group)
    over the first axes   columns: the result is complete when the group ends

An operation joins the group that makes its operands; any other use of a value closes the group that makes it, so groups
run where they are closed. What may raise stays in front of what is seen outside, or raises, after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.runtime.cpu.elementwise import computes
from dy2st.runtime.cpu.reductions import REDUCTIONS
from dy2st.runtime.cpu.repeats import repeated_matrices
from dy2st.runtime.cpu.representation import in_nests, in_register, is_native
from dy2st.runtime.cpu.small import is_in_registers
from dy2st.shapes import Extent, Shape

AxisMap = tuple[int | None, ...]
_RELABELLED = ("reshape", "expand_dims", "squeeze")
_MOST = 100
"""How many operations a group has at most, so that registers and the time to compile it stay within bounds."""
_FILLED = ("full", "zeros_like", "ones_like")


@dataclass(eq=False)
class Group:
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
        """Say whether a value is the same along a row."""
        outer = len(self.space) if self.outer is None else self.outer
        return not any(axis is not None and axis >= outer for axis in self.maps[value])


Step = Operation | Group


def schedule(block: Block) -> list[Step]:
    """Return the steps of a block in the order in which they run."""
    return _Schedule(block).steps


class _Schedule:
    def __init__(self, block: Block):
        self.steps: list[Step] = []
        self.open: list[Group] = []
        self.maker: dict[Value, Group] = {}
        self.spread: dict[Value, Operation] = {}
        """Numbers that were repeated: each group that reads one repeats it itself."""
        self.alone: dict[Value, Group] = {}
        """The groups that repeat a number for others."""
        batches = repeated_matrices(block)
        for operation in block.operations:
            if operation in batches or not self._joins(operation):
                for value in operation.operands:
                    self._close(self.maker.get(value))
                    self._stand_alone(value)
                self._close_before(operation)
                self.steps.append(operation)
        while self.open:
            self._close(self.open[0])
        for value in block.results:
            self._stand_alone(value)
        self._name_results(block)

    def _close_before(self, operation: Operation) -> None:
        """Let the groups that may raise run, where it would be seen that they do not run before an operation.

        Among themselves they need no order: where one cannot go on, the interpreter runs the Program.
        """
        for group in [g for g in self.open if any(map(_can_raise, g.members))]:
            if _is_observed(operation):
                self._close(group)

    def _close(self, group: Group | None) -> None:
        if group is None or group not in self.open:
            return
        self.open.remove(group)
        made = {v for operation in group.members for v in operation.results}
        for value in made:
            self.maker.pop(value, None)
        used = (v for operation in group.members for v in operation.operands)
        group.operands = [v for v in dict.fromkeys(used) if v not in made]
        self.steps.append(group)

    def _joins(self, operation: Operation) -> bool:
        """Put an operation into a group; False where it stands for itself."""
        if not _fusible(operation) or (is_in_registers(operation) and not self._is_made_open(operation)):
            return False
        if _repeats_a_number(operation) and not self._is_made_open(operation):
            self.spread[operation.results[0]] = operation
            return True
        group = self._main_group(operation)
        if group is not None and len(group.members) < _MOST and self._enter(operation, group):
            return True
        for value in operation.operands:
            self._close(self.maker.get(value))
        source = operation.operands[0] if operation.op.name in REDUCTIONS else operation.results[0]
        group = Group(tensor_type(source).shape)
        if not group.space or not self._enter(operation, group):  # a number of float16 alone has no loops
            return False
        self.open.append(group)
        return True

    def _name_results(self, block: Block) -> None:
        """Set what groups make for others."""
        wanted = set(block.results)
        for step in self.steps:
            wanted.update(step.operands)
        for step in self.steps:
            if isinstance(step, Group):
                made = (v for operation in step.members for v in operation.results)
                step.results = [v for v in made if v in wanted and self.alone.get(v, step) is step]

    def _is_made_open(self, operation: Operation) -> bool:
        """Say whether an open group makes an operand: then a small tensor does not leave its loops."""
        return any(v in self.maker for v in operation.operands)

    def _enter(self, operation: Operation, group: Group) -> bool:
        """Put an operation and the repeated numbers that it reads into a group; False where they do not fit."""
        read = [o for v in dict.fromkeys(operation.operands) if (o := self.spread.get(v)) and o not in group.members]
        for inner in (*read, operation):
            map_ = _place(inner, group)
            if map_ is None:
                for one in read:
                    group.maps.pop(one.results[0], None)
                return False
            group.maps[inner.results[0]] = map_
        group.members += [*read, operation]
        self.maker[operation.results[0]] = group
        return True

    def _stand_alone(self, value: Value) -> None:
        """Let a group of its own repeat a number, for one who needs all of it in memory."""
        operation = self.spread.pop(value, None)
        if operation is None:
            return
        group = Group(tensor_type(value).shape)
        if self._enter(operation, group):
            self.alone[value] = group
            self.open.append(group)
            self._close(group)
        else:
            self.steps.append(operation)

    def _main_group(self, operation: Operation) -> Group | None:
        """Return the one open group that makes operands; several are put together where they fit, else closed."""
        makers = list(dict.fromkeys(g for v in operation.operands if (g := self.maker.get(v)) is not None))
        if not makers:
            return None
        main = makers[-1]
        for other in makers[:-1]:
            if not self._merge(main, other):
                self._close(other)
        columns = [v for v in operation.operands if v in main.columns]
        if columns:
            self._close(main)
            return None
        return main

    def _merge(self, main: Group, other: Group) -> bool:
        if main.space != other.space or (None not in (main.outer, other.outer) and main.outer != other.outer):
            return False
        maps = {**other.maps, **main.maps}
        if any(main.maps.get(v, m) != m for v, m in other.maps.items()):
            return False
        outer = main.outer if main.outer is not None else other.outer
        if outer is not None and not all(even(m, outer, main.space) for m in maps.values()):
            return False
        main.members = list(dict.fromkeys((*other.members, *main.members)))
        main.maps, main.outer = maps, outer
        main.columns |= other.columns
        self.open.remove(other)
        for operation in other.members:
            if operation.results[0] in self.maker:
                self.maker[operation.results[0]] = main
        return True


def _fusible(operation: Operation) -> bool:
    name = operation.op.name
    if len(operation.results) != 1 or not isinstance(operation.results[0].type, TensorType):
        return False
    made = operation.results[0].type
    if not in_nests(made.dtype):
        return False
    if name in REDUCTIONS:
        source = operation.operands[0].type
        return is_native(made.dtype) and (
            isinstance(source, TensorType) and is_native(source.dtype) and not in_register(source) and source.rank > 0
        )
    if in_register(made):
        return False
    if any(isinstance(v.type, ScalarType) and v.type.kind != "int" for v in operation.operands):
        return False  # no extent: `eval` says so
    if name in ("full", "broadcast", *_RELABELLED):
        first = tensor_type(operation.operands[0])
        return in_nests(first.dtype) and (name not in _RELABELLED or not in_register(first))
    if name == "keep_at":
        return is_native(made.dtype) and operation.attributes["axis"] == made.rank - 1
    if name in _FILLED:
        return isinstance(operation.operands[0].type, TensorType)
    return bool(getattr(operation.op, "elementwise", False)) and computes(operation)


def _repeats_a_number(operation: Operation) -> bool:
    repeats = operation.op.name in ("broadcast", "full")
    return repeats and in_register(operation.operands[0].type) and not _can_raise(operation)


def _can_raise(operation: Operation) -> bool:
    return operation.op.can_raise([v.type for v in operation.operands], operation.attributes)


def _is_observed(operation: Operation) -> bool:
    """Say whether the operation, or one inside it, may raise or is seen outside."""
    if operation.op.effect or operation.op.name == "call" or _can_raise(operation):
        return True
    return any(_is_observed(inner) for block in operation.blocks for inner in block.operations)


# ---- axis maps -----------------------------------------------------------------------------------------------------
def _place(operation: Operation, group: Group) -> AxisMap | None:
    """Return the axis map of an operation's result in a group, after noting its operands'; None where it has none."""
    name = operation.op.name
    if name in REDUCTIONS:
        return _reduction(operation, group)
    if name == "broadcast":
        return _broadcast(operation, group)
    if name in _RELABELLED:
        return _relabelled(operation, group)
    if name == "keep_at":
        return _kept(operation, group)
    made = operation.results[0]
    known = [group.maps[v] for v in operation.operands if v in group.maps]
    identity = _identity(tensor_type(made).shape, group)
    map_ = known[0] if known else identity
    if map_ is None or any(m != map_ for m in known) or not _agrees(tensor_type(made).shape, map_, group):
        return None
    if name == "full":
        value = operation.operands[0]
        noted = in_register(value.type) or _noted([value], (), group) is not None
        return map_ if noted and _fits(map_, group) else None
    return _noted(operation.operands, map_, group)


def _noted(values: list[Value], map_: AxisMap, group: Group) -> AxisMap | None:
    """Note that operands are read with a map."""
    if not _fits(map_, group):
        return None
    for value in values:
        if group.maps.get(value, map_) != map_:
            return None
    group.maps.update((v, map_) for v in values)
    return map_


def _fits(map_: AxisMap, group: Group) -> bool:
    return group.outer is None or even(map_, group.outer, group.space)


def even(map_: AxisMap, outer: int, space: Shape) -> bool:
    """Say whether a value varies along all axes of a row (but those of extent 1) or along none."""
    present = {axis for axis in map_ if axis is not None and axis >= outer}
    return not present or present >= {axis for axis in range(outer, len(space)) if space[axis] != 1}


def _identity(shape: Shape, group: Group) -> AxisMap | None:
    """Return the map of a value that has the space's own shape, extents of 1 apart."""
    if len(shape) != len(group.space):
        return None
    if any(e not in (f, 1) for e, f in zip(shape, group.space, strict=True)):
        return None
    return tuple(None if e == 1 else i for i, e in enumerate(shape))


def _agrees(shape: Shape, map_: AxisMap, group: Group) -> bool:
    return len(shape) == len(map_) and all(
        (e == 1 if axis is None else e == group.space[axis]) for e, axis in zip(shape, map_, strict=True)
    )


def _broadcast(operation: Operation, group: Group) -> AxisMap | None:
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
            return None  # one or the other, which only the run tells
    map_ = tuple(seen)
    if not _fits(to, group):
        return None
    if in_register(tensor_type(value)):
        return to
    if _noted([value], map_, group) is None:
        return None
    return to


def _relabelled(operation: Operation, group: Group) -> AxisMap | None:
    """Return the map of a value with axes of extent 1 put in or taken out."""
    value, made = operation.operands[0], operation.results[0]
    old, new = tensor_type(value).shape, tensor_type(made).shape
    if _long(old) != _long(new) or value not in group.maps:
        return None
    map_ = group.maps[value]
    long_axes = iter(axis for e, axis in zip(old, map_, strict=True) if e != 1)
    return tuple(None if e == 1 else next(long_axes) for e in new)


def _kept(operation: Operation, group: Group) -> AxisMap | None:
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


def _long(shape: Shape) -> list[Extent]:
    return [e for e in shape if e != 1]


def _reduced(operation: Operation) -> tuple[list[int], list[int | None]] | None:
    """Return the axes that a reduction takes away, and the operand's axis of each axis of the result."""
    shape, made = tensor_type(operation.operands[0]).shape, tensor_type(operation.results[0]).shape
    if operation.op.name != "sum_to":
        axes = sorted(operation.attributes["axis"])
        keep = operation.attributes["keepdim"]
        return axes, [None if i in axes else i for i in range(len(shape)) if keep or i not in axes]
    lead = len(shape) - len(made)
    kept: list[int | None] = []
    for i, extent in enumerate(made):
        if extent not in (1, shape[lead + i]):
            return None  # one or the other, which only the run tells
        kept.append(lead + i if extent == shape[lead + i] else None)
    return [i for i in range(len(shape)) if i not in kept], kept


def _reduction(operation: Operation, group: Group) -> AxisMap | None:
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
    if columns and operation.op.name not in ("sum", "sum_to", "mean", "max", "min"):
        return None
    group.outer = outer
    group.maps[value] = map_
    if not rows:
        group.columns[operation.results[0]] = None
    return tuple(None if i is None else map_[i] for i in left)
