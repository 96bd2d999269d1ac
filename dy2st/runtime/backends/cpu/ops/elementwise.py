"""Elementwise operations that are in no loop nest: on tensors of rank 0, which are registers, on complex numbers."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Operation
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, Rule, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register
from dy2st.runtime.backends.cpu.ops.complex_elementwise import computes_with_complex, elementwise
from dy2st.runtime.backends.cpu.vector_ops.elementwise import compute, computes
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


def write(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write one elementwise operation."""
    if computes_with_complex(operation):
        return elementwise(w, operation, operands)
    if not all(in_register(v.type) for v in (*operation.operands, *operation.results)) or not computes(operation):
        return host_rule(w, operation, operands)
    return [(compute(VectorType(w.f, w.module, 1), operation, [c[0] for c in operands]),)]


def rule_of_elementwise(name: str) -> Rule | None:
    """Return the rule of an op that no other file has one for; None for an op that is not elementwise."""
    is_elementwise = name in REGISTRY and (REGISTRY[name].elementwise or REGISTRY[name].splat is not None)
    return write if is_elementwise else None
