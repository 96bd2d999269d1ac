"""The discrete Fourier transform, by the loops of NumPy's transform (pocketfft)."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, complex64, complex128
from dy2st.ir.program import Operation, tensor_type
from dy2st.ops.elementwise.complex import PART_OF
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind
from dy2st.runtime.backends.cpu.ops.numpy_ufunc_loops import UfuncLoop
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.vector_ops.load_store import store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
_LETTERS = {complex64: "Ff->F", complex128: "Dd->D"}
_COST = 8000
"""Picoseconds of an element, roughly."""


@rule("fft")
def fft(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write transforms along an axis; `eval` says that there are no elements."""
    (x,), (given,), f = operation.operands, operands, w.f
    t = tensor_type(x)
    if t.dtype not in _LETTERS or not t.rank:
        return host_rule(w, operation, operands)
    inverse, norm = operation.attributes["inverse"], operation.attributes["norm"]
    loop = UfuncLoop(w, f"fft.{'ifft' if inverse else 'fft'}.{_LETTERS[t.dtype]}")
    shape, axis, size = extents(x, given), operation.attributes["axis"] % t.rank, t.dtype.itemsize
    length, inner = shape[axis], product(w, shape[axis + 1 :])

    def fast() -> Made:
        made, factor = allocate(w, t.dtype, shape), f.slot("double")
        share = "whole" if norm == ("forward" if inverse else "backward") else "root" if norm == "ortho" else "share"
        store_element(f, PART_OF[t.dtype], _factor(w, PART_OF[t.dtype], length, share), factor)
        line, cost = times(f, length, size), times(f, length, _COST)
        if axis == t.rank - 1:
            outer, steps = product(w, shape[:-1]), [line, 0, line, size, size]
            loop.call([given[1], factor, made[1]], outer, [length, length], steps, cost)
            return [made]
        apart, block = times(f, inner, size), times(f, line, inner)
        with f.loop(product(w, shape[:axis]), hint="outer") as i:
            source, to = (f.offset(c[1], times(f, i, block)) for c in (given, made))
            loop.call([source, factor, to], inner, [length, length], [size, 0, size, apart, apart], cost)
        return [made]

    return w.guarded(operation, operands, all_of(f, loop.there, compare(f, "sgt", length, 0)), fast)


def _factor(w: FunctionEmitter, part: DType, length: str, what: str) -> str:
    """Write 1, 1 / length or 1 / sqrt(length), rounded as NumPy does."""
    if what == "whole":
        return "1.0"
    kind = element_kind(part)
    number = w.f.value(f"sitofp i64 {length} to {kind}")
    if what == "root":
        number = VectorType(w.f, w.module, 1).intrinsic("sqrt", part, number)
    return w.f.value(f"fdiv {kind} 1.0, {number}")
