"""Reading and writing at indices along one axis: `take_along_axis` and `put_along_axis`, each other's transposes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.cpu.elements import load_element, store_element
from dy2st.runtime.cpu.integers import all_of, compare, plus, times
from dy2st.runtime.cpu.representation import Components, in_register, is_native
from dy2st.runtime.cpu.rules.places import add_one, counted
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.rules.tensors import allocate, extents, product, writable
from dy2st.runtime.cpu.writer import Writer, host_rule

Made = Sequence[Components]


@rule("take_along_axis")
def take_along_axis(w: Writer, operation: Operation, operands: list[Components]) -> Made:
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


@rule("put_along_axis")
def put_along_axis(w: Writer, operation: Operation, operands: list[Components]) -> Made:
    """Write elements, or add to them, in place where nobody else holds the tensor; the last of equal places stays."""
    value, places, values = operation.operands
    f, t, add = w.f, tensor_type(value), operation.attributes["mode"] == "add"
    if not is_native(t.dtype) or in_register(t) or in_register(tensor_type(places)) or (add and t.dtype.is_bool):
        return host_rule(w, operation, operands)
    axis, shape = operation.attributes["axis"] % t.rank, extents(value, operands[0])
    number = extents(places, operands[1])
    block, at, _, fine = counted(w, places, operands[1], shape[axis])
    fine = _alike(w, fine, [*shape[:axis], *shape[axis + 1 :]], [*number[:axis], *number[axis + 1 :]])
    fine = _alike(w, fine, number, extents(values, operands[2]))

    def fast() -> Made:
        base = writable(w, value, operands[0])
        with _elements(w, at, shape, number, axis) as (source, target):
            if add:
                add_one(w, t.dtype, base[1], target, operands[2][1], source)
            else:
                element = f"[{t.dtype.itemsize} x i8]"
                register = load_element(w.f, t.dtype, f.offset(operands[2][1], source, element))
                store_element(w.f, t.dtype, register, f.offset(base[1], target, element))
        return [base]

    results = w.guarded(operation, operands, fine, fast)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return results


def _alike(w: Writer, condition: str, some: Sequence[str], others: Sequence[str]) -> str:
    """Write whether a condition holds and extents are the same."""
    same = (compare(w.f, "eq", a, b) for a, b in zip(some, others, strict=True))
    return all_of(w.f, condition, *same)


@contextmanager
def _elements(w: Writer, at: str, shape: Sequence[str], number: Sequence[str], axis: int) -> Iterator[tuple[str, str]]:
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
