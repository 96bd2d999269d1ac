"""`vmap` of whole Programs: Program in, Program out."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.batching import branches, containers, custom, indexing, loops, quantized, rules, scalars, windows
from dy2st.batching.batched_value import BatchedValue, LaneForm
from dy2st.batching.batcher import Batcher, pushed
from dy2st.batching.lane_loop import together
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import ListType
from dy2st.shapes import Extent

for _module in (branches, containers, custom, loops, indexing, quantized, rules, scalars, windows):
    assert _module  # these fill the table of rules


def vmap(
    program: Program, batched: Sequence[bool], lanes: Extent | None = None
) -> tuple[Program, tuple[LaneForm, ...]]:
    """Return a Program over many lanes, and the forms of its results.

    `batched` says of each argument whether it differs between lanes; then the lanes are its first axis (a Python number
    becomes a vector). `lanes` is how many there are, by default what the run tells.
    """
    at = pushed(program, batched, lanes)
    found = [at.lane(v) for v in program.block.results]
    at.b.block.results = [lane.value for lane in found]
    return _closed(program, at), tuple(lane.form for lane in found)


def stacked_vmap(program: Program, batched: Sequence[bool]) -> Program:
    """Return a Program all of whose results are stacked; its first argument is the number of lanes."""
    at = pushed(program, batched, told=True)
    at.b.block.results = [_stacked(at, v) for v in program.block.results]
    return _closed(program, at)


def _closed(program: Program, at: Batcher) -> Program:
    return Program({**(at.b.functions or {}), program.entry: at.b.block}, program.entry)


def vmap_block(b: Builder, lanes: Extent, block: Block, given: Sequence[BatchedValue]) -> list[Value]:
    """Emit into `b` what a block computes over many lanes, from what its arguments became; return stacked results."""
    at = Batcher(b, lanes)
    for argument, lane in zip(block.arguments, given, strict=True):
        at.set(argument, lane.value, lane.form)
    at.run(block)
    return [_stacked(at, v) for v in block.results]


def _stacked(at: Batcher, value: Value) -> Value:
    lane = at.lane(value)
    if lane.apart and isinstance(lane.value.type, ListType):
        lane = together(at.b, at.lanes, lane.value, value.type)
        if lane.apart:
            return at.b.list_stack(lane.value)
    return at.stacked(lane)
