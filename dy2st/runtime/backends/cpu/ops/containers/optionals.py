"""Sums of cotangents that may be missing."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ListType, TensorType, Type, is_optional, payload
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, as_part, in_register, is_native
from dy2st.runtime.backends.cpu.ops.containers.list_slicing import copy_elements
from dy2st.runtime.backends.cpu.ops.containers.lists import length, list_type, made_list, row
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


@rule("optional_add")
def add(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the sum of what is there of two tensors or lists; `eval` adds tuples."""
    types: list[Type] = [v.type for v in operation.operands]
    inner = as_part(payload(types[0]))
    result = operation.results[0].type
    known = isinstance(inner, ListType) or (isinstance(inner, TensorType) and is_native(inner.dtype))
    if not known or not _are_alike(inner, as_part(payload(types[1]))):
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
    made = total(w, operation, inner, parts) if isinstance(inner, TensorType) else _lists(w, operation, inner, parts)
    w.put(kept, inner, made)
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


def _are_alike(a: Type, b: Type) -> bool:
    """Return whether two types are one, or those of tensors of which only a run tells that they are equally long."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype is b.dtype and a.rank == b.rank
    return a == b


def sum_of(operation: Operation, a: Type, b: Type) -> Operation:
    """Return the operation that adds optionals of these types where another one does so to a part."""
    block = operation.results[0].block
    made = Operation(lookup("optional_add"), [Value(a, block), Value(b, block)], {}, [], operation.location)
    made.results.append(Value(a if is_optional(b) else b, block, made))
    return made


def _lists(w: FunctionEmitter, operation: Operation, t: Type, parts: Sequence[Components]) -> Components:
    """Write the sums of the slots of two lists, of which one may be longer."""
    t, f = list_type(t), w.f
    (a,), (b,) = parts
    lengths = length(w, a), length(w, b)
    common, every = least(f, *lengths), most(f, *lengths)
    block = made_list(w, t, every)
    with f.loop(common) as i:
        held = [w.read(row(w, one, i, t), t.element) for one in (a, b)]
        (made,) = add(w, sum_of(operation, t.element, t.element), held)
        w.write(row(w, block, i, t), [t.element], [made])
    longer = f.value(f"select i1 {compare(f, 'slt', *lengths)}, ptr {b}, ptr {a}")
    copy_elements(w, t, longer, common, block, common, minus(f, every, common))
    return (block,)


def total(w: FunctionEmitter, operation: Operation, t: TensorType, parts: Sequence[Components]) -> Components:
    """Write the sum of two tensors of one type."""
    if in_register(t):
        return (combined(VectorType(w.f, w.module, 1), "add", t.dtype, parts[0][0], parts[1][0]),)
    left, right = Value(t, operation.results[0].block), Value(t, operation.results[0].block)
    plus = Operation(lookup("add"), [left, right], {}, [], operation.location)
    made = Value(t, left.block, plus)
    plus.results.append(made)
    every = tuple(range(tensor_type(left).rank))
    group = FusedGroup(
        t.shape, None, [plus], {left: every, right: every, made: every}, operands=[left, right], results=[made]
    )
    (result,) = w.unit.group_rule(w, group, list(parts))
    return result
