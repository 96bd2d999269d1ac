"""Variants: a tag beside the components of every alternative; those that are not the one are zero."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.types import TensorType, Type, VariantType
from dy2st.ops.control.optional import VariantCotangent
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import clear
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    alternative,
    as_part,
    in_registers,
    is_native,
    kinds,
    known_extents,
    told,
    zeros,
)
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product

Made = Sequence[Components]


def variant_type(t: Type) -> VariantType:
    """Return the type of a variant, whose payloads stand inside of it; TypeError for any other."""
    if not isinstance(t, VariantType):
        raise TypeError(f"a variant is needed here, not {t}")
    return VariantType(tuple(map(as_part, t.alternatives)))


def _declared(t: Type, tag: int) -> Type:
    return t.alternatives[tag] if isinstance(t, VariantType) else t


def with_alternative(t: VariantType, tag: int | str, chosen: int, payload: Components) -> Components:
    """Return a variant in which one alternative has components and the others are zero."""
    made = list(zeros(t))
    made[0] = str(tag)
    made[alternative(t, chosen)] = payload
    return tuple(made)


@rule("variant_new", carries=True)
def new(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a variant of a payload."""
    t, tag = variant_type(operation.results[0].type), operation.attributes["tag"]
    payload: Components = ()
    if operands:
        payload = w.fitted(t.alternatives[tag], w.owned(operation.operands[0], operands[0]))
    return [with_alternative(t, tag, tag, payload)]


@rule("variant_tag")
def tag_of(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the tag."""
    return [(operands[0][0],)]


@rule("variant_get", carries=True)
def get(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the payload; `eval` says that it is not there."""
    (value,), tag = operation.operands, operation.attributes["tag"]
    there = w.f.value(f"icmp eq i64 {operands[0][0]}, {tag}")
    t = variant_type(value.type)
    payload = operands[0][alternative(t, tag)]

    def fast() -> Made:
        w.retain(t.alternatives[tag], payload)
        return [payload]

    return w.guarded(operation, operands, there, fast)


@rule("variant_ct", "variant_wrap")
def rewrapped(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write an alternative as an optional, or an optional as an alternative; unset stays unset."""
    (value,), f = operation.operands, w.f
    source, target = variant_type(value.type), variant_type(operation.results[0].type)
    tag = operation.attributes["tag"]
    read, written = (tag, 1) if isinstance(operation.op, VariantCotangent) else (1, tag)
    there = f.value(f"icmp eq i64 {operands[0][0]}, {read}")
    payload = operands[0][alternative(source, read)]
    w.retain(source.alternatives[read], payload)  # null where it is another alternative
    shown = f.value(f"select i1 {there}, i64 {written}, i64 0")
    return [with_alternative(target, shown, written, payload)]


@rule("variant_cast")
def cast(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a variant with other numbers for its alternatives; what becomes unset loses its payload."""
    (value,), f = operation.operands, w.f
    source, target = variant_type(value.type), variant_type(operation.results[0].type)
    made = list(zeros(target))
    for old, new_tag in enumerate(operation.attributes["tags"]):
        is_it = f.value(f"icmp eq i64 {operands[0][0]}, {old}")
        made[0] = f.value(f"select i1 {is_it}, i64 {new_tag}, i64 {made[0]}")
        place = alternative(target, new_tag)
        kept = zip(
            kinds(target.alternatives[new_tag]), operands[0][alternative(source, old)], made[place], strict=False
        )
        made[place] = [f.value(f"select i1 {is_it}, {kind} {new}, {kind} {so_far}") for kind, new, so_far in kept]
    w.retain(target, tuple(made))
    return [tuple(made)]


@rule("variant_or_zeros", carries=True)
def or_zeros(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the payload, or zeros where it is another alternative or none."""
    (variant, like), result = operation.operands, operation.results[0].type
    if not isinstance(result, TensorType) or not is_native(result.dtype):
        return host_rule(w, operation, operands)
    f, t, tag = w.f, variant_type(variant.type), operation.attributes["tag"]
    payload = operands[0][alternative(t, tag)]
    kept, there, missing, join = w.slots(result), f.label("there"), f.label("missing"), f.label("join")
    wanted = tensor_type(like)
    is_known = len(known_extents(wanted)) == wanted.rank
    shape = list(map(str, known_extents(wanted))) if is_known else extents(like, operands[1])
    f.branch(f.value(f"icmp eq i64 {operands[0][0]}, {tag}"), there, missing)
    f.start(there)
    if _declared(variant.type, tag) != wanted:  # `eval` refuses another shape, so the result is known to have this one
        for extent, own in zip(shape, payload[2:], strict=False):
            w.demand(compare(f, "eq", extent, own))
    w.retain(t.alternatives[tag], payload)
    w.put(kept, result, payload)
    f.jump(join)
    f.start(missing)
    if in_registers(result):
        nothing = told(result, zeros(result))
    else:
        nothing = allocate(w, result.dtype, shape)
        clear(w, nothing[1], product(w, [*nothing[2:], str(result.dtype.itemsize)]))
    w.put(kept, result, nothing)
    f.jump(join)
    f.start(join)
    return [w.get(kept, result)]
