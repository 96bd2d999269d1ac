"""Arithmetic of complex numbers, element by element: the loops of NumPy's ufuncs, and moves of their parts.

Operands have one shape; they stand in memory, as pairs of floats. A tensor of rank 0 that is real is a register.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, bool_, complex64, complex128, float32, float64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.constant import Cast
from dy2st.ops.core.elementwise_base import Ufunc
from dy2st.ops.elementwise.arithmetic import SafeMul
from dy2st.ops.elementwise.complex import PART_OF, Complex, Conj, Imag, Real
from dy2st.ops.elementwise.power import Pow, Square
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.shared_routines import routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, in_register, is_native
from dy2st.runtime.backends.cpu.ops.numpy_ufunc_loops import UfuncLoop, room
from dy2st.runtime.backends.cpu.ops.tensors import extents, product
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
_LETTERS = {float32: "f", float64: "d", complex64: "F", complex128: "D", bool_: "?"}
_COST = 5000
"""Picoseconds of an element, roughly."""


def computes_with_complex(operation: Operation) -> bool:
    """Return whether an elementwise operation on complex numbers, or that makes them, has a form here."""
    types = [v.type for v in (*operation.operands, *operation.results)]
    dtypes = [t.dtype for t in types if isinstance(t, TensorType)]  # zeros are also made like lists and variants
    if len(dtypes) < len(types) or not any(d.is_complex for d in dtypes):
        return False
    op = operation.op
    if isinstance(op, Cast):
        return all(d.is_complex or is_native(d) for d in dtypes)
    if any(d not in _LETTERS for d in dtypes):
        return False
    return isinstance(op, (Real, Imag, Complex, SafeMul)) or _ufunc(operation) is not None


def _ufunc(operation: Operation) -> str | None:
    """Return the ufunc that is the whole of an operation."""
    op = operation.op
    if isinstance(op, Conj):
        return "conjugate"
    if isinstance(op, Pow) and len({tensor_type(v).dtype for v in operation.operands}) == 1:
        return "power"
    if not isinstance(op, Ufunc) or type(op).eval not in (Ufunc.eval, Square.eval) or operation.attributes:
        return None
    return op.function


def elementwise(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write one operation."""
    (result,), f = operation.results, w.f
    places = [_place(w, v, c) for v, c in zip(operation.operands, operands, strict=True)]
    shape = extents(operation.operands[0], operands[0]) if not in_register(operation.operands[0].type) else []
    count, made = product(w, shape), room(w, result, shape)
    t, source = tensor_type(result).dtype, tensor_type(operation.operands[0]).dtype
    op = operation.op
    if isinstance(op, (Real, Imag, Cast)):
        _move(w, (places[0], source), (made[1], t), count, at=int(isinstance(op, Imag)))
    elif isinstance(op, Complex):
        for part, place in enumerate(places):
            _move_part(w, (place, source, 1), (f.offset(made[1], part * source.itemsize), source, 2), count)
    else:
        ufunc = "multiply" if isinstance(op, SafeMul) else _ufunc(operation)
        letters = ["".join(_LETTERS[tensor_type(v).dtype] for v in side) for side in (operation.operands, [result])]
        loop = UfuncLoop(w, f"numpy.{ufunc}.{'->'.join(letters)}")
        w.demand(loop.there)
        steps = [tensor_type(v).dtype.itemsize for v in (*operation.operands, result)]
        loop.call([*places, made[1]], count, [], steps, _COST)
        if isinstance(op, SafeMul):
            _clear_zeros(w, t, [*places, made[1]], count)
    return [(load_element(f, t, made[1]),) if in_register(result.type) else made]


def _place(w: FunctionEmitter, value: Value, components: Components) -> str:
    """Return where the elements of an operand stand; those of a register are put on the stack."""
    if not in_register(value.type):
        return components[1]
    place = w.f.slot("i64")
    store_element(w.f, tensor_type(value).dtype, components[0], place)
    return place


def _move(w: FunctionEmitter, source: tuple[str, DType], to: tuple[str, DType], count: str, at: int) -> None:
    """Write a cast, or a part: part `at` of what is complex becomes what is real."""
    (x, given), (y, wanted) = source, to
    part, half = PART_OF.get(given, given), PART_OF.get(wanted, wanted)
    if not wanted.is_complex:
        _move_part(w, (w.f.offset(x, at * part.itemsize), part, 2), (y, wanted, 1), count)
    elif given.is_complex:
        _move_part(w, (x, part, 1), (y, half, 1), times(w.f, count, 2))
    else:
        w.f.call("void", "@llvm.memset.p0.i64", f"ptr {y}", "i8 0", f"i64 {times(w.f, count, wanted.itemsize)}",
                 "i1 false")  # fmt: skip
        _move_part(w, (x, given, 1), (y, half, 2), count)


def _move_part(w: FunctionEmitter, source: tuple[str, DType, int], to: tuple[str, DType, int], count: str) -> None:
    """Write a copy of so many floats from one address to another: each an address, a dtype and a step in elements."""
    (x, given, x_step), (y, wanted, y_step) = source, to
    kernels = w.unit.kernels

    def write(f: LLVMFunction) -> None:
        with f.loop("%count") as i:
            element = load_element(f, given, f.offset("%x", times(f, i, x_step * given.itemsize)))
            element = converted(VectorType(f, kernels, 1), element, given, wanted)
            store_element(f, wanted, element, f.offset("%y", times(f, i, y_step * wanted.itemsize)))

    word = f"part.{given.name}.{x_step}.{wanted.name}.{y_step}"
    name = routine(w, word, [("ptr", "%x"), ("ptr", "%y"), ("i64", "%count")], write)
    w.f.call("void", name, f"ptr {x}", f"ptr {y}", f"i64 {count}")


def _clear_zeros(w: FunctionEmitter, dtype: DType, places: Sequence[str], count: str) -> None:
    """Write zeros to products of which a factor is 0."""
    part = PART_OF[dtype]
    kind = element_kind(part)

    def write(f: LLVMFunction) -> None:
        with f.loop("%count") as i:
            at = times(f, i, dtype.itemsize)
            zeros: list[str] = []
            for base in ("%x", "%y"):
                place = f.offset(base, at)
                parts = [f.load(kind, f.offset(place, j * part.itemsize)) for j in range(2)]
                real, imaginary = (f.value(f"fcmp oeq {kind} {p}, 0.0") for p in parts)
                zeros.append(f.value(f"and i1 {real}, {imaginary}"))
            with f.when(f.value(f"or i1 {zeros[0]}, {zeros[1]}")):
                place = f.offset("%made", at)
                for j in range(2):
                    f.store(kind, "0.0", f.offset(place, j * part.itemsize))

    parameters = [*(("ptr", f"%{n}") for n in ("x", "y", "made")), ("i64", "%count")]
    name = routine(w, f"safe.{dtype.name}", parameters, write)
    w.f.call("void", name, *(f"ptr {p}" for p in places), f"i64 {count}")
