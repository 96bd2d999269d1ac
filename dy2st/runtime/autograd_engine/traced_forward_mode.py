"""Forward mode in a Program that is being built: the tangents of what was recorded are appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.cotangents import conform
from dy2st.autodiff.forward import Tangents, push_forward
from dy2st.autodiff.unwinding import unwind_here
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Value
from dy2st.runtime.eager.tensor import Tensor


def push(recorder: Any, outs: Sequence[Tensor], ins: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor | None]:
    """Append the tangents of `outs` when `ins` have those `given`; None for one that does not depend on them.

    All of them are emitted where the recorder stands, also those of values of the blocks around.
    """
    b: Builder = recorder.builder
    seeds: dict[Value, Value] = {}
    for x, t in zip(ins, given, strict=True):
        like = recorder.value_of(x)
        seeds[like] = conform(b, b.use(recorder.value_of(t)), b.use(like))
    ends = [b.use(recorder.value_of(out)) for out in outs]
    tangents: Tangents = {}
    for level, entering in levels_of(b):
        unwind_here(b, level.block)
        tangents.update({a: tangents[outer] for outer, a in entering.items() if outer in tangents})
        tangents.update({v: t for v, t in seeds.items() if v.block is level.block})
        wanted = ends if level is b else [v for v in captured_inside(b, level) if v.block is level.block]
        push_forward(b, leading_to(level.block, wanted, set(tangents)), None, tangents)
    return [None if v not in tangents else recorder.wrap(tangents[v], False) for v in ends]


def levels_of(b: Builder) -> list[tuple[Builder, dict[Value, Value]]]:
    """Return the builders from the outermost block to this one, with what each has captured so far."""
    found: list[tuple[Builder, dict[Value, Value]]] = []
    level: Builder | None = b
    while level is not None:
        found.append((level, dict(level.captures)))
        level = level.parent
    return found[::-1]


def captured_inside(b: Builder, outer: Builder) -> list[Value]:
    """Return what the blocks inside of `outer`, down to that of `b`, have captured."""
    found: list[Value] = []
    level: Builder | None = b
    while level is not None and level is not outer:
        found += list(level.captures)
        level = level.parent
    return found


def leading_to(block: Block, ends: Sequence[Value], known: set[Value]) -> Block:
    """Return the operations from which `ends` are computed, but not those behind known values."""
    part, needed = Block(), set(ends) - known
    for operation in reversed(block.operations):
        if not needed.isdisjoint(operation.results):
            part.operations.append(operation)
            needed.update(v for v in operation.operands if v not in known)
    part.operations.reverse()
    return part
