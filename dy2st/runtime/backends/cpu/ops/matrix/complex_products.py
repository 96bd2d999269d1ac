"""Products of complex numbers along axes, whole and running: pairs of floats, in NumPy's order."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.elementwise.complex import PART_OF
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind
from dy2st.runtime.backends.cpu.ops.matrix.scans import around, cumulative, run_lines
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents

Made = Sequence[Components]


def is_complex(value: Value) -> bool:
    """Return whether a value is a tensor of complex numbers in memory that there are parts of."""
    return isinstance(value.type, TensorType) and value.type.dtype in PART_OF and value.type.rank > 0


@rule("cumprod")
def running(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write running products."""
    (value,), attributes = operation.operands, operation.attributes
    if not is_complex(value) or attributes.get("exclusive", False):
        return cumulative(w, operation, operands)
    t, shape = tensor_type(value), extents(value, operands[0])
    made, backwards = allocate(w, t.dtype, shape), bool(attributes["reverse"])
    sizes = around(w, shape, attributes["axis"] % t.rank)

    def write(_: FunctionEmitter, f: LLVMFunction) -> None:
        _lines(f, t.dtype, backwards, at_end=False)

    name = f"cumprod.{t.dtype.name}{'.reverse' * backwards}"
    run_lines(w, name, write, [operands[0][1]], [made[1]], sizes)
    return [made]


def whole(
    w: FunctionEmitter, value: Value, components: Components, axes: Sequence[int], kept: Sequence[str]
) -> Components:
    """Write the products over axes, one axis after the other, the last one first; `kept` are the result's extents."""
    dtype, left = tensor_type(value).dtype, extents(value, components)
    block, made = "null", components

    def write(_: FunctionEmitter, f: LLVMFunction) -> None:
        _lines(f, dtype, backwards=False, at_end=True)

    for axis in reversed(axes):
        sizes = around(w, left, axis)
        left[axis] = "1"
        result = allocate(w, dtype, left)
        run_lines(w, f"prod.{dtype.name}", write, [made[1]], [result[1]], sizes)
        w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
        block, made = result[0], result
    return (*made[:2], *kept)


def _lines(f: LLVMFunction, dtype: DType, backwards: bool, at_end: bool) -> None:
    """Write the products of lines of [outer, count, inner]: after each iteration, or the last one."""
    part = PART_OF[dtype]
    kind, size = element_kind(part), part.itemsize
    total = f.slot(kind, 2)

    def place(base: str, number: str) -> list[str]:
        first = f.offset(base, times(f, number, dtype.itemsize))
        return [first, f.offset(first, size)]

    slots = [total, f.offset(total, size)]
    with f.loop("%to", start="%from", hint="outer") as outer, f.loop("%inner", hint="inner") as j:
        for slot, one in zip(slots, ("1.0", "0.0"), strict=True):
            f.store(kind, one, slot)
        with f.loop("%count", hint="along") as turn:
            i = minus(f, minus(f, "%count", 1), turn) if backwards else turn
            number = plus(f, times(f, plus(f, times(f, outer, "%count"), i), "%inner"), j)
            a, b = ([f.load(kind, p) for p in places] for places in (slots, place("%x0", number)))
            made = _product(f, kind, (a[0], a[1]), (b[0], b[1]))
            if not at_end:  # the first element is one of the results as it is
                later = compare(f, "ne", turn, 0)
                made = [f.value(f"select i1 {later}, {kind} {x}, {kind} {y}") for x, y in zip(made, b, strict=True)]
            for to in (slots, *([] if at_end else [place("%y0", number)])):
                for register, there in zip(made, to, strict=True):
                    f.store(kind, register, there)
        if at_end:
            for slot, there in zip(slots, place("%y0", plus(f, times(f, outer, "%inner"), j)), strict=True):
                f.store(kind, f.load(kind, slot), there)


def _product(f: LLVMFunction, kind: str, a: tuple[str, str], b: tuple[str, str]) -> list[str]:
    """Write a times b."""

    def times_(x: str, y: str) -> str:
        return f.value(f"fmul {kind} {x}, {y}")

    real = f.value(f"fsub {kind} {times_(a[0], b[0])}, {times_(a[1], b[1])}")
    return [real, f.value(f"fadd {kind} {times_(a[0], b[1])}, {times_(a[1], b[0])}")]
