"""Elementwise operations that are in no loop nest: on tensors of rank 0, which are registers, on complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Operation
from dy2st.runtime.cpu.elementwise import compute, computes
from dy2st.runtime.cpu.lanes import Lanes
from dy2st.runtime.cpu.representation import Components, in_register
from dy2st.runtime.cpu.rules.complex_numbers import computes_with_complex, elementwise
from dy2st.runtime.cpu.rules.registry import RULES
from dy2st.runtime.cpu.writer import Writer, host_rule


def write(w: Writer, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write one elementwise operation."""
    if computes_with_complex(operation):
        return elementwise(w, operation, operands)
    if not all(in_register(v.type) for v in (*operation.operands, *operation.results)) or not computes(operation):
        return host_rule(w, operation, operands)
    return [(compute(Lanes(w.f, w.module, 1), operation, [c[0] for c in operands]),)]


def enter(names: Sequence[str], function: Callable[..., Sequence[Components]] = write) -> None:
    """Enter the rule of every elementwise op that has no other one."""
    for name in names:
        RULES.setdefault(name, function)


enter(
    [
        name
        for name, op in REGISTRY.items()
        if getattr(op, "elementwise", False) or name in ("renew", "zeros_like", "ones_like")
    ]
)
