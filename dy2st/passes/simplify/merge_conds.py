"""Make one `cond` of two that ask the same predicate.

Before                                          After
    %a = cond(%p, %x) { exp } { neg }               %a, %b = cond(%p, %x, %y) {
    %b = cond(%p, %a, %y) { mul } { add }               (%x1, %y1) -> %a1 = exp(%x1); %b1 = mul(%a1, %y1)
                                                    } { (%x2, %y2) -> ... }

1. The second one joins the first where all its other operands are there already. What stands between them must not mind
   the new order: where the second has effects or may raise, everything between must be pure.
2. Otherwise nothing happens.
"""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.effects import Effects
from dy2st.passes.core.rewrite import inline, may_inline


class MergeConds(Pass):
    """Join conds of one block that have the same predicate."""

    name = "merge_conds"

    def apply(self, program: Program) -> bool:
        effects = Effects(program)
        return each_block(program, lambda block: _merge(block, effects))


def _merge(block: Block, effects: Effects) -> bool:
    changed = False
    firsts: dict[Value, Operation] = {}
    kept: list[Operation] = []
    place: dict[Operation, int] = {}
    for operation in block.operations:
        first = firsts.get(operation.operands[0]) if operation.op.is_branch else None
        if first is not None and _may_join(operation, kept, place[first], effects):  # 1.
            _join(first, operation)
            changed = True
            continue
        place[operation] = len(kept)
        kept.append(operation)
        if operation.op.is_branch:
            firsts[operation.operands[0]] = operation
    block.operations[:] = kept
    return changed


def _may_join(second: Operation, before: list[Operation], first: int, effects: Effects) -> bool:
    between = before[first + 1 :]
    made = {v for operation in between for v in operation.results}
    if not made.isdisjoint(second.operands):
        return False
    results = dict(zip(before[first].results, range(len(before[first].results)), strict=True))
    for mine, other in zip(before[first].blocks, second.blocks, strict=True):
        if not may_inline(other, [mine.results[results[v]] if v in results else v for v in second.operands[1:]]):
            return False
    return effects.is_pure(second) or all(map(effects.is_pure, between))


def _join(first: Operation, second: Operation) -> None:
    """Put what `second` does at the end of the branches of `first`."""
    inside = {v: i for i, v in enumerate(first.results)}
    places = {v: i for i, v in reversed(list(enumerate(first.operands[1:])))}
    new = list(dict.fromkeys(v for v in second.operands[1:] if v not in inside and v not in places))
    for mine, other in zip(first.blocks, second.blocks, strict=True):
        added = {v: mine.add_argument(v.type, v.name) for v in new}
        given = [
            mine.results[inside[v]] if v in inside else added[v] if v in added else mine.arguments[places[v]]
            for v in second.operands[1:]
        ]
        operations, results = inline(other, given, mine)
        mine.operations += operations
        mine.results = mine.results + results
    first.operands += new
    for result in second.results:
        result.operation = first
        first.results.append(result)
