"""Remove what is written to places that are written again before anybody reads them.

Before                                              After
    %b = index_set(%a, %x) {spec=(("slice", 2, 9),)}    %c = index_set(%a, %y) {spec=(("slice", 2, 9),)}
    %c = index_set(%b, %y) {spec=(("slice", 2, 9),)}
    %d = index_set(%z, %v) {spec=(("slice", none),)}    %d = cast(%v)

1. Nobody reads the first result but the second write, to the same places (the same operands name them) or to a region
   around them. So it is with a list's elements.
2. The first write cannot raise; or it raises just where the second one does, because their values have the same type,
   and nothing that is observed stands between them. Then the second one takes its line.
3. A write of all elements is a copy of the value, repeated, where types say that it fits.

A view that is read in between, a branch or a handler that has the first result: each is a reader, so both writes
stay.
"""

from __future__ import annotations

from collections import Counter

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ops.core.regions import Region, holds, region_of
from dy2st.ops.indexing.getitem import IndexAdd, IndexSet
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.effects import Effects
from dy2st.passes.core.rebuild_block import rebuild


class RemoveDeadStores(Pass):
    """Remove writes that are written over before anybody reads them, and fill whole tensors by their values."""

    name = "dead_stores"

    def apply(self, program: Program) -> bool:
        effects = Effects(program)
        return each_block(program, lambda block: _clean(block, effects))


def _clean(block: Block, effects: Effects) -> bool:
    writes = [o for o in block.operations if o.op.writes is not None]
    if not writes:
        return False
    dead = _dead(block, writes, effects)
    if dead:
        block.operations = [o for o in block.operations if o not in dead]
    whole = {o for o in writes if o not in dead and _is_whole(o, effects)}
    if whole:
        rebuild(block, lambda b, o, _: _filled(b, o) if o in whole else None)
    return bool(dead or whole)


# ---- 1, 2 -----------------------------------------------------------------------------------------------------------
def _dead(block: Block, writes: list[Operation], effects: Effects) -> set[Operation]:
    """Take writes out of the chains that they are in; return them."""
    readers = Counter(v for o in block.operations for v in o.operands) + Counter(block.results)
    places = {o: i for i, o in enumerate(block.operations)}
    dead: set[Operation] = set()
    for last in reversed(writes):
        if last in dead or _is_adding(last):
            continue
        while True:
            first = last.operands[0].operation
            if first is None or first.op.writes is None or readers[first.results[0]] != 1:
                break
            if not _covers(last, first):
                break
            raises = effects.can_raise(first)
            between = block.operations[places[first] + 1 : places[last]]
            if raises and not (_raise_together(first, last) and all(map(effects.is_pure, between))):
                break
            if raises:
                last.location = first.location
            last.operands[0] = first.operands[0]
            dead.add(first)
    return dead


def _is_adding(operation: Operation) -> bool:
    return operation.op.accumulates or operation.attributes.get("mode", "assign") != "assign"


def _covers(last: Operation, first: Operation) -> bool:
    """Return whether a write sets all that another one has written."""
    if last.results[0].type != first.operands[0].type or first.results[0].type != first.operands[0].type:
        return False  # a list that holds more kinds of things from there on
    if not (isinstance(last.op, IndexSet) if first.op.accumulates else last.op is first.op):
        return False
    if _places(first) == _places(last):
        return True
    inner, outer = _region(first), _region(last)
    return inner is not None and outer is not None and holds(outer, inner)


def _places(operation: Operation) -> tuple[object, ...]:
    """Return what says where an operation writes."""
    named = tuple(v for i, v in enumerate(operation.operands) if i not in (0, operation.op.writes))
    attributes = {k: x for k, x in operation.attributes.items() if k != "mode"}
    return (*named, *attributes.items())


def _region(operation: Operation) -> Region | None:
    if not isinstance(operation.op, (IndexSet, IndexAdd)):
        return None
    return region_of(tensor_type(operation.operands[0]).shape, operation.attributes["spec"])


def _raise_together(first: Operation, last: Operation) -> bool:
    """Return whether a write raises just where another one does: they write values of one type to the same places."""
    values = {o.operands[o.op.writes or 0].type for o in (first, last)}
    return first.op is last.op and _places(first) == _places(last) and len(values) == 1


# ---- 3 --------------------------------------------------------------------------------------------------------------
def _is_whole(operation: Operation, effects: Effects) -> bool:
    if not isinstance(operation.op, IndexSet) or effects.can_raise(operation):
        return False
    region = _region(operation)
    slices = all(part[0] == "slice" for part in operation.attributes["spec"])
    return region is not None and slices and all(span.is_whole for span in region)


def _filled(b: Builder, operation: Operation) -> list[Value]:
    """Emit a value as all of a tensor."""
    base, value = operation.operands
    t = tensor_type(base)
    if value.type == base.type:
        return [b.emit("cast", [value], {"dtype": t.dtype})]  # type: ignore[list-item]
    return [b.shaped("broadcast", [value], b.shape(base))]
