"""Tensors in memory: constants, extents, views that need no copy, reads and writes of a row, single elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.shape.concat_split import Squeeze
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import CONSTANTS, HEAD
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.outlined_helpers import MOST_BYTES, fixed_room, reused, room
from dy2st.runtime.backends.cpu.llvm_ir.literals import element
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    StridedTensor,
    element_kind,
    in_register,
    is_native,
    is_small,
)
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element

Made = Sequence[Components]


# ---- memory --------------------------------------------------------------------------------------------------------
def product(w: FunctionEmitter, factors: Sequence[str]) -> str:
    """Write a product of extents."""
    total, known = "", 1
    for factor in factors:
        if factor.lstrip("-").isdigit():
            known *= int(factor)
        else:
            total = w.f.value(f"mul i64 {total}, {factor}") if total else factor
    if not total:
        return str(known)
    return total if known == 1 else w.f.value(f"mul i64 {total}, {known}")


def checked_product(w: FunctionEmitter, factors: Sequence[str]) -> tuple[str, str]:
    """Write a product of numbers that are not negative; return it and whether it is one of 64 bits."""
    total, fits = "1", "true"
    for factor in factors:
        if total == "1":
            total = factor
            continue
        pair = w.f.call("{i64, i1}", "@llvm.smul.with.overflow.i64", f"i64 {total}", f"i64 {factor}")
        over = w.f.value(f"extractvalue {{i64, i1}} {pair}, 1")
        fits = w.f.value(f"and i1 {fits}, {w.f.value(f'xor i1 {over}, true')}")
        total = w.f.value(f"extractvalue {{i64, i1}} {pair}, 0")
    return total, fits


def extents(value: Value, components: Components) -> list[str]:
    """Return the extents of a tensor in memory; those that its type knows are literals."""
    shape = tensor_type(value).shape
    return [str(e) if isinstance(e, int) else c for e, c in zip(shape, components[2:], strict=True)]


def allocate(w: FunctionEmitter, dtype: DType, shape: Sequence[str]) -> Components:
    """Write an allocation of a tensor in memory, whose elements are not set."""
    size, factors = _bytes(dtype, shape)
    name = room(w.unit.kernels, len(factors)) if factors else fixed_room(w.unit.kernels, size)
    block = w.f.call("ptr", name, "ptr %context", *(f"i64 {n}" for n in (size, *factors)))
    w.demand(w.f.value(f"icmp ne ptr {block}, null"))
    return (block, w.f.offset(block, HEAD), *shape)


def allocate_unless_reused(
    w: FunctionEmitter, dtype: DType, shape: Sequence[str], old: Components
) -> tuple[Components, str]:
    """Write room for a tensor: that of another one where nobody else holds it; return it, and a block to release."""
    f, (size, factors) = w.f, _bytes(dtype, shape)
    row, name = f.slot("ptr", 2), reused(w.unit.kernels, len(factors))
    given = (f"ptr {old[0]}", f"ptr {old[1]}", f"ptr {row}", *(f"i64 {n}" for n in (size, *factors)))
    block = f.call("ptr", name, "ptr %context", *given)
    w.demand(f.value(f"icmp ne ptr {block}, null"))
    return (block, f.load("ptr", row), *shape), f.load("ptr", f.offset(row, 8))


def _bytes(dtype: DType, shape: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many bytes a tensor has: a number, and extents that it is to be multiplied by."""
    known = [int(e) for e in shape if e.isdigit()]
    return min(math.prod(known) * dtype.itemsize, 2 * MOST_BYTES), [e for e in shape if not e.isdigit()]


def allocate_bytes(w: FunctionEmitter, size: str) -> tuple[str, str]:
    """Write an allocation; return the block and its content."""
    block = w.f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {size}")
    w.demand(w.f.value(f"icmp ne ptr {block}, null"))
    return block, w.f.offset(block, HEAD)


def scratch_bytes(w: FunctionEmitter, size: str) -> tuple[str, str]:
    """Write an allocation where any bytes are asked for; return the block, else null, and its content."""
    f = w.f
    slots = [f.slot("ptr"), f.slot("ptr")]
    for slot in slots:
        f.store("ptr", "null", slot)
    with f.when(f.value(f"icmp sgt i64 {size}, 0"), "scratch"):
        for slot, value in zip(slots, allocate_bytes(w, size), strict=True):
            f.store("ptr", value, slot)
    block, content = (f.load("ptr", slot) for slot in slots)
    return block, content


def thread_count(w: FunctionEmitter) -> str:
    """Write how many threads a kernel may be split between: so many parts of scratch memory it needs."""
    w.unit.module.add("dy2st.threads", "declare i64 @dy2st.threads()")
    return w.f.call("i64", "@dy2st.threads")


def viewed(w: FunctionEmitter, value: Value, components: Components, data: str, shape: Sequence[str]) -> Components:
    """Return a tensor on the memory of another, held by the result."""
    w.owned(value, components)
    return (components[0], data, *shape)


def are_ints(values: Sequence[Value]) -> bool:
    """Return whether values can be extents; `eval` refuses others."""
    return all(isinstance(v.type, ScalarType) and v.type.kind == "int" for v in values)


# ---- constants and numbers -------------------------------------------------------------------------------------------
@rule("constant")
def constant(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a literal, or a read of the address of an array that the code is handed."""
    made = operation.results[0]
    t, array = tensor_type(made), np.ascontiguousarray(operation.attributes["value"])
    array = array.reshape(np.shape(operation.attributes["value"]))
    if in_register(t):
        return [(element(array, t.dtype),)]
    at = len(w.unit.constants)
    w.unit.constants.append(array)
    table = w.f.load("ptr", w.f.offset("%context", CONSTANTS))
    return [("null", w.f.load("ptr", w.f.offset(table, 8 * at)), *map(str, array.shape))]


@rule("dim", reads_gaps=True)
def dim(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write an extent."""
    return [(operands[0][2 + operation.attributes["axis"]],)]


@rule("item")
def item(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the one element as a number; `eval` says that there is not one."""
    (value,) = operation.operands
    t = tensor_type(value)
    if in_register(t):
        return [(number_of(w, t.dtype, operands[0][0]),)]
    if not is_native(t.dtype):
        return host_rule(w, operation, operands)
    single = w.f.value(f"icmp eq i64 {product(w, extents(value, operands[0]))}, 1")
    return w.guarded(
        operation, operands, single, lambda: [(number_of(w, t.dtype, load_element(w.f, t.dtype, operands[0][1])),)]
    )


def number_of(w: FunctionEmitter, dtype: DType, register: str) -> str:
    """Return an element as a Python number."""
    if dtype.is_bool:
        return register
    if dtype.is_floating:
        return register if dtype.name == "float64" else w.f.value(f"fpext float {register} to double")
    if dtype.name == "int64":
        return register
    return w.f.value(f"{'zext' if dtype.kind == 'u' else 'sext'} {element_kind(dtype)} {register} to i64")


# ---- views -----------------------------------------------------------------------------------------------------------
def _same_element(w: FunctionEmitter, value: Value, components: Components, made: TensorType) -> Components | None:
    """Return a tensor of one element as another of rank 0, or the other way; None where both are in memory."""
    t = tensor_type(value)
    if in_register(t) and in_register(made):
        return components
    if in_register(made):
        return (load_element(w.f, made.dtype, components[1]),)
    if in_register(t):
        new = allocate(w, made.dtype, ["1"] * made.rank)
        store_element(w.f, made.dtype, components[0], new[1])
        return new
    return None


@rule("detach", reads_gaps=True)
def detach(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the value itself."""
    return [w.owned(operation.operands[0], operands[0])]


@rule("renew")
def renew(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the new value."""
    return [w.owned(operation.operands[0], operands[0])]


@rule("full")
def full(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a tensor of rank 0; loop nests fill others."""
    return [operands[0]] if in_register(operation.results[0].type) else host_rule(w, operation, operands)


def unfilled(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write memory for a tensor that nobody fills."""
    made = tensor_type(operation.results[0])
    if operation.op.splat is not None:
        return [allocate(w, made.dtype, extents(operation.operands[0], operands[0]))]
    dims = iter(components[0] for components in operands[1:])
    shape = [next(dims) if e is None else str(e) for e in operation.attributes["shape"]]
    for extent in operands[1:]:
        w.demand(w.f.value(f"icmp ult i64 {extent[0]}, {2**40}"))
    if operands[1:]:
        w.demand(checked_product(w, [*shape, "16"])[1])
    return [allocate(w, made.dtype, shape)]


@rule("expand_dims", "squeeze", reads_gaps=True)
def relabelled(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a tensor with more, fewer or the same axes of extent 1; `eval` refuses to squeeze a longer one."""
    value, made = operation.operands[0], tensor_type(operation.results[0])
    if operation.op.can_raise([v.type for v in operation.operands], operation.attributes):
        return host_rule(w, operation, operands)
    single = _same_element(w, value, operands[0], made)
    if single is not None:
        return [single]
    shape, axes = extents(value, operands[0]), operation.attributes["axes"]
    apart = list(operands[0].strides) if isinstance(operands[0], StridedTensor) else None
    if isinstance(operation.op, Squeeze):
        kept = [i for i in range(len(shape)) if i not in [a % len(shape) for a in axes]]
        made_shape, made_apart = [shape[i] for i in kept], [apart[i] for i in kept] if apart else None
    else:
        new = [a % made.rank for a in axes]
        rest, gaps = iter(shape), iter(apart or ())
        made_shape = ["1" if i in new else next(rest) for i in range(made.rank)]
        made_apart = ["0" if i in new else next(gaps) for i in range(made.rank)] if apart else None
    result = viewed(w, value, operands[0], operands[0][1], made_shape)
    return [result if made_apart is None else StridedTensor.of(result, made_apart)]


@rule("reshape")
def reshape(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the same elements under other extents; `eval` says that their number is another."""
    if not are_ints(operation.operands[1:]):
        return host_rule(w, operation, operands)
    value, made, f = operation.operands[0], tensor_type(operation.results[0]), w.f
    dims = iter(operands[1:])
    target = [next(dims)[0] if e is None else str(e) for e in operation.attributes["shape"]]
    total = "1" if in_register(tensor_type(value)) else product(w, extents(value, operands[0]))
    if "-1" in target:
        rest = product(w, [e for e in target if e != "-1"])
        if rest == "0":
            return host_rule(w, operation, operands)
        divisor = f.call("i64", "@llvm.smax.i64", f"i64 {rest}", "i64 1")
        target[target.index("-1")] = f.value(f"sdiv i64 {total}, {divisor}")
    count, fits = checked_product(w, target)
    fine = f.value(f"and i1 {fits}, {f.value(f'icmp eq i64 {count}, {total}')}")
    for extent in target:
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp sge i64 {extent}, 0')}")

    def fast() -> Made:
        single = _same_element(w, value, operands[0], made)
        return [single if single is not None else viewed(w, value, operands[0], operands[0][1], target)]

    return w.guarded(operation, operands, fine, fast)


def index_leading(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a read of leading places: a view. Other index expressions are `eval`'s."""
    value, made, f = operation.operands[0], tensor_type(operation.results[0]), w.f
    t = tensor_type(value)
    places = leading_places(w, operation.attributes["spec"], operation.operands[1:], operands[1:])
    if places is None or in_register(t) or not is_native(t.dtype):
        return host_rule(w, operation, operands)
    shape = extents(value, operands[0])
    at, inside = _offset(w, shape, places)

    def fast() -> Made:
        address = f.offset(operands[0][1], f.value(f"mul i64 {at}, {t.dtype.itemsize}"))
        if in_register(made):
            return [(load_element(w.f, made.dtype, address),)]
        if is_small(made):
            return [w.fitted(made, ("null", address), own=False)]
        return [viewed(w, value, operands[0], address, shape[len(places) :])]

    return w.guarded(operation, operands, inside, fast)


def writable(w: FunctionEmitter, value: Value, components: Components) -> Components:
    """Return a tensor with the same elements that may be written into: the operand where nobody else holds it."""
    return alone(w, tensor_type(value), components, w.takes_to_write(value))


def alone(w: FunctionEmitter, t: TensorType, components: Components, taken: bool = True) -> Components:
    """Return a tensor that nobody else holds: the one that was `taken` over where nobody does, else a copy."""
    f = w.f
    shape = [str(e) if isinstance(e, int) else c for e, c in zip(t.shape, components[2:], strict=True)]
    kept = [f.slot("ptr"), f.slot("ptr")]
    own, copy, join = f.label("own"), f.label("copy"), f.label("join")
    single = f.call("i1", "@dy2st.unique", f"ptr {components[0]}") if taken else "false"
    f.branch(single, own, copy)
    f.start(own)
    f.store("ptr", components[0], kept[0])
    f.store("ptr", components[1], kept[1])
    f.jump(join)
    f.start(copy)
    new = allocate(w, t.dtype, shape)
    size = product(w, [*shape, str(t.dtype.itemsize)])
    f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {new[1]}", f"ptr {components[1]}", f"i64 {size}", "i1 false")
    f.store("ptr", new[0], kept[0])
    f.store("ptr", new[1], kept[1])
    if taken:
        w.release(t, components)
    f.start(join)
    return (f.load("ptr", kept[0]), f.load("ptr", kept[1]), *shape)


def leading_places(
    w: FunctionEmitter, spec: Sequence[Any], values: Sequence[Value], operands: Sequence[Components]
) -> list[str] | None:
    """Return the ints of a spec that has nothing else but whole axes behind them; None for other specs."""
    places: list[str] = []
    rest = iter(zip(values, operands, strict=True))
    for i, part in enumerate(spec):
        if part[0] in ("int", "tensor") and len(places) == i:
            if part[0] == "int" and part[1] != "?":
                places.append(str(part[1]))
                continue
            value, components = next(rest)
            if not in_register(value.type):
                return None
            whole = isinstance(value.type, ScalarType)
            places.append(components[0] if whole else number_of(w, tensor_type(value).dtype, components[0]))
        elif part != ("slice", None, None, None):
            return None
    return places if places else None


def _offset(w: FunctionEmitter, shape: Sequence[str], places: Sequence[str]) -> tuple[str, str]:
    """Return the number of the first element at leading places, and whether they are inside of their axes."""
    f = w.f
    at, inside = "0", "true"
    for extent, place in zip(shape, places, strict=False):
        behind = f.value(f"icmp slt i64 {place}, 0")
        front = f.value(f"select i1 {behind}, i64 {f.value(f'add i64 {place}, {extent}')}, i64 {place}")
        inside = f.value(f"and i1 {inside}, {f.value(f'icmp ult i64 {front}, {extent}')}")
        at = f.value(f"add i64 {f.value(f'mul i64 {at}, {extent}')}, {front}")
    return (product(w, [at, *shape[len(places) :]]), inside)
