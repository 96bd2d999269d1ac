"""Elements in other places: `flip`, `diagonal` are views; `roll`, `pad`, `tril`, `triu` and `bitcast` copy pieces."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.elementwise.complex import PART_OF
from dy2st.ops.shape.flip_roll_pad import Tril
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import clear, copy, fill
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, most, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    StridedTensor,
    element_kind,
    in_register,
    is_native,
)
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, are_ints, extents, product, viewed
from dy2st.runtime.backends.cpu.ops.views import is_memory, strides

Made = Sequence[Components]
_FARTHEST = 1 << 62
"""No diagonal is so far off; sums of it and of an extent are below 2 ** 63."""


@rule("flip", reads_gaps=True)
def flip(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a view that runs backwards."""
    value, f = operation.operands[0], w.f
    if not is_memory(value):
        return host_rule(w, operation, operands)
    shape, apart = extents(value, operands[0]), strides(w, value, operands[0])
    first = "0"
    for axis in {a % len(shape) for a in operation.attributes["axes"]}:
        first = plus(f, first, times(f, minus(f, shape[axis], 1), apart[axis]))
        apart[axis] = minus(f, 0, apart[axis])
    return [_view(w, value, operands[0], first, shape, apart)]


@rule("diagonal", reads_gaps=True)
def diagonal(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a view whose last axis moves along two axes."""
    value, f = operation.operands[0], w.f
    if not is_memory(value):
        return host_rule(w, operation, operands)
    offset = max(-_FARTHEST, min(operation.attributes["offset"], _FARTHEST))
    shape, apart = extents(value, operands[0]), strides(w, value, operands[0])
    rows, columns = (a % len(shape) for a in operation.attributes["axes"])
    below, right = least(f, shape[rows], max(-offset, 0)), least(f, shape[columns], max(offset, 0))
    length = most(f, 0, least(f, minus(f, shape[rows], below), minus(f, shape[columns], right)))
    first = plus(f, times(f, apart[rows], below), times(f, apart[columns], right))
    rest = [i for i in range(len(shape)) if i not in (rows, columns)]
    step = plus(f, apart[rows], apart[columns])
    return [_view(w, value, operands[0], first, [*(shape[i] for i in rest), length], [*(apart[i] for i in rest), step])]


def _view(
    w: FunctionEmitter, value: Value, components: Components, first: str, shape: Sequence[str], apart: Sequence[str]
) -> StridedTensor:
    data = w.f.offset(components[1], times(w.f, first, tensor_type(value).dtype.itemsize))
    return StridedTensor.of(viewed(w, value, components, data, list(shape)), apart)


@rule("tril", "triu")
def triangle(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write rows of which a part is kept: up to the diagonal, or from it on."""
    value, f = operation.operands[0], w.f
    if not is_memory(value):
        return host_rule(w, operation, operands)
    offset = max(-_FARTHEST, min(operation.attributes["diagonal"], _FARTHEST))
    t, shape = tensor_type(value), extents(value, operands[0])
    made = allocate(w, t.dtype, shape)
    rows, columns, size = shape[-2], shape[-1], t.dtype.itemsize
    with f.loop(product(w, shape[:-2]), hint="matrix") as m, f.loop(rows, hint="row") as i:
        row = times(f, plus(f, times(f, m, rows), i), columns, size)
        lower = isinstance(operation.op, Tril)
        edge = times(f, least(f, columns, most(f, 0, plus(f, i, offset + lower))), size)
        left, right = (f.offset(f.offset(base, row), edge) for base in (made[1], operands[0][1]))
        start, source = f.offset(made[1], row), f.offset(operands[0][1], row)
        rest = minus(f, times(f, columns, size), edge)
        if lower:
            copy(w, start, source, edge)
            clear(w, left, rest)
        else:
            clear(w, start, edge)
            copy(w, left, right, rest)
    return [made]


@rule("bitcast")
def bitcast(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a copy with elements of another dtype, of complex numbers and their parts a view.

    `eval` says that elements do not come out whole.
    """
    (value,), made, f = operation.operands, tensor_type(operation.results[0]), w.f
    t = tensor_type(value)
    if t.dtype.is_complex and t.rank and made.dtype is PART_OF[t.dtype]:
        shape = extents(value, operands[0])
        return [viewed(w, value, operands[0], operands[0][1], [*shape[:-1], product(w, [shape[-1], "2"])])]
    if made.dtype.is_complex and t.dtype is PART_OF[made.dtype] and made.shape[-1:] == (1,):
        return [viewed(w, value, operands[0], operands[0][1], [*extents(value, operands[0])[:-1], "1"])]
    if t.dtype.is_bool or made.dtype.is_bool or not is_native(t.dtype) or not is_native(made.dtype):
        return host_rule(w, operation, operands)
    if in_register(t):
        kinds = element_kind(t.dtype), element_kind(made.dtype)
        return [
            operands[0] if kinds[0] == kinds[1] else (f.value(f"bitcast {kinds[0]} {operands[0][0]} to {kinds[1]}"),)
        ]
    shape = extents(value, operands[0])
    size = product(w, [shape[-1], str(t.dtype.itemsize)])
    whole = f.value(f"icmp eq i64 {f.value(f'urem i64 {size}, {made.dtype.itemsize}')}, 0")

    def fast() -> Made:
        result = allocate(w, made.dtype, [*shape[:-1], f.value(f"udiv i64 {size}, {made.dtype.itemsize}")])
        copy(w, result[1], operands[0][1], product(w, [*shape[:-1], size]))
        return [result]

    return w.guarded(operation, operands, whole, fast)


@rule("roll")
def roll(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write each row of the last axis that moves in two pieces."""
    value, f = operation.operands[0], w.f
    if not is_memory(value) or not operation.attributes["axes"] or not are_ints(operation.operands[1:]):
        return host_rule(w, operation, operands)
    t, shape = tensor_type(value), extents(value, operands[0])
    moved = _shifts(w, operation, operands, shape)
    made, cursor = allocate(w, t.dtype, shape), f.slot("ptr")
    f.store("ptr", made[1], cursor)
    inner = [product(w, [*shape[axis + 1 :], str(t.dtype.itemsize)]) for axis in range(len(shape))]

    def write(axis: int, source: str) -> None:
        if axis == max(moved):
            head = times(f, moved[axis], inner[axis])
            tail = times(f, minus(f, shape[axis], moved[axis]), inner[axis])
            _put(w, cursor, f.offset(source, tail), head)
            _put(w, cursor, source, tail)
            return
        with f.loop(shape[axis], hint="roll") as i:
            place = i
            if axis in moved:
                early = minus(f, i, moved[axis])
                late = plus(f, early, shape[axis])
                place = f.value(f"select i1 {compare(f, 'slt', early, 0)}, i64 {late}, i64 {early}")
            write(axis + 1, f.offset(source, times(f, place, inner[axis])))

    write(0, operands[0][1])
    return [made]


def _shifts(
    w: FunctionEmitter, operation: Operation, operands: list[Components], shape: Sequence[str]
) -> dict[int, str]:
    """Write by how many places each axis moves forward, fewer than it has; shifts of one axis add up."""
    f, dims, found = w.f, iter(operands[1:]), dict[int, str]()
    for axis, known in zip(operation.attributes["axes"], operation.attributes["shifts"], strict=True):
        places = next(dims)[0] if known is None else str(known)
        at: int = axis % len(shape)
        extent = most(f, 1, shape[at])
        rest = f.value(f"srem i64 {places}, {extent}")
        rest = plus(f, rest, extent, found.get(at, 0))
        found[at] = f.value(f"srem i64 {rest}, {extent}")
    return found


@rule("pad")
def pad(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write row after row, with the value in front of and behind each; `eval` refuses negative widths."""
    value, f = operation.operands[0], w.f
    if not is_memory(value) or not are_ints(operation.operands[2:]):
        return host_rule(w, operation, operands)
    t, shape, dims = tensor_type(value), extents(value, operands[0]), iter(operands[2:])
    given = (*operation.attributes["low"], *operation.attributes["high"])
    widths = [next(dims)[0] if width is None else str(width) for width in given]
    fine = all_of(f, "true", *(compare(f, "ult", width, 2**40) for width in widths))
    low, high = widths[: t.rank], widths[t.rank :]

    def fast() -> Made:
        target = [plus(f, *three) for three in zip(low, shape, high, strict=True)]
        made, cursor = allocate(w, t.dtype, target), f.slot("ptr")
        f.store("ptr", made[1], cursor)
        size = t.dtype.itemsize
        around = [product(w, target[axis + 1 :]) for axis in range(t.rank)]
        inner = [product(w, [*shape[axis + 1 :], str(size)]) for axis in range(t.rank)]

        def outside(count: str) -> None:
            at = f.load("ptr", cursor)
            fill(w, t.dtype, at, count, operands[1][0])
            f.store("ptr", f.offset(at, times(f, count, size)), cursor)

        def write(axis: int, source: str) -> None:
            outside(times(f, low[axis], around[axis]))
            if all(width == "0" for width in (*low[axis + 1 :], *high[axis + 1 :])):
                _put(w, cursor, source, times(f, shape[axis], inner[axis]))
            else:
                with f.loop(shape[axis], hint="pad") as i:
                    write(axis + 1, f.offset(source, times(f, i, inner[axis])))
            outside(times(f, high[axis], around[axis]))

        write(0, operands[0][1])
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _put(w: FunctionEmitter, cursor: str, source: str, size: str) -> None:
    """Write a copy of so many bytes to where a cursor stands, and move it on."""
    at = w.f.load("ptr", cursor)
    copy(w, at, source, size)
    w.f.store("ptr", w.f.offset(at, size), cursor)
