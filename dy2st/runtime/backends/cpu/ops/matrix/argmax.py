"""Places of the largest and the least elements along an axis: `argmax`, `argmin`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dy2st.dtypes import DType, int32, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ops.reduce.reduction import ArgMax
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, in_register, is_native
from dy2st.runtime.backends.cpu.ops.matrix.scans import Scan, around, better, run_lines
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


@rule("argmax", "argmin")
def extreme_place(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the place of the first largest or smallest element, or of the first NaN; `eval` refuses empty axes."""
    value, f = operation.operands[0], w.f
    t, axis = tensor_type(value), operation.attributes["axis"]
    if in_register(t):
        return [("0",)]
    if not is_native(t.dtype):
        return host_rule(w, operation, operands)
    shape, made_type = extents(value, operands[0]), tensor_type(operation.results[0])
    kept: list[str] = ["1"] * made_type.rank
    sizes = ["1", product(w, shape), "1"]
    if axis is not None:
        axis %= t.rank
        sizes = around(w, shape, axis)
        kept = [*shape[:axis], *(["1"] if made_type.rank == t.rank else []), *shape[axis + 1 :]]
    largest = isinstance(operation.op, ArgMax)
    scan = Scan((t.dtype,), (int64, t.dtype), (0, None), partial(_first_place, t.dtype, largest), (int64,), at_end=True)

    def fast() -> Made:
        made: Components = ("", f.slot("i64")) if in_register(made_type) else allocate(w, int64, kept)
        name, write = f"{operation.op.name}.{t.dtype.name}", scan.write
        if sizes[2] == "1":
            name, write = f"{name}.rows", partial(_places_in_rows, t.dtype, largest)
        run_lines(w, name, write, [operands[0][1]], [made[1]], sizes)
        return [(f.load("i64", made[1]),)] if in_register(made_type) else [made]

    return w.guarded(operation, operands, compare(f, "sgt", sizes[1], 0), fast)


def _first_place(
    dtype: DType, largest: bool, v: VectorType, kept: list[str], read: list[str], place: str
) -> tuple[list[str], list[str]]:
    moves = better(v, dtype, largest, read[0], kept[1])
    return [
        v.select(moves, v.spread(place, int64), kept[0], int64),
        v.select(moves, read[0], kept[1], dtype),
    ], []


def _places_in_rows(dtype: DType, largest: bool, w: FunctionEmitter, f: LLVMFunction) -> None:
    """Write a range of rows: those that fill vectors, and whose places the vectors hold, are run through in vectors."""
    lanes = w.unit.target.lanes(max(4, dtype.itemsize))
    one, many = VectorType(f, w.unit.kernels, 1), VectorType(f, w.unit.kernels, lanes)
    fills = "false"
    if lanes > 1:
        fills = all_of(f, compare(f, "sge", "%count", lanes), compare(f, "sle", "%count", 2**31 - 1))
    with f.loop("%to", start="%from", hint="row") as o:
        row = f.offset("%x0", times(f, o, "%count", dtype.itemsize))
        place = f.offset("%y0", o, "i64")
        if lanes > 1:
            with f.when(fills, "long"):
                _look_in_vectors(many, dtype, largest, row, place)
        with f.when(negation(f, fills), "short"):
            _look(one, dtype, largest, row, place)


def _look(v: VectorType, dtype: DType, largest: bool, row: str, place: str) -> None:
    """Write a run through a row, element by element, and the place of the best one."""
    f = v.f
    best = f.slot(v.of(dtype))
    f.store(v.of(dtype), _read(v, dtype, row, "0"), best)
    f.store("i64", "0", place)
    with f.loop("%count", hint="along") as i:
        read, value = _read(v, dtype, row, i), f.load(v.of(dtype), best)
        moves = better(v, dtype, largest, read, value)
        f.store(v.of(dtype), v.select(moves, read, value, dtype), best)
        f.store("i64", v.select(moves, i, f.load("i64", place), int64), place)


_CHAINS = 2
"""How many vectors of best elements are under way at once."""


def _look_in_vectors(v: VectorType, dtype: DType, largest: bool, row: str, place: str) -> None:
    """Write a run through a row and the place of the best one; the last vectors of the row may overlap.

    Each lane keeps its best element and where the vector of it began. Then the least place of the best of all is taken:
    nothing jumps by what is in the row, so what follows may begin before. A NaN is looked for where there is one.
    """
    f, kind, numbers = v.f, v.of(dtype), int64 if dtype.itemsize == 8 else int32
    word, last = v.of(numbers), minus(f, "%count", v.count)
    chains = [(f.slot(kind), f.slot(word)) for _ in range(_CHAINS)]
    odd = f.slot(v.kind("i1"))
    f.store(v.kind("i1"), "zeroinitializer", odd)
    for best, at in chains:
        f.store(kind, _read(v, dtype, row, "0"), best)
        f.store(word, "zeroinitializer", at)
    with f.loop("%count", _CHAINS * v.count, hint="along") as i:
        for number, (best, at) in enumerate(chains):
            here = least(f, plus(f, i, number * v.count), last)
            read, value = _read(v, dtype, row, here), f.load(kind, best)
            moves = _beyond(v, dtype, largest, read, value)
            f.store(kind, v.select(moves, read, value, dtype), best)
            began = here if numbers is int64 else f.value(f"trunc i64 {here} to i32")
            f.store(word, v.select(moves, v.spread(began, numbers), f.load(word, at), numbers), at)
            if dtype.is_floating:
                nan = f.value(f"fcmp uno {kind} {read}, {read}")
                f.store(v.kind("i1"), f.value(f"or {v.kind('i1')} {f.load(v.kind('i1'), odd)}, {nan}"), odd)
    found = [(f.load(kind, best), f.load(word, at)) for best, at in chains]
    first = _least_place(v, dtype, numbers, _best_of(v, dtype, largest, [value for value, _ in found]), found)
    f.store("i64", first if numbers is int64 else f.value(f"zext i32 {first} to i64"), place)
    if dtype.is_floating:
        bits = f.value(f"bitcast {v.kind('i1')} {f.load(v.kind('i1'), odd)} to i{v.count}")
        with f.when(f.value(f"icmp ne i{v.count} {bits}, 0"), "odd"):
            _first_nan(v, dtype, row, place)


def _beyond(v: VectorType, dtype: DType, largest: bool, one: str, other: str) -> str:
    """Write where `one` is beyond the other, and neither is a NaN."""
    if not dtype.is_floating:
        return better(v, dtype, largest, one, other)
    return v.f.value(f"fcmp {'ogt' if largest else 'olt'} {v.of(dtype)} {one}, {other}")


def _best_of(v: VectorType, dtype: DType, largest: bool, values: Sequence[str]) -> str:
    """Write the best element of some registers, in all lanes of one."""
    best, *others = values
    for other in others:
        best = v.select(_beyond(v, dtype, largest, other, best), other, best, dtype)
    for turned in _turned(v, dtype):
        other = turned(best)
        best = v.select(_beyond(v, dtype, largest, other, best), other, best, dtype)
    return best


def _least_place(v: VectorType, dtype: DType, numbers: DType, best: str, found: Sequence[tuple[str, str]]) -> str:
    """Write the least place of an element that is equal to the best one, of elements and where their vectors began."""
    f, word = v.f, v.of(numbers)
    lanes = ", ".join(f"{element_kind(numbers)} {i}" for i in range(v.count))
    places: list[str] = []
    for value, began in found:
        same = f.value(f"{'fcmp oeq' if dtype.is_floating else 'icmp eq'} {v.of(dtype)} {value}, {best}")
        places.append(v.select(same, f.value(f"add {word} {began}, <{lanes}>"), v.constant(-1, numbers), numbers))
    first, *others = places
    for other in others:
        first = v.intrinsic("umin", numbers, first, other)
    for turned in _turned(v, numbers):
        first = v.intrinsic("umin", numbers, first, turned(first))
    return f.value(f"extractelement {word} {first}, i64 0")


def _turned(v: VectorType, dtype: DType) -> Iterator[Callable[[str], str]]:
    """Yield what writes a register with its lanes turned by half of them, by a quarter, ... by one."""
    kind, by = v.of(dtype), v.count // 2
    while by:
        lanes = ", ".join(f"i32 {(i + by) % v.count}" for i in range(v.count))
        yield lambda x, lanes=lanes: v.f.value(f"shufflevector {kind} {x}, {kind} poison, <{v.count} x i32> <{lanes}>")
        by //= 2


def _first_nan(v: VectorType, dtype: DType, row: str, place: str) -> None:
    """Write the place of the first NaN of a row, where there is one."""
    f, kind = v.f, v.of(dtype)
    last, at = minus(f, "%count", v.count), f.slot("i64")
    f.store("i64", "0", at)
    look, on, found, done = f.label("look"), f.label("on"), f.label("found"), f.label("done")
    f.start(look)
    here = least(f, f.load("i64", at), last)
    read = _read(v, dtype, row, here)
    bits = f.value(f"bitcast {v.kind('i1')} {f.value(f'fcmp uno {kind} {read}, {read}')} to i{v.count}")
    f.branch(f.value(f"icmp ne i{v.count} {bits}, 0"), found, on)
    f.start(on)
    f.store("i64", plus(f, here, v.count), at)
    f.branch(compare(f, "slt", here, last), look, done)  # there was one, but who knows what else writes to the row
    f.start(found)
    v.module.add("llvm.cttz.i64", "declare i64 @llvm.cttz.i64(i64, i1)")
    first = f.call("i64", "@llvm.cttz.i64", f"i64 {f.value(f'zext i{v.count} {bits} to i64')}", "i1 true")
    f.store("i64", plus(f, here, first), place)
    f.start(done)


def _read(v: VectorType, dtype: DType, row: str, at: str) -> str:
    return ElementAccess(v.f, v.module, v.count).load(RowPosition(row, at, dtype))
