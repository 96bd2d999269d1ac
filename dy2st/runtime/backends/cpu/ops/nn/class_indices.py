"""`class_places`, and `keep_at` along other axes than the last one, where it is part of a loop nest."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import int32
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import clear
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, any_of, compare, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, in_register, is_native
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, are_ints, extents, product
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element

Made = Sequence[Components]


@rule("class_places")
def class_places(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the labels as places; `eval` says which of them is no class."""
    labels, f = operation.operands[0], w.f
    t = tensor_type(labels)
    if in_register(t) or not is_native(t.dtype) or not are_ints(operation.operands[1:]):
        return host_rule(w, operation, operands)
    shape, (classes,) = extents(labels, operands[0]), operands[1]
    made = allocate(w, int32, shape)
    inside = f.slot("i1")
    f.store("i1", "true", inside)
    with f.loop(product(w, shape), hint="label") as i:
        number = load_element(f, t.dtype, f.offset(operands[0][1], i, f"[{t.dtype.itemsize} x i8]"))
        if t.dtype.bits != 64:
            number = f.value(f"{'zext' if t.dtype.kind == 'u' else 'sext'} {element_kind(t.dtype)} {number} to i64")
        ignored = compare(f, "eq", number, operation.attributes["ignore_index"])
        fine = any_of(f, ignored, compare(f, "ult", number, classes))
        f.store("i1", all_of(f, f.load("i1", inside), fine), inside)
        place = f.value(f"select i1 {ignored}, i64 -1, i64 {number}")
        f.store("i32", f.value(f"trunc i64 {place} to i32"), f.offset(made[1], i, "i32"))
    return w.guarded(operation, operands, f.load("i1", inside), lambda: [made])


@rule("keep_at")
def keep_at(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write zeros and the elements that are kept; `eval` takes shapes that broadcast."""
    (value, places), f = operation.operands, w.f
    t, axis = tensor_type(value), operation.attributes["axis"]
    if in_register(t) or not is_native(t.dtype) or tensor_type(places).dtype is not int32:
        return host_rule(w, operation, operands)
    shape, element = extents(value, operands[0]), f"[{t.dtype.itemsize} x i8]"
    wanted = [*shape[:axis], "1", *shape[axis + 1 :]]
    alike = [compare(f, "eq", a, b) for a, b in zip(extents(places, operands[1]), wanted, strict=True)]

    def fast() -> Made:
        made = allocate(w, t.dtype, shape)
        clear(w, made[1], product(w, [*shape, str(t.dtype.itemsize)]))
        inner = product(w, shape[axis + 1 :])
        with f.loop(product(w, shape[:axis]), hint="outer") as i, f.loop(inner, hint="inner") as j:
            here = f.load("i32", f.offset(operands[1][1], plus(f, times(f, i, inner), j), "i32"))
            place = f.value(f"sext i32 {here} to i64")
            with f.when(compare(f, "ult", place, shape[axis])):
                at = plus(f, times(f, plus(f, times(f, i, shape[axis]), place), inner), j)
                register = load_element(f, t.dtype, f.offset(operands[0][1], at, element))
                store_element(f, t.dtype, register, f.offset(made[1], at, element))
        return [made]

    return w.guarded(operation, operands, all_of(f, *alike), fast)
