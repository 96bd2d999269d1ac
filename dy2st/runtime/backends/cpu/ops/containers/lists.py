"""Lists: blocks that grow in place where they are held once."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ListType, Type
from dy2st.ops.control.list_cotangents import MOST_SLOTS
from dy2st.runtime.backends.cpu.allocator.list_functions import CAPACITY, LENGTH, STORAGE, list_function, row_bytes
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.outlined_helpers import room
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, as_part
from dy2st.runtime.backends.cpu.ops.registry import rule

Made = Sequence[Components]


def list_type(t: Type) -> ListType:
    """Return the type of a list, whose elements stand inside of it; TypeError for any other."""
    if not isinstance(t, ListType):
        raise TypeError(f"a list is needed here, not {t}")
    return ListType(as_part(t.element))


def length(w: FunctionEmitter, block: str) -> str:
    """Write the number of elements."""
    return w.f.load("i64", w.f.offset(block, LENGTH))


def row(w: FunctionEmitter, block: str, at: str, t: ListType) -> str:
    """Write the address of an element."""
    storage = w.f.load("ptr", w.f.offset(block, STORAGE))
    return w.f.offset(w.f.offset(storage, HEAD), w.f.value(f"mul i64 {at}, {row_bytes(t)}"))


def may_be(w: FunctionEmitter, number: str) -> str:
    """Write whether a list may have a slot of this number, or so many of them; `eval` says that it may not."""
    return compare(w.f, "ult", number, MOST_SLOTS)


def checked(w: FunctionEmitter, block: str) -> str:
    """Return a block, after writing that the interpreter takes over where there was no memory for it."""
    w.demand(w.f.value(f"icmp ne ptr {block}, null"))
    return block


@rule("list_new", carries=True)
def new(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a list of the operands."""
    t = list_type(operation.results[0].type)
    block = made_list(w, t, str(len(operands)))
    for i, (value, components) in enumerate(zip(operation.operands, operands, strict=True)):
        w.retain(value.type, components)
        w.write(row(w, block, str(i), t), [t.element], [components])
    return [(block,)]


def made_list(w: FunctionEmitter, t: ListType, count: str) -> str:
    """Write a list of so many elements, which are not set; return its block."""
    f = w.f
    block = checked(w, f.call("ptr", "@dy2st.allocate", "ptr %context", "i64 24"))
    given = ("ptr %context", f"i64 {row_bytes(t)}", f"i64 {count}")
    storage = checked(w, f.call("ptr", room(w.unit.kernels, 1), *given))
    f.store("i64", count, f.offset(block, LENGTH))
    f.store("i64", count, f.offset(block, CAPACITY))
    f.store("ptr", storage, f.offset(block, STORAGE))
    return block


@rule("list_len")
def count(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the number of elements."""
    return [(length(w, operands[0][0]),)]


def with_room(w: FunctionEmitter, block: str, t: ListType) -> str:
    """Write the address of a list that is held once and has room for one element more: mostly the list itself."""
    f, slot = w.f, w.f.slot("ptr")
    f.store("ptr", block, slot)
    alone = f.value(f"icmp eq i64 {f.load('i64', block)}, 1")
    room = f.value(f"icmp slt i64 {length(w, block)}, {f.load('i64', f.offset(block, CAPACITY))}")
    with f.when(f.value(f"xor i1 {f.value(f'and i1 {alone}, {room}')}, true"), "grow"):
        grown = list_function(w.unit.kernels, "grown", t)
        f.store("ptr", checked(w, f.call("ptr", grown, "ptr %context", f"ptr {block}")), slot)
    return f.load("ptr", slot)


@rule("list_append", carries=True)
def append(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write one more element; in place where nobody else holds the list."""
    f, t = w.f, list_type(operation.results[0].type)
    items, item = operation.operands
    w.owned(items, operands[0])
    w.owned(item, operands[1])
    block = with_room(w, operands[0][0], t)
    at = length(w, block)
    w.write(row(w, block, at, t), [t.element], [operands[1]])
    f.store("i64", f.value(f"add i64 {at}, 1"), f.offset(block, LENGTH))
    return [(block,)]


def _place(w: FunctionEmitter, block: str, number: str) -> tuple[str, str]:
    """Return the place of an element that may be counted from the end, and whether there is one."""
    f, n = w.f, length(w, block)
    behind = f.value(f"icmp slt i64 {number}, 0")
    at = f.value(f"select i1 {behind}, i64 {f.value(f'add i64 {number}, {n}')}, i64 {number}")
    return at, f.value(f"icmp ult i64 {at}, {n}")


@rule("list_index")
def index(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a place counted from the front; `eval` says that there is none."""
    at, inside = _place(w, operands[0][0], operands[1][0])
    return w.guarded(operation, operands, inside, lambda: [(at,)])


@rule("list_get", carries=True)
def get(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a read of one element; `eval` says that there is none."""
    t = list_type(operation.operands[0].type)
    at, inside = _place(w, operands[0][0], operands[1][0])

    def fast() -> Made:
        components = w.read(row(w, operands[0][0], at, t), t.element)
        w.retain(t.element, components)
        return [components]

    return w.guarded(operation, operands, inside, fast)


@rule("list_pop", carries=True)
def pop(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the list without one element, and that element; `eval` says that there is none."""
    f, items = w.f, operation.operands[0]
    t = list_type(items.type)
    at, inside = _place(w, operands[0][0], operands[1][0])

    def fast() -> Made:
        w.owned(items, operands[0])
        block = checked(
            w, f.call("ptr", list_function(w.unit.kernels, "writable", t), "ptr %context", f"ptr {operands[0][0]}")
        )
        return [(block,), taken_out(w, t, block, at)]

    return w.guarded(operation, operands, inside, fast)


def taken_out(w: FunctionEmitter, t: ListType, block: str, at: str) -> Components:
    """Write a list that is held once without one element; return that element, which the caller holds."""
    f, place = w.f, row(w, block, at, t)
    components = w.read(place, t.element)
    left = f.value(f"sub i64 {length(w, block)}, 1")
    size = f.value(f"mul i64 {f.value(f'sub i64 {left}, {at}')}, {row_bytes(t)}")
    behind = f.offset(place, row_bytes(t))
    f.call("void", "@llvm.memmove.p0.p0.i64", f"ptr {place}", f"ptr {behind}", f"i64 {size}", "i1 false")
    f.store("i64", left, f.offset(block, LENGTH))
    return components


@rule("list_set", carries=True)
def put(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the list with another element at one place; `eval` says that there is none."""
    f = w.f
    items, item = operation.operands[0], _item(operation)
    t = list_type(items.type)
    at, inside = _place(w, operands[0][0], operands[1][0])

    def fast() -> Made:
        w.owned(items, operands[0])
        w.owned(item, operands[2])
        block = checked(
            w, f.call("ptr", list_function(w.unit.kernels, "writable", t), "ptr %context", f"ptr {operands[0][0]}")
        )
        place = row(w, block, at, t)
        old = w.read(place, t.element)
        w.write(place, [t.element], [operands[2]])
        w.release(t.element, old)
        return [(block,)]

    return w.guarded(operation, operands, inside, fast)


def _item(operation: Operation) -> Value:
    return operation.operands[2]
