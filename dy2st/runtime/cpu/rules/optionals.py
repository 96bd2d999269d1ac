"""Sums of cotangents that may be missing."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType, Type, is_optional, payload
from dy2st.runtime.cpu.axis_maps import Group
from dy2st.runtime.cpu.lanes import Lanes
from dy2st.runtime.cpu.reductions import combined
from dy2st.runtime.cpu.representation import Components, as_part, in_register, is_native
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.writer import Writer, host_rule

Made = Sequence[Components]


@rule("optional_add")
def add(w: Writer, operation: Operation, operands: list[Components]) -> Made:
    """Write the sum of what is there of two tensors; `eval` adds lists and tuples."""
    types: list[Type] = [v.type for v in operation.operands]
    inner = as_part(payload(types[0]))
    result = operation.results[0].type
    if not isinstance(inner, TensorType) or not is_native(inner.dtype) or as_part(payload(types[1])) != inner:
        return host_rule(w, operation, operands)
    f = w.f
    there = [
        f.value(f"icmp ne i64 {c[0]}, 0") if is_optional(t) else "true" for t, c in zip(types, operands, strict=True)
    ]
    parts = [c[1:] if is_optional(t) else c for t, c in zip(types, operands, strict=True)]
    kept = w.slots(inner)
    both, one, join = f.label("both"), f.label("one"), f.label("join")
    f.branch(f.value(f"and i1 {there[0]}, {there[1]}"), both, one)
    f.start(both)
    w.put(kept, inner, total(w, operation, inner, parts))
    f.jump(join)
    f.start(one)
    chosen = tuple(
        f.value(f"select i1 {there[0]}, {kind} {a}, {kind} {b}")
        for kind, a, b in zip(w.kinds(inner), parts[0], parts[1], strict=True)
    )
    w.retain(inner, chosen)
    w.put(kept, inner, chosen)
    f.start(join)
    made = w.get(kept, inner)
    if not is_optional(result):
        return [made]
    some = f.value(f"or i1 {there[0]}, {there[1]}")
    return [(f.value(f"zext i1 {some} to i64"), *made)]


def total(w: Writer, operation: Operation, t: TensorType, parts: Sequence[Components]) -> Components:
    """Write the sum of two tensors of one type."""
    if in_register(t):
        return (combined(Lanes(w.f, w.module, 1), "sum", t.dtype, parts[0][0], parts[1][0]),)
    left, right = Value(t, operation.results[0].block), Value(t, operation.results[0].block)
    plus = Operation(lookup("add"), [left, right], {}, [], operation.location)
    made = Value(t, left.block, plus)
    plus.results.append(made)
    every = tuple(range(tensor_type(left).rank))
    group = Group(
        t.shape, None, [plus], {left: every, right: every, made: every}, operands=[left, right], results=[made]
    )
    (result,) = w.unit.group_rule(w, group, list(parts))
    return result
