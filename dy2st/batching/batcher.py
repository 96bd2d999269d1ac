"""The walk through a block: each operation becomes what computes it for all lanes.

1. What has shared operands alone is copied: it is computed once.
2. Control flow is rebuilt (`branches.py`, `loops.py`).
3. An op with a rule becomes what the rule emits, of stacked operands.
4. Everything else, and what prints, runs lane by lane (`lane_loop.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.autodiff.programs import fresh_names
from dy2st.batching.batched_value import BatchedValue, LaneForm, form_type, stack_shared, stacked_type
from dy2st.batching.lane_loop import each_lane
from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.shapes import Extent


class Batcher:
    """Emits into `b` what a block of one lane computes for `lanes` of them."""

    def __init__(self, b: Builder, lanes: Extent):
        self.b, self.lanes = b, lanes
        self.known: dict[Value, BatchedValue] = {}
        self.source = Block()
        """The block that is being pushed through."""

    def inside(self, b: Builder) -> Batcher:
        """Return a batcher that emits into another block, over the same lanes."""
        return Batcher(b, self.lanes)

    # ---- values ----------------------------------------------------------------------------------------------------
    def lane(self, value: Value) -> BatchedValue:
        """Return what a value became, as this block sees it."""
        found = self.known[value]
        return BatchedValue(self.b.use(found.value), found.form)

    def set(self, value: Value, made: Value, form: LaneForm) -> None:
        """Say what a value became."""
        self.known[value] = BatchedValue(made, form)

    def stacked(self, lane: BatchedValue) -> Value:
        """Return a value in stacked form; StructureError for one that has none."""
        if lane.stacked:
            return self.b.use(lane.value)
        if lane.apart:
            raise NotBatchable(f"what differs between lanes has no form that is one value: {lane.value.type}")
        return stack_shared(self.b, lane.value, self.lanes)

    def count(self) -> int | Value:
        """Return the number of lanes when the Program runs."""
        return self.b.extent(self.lanes)

    def type(self, t: Type) -> Type:
        """Return the type of the stacked form of values of type `t`."""
        return stacked_type(t, self.lanes)

    # ---- operations ------------------------------------------------------------------------------------------------
    def run(self, block: Block) -> None:
        """Push through a block whose arguments are known."""
        self.source = block
        for operation in block.operations:
            before, self.b.location = self.b.location, operation.location
            self.push(operation)
            self.b.location = before

    def push(self, operation: Operation) -> None:
        """Emit what one operation becomes."""
        lanes = [self.lane(v) for v in operation.operands]
        if all(lane.shared for lane in lanes) and not _is_seen(operation):
            self._copy(operation, lanes)
            return
        rule = RULES.get(operation.name)
        if rule is not None and not any(lane.apart for lane in lanes) and not _of_each_lane(operation.op):
            mark = self.b.checkpoint()
            try:
                results = rule(self, operation, lanes)
            except NotBatchable:
                results = None
            if results is not None:
                self.give(operation, results)
                return
            self.b.rollback(mark)
        self.give(operation, each_lane(self.b, self.lanes, operation, lanes))

    def give(self, operation: Operation, results: Sequence[BatchedValue]) -> None:
        """Say what the results became, and of their types what the block of one lane knows."""
        operands = {self.known[v].value for v in operation.operands}
        for old, new in zip(operation.results, results, strict=True):
            want = form_type(old.type, new.form, self.lanes)
            value = new.value
            if value.type != want and not new.apart:
                value = self._conformed(value, want, value in operands)
            if value.name is None and value not in operands:
                value.name = old.name
            self.set(old, value, new.form)

    def _conformed(self, value: Value, want: Type, foreign: bool) -> Value:
        """Return a result with the type that it has anyway whenever the Program runs."""
        if value.block is self.b.block and not foreign:
            self.b.retype(value, want)
            return value
        return self.b.shaped("reshape", [value], self.b.shape(want)) if isinstance(want, TensorType) else value

    def _copy(self, operation: Operation, lanes: Sequence[BatchedValue]) -> None:
        blocks = [clone_block(inner) for inner in operation.blocks]
        operands = [lane.value for lane in lanes]
        made = self.b.operation(operation.op, operands, dict(operation.attributes), blocks, operation.location)
        self.give(operation, [BatchedValue(v, LaneForm.SHARED) for v in made.results])


def pushed(program: Program, batched: Sequence[bool], lanes: Extent | None = None, told: bool = False) -> Batcher:
    """Push through the entry of a Program, of which the `batched` arguments are stacked; its functions are copied.

    Without `lanes` their number gets a symbol that the Program has not. With `told` it is one argument more, the first.
    """
    b = Builder(names=fresh_names(program))
    lanes = b.names.symbol() if lanes is None else lanes
    b.functions = {n: clone_block(f) for n, f in program.functions.items() if n != program.entry}
    at = Batcher(b, lanes)
    if told:
        b.argument(ScalarType("int", lanes), "lanes")
    for argument, differs in zip(program.block.arguments, batched, strict=True):
        form = LaneForm.STACKED if differs else LaneForm.SHARED
        at.set(argument, b.argument(form_type(argument.type, form, lanes), argument.name), form)
    at.run(program.block)
    return at


class NotBatchable(StructureError):
    """A rule met a value that has no stacked form; the operation then runs lane by lane."""


Rule = Callable[[Batcher, Operation, Sequence[BatchedValue]], "Sequence[BatchedValue] | None"]
"""Emit the results of an operation of which an operand is not shared and none is apart; None where there is no way."""
RULES: dict[str, Rule] = {}
"""By the names of ops; the modules of this package fill it."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Make a function the rule of the ops of these names."""

    def enter(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, made))
        return made

    return enter


def _is_seen(operation: Operation) -> bool:
    """Return whether an operation does something that is seen outside, once for each lane."""
    return _of_each_lane(operation.op) or any(_of_each_lane(i.op) for block in operation.blocks for i in block.walk())


def _of_each_lane(op: OpDef) -> bool:
    return op.effect and not op.exchanges
