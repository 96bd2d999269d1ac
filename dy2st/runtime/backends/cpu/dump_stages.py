"""The stages of native code as text: what shares a loop nest, loop nests, LLVM IR, the CPU's assembly language."""

from __future__ import annotations

from collections.abc import Iterator

from dy2st.ir.printer import label
from dy2st.ir.program import Block, Operation, Program, tensor_type
from dy2st.runtime.backends.cpu import STAGES
from dy2st.runtime.backends.cpu.compile_link.code_loader import assembly
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import HorizontalGroup
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.loop_nests.dump import loops
from dy2st.runtime.backends.cpu.lowering import lower, prepared
from dy2st.runtime.backends.cpu.opt_level import has_loops


def stage(program: Program, name: str) -> str:
    """Return a Program at one of `STAGES`; ValueError for another name."""
    if name not in STAGES:
        raise ValueError(f"a stage is one of {', '.join(STAGES)}, not {name!r}")
    ready = prepared(program)
    if name == "fused":
        return "\n".join(f"{line}" for f, b in ready.functions.items() for line in (f"func {f}", *_steps(b, "  ")))
    if name == "loops":
        return loops(ready, current_target())
    unit = lower(ready, current_target())
    text = unit.module.text(unit.kernels)
    if name == "llvm":
        return f"{unit.kernels.text()}\n{text}"
    return assembly(unit.kernels.text()) + assembly(text, level=int(has_loops(program)))


def _steps(block: Block, indent: str) -> Iterator[str]:
    """Yield a line for each step: a loop nest with its space and members, or one operation."""
    for step in schedule(block):
        if isinstance(step, HorizontalGroup):
            yield f"{indent}together"
            yield from (f"{indent}  {_nest(group)}" for group in step.groups)
        elif isinstance(step, FusedGroup):
            yield f"{indent}{_nest(step)}"
        elif isinstance(step, Epilogue):
            yield f"{indent}{_shown(step.product)}, and on parts of it"
            yield f"{indent}  {_nest(step.group)}"
        else:
            yield f"{indent}{_shown(step)}"
            for i, inner in enumerate(step.blocks):
                yield f"{indent}  {label(step, i)}"
                yield from _steps(inner, indent + "    ")


def _nest(group: FusedGroup) -> str:
    space = ", ".join(map(str, group.space))
    rows = "" if group.outer is None else f", rows behind axis {group.outer}"
    made = ", ".join(str(tensor_type(v)) for v in group.results)
    return f"loops over [{space}]{rows}: {' '.join(o.name for o in group.members)} -> {made}"


def _shown(operation: Operation) -> str:
    made = ", ".join(str(v.type) for v in operation.results)
    where = f"  # {operation.location}" if operation.location is not None and operation.blocks else ""
    return f"{operation.name}{' -> ' + made if made else ''}{where}"
