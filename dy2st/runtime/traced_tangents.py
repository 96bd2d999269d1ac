"""Forward mode in a Program that is being built: the tangents of what was recorded are appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.forward import Tangents, push_forward
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Value
from dy2st.runtime.tensor import Tensor


def push(recorder: Any, outs: Sequence[Tensor], ins: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor | None]:
    """Append the tangents of `outs` when `ins` have those `given`; None for one that does not depend on them."""
    seeds = {recorder.value_of(x): recorder.value_of(t) for x, t in zip(ins, given, strict=True)}
    ends = [recorder.builder.use(recorder.value_of(out)) for out in outs]
    tangents = _push_level(recorder.builder, seeds, ends)
    return [None if v not in tangents else recorder.wrap(tangents[v], False) for v in ends]


def _push_level(level: Builder, seeds: dict[Value, Value], ends: Sequence[Value]) -> Tangents:
    """Push through the blocks around this one, then through what this one has so far."""
    tangents: Tangents = {}
    if level.parent is not None:
        entries = dict(level.captures)
        for outer, tangent in _push_level(level.parent, seeds, list(entries)).items():
            if outer in entries:
                tangents[entries[outer]] = level.use(tangent)
    for value, tangent in seeds.items():
        if level.sees(value):
            tangents[level.use(value)] = level.use(tangent)
    known = set(tangents)
    part = _leading_to(level.block, ends, known)
    push_forward(level, part, None, tangents)
    return tangents


def _leading_to(block: Block, ends: Sequence[Value], known: set[Value]) -> Block:
    """Return the operations from which `ends` are computed, but not those behind known values."""
    part, needed = Block(), set(ends) - known
    for operation in reversed(block.operations):
        if not needed.isdisjoint(operation.results):
            part.operations.append(operation)
            needed.update(v for v in operation.operands if v not in known)
    part.operations.reverse()
    return part
