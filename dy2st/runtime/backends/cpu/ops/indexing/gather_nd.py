"""Elements by their coordinates or by their truth: `gather_nd`, `scatter_nd_add`, `masked_select`, `nonzero`."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import bool_, int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import shared
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register, is_native
from dy2st.runtime.backends.cpu.ops.indexing.advanced_indexing import (
    IndexTerm,
    ScatteredElements,
    each_place,
    element_at,
    listed,
    masked,
    nest,
)
from dy2st.runtime.backends.cpu.ops.indexing.getitem import copy_run, guarded_by_table, write_run
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product, writable
from dy2st.runtime.backends.cpu.ops.views import StridedAxis, is_memory
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


def _coordinates(
    w: FunctionEmitter, value: Value, components: Components, indices: Value, places: Components, depth: int
) -> ScatteredElements:
    """Write where coordinates on the first axes point; each of their columns is places on one axis."""
    dtype = tensor_type(indices).dtype
    shape, number = extents(value, components), extents(indices, places)
    apart = [product(w, number[i + 1 :]) for i in range(len(number) - 1)]
    terms = [
        IndexTerm(
            dtype, w.f.offset(places[1], i * dtype.itemsize), number[:-1], apart, shape[i], product(w, shape[i + 1 :])
        )
        for i in range(depth)
    ]
    table = listed(w, terms)
    after = [StridedAxis(e, product(w, shape[i + 1 :])) for i, e in enumerate(shape) if i >= depth]
    inside = all_of(w.f, table.inside, compare(w.f, "eq", number[-1], depth))
    return ScatteredElements("0", [], table, after, inside, len(after))


@rule("gather_nd")
def gather_nd(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a copy of slices; `eval` says which coordinates are outside."""
    value, indices = operation.operands
    depth, made_type, f = operation.attributes["depth"], tensor_type(operation.results[0]), w.f
    if not is_memory(value) or not is_memory(indices) or depth == 0:
        return host_rule(w, operation, operands)
    dtype, where = made_type.dtype, _coordinates(w, value, operands[0], indices, operands[1], depth)

    def fast() -> Made:
        room = f.slot("i64") if in_register(made_type) else ""
        made = ("", room) if room else allocate(w, dtype, where.shape)
        each_place(w, where, [operands[0][1], made[1]], (), lambda g, n, x, _: copy_run(g, dtype, where, n, x))
        return [(load_element(f, dtype, room),)] if room else [made]

    return guarded_by_table(w, operation, operands, where, where.inside, fast)


@rule("scatter_nd_add")
def scatter_nd_add(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write an addition to slices, in place where nobody else holds the tensor; `eval` says what does not fit."""
    value, values, indices = operation.operands
    depth, t = operation.attributes["depth"], tensor_type(value)
    if not is_memory(value) or not is_memory(indices) or not is_memory(values) or depth == 0 or t.dtype.is_bool:
        return host_rule(w, operation, operands)
    where = _coordinates(w, value, operands[0], indices, operands[2], depth)
    pairs = zip(where.shape, extents(values, operands[1]), strict=True)
    fine = all_of(w.f, where.inside, *(compare(w.f, "eq", a, b) for a, b in pairs))
    run = product(w, [axis.extent for axis in where.after])

    def fast() -> Made:
        base = writable(w, value, operands[0])
        each_place(
            w, where, [base[1], operands[1][1]], [run], lambda g, _, x, v: write_run(w, g, t.dtype, where, x, v, True)
        )
        return [base]

    return guarded_by_table(w, operation, operands, where, fine, fast)


@rule("masked_select")
def masked_select(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a copy of the elements where the mask is true."""
    value, mask = operation.operands
    if not is_memory(value) or not is_memory(mask):
        return host_rule(w, operation, operands)
    dtype, shape = tensor_type(value).dtype, extents(value, operands[0])
    table = masked(w, mask, operands[1], shape, [product(w, shape[i + 1 :]) for i in range(len(shape))])
    where = ScatteredElements("0", [], table, [], table.inside)

    def fast() -> Made:
        made = allocate(w, dtype, where.shape)
        each_place(w, where, [operands[0][1], made[1]], (), lambda g, n, x, _: copy_run(g, dtype, where, n, x))
        return [made]

    return guarded_by_table(w, operation, operands, where, table.inside, fast)


@rule("nonzero")
def nonzero(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the coordinates of what is not zero: one run counts them, another writes them down."""
    (value,), f = operation.operands, w.f
    t = tensor_type(value)
    if in_register(t) or not is_native(t.dtype):
        return host_rule(w, operation, operands)
    shape = extents(value, operands[0])
    parameters = [("ptr", "%x"), ("ptr", "%made"), *(("i64", f"%extent.{i}") for i in range(t.rank))]

    def write(g: LLVMFunction, kept: bool) -> None:
        count = g.slot("i64")
        g.store("i64", "0", count)

        def iteration(counters: list[str]) -> None:
            number = "0"
            for i, counter in enumerate(counters):
                number = plus(g, times(g, number, f"%extent.{i}"), counter)
            element = load_element(g, t.dtype, element_at(g, "%x", number, t.dtype))
            chosen = converted(VectorType(g, w.unit.kernels, 1), element, t.dtype, bool_)
            so_far = g.load("i64", count)
            if kept:
                with g.when(chosen, "chosen"):
                    row = times(g, so_far, t.rank)
                    for i, counter in enumerate(counters):
                        g.store("i64", counter, g.offset("%made", plus(g, row, i), "i64"))
            g.store("i64", plus(g, so_far, g.value(f"zext i1 {chosen} to i64")), count)

        nest(g, [f"%extent.{i}" for i in range(t.rank)], iteration)
        g.ret("i64", g.load("i64", count))

    counting, writing = (shared(w, parameters, lambda g, k=kept: write(g, k), "i64") for kept in (False, True))
    given = [f"i64 {e}" for e in shape]
    count = f.call("i64", counting, f"ptr {operands[0][1]}", "ptr null", *given)
    made = allocate(w, int64, [count, str(t.rank)])
    f.call("i64", writing, f"ptr {operands[0][1]}", f"ptr {made[1]}", *given)
    return [made]
