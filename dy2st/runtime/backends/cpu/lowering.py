"""A Program as one LLVM module: a native function for each function of the Program.

    i32 @dy2st.f.<name>(ptr %context, ptr %operands, ptr %results)

Rows of components go in and come out (value_layout.py); what is returned is `host.OK`, `RAISED` or `ELSEWHERE`.
"""

from __future__ import annotations

from dy2st import config
from dy2st.ir.clone import clone_program
from dy2st.ir.program import Block, Program
from dy2st.passes.core.base import run_pipeline
from dy2st.passes.pipelines import native
from dy2st.runtime.backends.cpu.allocator.guard_pages import OLD
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import DECLARED, FUNCTIONS, GUARDED, LIVE, OK, PEAK
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.emitter.function_emitter import EmitterContext, FunctionEmitter
from dy2st.runtime.backends.cpu.kernel_calls.fused_group_calls import run_groups
from dy2st.runtime.backends.cpu.libm.target_overrides import better_definitions
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import function_name, kinds
from dy2st.runtime.backends.cpu.ops import carries, reads_gaps, rule_of
from dy2st.runtime.backends.cpu.ops.control.safepoints import look_after
from dy2st.runtime.backends.cpu.ops.scalarized import small
from dy2st.runtime.backends.cpu.ops.tensors import unfilled


def prepared(program: Program, strict: bool = False) -> Program:
    """Return a Program as code is made of it: large operations that fuse are written as small ones."""
    copy = clone_program(program)
    run_pipeline(copy, native(strict))
    return copy


def lower(program: Program, target: Target, *, standalone: bool = False) -> EmitterContext:
    """Return the module of a Program, with its host callbacks and the arrays that it takes as constants."""
    unit = EmitterContext(program, target, rule_of, reads_gaps, carries, run_groups, small, unfilled, look_after)
    unit.standalone = standalone
    unit.kernels.better = better_definitions(target)
    unit.module.strict = unit.kernels.strict = target.strict
    for line in DECLARED.splitlines():
        for module in (unit.module, unit.kernels):
            module.add(line.partition("@")[2].partition("(")[0], line)
    for name, text in ({**GUARDED, **OLD} if config.are_guarded() and not standalone else FUNCTIONS).items():
        unit.kernels.add(name, text)
    for name, block in program.functions.items():
        unit.module.add(function_name(name), _function(unit, name, block))
    return unit


def _function(unit: EmitterContext, name: str, block: Block) -> str:
    entry = name == unit.program.entry
    f = LLVMFunction(
        function_name(name), [("ptr", "%context"), ("ptr", "%operands"), ("ptr", "%results")], "i32",
        linkage="" if entry else "internal", also="nounwind",
    )  # fmt: skip
    writer = FunctionEmitter(unit, f)
    if entry:
        f.store("i64", f.load("i64", f.offset("%context", LIVE)), f.offset("%context", PEAK))
    arguments, at = [], 0
    for argument in block.arguments:
        arguments.append((writer.read("%operands", argument.type, at), False))
        at += len(kinds(argument.type))
    results = writer.block(block, arguments)
    writer.write("%results", [v.type for v in block.results], results)
    f.ret("i32", str(OK))
    writer.finish()
    return f.text()
