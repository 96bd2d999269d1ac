"""Sums over rows in loops that threads share (loop_parallel/reductions.py): each part has sums of its own, which are
added in order.

A sum has room for those of all parts, one after the other. The first part begins with what there was before the loop,
every other one with zeros, which stand in its room until its own sum does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, kinds
from dy2st.runtime.backends.cpu.loop_nests.partial_sums import add_up
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents

_MOST_BYTES = 1 << 18
"""Sums of more bytes than that would drive what a part works with out of its cache."""


def places_of(values: Sequence[Value]) -> Iterator[tuple[Value, int]]:
    """Yield values and where in a row their components begin."""
    at = 0
    for value in values:
        yield value, 8 * at
        at += len(kinds(value.type))


def sums_fit(w: FunctionEmitter, loop: Operation, sums: Sequence[int], operands: Sequence[Components]) -> str:
    """Write whether the sums are small enough for each part to have its own."""
    return compare(w.f, "sle", plus(w.f, 0, *(_bytes(w, loop, place, operands) for place in sums)), _MOST_BYTES)


def _bytes(w: FunctionEmitter, loop: Operation, place: int, operands: Sequence[Components]) -> str:
    value = loop.operands[1 + place]
    return times(w.f, tensor_type(value).dtype.itemsize, *extents(value, operands[1 + place]))


# ---- by the caller ---------------------------------------------------------------------------------------------------
def rooms_for_sums(
    w: FunctionEmitter, loop: Operation, sums: Sequence[int], operands: Sequence[Components], count: str
) -> tuple[str, list[str]]:
    """Write room for the sums of `count` parts, zeros but for the first one; return the row of rooms, and blocks."""
    f, row, blocks = w.f, w.f.slot("ptr", max(1, len(sums))), list[str]()
    for i, place in enumerate(sums):
        value = loop.operands[1 + place]
        block, data, *_ = allocate(w, tensor_type(value).dtype, [count, *extents(value, operands[1 + place])])
        size = _bytes(w, loop, place, operands)
        zeros = times(f, size, minus(f, count, 1))
        f.call("void", "@llvm.memset.p0.i64", f"ptr {f.offset(data, size)}", "i8 0", f"i64 {zeros}", "i1 false")
        f.store("ptr", data, f.offset(row, 8 * i))
        blocks.append(block)
    return row, blocks


def add_sums(
    w: FunctionEmitter,
    loop: Operation,
    sums: Sequence[int],
    operands: Sequence[Components],
    places: tuple[str, str],
    count: str,
) -> None:
    """Write the sums of all parts, added, to the row of results."""
    f, (row, made) = w.f, places
    results = list(places_of(loop.results))
    for i, place in enumerate(sums):
        value, (result, at) = loop.operands[1 + place], results[place]
        dtype, shape = tensor_type(value).dtype, extents(value, operands[1 + place])
        whole = allocate(w, dtype, shape)
        function = add_up(w.unit.kernels, "add", dtype, w.unit.target.lanes(dtype.itemsize))
        length = times(f, 1, *shape)
        f.call("void", f"@{function}", f"ptr {whole[1]}", f"ptr {f.load('ptr', f.offset(row, 8 * i))}", f"i64 {count}",
               f"i64 {length}")  # fmt: skip
        w.write(f.offset(made, at), [result.type], [whole])


# ---- by a part -------------------------------------------------------------------------------------------------------
def _rooms(
    f: LLVMFunction, loop: Operation, sums: Sequence[int], row: str, mine: str, number: str
) -> Iterator[tuple[int, str, str]]:
    """Yield where the components of each sum begin among operands; write its bytes, and where a part's room is."""
    places = list(places_of(loop.operands))
    for i, place in enumerate(sums):
        value, at = places[1 + place]
        t = tensor_type(value)
        size = times(f, t.dtype.itemsize, *(f.load("i64", f.offset(mine, at + 8 * (2 + k))) for k in range(t.rank)))
        yield at, size, f.offset(f.load("ptr", f.offset(row, 8 * i)), times(f, size, number))


def begin_sums(f: LLVMFunction, loop: Operation, sums: Sequence[int], places: tuple[str, str], number: str) -> None:
    """Write what the sums of a part begin with."""
    row, mine = places
    later = compare(f, "ne", number, 0)
    for at, _, room in _rooms(f, loop, sums, row, mine, number):
        data = f.offset(mine, at + 8)
        f.store("ptr", f.value(f"select i1 {later}, ptr {room}, ptr {f.load('ptr', data)}"), data)


def keep_sums(
    f: LLVMFunction, loop: Operation, sums: Sequence[int], places: tuple[str, str, str, str, str], number: str
) -> None:
    """Write the sums of a part into its room, where they have the extents that they began with."""
    row, mine, own, context, failed = places
    results = list(places_of(loop.results))
    for place, (at, size, room) in zip(sums, _rooms(f, loop, sums, row, mine, number), strict=True):
        result, here = results[place]
        pairs = [(f.load("i64", f.offset(own, here + 8 * (2 + i))), f.load("i64", f.offset(mine, at + 8 * (2 + i))))
                 for i in range(tensor_type(result).rank)]  # fmt: skip
        fine = all_of(f, "true", *(compare(f, "eq", one, other) for one, other in pairs))
        with f.when(negation(f, fine), "another"):
            f.do(f"store atomic i64 1, ptr {failed} monotonic, align 8")
        with f.when(fine, "sum"):
            data = f.load("ptr", f.offset(own, here + 8))
            f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {room}", f"ptr {data}", f"i64 {size}", "i1 false")
        f.call("void", "@dy2st.release", f"ptr {context}", f"ptr {f.load('ptr', f.offset(own, here))}")
