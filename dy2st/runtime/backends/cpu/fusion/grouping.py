"""Which operations of a block share a loop nest, and in which order the block's steps run.

A group can hold elementwise operations, broadcasts, axes of extent 1 put in or taken out (index_maps.py) and
reductions:

    over the last axes    rows: the loops over the kept axes go outside, and what follows may use the result again
                          (softmax and layer_norm are one group)
    over the first axes   columns: the result is complete when the group ends
    over all axes         of what rows are computed for: over each row, and then over the rows in a nest of their own

An operation joins the group that makes its operands; any other use of a value closes the group that makes it, so groups
run where they are closed. What may raise stays in front of what is seen outside, or raises, after it.
"""

from __future__ import annotations

from collections.abc import Collection

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.constant import Full
from dy2st.ops.indexing.class_indices import KeepAt
from dy2st.ops.shape.concat_split import ExpandDims, Squeeze
from dy2st.ops.shape.random import RandomNormal, RandomUniform
from dy2st.ops.shape.shape import Broadcast
from dy2st.runtime.backends.cpu.fusion.batch_broadcasts import repeated_matrices
from dy2st.runtime.backends.cpu.fusion.dead_fills import unfilled
from dy2st.runtime.backends.cpu.fusion.epilogues import with_epilogues
from dy2st.runtime.backends.cpu.fusion.gather_fusion import pick_of
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step, joined
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup, even, place
from dy2st.runtime.backends.cpu.fusion.observable_effects import can_raise, is_observed
from dy2st.runtime.backends.cpu.fusion.scalarized import is_in_registers
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import NARROW, in_nests, in_register, is_native
from dy2st.runtime.backends.cpu.vector_ops.elementwise import computes
from dy2st.runtime.backends.cpu.vector_ops.random import is_drawn

_MOST = 100
"""How many operations a group has at most, so that registers and the time to compile it stay within bounds."""


def schedule(block: Block, apart: Collection[Operation] = (), last: Collection[Value] = ()) -> list[Step]:
    """Return the steps of a block in the order in which they run.

    Products `apart` are finished by themselves, and what makes one of the values `last` is not put to a product.
    """
    return joined(with_epilogues(Schedule(block).steps, block.results, apart, last))


class Schedule:
    """The steps of a block before groups are joined; another backend says for itself what enters groups."""

    def __init__(self, block: Block):
        self.steps: list[Operation | FusedGroup] = []
        self.open: dict[FusedGroup, None] = {}
        self.raising: dict[FusedGroup, None] = {}
        """The open groups of which a member may raise."""
        self.maker: dict[Value, FusedGroup] = {}
        self.spread: dict[Value, Operation] = {}
        """Numbers that were repeated: each group that reads one repeats it itself."""
        self.alone: dict[Value, FusedGroup] = {}
        """The groups that repeat a number for others."""
        self.unfilled = unfilled(block)
        batches = repeated_matrices(block)
        for operation in block.operations:
            if operation in batches or not self._joins(operation):
                for value in operation.operands:
                    self._close(self.maker.get(value))
                    self._stand_alone(value)
                self._close_before(operation)
                self.steps.append(operation)
        while self.open:
            self._close(next(iter(self.open)))
        for value in block.results:
            self._stand_alone(value)
        self._name_results(block)

    def is_fusible(self, operation: Operation) -> bool:
        """Return whether a group may hold an operation."""
        return _fusible(operation)

    def is_in_registers(self, operation: Operation) -> bool:
        """Return whether an operation is rather written on the registers of small tensors."""
        return is_in_registers(operation)

    def is_better_alone(self, group: FusedGroup) -> bool:
        """Return whether a group of one operation is rather run as that operation."""
        return _is_alone(group)

    def _close_before(self, operation: Operation) -> None:
        """Let the groups that may raise run, where it would be seen that they do not run before an operation.

        Among themselves they need no order: where one cannot go on, the interpreter runs the Program.
        """
        if self.raising and is_observed(operation):
            for group in [*self.raising]:
                self._close(group)

    def _close(self, group: FusedGroup | None) -> None:
        if group is None or group not in self.open:
            return
        del self.open[group]
        self.raising.pop(group, None)
        made = {v for operation in group.members for v in operation.results}
        for value in made:
            self.maker.pop(value, None)
        used = (v for operation in group.members for v in operation.operands)
        group.operands = [v for v in dict.fromkeys(used) if v not in made]
        self.steps.append(group.members[0] if self.is_better_alone(group) else group)

    def _joins(self, operation: Operation) -> bool:
        """Put an operation into a group; False where it stands for itself."""
        if not self.unfilled.isdisjoint(operation.results):
            return False
        if not self.is_fusible(operation) or (self.is_in_registers(operation) and not self._is_made_open(operation)):
            return False
        if _repeats_a_number(operation) and not self._is_made_open(operation):
            self.spread[operation.results[0]] = operation
            return True
        group = None if operation.op.is_gather else self._main_group(operation)
        if group is not None and len(group.members) < _MOST:
            if self._enter(operation, group):
                return True
            total = self._by_rows(operation, group)
            if total is not None:
                return self._joins(total)
        for value in operation.operands:
            self._close(self.maker.get(value))
            if operation.op.is_gather:
                self._stand_alone(value)
        source = operation.operands[0] if operation.op.monoid else operation.results[0]
        group = FusedGroup(tensor_type(source).shape)
        if not group.space or not self._enter(operation, group):  # a number of 16 bits alone has no loops
            return False
        self._open(group)
        return True

    def _name_results(self, block: Block) -> None:
        """Set what groups make for others."""
        wanted = set(block.results)
        for step in self.steps:
            wanted.update(step.operands)
        for at, step in reversed([*enumerate(self.steps)]):
            if isinstance(step, FusedGroup):
                made = (v for operation in step.members for v in operation.results)
                wanted |= step.columns.keys()  # sums over rows stand in memory, also where nobody reads them
                step.results = [v for v in made if v in wanted and self.alone.get(v, step) is step]
                self.steps[at + 1 : at + 1] = _views(step)

    def _is_made_open(self, operation: Operation) -> bool:
        """Return whether an open group makes an operand: then a small tensor does not leave its loops."""
        return any(v in self.maker for v in operation.operands)

    def _enter(self, operation: Operation, group: FusedGroup) -> bool:
        """Put an operation and the repeated numbers that it reads into a group; False where they do not fit."""
        read = [o for v in dict.fromkeys(operation.operands) if (o := self.spread.get(v)) and o not in group.members]
        for inner in (*read, operation):
            map_ = place(inner, group)
            if map_ is None:
                for one in read:
                    group.maps.pop(one.results[0], None)
                return False
            group.maps[inner.results[0]] = map_
        group.members += [*read, operation]
        self.maker[operation.results[0]] = group
        if group in self.open and any(map(can_raise, (*read, operation))):
            self.raising[group] = None
        return True

    def _open(self, group: FusedGroup) -> None:
        """Let more operations enter a group; those that are in it may raise."""
        self.open[group] = None
        if any(map(can_raise, group.members)):
            self.raising[group] = None

    def _by_rows(self, operation: Operation, group: FusedGroup) -> Operation | None:
        """Let a group reduce its rows for a reduction over all axes; return the rest of it, over the rows."""
        if not operation.op.monoid or operation.attributes.get("keepdim", True):
            return None
        axes, outer = range(tensor_type(operation.operands[0]).rank), group.outer
        if tensor_type(operation.results[0]).dtype.name in NARROW:
            return None
        if not outer or outer >= len(axes) or sorted(operation.attributes["axis"]) != [*axes]:
            return None
        row = _reducing(operation, operation.operands[0], tuple(axes[outer:]))
        if not is_native(tensor_type(row.results[0]).dtype) or not self._enter(row, group):
            return None
        total = _reducing(operation, row.results[0], tuple(axes[:outer]))
        total.results = operation.results
        return total

    def _stand_alone(self, value: Value) -> None:
        """Let a group of its own repeat a number, for one who needs all of it in memory."""
        operation = self.spread.pop(value, None)
        if operation is None:
            return
        group = FusedGroup(tensor_type(value).shape)
        if self._enter(operation, group):
            self.alone[value] = group
            self._open(group)
            self._close(group)
        else:
            self.steps.append(operation)

    def _main_group(self, operation: Operation) -> FusedGroup | None:
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

    def _ordered(self, main: FusedGroup, other: FusedGroup) -> list[Operation]:
        """Return the operations of two open groups, repeated numbers first.

        One group may repeat a number that the other read from memory, where it was written in between.
        """
        members = list(dict.fromkeys((*other.members, *main.members)))
        return sorted(members, key=lambda o: self.maker.get(o.results[0]) in (main, other))

    def _merge(self, main: FusedGroup, other: FusedGroup) -> bool:
        if main.space != other.space or (None not in (main.outer, other.outer) and main.outer != other.outer):
            return False
        maps = {**other.maps, **main.maps}
        if any(main.maps.get(v, m) != m for v, m in other.maps.items()):
            return False
        outer = main.outer if main.outer is not None else other.outer
        if outer is not None and not all(even(m, outer, main.space) for m in maps.values()):
            return False
        main.members = self._ordered(main, other)
        main.maps, main.outer = maps, outer
        main.columns |= other.columns
        del self.open[other]
        if other in self.raising:
            self.raising[main] = self.raising.pop(other)
        for operation in other.members:
            if operation.results[0] in self.maker:
                self.maker[operation.results[0]] = main
        return True


def _is_alone(group: FusedGroup) -> bool:
    """Return whether a group only writes random numbers, or copies what is at places: kernels of their own do that."""
    return len(group.members) == 1 and _has_kernel(group.members[0].op)


def _has_kernel(op: OpDef) -> bool:
    return op.is_gather or isinstance(op, (RandomUniform, RandomNormal))


def _views(group: FusedGroup) -> list[Operation]:
    """Take out of a group's results what only differs from another one by axes of extent 1; return what gives it."""
    written = set(group.results)
    relabels = [o for o in group.members if isinstance(o.op, (ExpandDims, Squeeze)) and not can_raise(o)]
    found = [o for o in relabels if written.issuperset((o.results[0], o.operands[0]))]
    group.results = [v for v in group.results if all(v is not o.results[0] for o in found)]
    return found


def _fusible(operation: Operation) -> bool:
    op = operation.op
    if len(operation.results) != 1 or not isinstance(operation.results[0].type, TensorType):
        return False
    made = operation.results[0].type
    if not in_nests(made.dtype):
        return False
    if op.monoid:
        source = operation.operands[0].type
        if op.monoid == "mul" and made.dtype.is_floating:  # one part of it may overflow where another one is 0
            return False
        return is_native(made.dtype) and (
            isinstance(source, TensorType) and is_native(source.dtype) and not in_register(source) and source.rank > 0
        )
    if in_register(made):
        return False
    if any(isinstance(v.type, ScalarType) and v.type.kind != "int" for v in operation.operands):
        return False  # no extent: `eval` says so
    if op.is_reshape or isinstance(op, (Full, Broadcast)):
        first = tensor_type(operation.operands[0])
        return in_nests(first.dtype) and not (op.is_reshape and in_register(first))
    if isinstance(op, KeepAt):
        return is_native(made.dtype) and operation.attributes["axis"] == made.rank - 1
    if op.random_elementwise:
        return is_drawn(operation)
    if op.is_gather:
        return pick_of(operation) is not None
    if op.splat is not None:
        return isinstance(operation.operands[0].type, TensorType)
    return op.elementwise and computes(operation)


def _reducing(like: Operation, value: Value, axes: tuple[int, ...]) -> Operation:
    """Return a reduction of a value over other axes."""
    attributes = {**like.attributes, "axis": axes}
    made = Operation(like.op, [value], attributes, [], like.location)
    made.results.append(Value(like.op.infer(value.type, **attributes), value.block, made))  # type: ignore[arg-type]
    return made


def _repeats_a_number(operation: Operation) -> bool:
    repeats = isinstance(operation.op, (Broadcast, Full))
    return repeats and in_register(operation.operands[0].type) and not can_raise(operation)
