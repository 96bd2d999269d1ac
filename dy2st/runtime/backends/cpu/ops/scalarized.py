"""Operations on small tensors, whose elements are registers: no memory, no loops.

What only moves elements is the op's own `eval` on an array of registers' names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.scalar_unary import Item
from dy2st.ops.core.constant import Full
from dy2st.ops.indexing.getitem import IndexAdd
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.reduce.reduction import Mean
from dy2st.ops.shape.shape import DimOf, SumTo
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.literals import element
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, kinds, known_extents, told
from dy2st.runtime.backends.cpu.ops.tensors import number_of
from dy2st.runtime.backends.cpu.vector_ops.elementwise import compute, converted, is_long
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType
from dy2st.runtime.interpreter.reference import single


def small(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write an operation that `is_in_registers`."""
    op = operation.op
    made = None if isinstance(op, (DimOf, Item)) else tensor_type(operation.results[0])
    if made is None:
        t = tensor_type(operation.operands[0])
        number = (
            number_of(w, t.dtype, operands[0][0])
            if isinstance(op, Item)
            else str(t.shape[operation.attributes["axis"]])
        )
        return [(number,)]
    if op.is_constant:
        numbers = np.asarray(operation.attributes["value"]).ravel()
        return [told(made, [element(number, made.dtype) for number in numbers])]
    if op.splat is not None:
        return [told(made, [element(op.splat, made.dtype)] * len(kinds(made)))]
    if op.is_data_movement or isinstance(op, IndexAdd):
        try:
            return (
                _moved(operation, operands)
                if op.is_data_movement
                else [told(made, _with_added(w, operation, operands))]
            )
        except (ValueError, IndexError):  # in a branch that inputs of these extents do not take: `eval` says so there
            return host_rule(w, operation, operands)
    if op.monoid:
        return [told(made, _reduced(w, operation, _array(tensor_type(operation.operands[0]), operands[0])))]
    if isinstance(op, MatMul):
        return [told(made, _product(w, operation, operands))]
    return [told(made, _elementwise(w, operation, operands))]


def _array(t: TensorType, components: Components) -> Any:
    """Return the registers of a tensor as an array of their names."""
    names = np.empty(len(components), object)
    names[:] = components
    return names.reshape(known_extents(t))


def _moved(operation: Operation, operands: list[Components]) -> list[Components]:
    """Move names as the op moves elements."""
    given = [
        v.type.extent if isinstance(v.type, ScalarType) else _array(tensor_type(v), c)
        for v, c in zip(operation.operands, operands, strict=True)
    ]
    names: Any
    if isinstance(operation.op, Full):
        names = [np.full(known_extents(tensor_type(operation.results[0])), operands[0][0], object)]
    else:
        moved = operation.op.eval(np, *given, **operation.attributes)  # type: ignore[attr-defined]
        names = (single(moved),) if len(operation.results) == 1 else moved
    return [told(v.type, list(np.ravel(n))) for v, n in zip(operation.results, names, strict=True)]


def _with_added(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> list[str]:
    """Write additions at places that are known, each at most once."""
    t, lanes, made = tensor_type(operation.results[0]), VectorType(w.f, w.module, 1), list(operands[0])
    numbers = np.arange(len(made)).reshape(known_extents(t))
    places = REGISTRY["index"].eval(np, numbers, **operation.attributes)  # type: ignore[attr-defined]
    added = np.broadcast_to(_array(tensor_type(operation.operands[1]), operands[1]), places.shape)
    for place, register in zip(places.ravel(), added.ravel(), strict=True):
        made[place] = combined(lanes, "add", t.dtype, made[place], register)
    return made


def _elementwise(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> list[str]:
    """Write an elementwise operation: one by one, or in vectors where it is long."""
    count = len(operands[0])
    dtype = tensor_type(operation.operands[0]).dtype
    width = 1
    if is_long(operation.op):
        while width < count and 2 * width <= w.unit.target.lanes(dtype.itemsize):
            width *= 2
    if width == 1:
        lanes = VectorType(w.f, w.module, 1)
        return [compute(lanes, operation, list(elements)) for elements in zip(*operands, strict=True)]
    lanes, made = VectorType(w.f, w.module, width), list[str]()
    kind = lanes.of(tensor_type(operation.results[0]).dtype)
    for start in range(0, count, width):
        packed = [_packed(lanes, tensor_type(v).dtype, c[start : start + width])
                  for v, c in zip(operation.operands, operands, strict=True)]  # fmt: skip
        vector = compute(lanes, operation, packed)
        used = range(min(width, count - start))
        made += [w.f.value(f"extractelement {kind} {vector}, i64 {i}") for i in used]
    return made


def _packed(lanes: VectorType, dtype: Any, registers: Sequence[str]) -> str:
    """Write a vector of elements; the first one fills it up."""
    kind, vector = lanes.of(dtype), lanes.spread(registers[0], dtype)
    for i, register in enumerate(registers[1:], 1):
        vector = lanes.f.value(f"insertelement {kind} {vector}, {element_kind(dtype)} {register}, i64 {i}")
    return vector


def _reduced(w: FunctionEmitter, operation: Operation, names: Any) -> list[str]:
    """Write a reduction, in the order of the elements."""
    lanes, monoid = VectorType(w.f, w.module, 1), operation.op.monoid
    source, made = tensor_type(operation.operands[0]).dtype, tensor_type(operation.results[0])
    axes = _axes(operation)
    rows = np.moveaxis(names, axes, range(len(axes))).reshape(math.prod(names.shape[a] for a in axes), -1)
    wide = [[converted(lanes, register, source, made.dtype) for register in row] for row in rows]
    totals = list(functools.reduce(
        lambda so_far, row: [combined(lanes, monoid, made.dtype, a, b) for a, b in zip(so_far, row, strict=True)], wide
    ))  # fmt: skip
    if not isinstance(operation.op, Mean):
        return totals
    divisor = element(len(rows), made.dtype)
    return [w.f.value(f"fdiv {lanes.of(made.dtype)} {total}, {divisor}") for total in totals]


def _axes(operation: Operation) -> list[int]:
    """Return the axes that a reduction takes away or makes 1."""
    if not isinstance(operation.op, SumTo):
        return sorted(operation.attributes["axis"])
    shape, kept = (tensor_type(v).shape for v in (operation.operands[0], operation.results[0]))
    lead = len(shape) - len(kept)
    return [i for i, e in enumerate(shape) if i < lead or (kept[i - lead] == 1 and e != 1)]


def _product(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> list[str]:
    """Write a product of matrices, or of a batch of them."""
    x, y = (_array(tensor_type(v), c) for v, c in zip(operation.operands, operands, strict=True))
    x = x.swapaxes(-1, -2) if operation.attributes["transpose_x"] else x
    y = y.swapaxes(-1, -2) if operation.attributes["transpose_y"] else y
    dtype, lanes = tensor_type(operation.results[0]).dtype, VectorType(w.f, w.module, 1)
    kind, letter = lanes.of(dtype), "f" if dtype.is_floating else ""

    def dot(row: Any, column: Any) -> str:
        total = w.f.value(f"{letter}mul {kind} {row[0]}, {column[0]}")
        for a, b in zip(row[1:], column[1:], strict=True):
            if dtype.is_floating and not w.module.strict:
                total = lanes.intrinsic("fmuladd", dtype, a, b, total)
            else:
                product = w.f.value(f"{letter}mul {kind} {a}, {b}")
                total = w.f.value(f"{letter}add {kind} {total}, {product}")
        return total

    made: list[str] = []
    for batch in np.ndindex(*x.shape[:-2]):
        made += [dot(row, column) for row in x[batch] for column in y[batch].T]
    return made
