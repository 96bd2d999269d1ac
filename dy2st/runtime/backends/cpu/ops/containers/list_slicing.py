"""Lists made of other lists, and the slots of their cotangents: joined, cut, turned round, with one element more."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation
from dy2st.ir.types import ListType
from dy2st.runtime.backends.cpu.allocator.list_functions import LENGTH, list_function, row_bytes
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, plus
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, zeros
from dy2st.runtime.backends.cpu.ops.containers.lists import (
    checked,
    length,
    list_type,
    made_list,
    may_be,
    row,
    taken_out,
    with_room,
)
from dy2st.runtime.backends.cpu.ops.registry import rule

Made = Sequence[Components]


def copy_elements(w: FunctionEmitter, t: ListType, source: str, first: str, target: str, at: str, count: str) -> None:
    """Write `count` elements of one list, from number `first`, into another one; both hold them then."""
    with w.f.loop(count) as i:
        components = w.read(row(w, source, plus(w.f, first, i), t), t.element)
        w.retain(t.element, components)
        w.write(row(w, target, plus(w.f, at, i), t), [t.element], [components])


def _fill(w: FunctionEmitter, t: ListType, block: str, first: str, last: str) -> None:
    """Write that the slots from number `first` to before `last` are unset."""
    with w.f.loop(most(w.f, minus(w.f, last, first), 0)) as i:
        w.write(row(w, block, plus(w.f, first, i), t), [t.element], [zeros(t.element)])


@rule("list_extend")
def extend(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the elements of another list behind those of one; in place where nobody else holds it."""
    f, t = w.f, list_type(operation.results[0].type)
    (items,), (more,) = operands
    count, slot = length(w, more), f.slot("ptr")
    w.owned(operation.operands[0], operands[0])
    f.store("ptr", items, slot)
    with f.loop(count) as i:
        block = with_room(w, f.load("ptr", slot), t)
        f.store("ptr", block, slot)
        at = length(w, block)
        copy_elements(w, t, more, i, block, at, "1")
        f.store("i64", plus(f, at, 1), f.offset(block, LENGTH))
    return [(f.load("ptr", slot),)]


@rule("list_insert")
def insert(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write one more element before another one; in place where nobody else holds the list."""
    t = list_type(operation.results[0].type)
    at = operands[1][0]

    def fast() -> Made:
        w.owned(operation.operands[0], operands[0])
        w.owned(operation.operands[2], operands[2])
        block = with_room(w, operands[0][0], t)
        _put(w, t, block, at, operands[2])
        return [(block,)]

    return w.guarded(operation, operands, compare(w.f, "ule", at, length(w, operands[0][0])), fast)


def _put(w: FunctionEmitter, t: ListType, block: str, at: str, item: Components) -> None:
    """Write an element before another one of a list that is held once and has room for it."""
    f, place, count = w.f, row(w, block, at, t), length(w, block)
    size = f.value(f"mul i64 {minus(f, count, at)}, {row_bytes(t)}")
    behind = f.offset(place, row_bytes(t))
    f.call("void", "@llvm.memmove.p0.p0.i64", f"ptr {behind}", f"ptr {place}", f"i64 {size}", "i1 false")
    w.write(place, [t.element], [item])
    f.store("i64", plus(f, count, 1), f.offset(block, LENGTH))


@rule("list_spread")
def spread(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write an unset slot before another one; nothing where there is no other one."""
    f, t = w.f, list_type(operation.results[0].type)
    (slots,), (at,) = operands
    w.owned(operation.operands[0], operands[0])
    slot = f.slot("ptr")
    f.store("ptr", slots, slot)
    with f.when(compare(f, "ult", at, length(w, slots)), "inside"):
        block = with_room(w, slots, t)
        _put(w, t, block, at, zeros(t.element))
        f.store("ptr", block, slot)
    return [(f.load("ptr", slot),)]


@rule("list_remove")
def remove(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the slots without one; all of them where there is no such one."""
    f, t = w.f, list_type(operation.results[0].type)
    at = operands[1][0]
    w.owned(operation.operands[0], operands[0])
    writable = list_function(w.unit.kernels, "writable", t)
    block = checked(w, f.call("ptr", writable, "ptr %context", f"ptr {operands[0][0]}"))
    with f.when(compare(f, "ult", at, length(w, block)), "inside"):
        w.release(t.element, taken_out(w, t, block, at))
    return [(block,)]


@rule("list_bounds")
def bounds(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write where a slice begins and ends, counted from the front."""
    first, last = (_inside(w.f, bound, length(w, operands[0][0])) for (bound,) in operands[1:])
    return [(first,), (most(w.f, first, last),)]


def _inside(f: LLVMFunction, bound: str, n: str) -> str:
    """Write a bound of a slice of n elements, counted from the front."""
    from_front = least(f, bound, n)
    from_end = most(f, plus(f, bound, n), 0)
    return f.value(f"select i1 {compare(f, 'slt', bound, 0)}, i64 {from_end}, i64 {from_front}")


@rule("list_part", "slots_part")
def part(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the elements of a slice; a list of slots may be shorter than its bounds."""
    f, t = w.f, list_type(operation.results[0].type)
    source = operands[0][0]
    first, last = (_inside(f, bound, length(w, source)) for (bound,) in operands[1:])
    count = most(f, minus(f, last, first), 0)
    block = made_list(w, t, count)
    copy_elements(w, t, source, first, block, "0", count)
    return [(block,)]


@rule("list_reverse")
def reverse(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the elements in the other order; in place where nobody else holds the list."""
    f, t = w.f, list_type(operation.results[0].type)
    w.owned(operation.operands[0], operands[0])
    writable = list_function(w.unit.kernels, "writable", t)
    block = checked(w, f.call("ptr", writable, "ptr %context", f"ptr {operands[0][0]}"))
    _turn(w, t, block)
    return [(block,)]


def _turn(w: FunctionEmitter, t: ListType, block: str) -> None:
    """Write that the elements of a list that is held once change places."""
    f, count = w.f, length(w, block)
    with f.loop(f.value(f"lshr i64 {count}, 1")) as i:
        ends = row(w, block, i, t), row(w, block, minus(f, count, plus(f, i, 1)), t)
        here, there = (w.read(place, t.element) for place in ends)
        w.write(ends[0], [t.element], [there])
        w.write(ends[1], [t.element], [here])


@rule("slots_reverse")
def reverse_slots(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write n slots in the other order."""
    t = list_type(operation.results[0].type)

    def fast() -> Made:
        block = _long(w, t, operands[0][0], operands[1][0], "0")
        _turn(w, t, block)
        return [(block,)]

    return w.guarded(operation, operands, may_be(w, operands[1][0]), fast)


@rule("slots_extend")
def extend_slots(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write n slots and then those of another list."""
    t = list_type(operation.results[0].type)
    (slots,), (n,), (more,) = operands

    def fast() -> Made:
        count = length(w, more)
        block = _long(w, t, slots, n, count)
        copy_elements(w, t, more, "0", block, n, count)
        return [(block,)]

    return w.guarded(operation, operands, may_be(w, n), fast)


def _long(w: FunctionEmitter, t: ListType, slots: str, n: str, more: str) -> str:
    """Write a list of n slots, unset where there are none, with room for more; return its block."""
    f = w.f
    block, there = made_list(w, t, plus(f, n, more)), least(f, n, length(w, slots))
    copy_elements(w, t, slots, "0", block, "0", there)
    _fill(w, t, block, there, n)
    return block
