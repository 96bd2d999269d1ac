"""Copies of tensors whose axes were permuted: squares of elements are read, turned in registers and written.

Read element by element along its new rows, such a tensor costs a line of the cache for each element.
"""

from __future__ import annotations

from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.shared_routines import split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import least, plus, rounded_down, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, is_native
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product

_WIDEST = 16
"""How many elements a side of a square has at most."""
_BLOCK = 64
"""How many of the new rows' elements are written before the next rows are begun; and the rows of a unit of threads."""
_COST = _BLOCK * 300
"""How many picoseconds a column of so many rows takes."""


def is_turned(components: Components) -> bool:
    """Return whether the elements of a tensor lie side by side along another axis than the last one."""
    return isinstance(components, StridedTensor) and not components.strides[-1].isdigit() and "1" in components.strides


def turned_copy(w: FunctionEmitter, value: Value, components: Components) -> Components | None:
    """Write a copy without gaps of a tensor that `is_turned`; None for any other."""
    t, f = tensor_type(value), w.f
    if not isinstance(components, StridedTensor) or not is_turned(components) or not is_native(t.dtype):
        return None
    shape, side = extents(value, components), components.strides.index("1")
    made = allocate(w, t.dtype, shape)
    size = t.dtype.itemsize
    name = split_routine(w, f"turn.{size}", _PARAMETERS, _units, lambda g: _write(g, 8 * size, _side(w, size)))

    def each(axis: int, to: str, source: str) -> None:
        if axis == t.rank - 1:
            steps = (shape[side], shape[-1], product(w, shape[side + 1 :]), components.strides[-1])
            f.call("void", name, *(f"ptr {f.offset(p, at, f'[{size} x i8]')}" for p, at in ((made[1], to),
                   (components[1], source))), *(f"i64 {n}" for n in steps))  # fmt: skip
        elif axis == side:
            each(axis + 1, to, source)
        else:
            apart = product(w, shape[axis + 1 :])
            with f.loop(shape[axis], hint="plane") as i:
                each(axis + 1, plus(f, to, times(f, i, apart)), plus(f, source, times(f, i, components.strides[axis])))

    each(0, "0", "0")
    return made


def _side(w: FunctionEmitter, size: int) -> int:
    lanes = w.unit.target.lanes(size)
    return min(lanes, _WIDEST) if lanes >= 4 else 1


_PARAMETERS = [("ptr", "%into"), ("ptr", "%source"), ("i64", "%rows"), ("i64", "%count"), ("i64", "%apart"),
               ("i64", "%gap")]  # fmt: skip
"""`count` elements to each of `rows` rows that are `apart`; those of a row come from places `gap` apart."""


def _units(f: LLVMFunction) -> tuple[str, str]:
    return f.value(f"lshr i64 {plus(f, '%rows', _BLOCK - 1)}, {_BLOCK.bit_length() - 1}"), times(f, "%count", _COST)


def _write(f: LLVMFunction, bits: int, side: int) -> None:
    """Write a range of blocks of rows: blocks of whole squares, then what is left of rows and columns, one by one."""
    kind = f"i{bits}"
    start, stop = times(f, "%from", _BLOCK), least(f, times(f, "%to", _BLOCK), "%rows")
    rows = rounded_down(f, stop, side)
    count = rounded_down(f, "%count", side)
    if side > 1:
        with f.loop(count, _BLOCK, hint="block") as first, f.loop(rows, side, start, hint="rows") as i:
            with f.loop(least(f, plus(f, first, _BLOCK), count), side, first, hint="squares") as j:
                _square(f, kind, side, i, j)
        with f.loop(rows, 1, start, hint="row") as i, f.loop("%count", 1, count, hint="rest") as j:
            _one(f, kind, i, j)
    with f.loop(stop, 1, rows if side > 1 else start, hint="row") as i, f.loop("%count", hint="rest") as j:
        _one(f, kind, i, j)


def _one(f: LLVMFunction, kind: str, i: str, j: str) -> None:
    source = f.offset("%source", plus(f, i, times(f, j, "%gap")), kind)
    f.store(kind, f.load(kind, source), f.offset("%into", plus(f, times(f, i, "%apart"), j), kind))


def _square(f: LLVMFunction, kind: str, side: int, i: str, j: str) -> None:
    """Write one square: element (j, i) of the source becomes element (i, j)."""
    vector, align = f"<{side} x {kind}>", int(kind[1:]) // 8
    places = (f.offset("%source", plus(f, i, times(f, plus(f, j, k), "%gap")), kind) for k in range(side))
    lines = [f.value(f"load {vector}, ptr {place}, align {align}") for place in places]
    for k, line in enumerate(_turned(f, vector, lines)):
        to = f.offset("%into", plus(f, times(f, plus(f, i, k), "%apart"), j), kind)
        f.do(f"store {vector} {line}, ptr {to}, align {align}")


def _turned(f: LLVMFunction, vector: str, lines: list[str]) -> list[str]:
    """Write the lines of a square from its columns: halves are swapped, then their halves, ..."""
    side = len(lines)
    half = side // 2
    while half:
        for k in range(side):
            if k & half:
                continue
            pair = f"{vector} {lines[k]}, {vector} {lines[k + half]}"
            first = [n if not n & half else side + n - half for n in range(side)]
            second = [n + half if not n & half else side + n for n in range(side)]
            lines[k], lines[k + half] = (
                f.value(f"shufflevector {pair}, <{side} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>")
                for numbers in (first, second)
            )
        half //= 2
    return lines
