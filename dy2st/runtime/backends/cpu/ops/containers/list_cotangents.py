"""Slots of the cotangents of lists, which the backward pass of a loop reads, sets, adds to and clears once an
iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation
from dy2st.ir.types import ListType, Type, VariantType, is_optional
from dy2st.runtime.backends.cpu.allocator.list_functions import LENGTH, list_function
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import plus
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, zeros
from dy2st.runtime.backends.cpu.ops.containers.lists import checked, length, list_type, may_be, row, with_room
from dy2st.runtime.backends.cpu.ops.containers.optionals import add, sum_of
from dy2st.runtime.backends.cpu.ops.registry import rule

Made = Sequence[Components]


def _is_inside(w: FunctionEmitter, block: str, at: str) -> str:
    return w.f.value(f"icmp ult i64 {at}, {length(w, block)}")


@rule("list_take", carries=True)
def take(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a read of one slot; unset where there is none."""
    (block,), (at,) = operands
    t = list_type(operation.operands[0].type)
    kept = w.slots(t.element)
    w.put(kept, t.element, zeros(t.element))
    with w.f.when(_is_inside(w, block, at), "inside"):
        components = w.read(row(w, block, at, t), t.element)
        w.retain(t.element, components)
        w.put(kept, t.element, components)
    return [w.get(kept, t.element)]


@rule("list_clear", carries=True)
def clear(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the list with one slot unset; in place where nobody else holds the list."""
    items, at = operation.operands[0], operands[1][0]
    t = list_type(items.type)
    w.owned(items, operands[0])
    writable = list_function(w.unit.kernels, "writable", t)
    block = checked(w, w.f.call("ptr", writable, "ptr %context", f"ptr {operands[0][0]}"))
    with w.f.when(_is_inside(w, block, at), "inside"):
        place = row(w, block, at, t)
        old = w.read(place, t.element)
        w.write(place, [t.element], [zeros(t.element)])
        w.release(t.element, old)
    return [(block,)]


@rule("list_put")
def put(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the list with one slot set; in place where nobody else holds the list."""
    item = operation.operands[2]
    t = list_type(operation.operands[0].type)
    if not _fits(t, item.type):
        return host_rule(w, operation, operands)

    def fast() -> Made:
        w.owned(item, operands[2])
        block, place = _slot(w, operation, operands, t)
        old = w.read(place, t.element)
        w.write(place, [t.element], [_set(item.type, operands[2])])
        w.release(t.element, old)
        return [(block,)]

    return w.guarded(operation, operands, may_be(w, operands[1][0]), fast)


@rule("list_accumulate")
def accumulate(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the list with an item added to one slot; in place where nobody else holds the list."""
    item = operation.operands[2].type
    t = list_type(operation.operands[0].type)
    if not _fits(t, item):
        return host_rule(w, operation, operands)

    def fast() -> Made:
        block, place = _slot(w, operation, operands, t)
        held = w.read(place, t.element)
        total = sum_of(operation, t.element, item)
        (made,) = add(w, total, [held, operands[2]])
        w.write(place, [t.element], [_set(total.results[0].type, made)])
        w.release(t.element, held)
        return [(block,)]

    return w.guarded(operation, operands, may_be(w, operands[1][0]), fast)


def _fits(t: ListType, item: Type) -> bool:
    """Return whether slots are optionals and an item is one of them, or what they may hold."""
    return is_optional(t.element) and (is_optional(item) or not isinstance(item, VariantType))


def _set(t: Type, components: Components) -> Components:
    """Return components as those of an optional."""
    return components if is_optional(t) else ("1", *components)


def _slot(w: FunctionEmitter, operation: Operation, operands: list[Components], t: ListType) -> tuple[str, str]:
    """Write a list that is held once and has this slot, made as long as needed; return its block and the slot."""
    f, (items,), (at,) = w.f, operands[0], operands[1]
    w.owned(operation.operands[0], operands[0])
    writable = list_function(w.unit.kernels, "writable", t)
    kept = f.slot("ptr")
    f.store("ptr", checked(w, f.call("ptr", writable, "ptr %context", f"ptr {items}")), kept)
    with f.loop(plus(f, at, 1), start=length(w, f.load("ptr", kept))) as last:
        block = with_room(w, f.load("ptr", kept), t)
        w.write(row(w, block, last, t), [t.element], [zeros(t.element)])
        f.store("i64", plus(f, last, 1), f.offset(block, LENGTH))
        f.store("ptr", block, kept)
    block = f.load("ptr", kept)
    return block, row(w, block, at, t)
