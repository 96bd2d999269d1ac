"""Reading and writing at indices along one axis: `take_along_axis`, `put_along_axis` and its kin, `last_writer`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dy2st.dtypes import bool_, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.traits import Monoid
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import fill
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register, is_native
from dy2st.runtime.backends.cpu.ops.indexing.take import counted
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, are_ints, extents, product, writable
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


@rule("take_along_axis")
def take_along_axis(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a copy of elements; `eval` says what does not fit."""
    value, places = operation.operands
    f, t = w.f, tensor_type(value)
    if not is_native(t.dtype) or in_register(t) or in_register(tensor_type(places)):
        return host_rule(w, operation, operands)
    axis, shape = operation.attributes["axis"] % t.rank, extents(value, operands[0])
    number = extents(places, operands[1])
    block, at, _, fine = counted(w, places, operands[1], shape[axis])
    fine = _alike(w, fine, [*shape[:axis], *shape[axis + 1 :]], [*number[:axis], *number[axis + 1 :]])

    def fast() -> Made:
        made = allocate(w, t.dtype, number)
        with _elements(w, at, shape, number, axis) as (target, source):
            element = f"[{t.dtype.itemsize} x i8]"
            register = load_element(w.f, t.dtype, f.offset(operands[0][1], source, element))
            store_element(w.f, t.dtype, register, f.offset(made[1], target, element))
        return [made]

    results = w.guarded(operation, operands, fine, fast)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return results


_MONOIDS: dict[str, Monoid] = {"add": "add", "mul": "mul", "amax": "max", "amin": "min"}
"""What modes other than "assign" do with an element that is there."""


@rule("put_along_axis", "combine_along_axis")
def put_along_axis(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write elements, or combine with them, in place where nobody else holds the tensor; in order of the places."""
    value, places, values = operation.operands
    f, t, how = w.f, tensor_type(value), _MONOIDS.get(operation.attributes["mode"])
    if not is_native(t.dtype) or in_register(t) or in_register(tensor_type(places)) or (how and t.dtype.is_bool):
        return host_rule(w, operation, operands)
    axis, shape = operation.attributes["axis"] % t.rank, extents(value, operands[0])
    number = extents(places, operands[1])
    block, at, _, fine = counted(w, places, operands[1], shape[axis])
    fine = _alike(w, fine, [*shape[:axis], *shape[axis + 1 :]], [*number[:axis], *number[axis + 1 :]])
    fine = _alike(w, fine, number, extents(values, operands[2]))

    def fast() -> Made:
        base = writable(w, value, operands[0])
        with _elements(w, at, shape, number, axis) as (source, target):
            there, given = (
                f.offset(memory, number, f"[{t.dtype.itemsize} x i8]")
                for memory, number in ((base[1], target), (operands[2][1], source))
            )
            register = load_element(f, t.dtype, given)
            if how is not None:
                register = combined(VectorType(f, w.module, 1), how, t.dtype, load_element(f, t.dtype, there), register)
            store_element(f, t.dtype, register, there)
        return [base]

    results = w.guarded(operation, operands, fine, fast)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return results


@rule("last_writer")
def last_writer(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write for each place whether none after it along the axis is the same: two runs over who came last."""
    (places, *dims), f = operation.operands, w.f
    t = tensor_type(places)
    if in_register(t) or not is_native(t.dtype) or not are_ints(dims):
        return host_rule(w, operation, operands)
    axis, number = operation.attributes["axis"] % t.rank, extents(places, operands[0])
    (known,) = operation.attributes["shape"]
    extent = operands[1][0] if known is None else str(known)
    shape = [*number[:axis], extent, *number[axis + 1 :]]
    block, at, _, inside = counted(w, places, operands[0], extent)

    def fast() -> Made:
        size = product(w, shape)
        room, latest = allocate_bytes(w, product(w, [size, "8"]))
        made = allocate(w, bool_, number)
        fill(w, int64, latest, size, "-1")
        for iteration in ("note", "look"):
            with _elements(w, at, shape, number, axis) as (place, element):
                slot = f.offset(latest, element, "i64")
                if iteration == "note":
                    f.store("i64", place, slot)
                else:
                    store_element(f, bool_, compare(f, "eq", f.load("i64", slot), place), f.offset(made[1], place))
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {room}")
        return [made]

    results = w.guarded(operation, operands, all_of(f, inside, compare(f, "ult", extent, 2**40)), fast)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return results


def _alike(w: FunctionEmitter, condition: str, some: Sequence[str], others: Sequence[str]) -> str:
    """Write whether a condition holds and extents are the same."""
    same = (compare(w.f, "eq", a, b) for a, b in zip(some, others, strict=True))
    return all_of(w.f, condition, *same)


@contextmanager
def _elements(
    w: FunctionEmitter, at: str, shape: Sequence[str], number: Sequence[str], axis: int
) -> Iterator[tuple[str, str]]:
    """Write a loop over the places: gives the number of each, and of the element of the tensor that it means."""
    f, inner = w.f, product(w, shape[axis + 1 :])
    with (
        f.loop(product(w, shape[:axis]), hint="outer") as i,
        f.loop(number[axis], hint="along") as j,
        f.loop(inner, hint="inner") as k,
    ):
        place = plus(f, times(f, plus(f, times(f, i, number[axis]), j), inner), k)
        row = plus(f, times(f, i, shape[axis]), f.load("i64", f.offset(at, place, "i64")))
        yield place, plus(f, times(f, row, inner), k)
