"""Runs a product with the loop nest that is done on its parts: what the nest takes stands in a row of memory."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.gemm.epilogue import COST, FUNCTION, OPERANDS
from dy2st.runtime.backends.cpu.kernel_calls.group_calls import KernelCall, prepared, results
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components
from dy2st.runtime.backends.cpu.loop_nests.entry_points import kernel_of_parts
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import element_cost
from dy2st.runtime.backends.cpu.loop_nests.schedule import lanes_of
from dy2st.runtime.backends.cpu.ops.registry import with_parts


def run_epilogue(w: FunctionEmitter, step: Epilogue, operands: Sequence[Components]) -> Sequence[Components]:
    """Write the run of a product and of its nest, which takes over the product's memory where nobody else reads it.

    It takes over nobody else's: others are read until all parts of the product are there.
    """
    product, group, value = step.product, step.group, step.made
    given, dying = dict(zip(step.operands, operands, strict=True)), w.dying
    runs: list[KernelCall] = []

    def after(made: Components) -> str:
        given[value] = made
        w.hold(set() if value in step.results else {value})
        runs.append(prepared(w, group, [given[v] for v in group.operands]))
        return _row(w, runs[0])

    with_parts(product.op.name)(w, product, [given[v] for v in product.operands], after)
    made = dict(zip(group.results, results(w, runs[0]), strict=True))
    if value in w.dying:
        w.release(value.type, given[value])
    w.hold(dying)
    return [made[v] if v in made else given[v] for v in step.results]


def _row(w: FunctionEmitter, run: KernelCall) -> str:
    """Write the row of memory with the nest's function and what it takes; return its address."""
    f, unit = w.f, w.unit
    row = f.slot("i64", OPERANDS // 8 + len(run.arguments))
    f.store("ptr", f"@{kernel_of_parts(unit.kernels, unit.target, run.made)}", f.offset(row, FUNCTION))
    f.store("i64", str(element_cost(run.made, lanes_of(run.made, unit.target))), f.offset(row, COST))
    for i, argument in enumerate(run.arguments):
        kind, _, register = argument.partition(" ")
        f.store(kind, register, f.offset(row, OPERANDS + 8 * i))
    return row
