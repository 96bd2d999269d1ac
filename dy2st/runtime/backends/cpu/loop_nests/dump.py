"""Loop nests as text: what each runs over, how it is split between threads, and what every sweep through a row does.

loops over [x_0, 7]: 16 lanes along [7], split between threads by rows, 2 sweeps
  reads %x: float32[x_0, 7]
  sweep 0
    %0 = exp(%x)
    %1 = sum(%0): a number a row
    keeps %0
  sweep 1
    %2 = divide(%0, %1)
    writes %2: float32[x_0, 7]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dy2st.ir.printer import ValueNames, label, operation_to_text, value_names
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import HorizontalGroup
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import element_cost, way
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, ends_row, lanes_of, layout

_WAYS = {"rows": "split between threads by rows", "sweeps": "split between threads within rows", "whole": "one thread"}


def loops(program: Program, target: Target) -> str:
    """Return the steps of a Program; loop nests with their extents, operands and sweeps."""
    lines: list[str] = []
    for name, block in program.functions.items():
        names = value_names(block)
        arguments = ", ".join(_typed(v, names) for v in block.arguments)
        lines += [f"func {name}({arguments})", *_block(block, names, target, "  ")]
    return "\n".join(lines)


def _block(block: Block, names: ValueNames, target: Target, indent: str) -> Iterator[str]:
    for step in schedule(block):
        if isinstance(step, HorizontalGroup):
            yield f"{indent}together"
            for group in step.groups:
                yield from (indent + "  " + line for line in _nest(layout(group), names, target))
        elif isinstance(step, FusedGroup):
            yield from (indent + line for line in _nest(layout(step), names, target))
        elif isinstance(step, Epilogue):
            yield f"{indent}{_typed(step.made, names)} = {_call(step.product, names)}, and on parts of it"
            yield from (indent + "  " + line for line in _nest(layout(step.group), names, target))
        else:
            where = f"  # {step.location}" if step.location is not None and step.blocks else ""
            yield f"{indent}{operation_to_text(step, names).removesuffix(' {...}')}{where}"
            for i, inner in enumerate(step.blocks):
                yield f"{indent}  {label(step, i)}({', '.join(_typed(v, names) for v in inner.arguments)})"
                yield from _block(inner, names, target, indent + "    ")
    if block.results:
        yield f"{indent}return {_names(block.results, names)}"


def _nest(made: NestLayout, names: ValueNames, target: Target) -> Iterator[str]:
    lanes, space = lanes_of(made, target), made.group.space
    split = _WAYS[way(made, element_cost(made, lanes))]
    sweeps = f"{made.sweeps} sweep{'s' if made.sweeps != 1 else ''}"
    rows = ", ".join(map(str, space[made.outer :]))
    yield f"loops over [{', '.join(map(str, space))}]: {lanes} lanes along [{rows}], {split}, {sweeps}"
    yield f"  reads {', '.join(_typed(v, names) for v in made.read)}"
    for sweep in range(max(1, made.sweeps)):
        yield f"  sweep {sweep}"
        yield from ("    " + line for line in _sweep(made, sweep, names))


def _sweep(made: NestLayout, sweep: int, names: ValueNames) -> Iterator[str]:
    group, work = made.group, made.work(sweep)
    for operation in group.members:
        (result,) = operation.results
        ends = ends_row(operation, group)
        if made.at[result] - ends != sweep:
            continue
        said = ": a number a row" if ends else ": of all rows" if result in group.columns else ""
        yield f"%{names[result]} = {_call(operation, names)}{said}"
    kept = [v for v in work.stores if v not in group.results]
    written = [v for v in group.results if v in work.stores or _is_done(made, v, sweep)]
    if kept:
        yield f"keeps {_names(kept, names)}"
    if written:
        yield f"writes {', '.join(_typed(v, names) for v in written)}"


def _is_done(made: NestLayout, value: Value, sweep: int) -> bool:
    """Return whether a result of rows, or the same along each, is written after a sweep."""
    if value in made.group.columns:
        return made.at[value] == sweep
    return made.is_row(value) and max(0, made.at[value] - 1) == sweep


def _call(operation: Operation, names: ValueNames) -> str:
    return f"{operation.name}({_names(operation.operands, names)})"


def _names(values: Iterable[Value], names: ValueNames) -> str:
    return ", ".join(f"%{names[v]}" for v in values)


def _typed(value: Value, names: ValueNames) -> str:
    return f"%{names[value]}: {value.type}"
