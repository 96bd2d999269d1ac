"""Slices at places that a tensor gives: `take`, `x[indices]`, and their transposes, which add there."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import adding
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, in_register, is_native
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, extents, product, writable
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


def counted(w: FunctionEmitter, value: Value, components: Components, extent: str) -> tuple[str, str, str, str]:
    """Write the places counted from the front; return their block, address and number, and whether all are inside."""
    f, t = w.f, tensor_type(value)
    count = "1" if in_register(t) else product(w, extents(value, components))
    block, room = allocate_bytes(w, product(w, [count, "8"]))
    inside = f.slot("i1")
    f.store("i1", "true", inside)
    with f.loop(count, hint="place") as i:
        number = components[0]
        if not in_register(t):
            number = load_element(w.f, t.dtype, f.offset(components[1], i, f"[{t.dtype.itemsize} x i8]"))
        if t.dtype.bits != 64:
            number = f.value(f"{'zext' if t.dtype.kind == 'u' else 'sext'} {element_kind(t.dtype)} {number} to i64")
        behind = f.value(f"icmp slt i64 {number}, 0")
        front = f.value(f"select i1 {behind}, i64 {f.value(f'add i64 {number}, {extent}')}, i64 {number}")
        fine = f.value(f"icmp ult i64 {front}, {extent}")
        f.store("i1", f.value(f"and i1 {f.load('i1', inside)}, {fine}"), inside)
        f.store("i64", front, f.offset(room, i, "i64"))
    return block, room, count, f.load("i1", inside)


@rule("take")
def take(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a copy of slices; `eval` says which place is outside."""
    value, places = operation.operands
    f, t, made_type = w.f, tensor_type(value), tensor_type(operation.results[0])
    if not is_native(t.dtype) or in_register(t):
        return host_rule(w, operation, operands)
    axis, shape = operation.attributes["axis"] % t.rank, extents(value, operands[0])
    block, at, count, inside = counted(w, places, operands[1], shape[axis])

    def fast() -> Made:
        number = [] if in_register(tensor_type(places)) else extents(places, operands[1])
        one = product(w, [*shape[axis + 1 :], str(t.dtype.itemsize)])
        if in_register(made_type):
            address = f.offset(operands[0][1], f.value(f"mul i64 {f.load('i64', at)}, {t.dtype.itemsize}"))
            return [(load_element(w.f, t.dtype, address),)]
        made = allocate(w, t.dtype, [*shape[:axis], *number, *shape[axis + 1 :]])
        with f.loop(product(w, shape[:axis]), hint="outer") as i, f.loop(count, hint="take") as j:
            source = f.value(
                f"add i64 {f.value(f'mul i64 {i}, {shape[axis]}')}, {f.load('i64', f.offset(at, j, 'i64'))}"
            )
            target = f.value(f"add i64 {f.value(f'mul i64 {i}, {count}')}, {j}")
            addresses = [
                f.offset(base, f.value(f"mul i64 {place}, {one}"))
                for base, place in ((made[1], target), (operands[0][1], source))
            ]
            f.call("void", "@llvm.memcpy.p0.p0.i64", *(f"ptr {a}" for a in addresses), f"i64 {one}", "i1 false")
        return [made]

    results = w.guarded(operation, operands, inside, fast)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return results


@rule("take_add")
def take_add(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write an addition to slices, in place where nobody else holds the tensor; `eval` says what does not fit."""
    value, values, places = operation.operands
    f, t = w.f, tensor_type(value)
    if not is_native(t.dtype) or in_register(t) or in_register(tensor_type(values)):
        return host_rule(w, operation, operands)
    axis, shape = operation.attributes["axis"] % t.rank, extents(value, operands[0])
    block, at, count, fine = counted(w, places, operands[2], shape[axis])
    number = [] if in_register(tensor_type(places)) else extents(places, operands[2])
    for a, b in zip([*shape[:axis], *number, *shape[axis + 1 :]], extents(values, operands[1]), strict=True):
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp eq i64 {a}, {b}')}")

    def fast() -> Made:
        base, add = writable(w, value, operands[0]), adding(w, t.dtype)
        one = product(w, shape[axis + 1 :])
        with f.loop(product(w, shape[:axis]), hint="outer") as i, f.loop(count, hint="put") as j:
            target = f.value(
                f"add i64 {f.value(f'mul i64 {i}, {shape[axis]}')}, {f.load('i64', f.offset(at, j, 'i64'))}"
            )
            source = f.value(f"add i64 {f.value(f'mul i64 {i}, {count}')}, {j}")
            to, of = (f.value(f"mul i64 {place}, {one}") for place in (target, source))
            if one == "1":
                add_one(w, t.dtype, base[1], to, operands[1][1], of)
            else:
                element = f"[{t.dtype.itemsize} x i8]"
                rows = f.offset(base[1], to, element), f.offset(operands[1][1], of, element)
                f.call("void", add, *(f"ptr {row}" for row in rows), f"i64 {one}")
        return [base]

    results = w.guarded(operation, operands, fine, fast)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return results


def add_one(w: FunctionEmitter, dtype: DType, base: str, at: str, values: str, source: str) -> None:
    """Write the addition of element `source` of `values` to element `at` of `base`."""
    kind = f"[{dtype.itemsize} x i8]"
    place = w.f.offset(base, at, kind)
    so_far, more = load_element(w.f, dtype, place), load_element(w.f, dtype, w.f.offset(values, source, kind))
    store_element(w.f, dtype, combined(VectorType(w.f, w.module, 1), "add", dtype, so_far, more), place)
