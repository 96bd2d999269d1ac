"""Tuples: the components of their items in a row."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation
from dy2st.ir.types import TupleType
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, as_part, item
from dy2st.runtime.backends.cpu.ops.registry import rule


@rule("tuple_new", carries=True)
def new(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write a tuple of its items."""
    seen: list[str] = []
    for value, components in zip(operation.operands, operands, strict=True):
        stored = w.fitted(as_part(value.type), components)
        if operation.operands.count(value) > 1:
            w.retain(value.type, components)
        else:
            w.owned(value, components)
        seen += stored
    return [tuple(seen)]


@rule("tuple_get", carries=True)
def get(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write the items."""
    t = operation.operands[0].type
    if not isinstance(t, TupleType):
        return host_rule(w, operation, operands)
    w.owned(operation.operands[0], operands[0])
    return [operands[0][item(t, i)] for i in range(len(t.items))]
