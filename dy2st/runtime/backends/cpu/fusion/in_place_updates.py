"""Which values of a Program are next values of its arguments, made where nothing behind them may fail.

    ...                                             ...
    %n = add(%count, %one)                          %n = add(%count, %one)
    %w.1 = cond(%finite, %w, %g) {                  %w.1 = cond(%finite, %w, %g) {
      then(%v, %d) {                                  then(%v, %d) {
        loops over [2000, 2000] -> %v.1                 loops over [2000, 2000] -> %v.1, which stands where %w stood
        %v.2 = renew(%v.1, %v)                          %v.2 = renew(%v.1, %v)
        return %v.2                                     return %v.2
      }                                               }
      else(%v, %d) { return %v }                      else(%v, %d) { return %v }
    }                                               }
    return %n, %w.1                                 return %n, %w.1

A Program says which of its results are the next values of arguments (`Program.renewed`). The entry function ends a
run; where a `cond` is the last of a block that ends one, so do its branches. Of such a block is known what its values
have to do with the arguments of the Program, which are numbered:

1. its results that are next values, under whatever names;
2. its arguments that are an argument of the Program, and the values that may show the memory of one;
3. the arguments whose memory somebody else may see later: behind the block, or outside of the Program.

A `cond` that makes next values goes behind the steps that do not need it (4): numbers that are counted, running means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ops.core.constant import Detach, Renew
from dy2st.ops.indexing.gather import Take, TakeAdd
from dy2st.ops.indexing.masked_select import OneHot
from dy2st.ops.nn.pooling import AvgPool, AvgPoolGrad, MaxPool
from dy2st.records import record
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step, groups_of, may_join, read_by
from dy2st.runtime.backends.cpu.fusion.observable_effects import can_raise, is_observed
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers

Next = dict[Value, tuple[Value, int]]
"""Results of loop nests, each with the operand whose memory it may take, and the number of the argument that it is."""


@record
class FinalBlock:
    """A block that ends a run."""

    block: Block
    renewed: dict[Value, int]
    """1: the values, under their first names."""
    arguments: dict[Value, int]
    shown: dict[Value, frozenset[int]]
    """2: of the block's arguments."""
    kept: frozenset[int]
    """3."""

    @staticmethod
    def of_program(program: Program) -> FinalBlock | None:
        """Return what the entry function ends; None where a Program has no next values."""
        if not program.renewed:
            return None
        block = program.block
        numbers = {v: i for i, v in enumerate(block.arguments)}
        renewed = {block.results[result]: number for result, number in program.renewed}
        return _end(block, renewed, numbers, {v: frozenset((i,)) for v, i in numbers.items()}, frozenset())


def _end(
    block: Block, renewed: dict[Value, int], arguments: dict[Value, int], shown: dict[Value, frozenset[int]],
    kept: frozenset[int],
) -> FinalBlock:  # fmt: skip
    types = {number: v.type for v, number in arguments.items()}
    named = {_named(v, (Detach, Renew)): number for v, number in reversed(renewed.items())}
    made = {v: n for v, n in named.items() if v.type == types.get(n) and v not in arguments}
    return FinalBlock(block, made, arguments, shown, kept)


def _named(value: Value, by: type[OpDef] | tuple[type[OpDef], ...] = OpDef) -> Value:
    """Return what a value is another name of."""
    while value.operation is not None and value.operation.op.renames and isinstance(value.operation.op, by):
        value = value.operation.operands[0]
    return value


# ---- steps ----------------------------------------------------------------------------------------------------------
def with_cond_last(end: FinalBlock, steps: list[Step]) -> list[Step]:
    """Return steps in an order in which the last `cond` that makes next values stands behind what it need not (4)."""
    conds = [at for at, step in enumerate(steps) if _is_cond(step) and not end.renewed.keys().isdisjoint(step.results)]
    if not conds:
        return steps
    at = conds[-1]
    behind, needing = list[Step](), set(steps[at].results)
    front: list[Step] = []
    for step in steps[at + 1 :]:
        if needing.isdisjoint(step.operands) and _may_go_before(step):
            front.append(step)
        else:
            behind.append(step)
            needing.update(step.results)
    return [*steps[:at], *front, steps[at], *behind]


def _is_cond(step: Step) -> bool:
    return isinstance(step, Operation) and step.op.is_branch


def _may_go_before(step: Step) -> bool:
    """Return whether nobody sees that a step runs before one that may raise or print."""
    if isinstance(step, (Operation, Epilogue)):
        return isinstance(step, Operation) and not step.blocks and not is_observed(step)
    return not any(can_raise(o) for group in groups_of(step) for o in group.members)


def overwritten(end: FinalBlock, steps: Sequence[Step]) -> Next:
    """Return what results of the last loop nests of a block may overwrite, as far as the Program tells.

    The argument is read by the nest alone, and no other value that may show its memory by the nests or later.
    """
    last, names = _last(steps)
    groups = groups_of(last) if last is not None and not isinstance(last, Epilogue) else ()
    if not all(map(may_join, groups)):
        return {}
    shown, kept = _shown(end, steps)
    reads = [*(v for group in groups for v in group.operands), *_named_anew(names), *end.block.results]
    readers = Counter(number for v in reads for number in shown.get(v, ()))
    next_ones: Next = {}
    for group in groups:
        for value in group.results:
            number = end.renewed.get(value)
            if number is None or readers[number] != 1 or number in kept or in_registers(value.type):
                continue
            before = [v for v in group.operands if end.arguments.get(_named(v, Detach)) == number]
            next_ones.update((value, (v, number)) for v in before)
    return next_ones


def branches(end: FinalBlock, steps: Sequence[Step]) -> list[FinalBlock]:
    """Return the branches that end a run too: those of a `cond` that is the last of a block that does."""
    last, names = _last(steps)
    if not isinstance(last, Operation) or not last.op.is_branch:
        return []
    shown, kept = _shown(end, steps)
    behind = [v for v in (*_named_anew(names), *end.block.results) if _named(v).operation is not last]
    later = kept.union(*(shown.get(v, ()) for v in behind))
    found: list[FinalBlock] = []
    for block in last.blocks:
        pairs = [*zip(block.arguments, last.operands[1:], strict=True)]
        firsts = [(inner, _named(outer, Detach)) for inner, outer in pairs]
        arguments = {inner: end.arguments[v] for inner, v in firsts if v in end.arguments}
        made = [*zip(last.results, block.results, strict=True)]
        renewed = {inner: end.renewed[v] for v, inner in made if v in end.renewed}
        found.append(_end(block, renewed, arguments, {inner: shown[v] for inner, v in pairs if v in shown}, later))
    return found


def _last(steps: Sequence[Step]) -> tuple[Step | None, list[Operation]]:
    """Return the last step that does something, and those behind it, which give names."""
    names: list[Operation] = []
    for step in reversed(steps):
        if not isinstance(step, Operation) or not step.op.renames:
            return step, names
        names.append(step)
    return None, names


def _named_anew(names: Sequence[Operation]) -> list[Value]:
    """Return the values whose memory gets another name."""
    return [v for o in names for v in read_by(o)]


def _is_fresh(op: OpDef) -> bool:
    """Return whether the code of an op never gives a result that shows the memory of an operand; loop nests never
    do.
    """
    fresh = op.is_contraction or op.monoid
    return bool(fresh) or isinstance(op, (Take, TakeAdd, OneHot, MaxPool, AvgPool, AvgPoolGrad))


def _shown(end: FinalBlock, steps: Sequence[Step]) -> tuple[dict[Value, frozenset[int]], frozenset[int]]:
    """Return of which arguments values may show the memory, and of which somebody outside or behind the block may."""
    shown, kept = dict(end.shown), end.kept
    for step in steps:
        if not isinstance(step, Operation) or _is_fresh(step.op):
            continue
        seen = frozenset(number for v in read_by(step) for number in shown.get(v, ()))
        if step.op.effect:
            kept |= seen
        shown.update((v, seen) for v in step.results if seen and not in_registers(v.type))
    return shown, kept
