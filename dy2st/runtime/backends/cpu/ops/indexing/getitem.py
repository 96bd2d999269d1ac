"""Index expressions: `index`, `index_set`, `index_add`, `index_last`. Ints and slices are views.py's and setitem.py's.

Here are integer tensors and masks: elements are copied from, or to, the places that they name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.indexing.getitem import IndexAdd
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import adding, fill
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, negation, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register
from dy2st.runtime.backends.cpu.ops.indexing.advanced_indexing import (
    ScatteredElements,
    each_place,
    element_at,
    scattered,
)
from dy2st.runtime.backends.cpu.ops.indexing.setitem import write_region
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, extents, product, writable
from dy2st.runtime.backends.cpu.ops.views import index as index_view
from dy2st.runtime.backends.cpu.ops.views import is_memory, region
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


def _is_scattered(spec: Sequence[Any], values: Sequence[Value]) -> bool:
    """Return whether a spec has a mask, or an integer tensor of rank 1 or more."""
    rest = iter(values)
    for part in spec:
        if part[0] == "mask":
            return True
        if part[0] == "tensor":
            if not in_register(next(rest).type):
                return True
            continue
        for number in part[1:]:
            if number == "?":
                next(rest)
    return False


@rule("index", reads_gaps=True)
def index(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a view, or a copy where the tensor is written while the view is needed, or where tensors name elements."""
    made, (result,) = _index(w, operation, operands), operation.results
    if result not in w.copies:
        return made
    copy = w.copied(result, made[0])
    w.release(result.type, made[0])
    return [copy]


def _index(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a view, or a copy of the elements that tensors name; `eval` says which is outside."""
    value, spec = operation.operands[0], operation.attributes["spec"]
    if not _is_scattered(spec, operation.operands[1:]) or not is_memory(value):
        return index_view(w, operation, operands)
    if any(isinstance(c, StridedTensor) for c in operands[1:]):
        return _on_dense_places(w, operation, operands)
    where = scattered(w, value, operands[0], spec, operation.operands[1:], operands[1:])
    if where is None:
        return index_view(w, operation, operands)
    dtype = tensor_type(value).dtype

    def fast() -> Made:
        made = allocate(w, dtype, where.shape)
        each_place(w, where, [operands[0][1], made[1]], (), lambda f, n, x, _: copy_run(f, dtype, where, n, x))
        return [made]

    return guarded_by_table(w, operation, operands, where, where.inside, fast)


def _on_dense_places(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the read with copies of the tensors in the index expression that have gaps."""
    pairs = list(zip(operation.operands[1:], operands[1:], strict=True))
    dense = [w.copied(v, c) if isinstance(c, StridedTensor) else c for v, c in pairs]
    made = _index(w, operation, [operands[0], *dense])
    for (value, given), mine in zip(pairs, dense, strict=True):
        if mine is not given:
            w.release(value.type, mine)
    return made


def copy_run(f: LLVMFunction, dtype: DType, where: ScatteredElements, number: str, place: str) -> None:
    """Write a copy of a run of elements from its place in %p0 to its number in %p1."""
    to, source = element_at(f, "%p1", number, dtype), element_at(f, "%p0", place, dtype)
    if where.whole:
        size = times(f, "%run", dtype.itemsize)
        f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {source}", f"i64 {size}", "i1 false")
    else:
        store_element(f, dtype, load_element(f, dtype, source), to)


def guarded_by_table(
    w: FunctionEmitter,
    operation: Operation,
    operands: list[Components],
    where: ScatteredElements,
    condition: str,
    fast: Any,
) -> Made:
    """Write `fast` where a condition holds, else `eval` on tensors without gaps; let go of the table."""
    if any(isinstance(c, StridedTensor) for c in operands):
        with w.unlikely(negation(w.f, condition), "wrong"):
            pairs = zip(operation.operands, operands, strict=True)
            host_rule(w, operation, [w.copied(v, c) if isinstance(c, StridedTensor) else c for v, c in pairs])
            w.demand("false")
        results = fast()
    else:
        results = w.guarded(operation, operands, condition, fast)
    w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {where.table.block}")
    return results


# ---- writes ----------------------------------------------------------------------------------------------------------
@rule("index_set", "index_add")
def write(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write elements to places, or add them there, one after the other; `eval` says what is outside or does not fit."""
    value, new, *values = operation.operands
    spec, t, u = operation.attributes["spec"], tensor_type(value), tensor_type(new)
    if not _is_scattered(spec, values) or not is_memory(value) or t.dtype is not u.dtype:
        return write_region(w, operation, operands)
    add = isinstance(operation.op, IndexAdd)
    where = None if add and t.dtype.is_bool else scattered(w, value, operands[0], spec, values, operands[2:])
    fits = None if where is None else _value_strides(w, where, new, operands[1])
    if where is None or fits is None:
        return host_rule(w, operation, operands)
    apart, fine, source = fits

    def fast() -> Made:
        base = writable(w, value, operands[0])
        each_place(w, where, [base[1], source], apart, lambda f, _, x, v: write_run(w, f, t.dtype, where, x, v, add))
        return [base]

    return guarded_by_table(w, operation, operands, where, all_of(w.f, where.inside, fine), fast)


def write_run(
    w: FunctionEmitter, f: LLVMFunction, dtype: DType, where: ScatteredElements, place: str, source: str, add: bool
) -> None:
    """Write a run of the elements of %p1 to its place in %p0, or add it there."""
    to, of = element_at(f, "%p0", place, dtype), element_at(f, "%p1", source, dtype)
    if where.whole and not add:
        size = times(f, "%run", dtype.itemsize)
        f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {of}", f"i64 {size}", "i1 false")
        return
    if where.whole:
        f.call("void", adding(w, dtype), f"ptr {to}", f"ptr {of}", "i64 %run")
        return
    with f.loop("%run", hint="run") as i:
        room = element_at(f, to, i, dtype)
        number = load_element(f, dtype, element_at(f, of, i, dtype))
        if add:
            number = combined(VectorType(f, w.unit.kernels, 1), "add", dtype, load_element(f, dtype, room), number)
        store_element(f, dtype, number, room)


def _value_strides(
    w: FunctionEmitter, where: ScatteredElements, new: Value, components: Components
) -> tuple[list[str], str, str] | None:
    """Write how far the axes of a value are apart, broadcast to the places, whether it fits, and where it stands.

    None where it is repeated along some of the axes of a table but not along all.
    """
    u, f = tensor_type(new), w.f
    if in_register(u):
        where.whole = 0
        room = f.slot("i64")
        store_element(f, u.dtype, components[0], room)
        return [], "true", room
    shape, wanted = extents(new, components), where.shape
    if len(shape) > len(wanted):
        return None
    pairs = list(zip(["1"] * (len(wanted) - len(shape)) + shape, wanted, strict=True))
    repeated = [have == "1" and want != "1" for have, want in pairs]
    fine = all_of(f, "true", *(compare(f, "eq", a, b) for (a, b), r in zip(pairs, repeated, strict=True) if not r))
    steps = ["0" if r else product(w, [have for have, _ in pairs[i + 1 :]]) for i, r in enumerate(repeated)]
    start, end = len(where.before), len(where.before) + len(where.table.shape)
    listed = [i for i in range(start, end) if wanted[i] != "1"]
    if any(repeated[i] for i in listed) and not all(repeated[i] for i in listed):
        return None
    if any(repeated[len(wanted) - where.whole :]):
        where.whole = 0
    looped = len(where.after) - where.whole
    return [*steps[:start], steps[listed[-1]] if listed else "0", *steps[end : end + looped]], fine, components[1]


@rule("index_last")
def index_last(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write for each place whether none after it is the same: two runs over a table of who came last."""
    value, f = operation.operands[0], w.f
    spec, values, made_type = operation.attributes["spec"], operation.operands[1:], tensor_type(operation.results[0])
    if not is_memory(value):
        return host_rule(w, operation, operands)
    if not _is_scattered(spec, values):
        return _all_true(w, operation, operands)
    where = scattered(w, value, operands[0], spec, values, operands[1:])
    if where is None:
        return host_rule(w, operation, operands)
    where.whole = 0

    def fast() -> Made:
        made = allocate(w, made_type.dtype, where.shape)
        size = product(w, extents(value, operands[0]))
        block, latest = allocate_bytes(w, product(w, [size, "8"]))
        fill(w, int64, latest, size, "-1")

        def note(g: LLVMFunction, number: str, place: str, _: str) -> None:
            g.store("i64", number, g.offset("%p0", place, "i64"))

        def look(g: LLVMFunction, number: str, place: str, _: str) -> None:
            last = compare(g, "eq", g.load("i64", g.offset("%p0", place, "i64")), number)
            store_element(g, made_type.dtype, last, g.offset("%p1", number))

        each_place(w, where, [latest, made[1]], (), note)
        each_place(w, where, [latest, made[1]], (), look)
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
        return [made]

    return guarded_by_table(w, operation, operands, where, where.inside, fast)


def _all_true(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the answer for index expressions that name no element twice."""
    value, made_type = operation.operands[0], tensor_type(operation.results[0])
    where = region(w, value, operands[0], operation.attributes["spec"], operation.operands[1:], operands[1:])
    if where is None:
        return host_rule(w, operation, operands)

    def fast() -> Made:
        if in_register(made_type):
            return [("true",)]
        made = allocate(w, made_type.dtype, where.shape)
        fill(w, made_type.dtype, made[1], product(w, where.shape), "true")
        return [made]

    return w.guarded(operation, operands, where.inside, fast)
