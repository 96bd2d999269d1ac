"""Lists of numbers as a vector, slots of tangents as one tensor, places in lists; see list_stack.py for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.types import ListType, ScalarType, TensorType, VariantType
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import clear, copy
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, alternative, in_register, is_native
from dy2st.runtime.backends.cpu.ops.containers.lists import length, list_type, row
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


@contextmanager
def _each(w: FunctionEmitter, block: str, t: ListType) -> Iterator[tuple[str, Components]]:
    """Write a loop over the elements of a list; gives the number and the components of each."""
    with w.f.loop(length(w, block), hint="item") as i:
        yield i, w.read(row(w, block, i, t), t.element)


def _all(w: FunctionEmitter, block: str, t: ListType, condition: Callable[[Components], str]) -> str:
    """Write whether a condition holds for all elements."""
    f = w.f
    so_far = f.slot("i1")
    f.store("i1", "true", so_far)
    with _each(w, block, t) as (_, item):
        f.store("i1", all_of(f, f.load("i1", so_far), condition(item)), so_far)
    return f.load("i1", so_far)


def _put(w: FunctionEmitter, t: TensorType, item: Components, to: str, size: str) -> None:
    """Write an element of a list, of so many bytes, to an address."""
    if in_register(t):
        store_element(w.f, t.dtype, item[0], to)
    else:
        copy(w, to, item[1], size)


def _same(w: FunctionEmitter, some: Sequence[str], others: Sequence[str]) -> str:
    return all_of(w.f, "true", *(compare(w.f, "eq", a, b) for a, b in zip(some, others, strict=True)))


@rule("list_popped")
def popped(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a place counted from the front of the list before an element was taken."""
    f, at = w.f, operands[1][0]
    front = plus(f, at, length(w, operands[0][0]), 1)
    return [(f.value(f"select i1 {compare(f, 'slt', at, 0)}, i64 {front}, i64 {at}"),)]


@rule("list_to_tensor")
def vector(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write numbers as a vector; `eval` says which has no place in its dtype."""
    f, t, dtype, block = w.f, list_type(operation.operands[0].type), operation.attributes["dtype"], operands[0][0]
    if not isinstance(t.element, ScalarType) or not is_native(dtype):
        return host_rule(w, operation, operands)
    source = {"int": int64, "float": float64, "bool": bool_}[t.element.kind]
    fine = "true"
    if dtype.is_integer and source is not bool_ and (dtype is not int64 or source is float64):
        fine = _all(w, block, t, lambda item: _fits(w, item[0], source, dtype))

    def fast() -> Made:
        made = allocate(w, dtype, [length(w, block)])
        with _each(w, block, t) as (i, item):
            number = converted(VectorType(f, w.module, 1), item[0], source, dtype)
            store_element(f, dtype, number, f.offset(made[1], times(f, i, dtype.itemsize)))
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _fits(w: FunctionEmitter, number: str, source: DType, dtype: DType) -> str:
    """Write whether a number of Python has a place in an integer dtype."""
    if source is float64:
        limit = 2**31  # smaller ones fit everywhere that they have to
        small = w.f.call("double", "@llvm.fabs.f64", f"double {number}")
        narrow = dtype.bits < 64
        return "false" if narrow else w.f.value(f"fcmp olt double {small}, {float(limit):.1f}")
    low = 0 if dtype.kind == "u" else -(2 ** (dtype.bits - 1))
    return compare(w.f, "ult", plus(w.f, number, -low), 2**dtype.bits)


# ---- tangents --------------------------------------------------------------------------------------------------------
def _slot(t: ListType) -> TensorType | None:
    """Return what a slot holds where it is set; None for slots of another kind."""
    kind = t.element
    if not isinstance(kind, VariantType) or len(kind.alternatives) != 2:
        return None
    held = kind.alternatives[1]
    return held if isinstance(held, TensorType) else None


@rule("list_stack_tangent")
def stack_slots(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write zeros, and the slots that are set at their places."""
    f, t, like = w.f, list_type(operation.operands[0].type), operation.operands[1]
    held, block = _slot(t), operands[0][0]
    if held is None or in_register(like.type) or not isinstance(t.element, VariantType):
        return host_rule(w, operation, operands)
    where, whole = alternative(t.element, 1), extents(like, operands[1])

    def set_and_fits(item: Components) -> str:
        fits = _same(w, item[where][2:], whole[1:]) if not in_register(held) else "true"
        return f.value(f"or i1 {compare(f, 'eq', item[0], 0)}, {fits}")

    fine = all_of(f, compare(f, "sle", length(w, block), whole[0]), _all(w, block, t, set_and_fits))

    def fast() -> Made:
        dtype = tensor_type(like).dtype
        made, size = allocate(w, dtype, whole), product(w, [*whole[1:], str(dtype.itemsize)])
        clear(w, made[1], times(f, size, whole[0]))
        with _each(w, block, t) as (i, item), f.when(compare(f, "eq", item[0], 1), "set"):
            _put(w, held, item[where], f.offset(made[1], times(f, i, size)), size)
        return [made]

    return w.guarded(operation, operands, fine, fast)
