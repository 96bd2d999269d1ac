"""Runs loop nests that were put together: as one job, whose units threads share, whichever nest they belong to.

A table says of each nest which function runs ranges of it, where what that takes stands, and where its units end:

    void @dy2st.joint(ptr %table, i64 %from, i64 %to, i64 %who)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.buffer_donation import claim
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import HorizontalGroup
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.kernel_calls.epilogue_calls import run_epilogue
from dy2st.runtime.backends.cpu.kernel_calls.group_calls import KernelCall, call_kernel, prepared, results, run_group
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, element_kind
from dy2st.runtime.backends.cpu.loop_nests.entry_points import kernel_of_blocks, kernel_of_ranges, kernel_of_totals
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import MOST_BLOCKS, RANGE_UNIT, element_cost, known_blocks
from dy2st.runtime.backends.cpu.loop_nests.schedule import lanes_of, layout
from dy2st.runtime.backends.cpu.thread_pool.gil import LONG_COST
from dy2st.runtime.backends.cpu.thread_pool.memory_layout import MOST
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import PARALLEL, RANGE, SHARE

_WORTH = 100_000_000
"""Picoseconds that nests take together before they are one job: for less no thread is to be woken."""
_ENTRY = 24
"""The bytes of a line of the table."""


def run_groups(
    w: FunctionEmitter,
    step: FusedGroup | HorizontalGroup | Epilogue,
    operands: list[Components],
    into: Mapping[Value, StridedTensor] | None = None,
) -> Sequence[Components]:
    """Write the run of a group, of several that were put together, or of one with a product."""
    if isinstance(step, Epilogue):
        return run_epilogue(w, step, operands)
    if isinstance(step, HorizontalGroup):
        return _run_joint(w, step, operands)
    if w.overwritten.keys().isdisjoint(step.results):
        return run_group(w, step, operands, into)
    return _run_joint(w, HorizontalGroup([step]), operands)


def _run_joint(w: FunctionEmitter, joint: HorizontalGroup, operands: list[Components]) -> Sequence[Components]:
    """Write the run of nests that were put together: as one job where that is worth it, else one after the other.

    One that reads or writes with gaps runs by itself, row by row. Those that overwrite arguments run behind all others,
    and after the rooms of all of them are there; none of them gives Python's lock away.
    """
    given = dict(zip(joint.operands, operands, strict=True))
    dense = [
        group for group in joint.groups
        if w.joins.keys().isdisjoint(group.results) and not any(isinstance(given[v],
        StridedTensor) for v in group.operands)
    ]  # fmt: skip
    costs = [_cost(w, group) for group in dense]
    overwrites = not w.overwritten.keys().isdisjoint(v for group in dense for v in group.results)
    is_one = (len(dense) > 1 and sum(costs) >= _WORTH) or (overwrites and 2 * max(costs) >= LONG_COST)
    ready_first = dense if is_one or overwrites else []
    readers = Counter(v for group in joint.groups for v in group.operands)
    dying, left = w.dying, set[Value]()
    runs: dict[FusedGroup, KernelCall] = {}
    made: dict[FusedGroup, Sequence[Components]] = {}
    for group in sorted(joint.groups, key=lambda g: g in ready_first):
        mine = [given[v] for v in group.operands]
        w.hold({v for v in group.operands if v in dying and readers[v] == 1})  # another nest may still read it
        if group in ready_first:
            if overwrites and not runs:
                claim(w)
            runs[group] = prepared(w, group, mine)
        else:
            made[group] = run_group(w, group, mine)
        left |= w.dying
    if is_one:
        _share(w, list(runs.values()), costs, SHARE if overwrites else PARALLEL)
    else:
        for run in runs.values():
            call_kernel(w, run)
    if runs:
        made.update((group, results(w, run)) for group, run in runs.items())
    w.hold({*left, *(v for v in dying if readers[v] > 1)})
    return [components for group in joint.groups for components in made[group]]


def _cost(w: FunctionEmitter, group: FusedGroup) -> int:
    """Return how many picoseconds a nest takes, roughly."""
    made = layout(group)
    return math.prod(cast("tuple[int, ...]", group.space)) * element_cost(made, lanes_of(made, w.unit.target))


def _share(w: FunctionEmitter, runs: Sequence[KernelCall], costs: Sequence[int], parallel: Definition) -> None:
    """Write the table, and the job of what stands in it."""
    f, units, where = w.f, 0, (w.unit.kernels, w.unit.target)
    table = f.slot("i64", _ENTRY // 8 * len(runs))
    ends: list[tuple[str, list[str]]] = []
    """Calls that add up what blocks have."""
    for number, run in enumerate(runs):
        arguments, line = run.arguments, f.offset(table, number * _ENTRY)
        length, sums = math.prod(cast("tuple[int, ...]", run.made.group.space)), run.made.work(0).ends
        if sums:
            count, size = known_blocks(length)
            rooms = [f"ptr {f.slot(element_kind(tensor_type(o.results[0]).dtype), MOST_BLOCKS)}" for o in sums]
            ends.append((kernel_of_totals(*where, run.made), [*arguments, *rooms, f"i64 {count}"]))
            function, arguments = kernel_of_blocks(*where, run.made), [*arguments, *rooms, f"i64 {size}"]
        else:
            count, function = -(-length // RANGE_UNIT), kernel_of_ranges(*where, run.made)
        row, units = f.slot("i64", len(arguments)), units + count
        for i, argument in enumerate(arguments):
            kind, _, value = argument.partition(" ")
            f.store(kind, value, f.offset(row, 8 * i))
        f.store("ptr", f"@{function}", line)
        f.store("ptr", row, f.offset(line, 8))
        f.store("i64", str(units), f.offset(line, 16))
    w.unit.module.add(parallel.name, parallel.text)
    cost = sum(costs) // max(units, 1)
    body = _lines(w.unit.kernels)
    f.call("void", f"@{parallel.name}", f"ptr @{body}", f"ptr {table}", f"i64 {units}", f"i64 {cost}", f"i64 {MOST}")
    for function, arguments in ends:
        f.call("void", f"@{function}", *arguments)


def _lines(module: LLVMModule) -> str:
    """Write the function that runs a range of units: of each nest, those that are in it."""
    name = "dy2st.joint"
    if name in module:
        return name
    f = LLVMFunction(name, [("ptr", "%table"), *RANGE], also="nounwind")
    line, start = f.slot("ptr"), f.slot("i64")
    f.store("ptr", "%table", line)
    f.store("i64", "0", start)
    look, on, done = f.label("look"), f.label("on"), f.label("done")
    f.jump(look)
    f.start(look)
    here, first = f.load("ptr", line), f.load("i64", start)
    f.branch(compare(f, "slt", first, "%to"), on, done)
    f.start(on)
    end = f.load("i64", f.offset(here, 16))
    low, high = most(f, first, "%from"), least(f, end, "%to")
    with f.when(compare(f, "slt", low, high), "some"):
        function, row = f.load("ptr", here), f.load("ptr", f.offset(here, 8))
        numbers = (f"i64 {minus(f, low, first)}", f"i64 {minus(f, high, first)}", "i64 %who")
        f.call("void", function, f"ptr {row}", *numbers)
    f.store("ptr", f.offset(here, _ENTRY), line)
    f.store("i64", end, start)
    f.jump(look)
    f.start(done)
    f.ret()
    return module.add(name, f.text())
