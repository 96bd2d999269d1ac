"""Elements in other places: shapes, axes, parts, padding, triangles and diagonals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.dtypes import DType, int32, int64, uint8
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.onnx.writing.writer import Names, Writer, rule


@rule("dim")
def _dim(g: Writer, o: Operation) -> str:
    return scalar(g, g.extent(g.one(o.operands[0]), o.attributes["axis"]))


def scalar(g: Writer, vector: str) -> str:
    """Write the one element of a vector as a number without axes."""
    return g.emit("Squeeze", vector, g.ints(0))


@rule("broadcast_extent")
def _broadcast_extent(g: Writer, o: Operation) -> str:
    a, b = g.inputs(o)
    return g.emit("Where", g.emit("Equal", a, g.constant(1, int64)), b, a)


@rule("broadcast")
def _broadcast(g: Writer, o: Operation) -> str:
    return g.emit("Expand", g.one(o.operands[0]), g.shape(o.attributes["shape"], o.operands[1:]))


@rule("reshape")
def _reshape(g: Writer, o: Operation) -> str:
    template = o.attributes["shape"]
    return g.emit("Reshape", g.one(o.operands[0]), g.shape(template, o.operands[1:]), allowzero=int(-1 not in template))


@rule("transpose")
def _transpose(g: Writer, o: Operation) -> str:
    return g.emit("Transpose", g.one(o.operands[0]), perm=list(o.attributes["perm"]))


@rule("expand_dims")
def _expand_dims(g: Writer, o: Operation) -> str:
    return g.emit("Unsqueeze", g.one(o.operands[0]), g.ints(*o.attributes["axes"]))


@rule("squeeze")
def _squeeze(g: Writer, o: Operation) -> str:
    axes = o.attributes["axes"]
    return g.emit("Squeeze", g.one(o.operands[0]), g.ints(*axes)) if axes else g.one(o.operands[0])


@rule("concat")
def _concat(g: Writer, o: Operation) -> str:
    return g.emit("Concat", *g.inputs(o), axis=o.attributes["axis"])


@rule("stack")
def _stack(g: Writer, o: Operation) -> str:
    axis = o.attributes["axis"]
    return g.emit("Concat", *(g.emit("Unsqueeze", x, g.ints(axis)) for x in g.inputs(o)), axis=axis)


@rule("split")
def _split(g: Writer, o: Operation) -> Names:
    sections = o.attributes["sections"]
    lengths = g.shape(sections, o.operands[1:])
    return g.several("Split", [g.one(o.operands[0]), lengths], len(sections), axis=o.attributes["axis"])


_LEAST = np.iinfo(np.int64).min


@rule("flip")
def _flip(g: Writer, o: Operation) -> str:
    axes = o.attributes["axes"]
    n = len(axes)
    if not n:
        return g.one(o.operands[0])
    back, end = g.ints(*[-1] * n), g.ints(*[_LEAST] * n)
    return g.emit("Slice", g.one(o.operands[0]), back, end, g.ints(*axes), back)


@rule("roll")
def _roll(g: Writer, o: Operation) -> str:
    x, dims = g.one(o.operands[0]), iter(o.operands[1:])
    for shift, axis in zip(o.attributes["shifts"], o.attributes["axes"], strict=True):
        moved = g.ints(shift) if shift is not None else g.vector(g.one(next(dims)))
        extent = g.emit("Max", g.extent(x, axis), g.ints(1))
        cut = g.emit("Mod", g.emit("Neg", moved), extent)
        tail = g.emit("Slice", x, cut, g.ints(np.iinfo(np.int64).max), g.ints(axis))
        x = g.emit("Concat", tail, g.emit("Slice", x, g.ints(0), cut, g.ints(axis)), axis=axis)
    return x


@rule("pad")
def _pad(g: Writer, o: Operation) -> str:
    x, value, *dims = o.operands
    template = (*o.attributes["low"], *o.attributes["high"])
    if not template:
        return g.one(x)
    return g.emit("Pad", g.one(x), g.shape(template, dims), g.one(value))


@rule("tril", "triu")
def _triangle(g: Writer, o: Operation) -> str:
    t, narrow = tensor_type(o.operands[0]).dtype, ("uint8", "int8", "int16")
    x = g.one(o.operands[0])
    if t.name in narrow:
        x = g.cast(x, int32)
    upper = int(o.op.name.endswith("u"))
    made = g.emit("Trilu", x, g.constant(o.attributes["diagonal"], int64), upper=upper)
    return g.cast(made, t) if t.name in narrow else made


def places(g: Writer, count: str) -> str:
    """Write 0, 1, ... of int64, as many as the one element of a vector says."""
    return g.emit("Range", g.constant(0, int64), scalar(g, count), g.constant(1, int64))


def moved_last(g: Writer, x: str, rank: int, axes: Sequence[int]) -> str:
    """Write a tensor with these axes behind the others."""
    perm = [*(a for a in range(rank) if a not in axes), *axes]
    return x if perm == list(range(rank)) else g.emit("Transpose", x, perm=perm)


@rule("diagonal")
def _diagonal(g: Writer, o: Operation) -> str:
    """Read the planes, each as a vector, at places that are a row and a column apart."""
    offset, rank = o.attributes["offset"], tensor_type(o.operands[0]).rank
    x = moved_last(g, g.one(o.operands[0]), rank, o.attributes["axes"])
    rows, columns = g.extent(x, rank - 2), g.extent(x, rank - 1)
    first_row, first_column = g.ints(max(-offset, 0)), g.ints(max(offset, 0))
    count = g.emit("Min", g.emit("Sub", rows, first_row), g.emit("Sub", columns, first_column))
    at = places(g, g.emit("Max", count, g.ints(0)))
    row, column = g.emit("Add", at, first_row), g.emit("Add", at, first_column)
    flat = g.emit("Add", g.emit("Mul", row, columns), column)
    planes = g.joined([g.emit("Shape", x, end=rank - 2), g.emit("Mul", rows, columns)]) if rank > 2 else g.ints(-1)
    return g.emit("Gather", g.emit("Reshape", x, planes, allowzero=int(rank > 2)), flat, axis=rank - 2)


@rule("diagonal_embed")
def _diagonal_embed(g: Writer, o: Operation) -> str:
    """Repeat the diagonal along each row, and keep of it what is on the diagonal."""
    template, offset, axes = (o.attributes[name] for name in ("shape", "offset", "axes"))
    x, t = g.one(o.operands[0]), tensor_type(o.operands[0]).dtype
    rank, target = len(template), g.shape(template, o.operands[1:])
    rows, columns = (g.emit("Gather", target, g.ints(axis)) for axis in axes)
    row, column = g.emit("Unsqueeze", places(g, rows), g.ints(1)), places(g, columns)
    on = g.emit("Equal", g.emit("Sub", column, row), g.constant(offset, int64))
    last = g.emit("Sub", g.extent(x, rank - 2), g.ints(1))
    place = g.emit("Sub", places(g, rows), g.ints(max(-offset, 0)))
    place = g.emit("Min", g.emit("Max", place, g.ints(0)), last)
    lines = g.emit("Unsqueeze", g.emit("Gather", x, place, axis=rank - 2), g.ints(-1))
    made = g.emit("Where", on, lines, g.constant(0, t))
    perm = [a for a in range(rank) if a not in axes] + list(axes)
    return g.emit("Transpose", made, perm=[perm.index(a) for a in range(rank)])


def chosen(g: Writer, test: str, x: str, y: str, t: DType) -> str:
    """Write `Where` of a dtype for which kernels may lack it."""
    wide = {"bool": uint8, "int16": int32}.get(t.name)
    if wide is None:
        return g.emit("Where", test, x, y)
    return g.cast(g.emit("Where", test, g.cast(x, wide), g.cast(y, wide)), t)


def zeros(g: Writer, like: Value) -> str:
    """Write zeros in the shape of a tensor."""
    return g.emit("Expand", g.number(0, like), g.emit("Shape", g.one(like)))
