"""Places of the largest and the least elements along an axis: `argmax`, `argmin`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.cpu.elements import Elements, Place
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.integers import all_of, any_of, compare, negation, rounded_down, times
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
    """Write a range of rows: in long ones each lane looks at its own elements, then the lanes are compared."""
    lanes = w.unit.target.lanes(max(4, dtype.itemsize))
    one, many = Lanes(f, w.unit.kernels, 1), Lanes(f, w.unit.kernels, lanes)
    best = f.slot(one.of(dtype)), f.slot("i64")
    found = f.slot(many.of(dtype)), f.slot(many.of(int64))
    is_long = compare(f, "sge", "%count", _LONG * lanes)
    whole = f.value(f"select i1 {is_long}, i64 {rounded_down(f, '%count', lanes)}, i64 0")
    with f.loop("%to", start="%from", hint="row") as o:
        row = f.offset("%x0", times(f, o, "%count", dtype.itemsize))
        first = Elements(f, w.unit.kernels, 1).load(Place(row, "0", dtype))
        f.store(one.of(dtype), first, best[0])
        f.store("i64", "0", best[1])
        if lanes > 1:
            with f.when(is_long, "long"):
                f.store(many.of(dtype), many.spread(first, dtype), found[0])
                f.store(many.of(int64), many.constant(0, int64), found[1])
                _look(many, dtype, largest, row, ("0", whole), found)
                _compare_lanes(many, dtype, largest, found, best)
        _look(one, dtype, largest, row, (whole if lanes > 1 else "0", "%count"), best)
        f.store("i64", f.load("i64", best[1]), f.offset("%y0", o, "i64"))


_LONG = 8
"""How many vectors a row has at least whose lanes look for themselves."""


def _look(v: Lanes, dtype: DType, largest: bool, row: str, span: tuple[str, str], best: tuple[str, str]) -> None:
    """Write a run through a stretch of a row, which keeps the best element, or that of each lane, and its place."""
    f = v.f
    with f.loop(span[1], v.count, span[0], hint="along") as i:
        read = Elements(f, v.module, v.count).load(Place(row, i, dtype))
        value, at = f.load(v.of(dtype), best[0]), f.load(v.of(int64), best[1])
        moves = better(v, dtype, largest, read, value)
        f.store(v.of(dtype), v.select(moves, read, value, dtype), best[0])
        f.store(v.of(int64), v.select(moves, v.line(i), at, int64), best[1])


def _compare_lanes(v: Lanes, dtype: DType, largest: bool, found: tuple[str, str], best: tuple[str, str]) -> None:
    """Write the best of what lanes found to where the best so far stands; of equal ones the first."""
    f, one = v.f, Lanes(v.f, v.module, 1)
    values, places = f.load(v.of(dtype), found[0]), f.load(v.of(int64), found[1])
    for k in range(v.count):
        value = f.value(f"extractelement {v.of(dtype)} {values}, i64 {k}")
        place = f.value(f"extractelement {v.of(int64)} {places}, i64 {k}")
        kept, at = f.load(one.of(dtype), best[0]), f.load("i64", best[1])
        beyond, below = better(one, dtype, largest, value, kept), better(one, dtype, largest, kept, value)
        earlier = all_of(f, negation(f, below), compare(f, "slt", place, at))
        takes = any_of(f, beyond, earlier)
        f.store(one.of(dtype), one.select(takes, value, kept, dtype), best[0])
        f.store("i64", one.select(takes, place, at, int64), best[1])
