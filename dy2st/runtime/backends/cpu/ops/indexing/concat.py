"""Tensors joined along an axis, new or not: copies of pieces that lie together, where loop nests have not put them."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.indexing.getitem import IndexSet
from dy2st.ops.shape.concat_split import Stack
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register, is_native
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, alone, extents, product
from dy2st.runtime.backends.cpu.ops.views import region
from dy2st.runtime.backends.cpu.vector_ops.load_store import store_element

Made = Sequence[Components]


@rule("concat", "stack")
def join(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the operands one after the other; `eval` says that their other extents differ."""
    if operation in w.joined:
        return [w.joined.pop(operation)]
    f, made_type = w.f, tensor_type(operation.results[0])
    dtype, axis = made_type.dtype, operation.attributes["axis"] % made_type.rank
    if not operands or not is_native(dtype):
        return host_rule(w, operation, operands)
    if in_register(operation.operands[0].type):
        return [_of_numbers(w, operation, operands)]
    shapes = [extents(v, c) for v, c in zip(operation.operands, operands, strict=True)]
    stacked = isinstance(operation.op, Stack)
    fine = "true"
    for shape in shapes[1:]:
        for i, (a, b) in enumerate(zip(shapes[0], shape, strict=True)):
            if a != b and (stacked or i != axis):
                fine = f.value(f"and i1 {fine}, {f.value(f'icmp eq i64 {a}, {b}')}")

    def fast() -> Made:
        length = str(len(shapes))
        if not stacked:
            length = "0"
            for shape in shapes:
                length = f.value(f"add i64 {length}, {shape[axis]}")
        made = allocate(w, dtype, [*shapes[0][:axis], length, *shapes[0][axis if stacked else axis + 1 :]])
        pieces = [product(w, [*shape[axis:], str(dtype.itemsize)]) for shape in shapes]
        whole = "0"
        for piece in pieces:
            whole = f.value(f"add i64 {whole}, {piece}")
        with f.loop(product(w, shapes[0][:axis]), hint="join") as i:
            target = f.offset(made[1], f.value(f"mul i64 {i}, {whole}"))
            for components, piece in zip(operands, pieces, strict=True):
                source = f.offset(components[1], f.value(f"mul i64 {i}, {piece}"))
                f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {source}", f"i64 {piece}", "i1 false")
                target = f.offset(target, piece)
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _of_numbers(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Components:
    dtype = tensor_type(operation.results[0]).dtype
    made = allocate(w, dtype, [str(len(operands))])
    for i, components in enumerate(operands):
        store_element(w.f, dtype, components[0], w.f.offset(made[1], i * dtype.itemsize))
    return made


def positions_in_concat(w: FunctionEmitter, group: FusedGroup, extents: Sequence[str]) -> dict[Value, StridedTensor]:
    """Write memory for what a group's results belong to (concat.py); return where each result stands in it."""
    found: dict[Value, StridedTensor] = {}
    for value in [v for v in group.results if v in w.joins]:
        write = _in_region if isinstance(w.joins[value].op, IndexSet) else _place
        place = write(w, value, w.joins[value], list(extents))
        if place is None:
            del w.joins[value]
        else:
            found[value] = place
    return found


def _in_region(w: FunctionEmitter, value: Value, write: Operation, shape: list[str]) -> StridedTensor | None:
    """Write a tensor that nobody else holds; return a region of it. None where the tensor has gaps itself."""
    base, _, *numbers = write.operands
    f, t, components = w.f, tensor_type(base), w.env[base]
    if isinstance(components, StridedTensor):
        return None
    where = region(w, base, components, write.attributes["spec"], numbers, [w.env[n] for n in numbers])
    if where is None:
        return None
    w.demand(all_of(f, where.inside, *(compare(f, "eq", a, b) for a, b in zip(where.shape, shape, strict=True))))
    made = w.env[base] = w.joined[write] = alone(w, t, components, base in w.held)
    w.held.add(base)
    return StridedTensor.of(("null", f.offset(made[1], times(f, where.first, t.dtype.itemsize)), *shape), where.strides)


def _place(w: FunctionEmitter, value: Value, join: Operation, shape: list[str]) -> StridedTensor:
    f, t, axis = w.f, tensor_type(value), join.attributes["axis"] % len(shape)
    lengths = [_known(v, axis) for v in join.operands]
    whole = [*shape[:axis], str(sum(lengths)), *shape[axis + 1 :]]
    if join not in w.joined:
        w.joined[join] = allocate(w, t.dtype, whole)
    apart = [times(f, *whole[i + 1 :]) for i in range(len(whole) - 1)] + ["1"]
    before = times(f, apart[axis], sum(lengths[: join.operands.index(value)]) * t.dtype.itemsize)
    return StridedTensor.of(("null", f.offset(w.joined[join][1], before), *shape), apart)


def _known(value: Value, axis: int) -> int:
    extent = tensor_type(value).shape[axis]
    if not isinstance(extent, int):
        raise AssertionError(f"{value} does not say how long it is along axis {axis}")
    return extent
