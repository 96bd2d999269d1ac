"""Places of the largest and the least elements along an axis: `argmax`, `argmin`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.cpu.elements import Elements, Place
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.integers import compare, least, minus, negation, plus, times
from dy2st.runtime.cpu.lanes import Lanes
from dy2st.runtime.cpu.representation import Components, in_register, is_native
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.rules.scans import Scan, around, better, run_lines
from dy2st.runtime.cpu.rules.tensors import allocate, extents, product
from dy2st.runtime.cpu.writer import Writer, host_rule

Made = Sequence[Components]


@rule("argmax", "argmin")
def extreme_place(w: Writer, operation: Operation, operands: list[Components]) -> Made:
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
    largest = operation.op.name == "argmax"
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
    dtype: DType, largest: bool, v: Lanes, kept: list[str], read: list[str], place: str
) -> tuple[list[str], list[str]]:
    moves = better(v, dtype, largest, read[0], kept[1])
    return [
        v.select(moves, v.spread(place, int64), kept[0], int64),
        v.select(moves, read[0], kept[1], dtype),
    ], []


def _places_in_rows(dtype: DType, largest: bool, w: Writer, f: Function) -> None:
    """Write a range of rows: one that fills vectors is run through for the best element, then for where it stands."""
    lanes = w.unit.target.lanes(max(4, dtype.itemsize))
    one, many = Lanes(f, w.unit.kernels, 1), Lanes(f, w.unit.kernels, lanes)
    fills = compare(f, "sge", "%count", lanes) if lanes > 1 else "false"
    with f.loop("%to", start="%from", hint="row") as o:
        row = f.offset("%x0", times(f, o, "%count", dtype.itemsize))
        place = f.offset("%y0", o, "i64")
        if lanes > 1:
            with f.when(fills, "long"):
                _first_like(many, dtype, row, _best(many, dtype, largest, row), place)
        with f.when(negation(f, fills), "short"):
            _look(one, dtype, largest, row, place)


def _look(v: Lanes, dtype: DType, largest: bool, row: str, place: str) -> None:
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


def _best(v: Lanes, dtype: DType, largest: bool, row: str) -> str:
    """Write the best element of a row in a register; the last vectors of the row may overlap, as they may here."""
    f, kind = v.f, v.of(dtype)
    chains = [f.slot(kind) for _ in range(_CHAINS)]
    last = minus(f, "%count", v.count)

    def better_of(read: str, value: str) -> str:
        return v.select(better(v, dtype, largest, read, value), read, value, dtype)

    for slot in chains:
        f.store(kind, _read(v, dtype, row, "0"), slot)
    with f.loop("%count", _CHAINS * v.count, hint="along") as i:
        for number, slot in enumerate(chains):
            read = _read(v, dtype, row, least(f, plus(f, i, number * v.count), last))
            f.store(kind, better_of(read, f.load(kind, slot)), slot)
    best = f.load(kind, chains[0])
    for slot in chains[1:]:
        best = better_of(f.load(kind, slot), best)
    half = v.count // 2
    while half:
        lanes = ", ".join(f"i32 {(i + half) % v.count}" for i in range(v.count))
        other = f.value(f"shufflevector {kind} {best}, {kind} poison, <{v.count} x i32> <{lanes}>")
        best = better_of(other, best)
        half //= 2
    return best


def _first_like(v: Lanes, dtype: DType, row: str, best: str, place: str) -> None:
    """Write the place of the first element of a row that is equal to one of them, or of the first NaN."""
    f, kind = v.f, v.of(dtype)
    last, at = minus(f, "%count", v.count), f.slot("i64")
    f.store("i64", "0", at)
    look, on, found, done = f.label("look"), f.label("on"), f.label("found"), f.label("done")
    f.start(look)
    here = least(f, f.load("i64", at), last)
    read = _read(v, dtype, row, here)
    same = f.value(f"{'fcmp oeq' if dtype.is_floating else 'icmp eq'} {kind} {read}, {best}")
    if dtype.is_floating:
        same = f.value(f"or {v.kind('i1')} {same}, {f.value(f'fcmp uno {kind} {read}, {read}')}")
    bits = f.value(f"bitcast {v.kind('i1')} {same} to i{v.count}")
    f.branch(f.value(f"icmp ne i{v.count} {bits}, 0"), found, on)
    f.start(on)
    f.store("i64", plus(f, here, v.count), at)
    f.branch(compare(f, "slt", here, last), look, done)  # there is one, but who knows what else writes to the row
    f.start(found)
    v.module.add("llvm.cttz.i64", "declare i64 @llvm.cttz.i64(i64, i1)")
    first = f.call("i64", "@llvm.cttz.i64", f"i64 {f.value(f'zext i{v.count} {bits} to i64')}", "i1 true")
    f.store("i64", plus(f, here, first), place)
    f.start(done)


def _read(v: Lanes, dtype: DType, row: str, at: str) -> str:
    return Elements(v.f, v.module, v.count).load(Place(row, at, dtype))
