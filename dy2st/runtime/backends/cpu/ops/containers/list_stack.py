"""Lists of tensors made one tensor, and a tensor cut into the slots of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ListType, TensorType, VariantType
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    alternative,
    as_part,
    in_register,
    is_native,
    kinds,
    zeros,
)
from dy2st.runtime.backends.cpu.ops.containers.lists import length, list_type, made_list, row
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.ops.views import is_memory
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element

Made = Sequence[Components]


# ---- one tensor of many ----------------------------------------------------------------------------------------------
@rule("list_stack", "list_concat")
def join(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the elements side by side or end to end; `eval` says that extents differ, or that there is no element."""
    t, (block,), f = list_type(operation.operands[0].type), operands[0], w.f
    element = t.element
    if not isinstance(element, TensorType) or not is_native(element.dtype):
        return host_rule(w, operation, operands)
    count = length(w, block)
    if in_register(element):
        some = compare(f, "sgt", count, 0)
        return w.guarded(operation, operands, some, lambda: [_of_numbers(w, element, t, block, count)])
    axis = operation.attributes.get("axis")
    shape, total, fine = _common_extents(w, t, block, axis)

    def fast() -> Made:
        extents = [f.load("i64", slot) for slot in shape]
        size = str(element.dtype.itemsize)
        outside = product(w, extents[: axis or 0])
        whole = [count, *extents] if axis is None else [*extents[:axis], f.load("i64", total), *extents[axis + 1 :]]
        made = allocate(w, element.dtype, whole)
        apart, at = product(w, [*whole[axis or 0 :], size]), f.slot("ptr")
        f.store("ptr", made[1], at)
        with f.loop(count, hint="join") as i:
            components = w.read(row(w, block, i, t), as_part(element))
            piece = product(w, [*_extents(element, components)[axis or 0 :], size])
            there = f.load("ptr", at)
            with f.loop(outside, hint="piece") as o:
                target = f.offset(there, times(f, o, apart))
                source = f.offset(components[1], times(f, o, piece))
                f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {source}", f"i64 {piece}", "i1 false")
            f.store("ptr", f.offset(there, piece), at)
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _extents(t: TensorType, components: Components) -> list[str]:
    return [str(e) if isinstance(e, int) else c for e, c in zip(t.shape, components[2:], strict=True)]


def _common_extents(w: FunctionEmitter, t: ListType, block: str, axis: int | None) -> tuple[list[str], str, str]:
    """Write a look at all elements; return slots of their extents and of the sum along `axis`, and whether they fit."""
    f, element = w.f, t.element
    assert isinstance(element, TensorType)
    shape, total, fits = [f.slot("i64") for _ in element.shape], f.slot("i64"), f.slot("i1")
    count = length(w, block)
    f.store("i1", compare(f, "sgt", count, 0), fits)
    f.store("i64", "0", total)
    with f.loop(count, hint="look") as i:
        found = _extents(element, w.read(row(w, block, i, t), as_part(element)))
        with f.when(compare(f, "eq", i, 0), "first"):
            for slot, extent in zip(shape, found, strict=True):
                f.store("i64", extent, slot)
        same = f.load("i1", fits)
        for at, (slot, extent) in enumerate(zip(shape, found, strict=True)):
            if at != axis and not extent.isdigit():
                same = all_of(f, same, compare(f, "eq", f.load("i64", slot), extent))
        f.store("i1", same, fits)
        if axis is not None:
            f.store("i64", plus(f, f.load("i64", total), found[axis]), total)
    return shape, total, f.load("i1", fits)


def _of_numbers(w: FunctionEmitter, element: TensorType, t: ListType, block: str, count: str) -> Components:
    f, dtype = w.f, element.dtype
    made = allocate(w, dtype, [count])
    with f.loop(count, hint="join") as i:
        (number,) = w.read(row(w, block, i, t), element)
        store_element(f, dtype, number, f.offset(made[1], times(f, i, dtype.itemsize)))
    return made


@rule("list_extents")
def extents_along(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the extent of each element along an axis into a vector."""
    f, (block,), t = w.f, operands[0], list_type(operation.operands[0].type)
    element = t.element
    assert isinstance(element, TensorType)
    count = length(w, block)
    made = allocate(w, int64, [count])
    with f.loop(count, hint="extents") as i:
        found = _extents(element, w.read(row(w, block, i, t), as_part(element)))
        store_element(f, int64, found[operation.attributes["axis"]], f.offset(made[1], times(f, i, 8)))
    return [made]


# ---- slots of one tensor ---------------------------------------------------------------------------------------------
@rule("list_unstack")
def unstack(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the slices along the first axis into the slots of a list, as views."""
    f, value = w.f, operation.operands[0]
    if not is_memory(value):
        return host_rule(w, operation, operands)
    count, *rest = extents(value, operands[0])
    piece = product(w, [*rest, str(tensor_type(value).dtype.itemsize)])

    def part(i: str) -> tuple[str, list[str]]:
        return f.offset(operands[0][1], times(f, i, piece)), rest

    return [_slots(w, operation, operands[0], count, part)]


@rule("list_split")
def split(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the parts along the first axis into the slots of a list, as views.

    Along other axes `eval` copies them; it also says which part is not there.
    """
    f, (value, lengths) = w.f, operation.operands
    if operation.attributes["axis"] != 0 or not is_memory(value) or not is_memory(lengths):
        return host_rule(w, operation, operands)
    whole, *rest = extents(value, operands[0])
    count, left, fits = extents(lengths, operands[1])[0], f.slot("i64"), f.slot("i1")
    f.store("i64", whole, left)
    f.store("i1", "true", fits)

    def extent(i: str) -> str:
        return load_element(f, int64, f.offset(operands[1][1], times(f, i, 8)))

    with f.loop(count, hint="look") as i:
        f.store("i1", all_of(f, f.load("i1", fits), compare(f, "ule", extent(i), f.load("i64", left))), fits)
        f.store("i64", minus(f, f.load("i64", left), extent(i)), left)

    def fast() -> Made:
        piece, at = product(w, [*rest, str(tensor_type(value).dtype.itemsize)]), f.slot("ptr")
        f.store("ptr", operands[0][1], at)

        def part(i: str) -> tuple[str, list[str]]:
            data, own = f.load("ptr", at), extent(i)
            f.store("ptr", f.offset(data, times(f, own, piece)), at)
            return data, [own, *rest]

        return [_slots(w, operation, operands[0], count, part)]

    return w.guarded(operation, operands, f.load("i1", fits), fast)


def _slots(w: FunctionEmitter, operation: Operation, source: Components, count: str,
           part: Callable[[str], tuple[str, list[str]]]) -> Components:  # fmt: skip
    """Write a list of optionals that hold parts of a tensor: what `part` gives is where one begins, and its extents."""
    f, t, value = w.f, list_type(operation.results[0].type), operation.operands[0]
    slot = t.element
    assert isinstance(slot, VariantType)
    block = made_list(w, t, count)
    with f.loop(count, hint="slots") as i:
        data, shape = part(i)
        w.write(row(w, block, i, t), [slot], [_held(w, slot, value, source, data, shape)])
    return (block,)


def _held(
    w: FunctionEmitter, slot: VariantType, value: Value, source: Components, data: str, shape: list[str]
) -> Components:
    """Return the components of an optional that holds a part of a tensor."""
    if not shape:
        part: Components = (load_element(w.f, tensor_type(value).dtype, data),)
    else:
        w.retain(value.type, source)
        part = (source[0], data, *shape)
    made = ["1", *zeros(slot)[1:]]
    made[alternative(slot, 1)] = part
    assert len(made) == len(kinds(slot))
    return tuple(made)
