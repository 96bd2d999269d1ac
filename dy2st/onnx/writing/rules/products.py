"""Products of matrices, and attention."""

from __future__ import annotations

from dy2st.dtypes import float32, int8, int32
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.onnx.writing.leaves import Refused
from dy2st.onnx.writing.rules.shapes import places
from dy2st.onnx.writing.writer import Writer, rule


def across(g: Writer, x: str, rank: int) -> str:
    """Write a tensor with its last two axes exchanged."""
    return g.emit("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


def _factor(g: Writer, value: Value, transposed: bool) -> str:
    x = g.one(value)
    return across(g, x, tensor_type(value).rank) if transposed else x


def _product(g: Writer, o: Operation) -> str:
    x = _factor(g, o.operands[0], o.attributes["transpose_x"])
    y = _factor(g, o.operands[1], o.attributes["transpose_y"])
    t = tensor_type(o.operands[0]).dtype
    if t.name not in ("bool", "uint8", "int8", "int16"):
        return g.emit("MatMul", x, y)
    return g.cast(g.emit("MatMul", g.cast(x, int32), g.cast(y, int32)), t)


@rule("matmul")
def _matmul(g: Writer, o: Operation) -> str:
    return _product(g, o)


@rule("matmul_add")
def _matmul_add(g: Writer, o: Operation) -> str:
    return g.emit("Add", _product(g, o), g.one(o.operands[2]))


@rule("dequantize")
def _dequantize(g: Writer, o: Operation) -> str:
    """Write a weight of integers as numbers: one scale a row, or one for each block of it."""
    weight, scale = o.operands
    return _numbers(g, weight, scale, o.attributes["bits"], o.attributes["group"])


@rule("quantized_matmul")
def _quantized_matmul(g: Writer, o: Operation) -> str:
    x, weight, scale = o.operands
    numbers = _numbers(g, weight, scale, o.attributes["bits"], o.attributes["group"])
    return g.emit("MatMul", g.one(x), across(g, numbers, 2))


def _numbers(g: Writer, weight: Value, scale: Value, bits: int, group: int) -> str:
    """Write DequantizeLinear, whose scales are float32; two integers in a byte are taken apart before."""
    wide = tensor_type(scale).dtype
    factors = g.cast(g.one(scale), float32) if wide is not float32 else g.one(scale)
    integers = g.one(weight) if bits == 8 else _unpacked(g, weight)
    if group:
        made = g.emit("DequantizeLinear", integers, across(g, factors, 2), axis=1, block_size=group)
    else:
        made = g.emit("DequantizeLinear", integers, factors, axis=0)
    return g.cast(made, wide) if wide is not float32 else made


def _unpacked(g: Writer, weight: Value) -> str:
    """Write the integers of 4 bits of a weight, by arithmetic on its bytes."""
    both, sixteenth, sixteen = g.cast(g.one(weight), float32), g.constant(0.0625, float32), g.constant(16, float32)
    high = g.emit("Floor", g.emit("Mul", both, sixteenth))
    low = g.emit("Sub", both, g.emit("Mul", high, sixteen))
    above = g.emit("Floor", g.emit("Mul", g.emit("Add", low, g.constant(8, float32)), sixteenth))
    low = g.emit("Sub", low, g.emit("Mul", above, sixteen))
    pairs = g.emit("Concat", *(g.emit("Unsqueeze", x, g.ints(1)) for x in (low, high)), axis=1)
    first, *rest = [g.extent(g.one(weight), axis) for axis in range(tensor_type(weight).rank)]
    shape = g.joined([g.emit("Mul", first, g.ints(2)), *rest])
    return g.cast(g.emit("Reshape", pairs, shape, allowzero=1), int8)


@rule("attention")
def _attention(g: Writer, o: Operation) -> str:
    """Write softmax(q k^T + mask) v; a causal mask leaves each row the columns up to its own number."""
    q, k, v, *more = o.operands
    t = tensor_type(q)
    if len(more) > 1:
        raise Refused("its dropout draws random numbers")
    rank = t.rank
    scores = g.emit("MatMul", g.one(q), across(g, g.one(k), tensor_type(k).rank))
    if more:
        scores = g.emit("Add", scores, g.one(more[0]))
    if o.attributes["causal"]:
        row = g.emit("Unsqueeze", places(g, g.extent(scores, rank - 2)), g.ints(1))
        seen = g.emit("GreaterOrEqual", row, places(g, g.extent(scores, rank - 1)))
        scores = g.emit("Where", seen, scores, g.constant(float("-inf"), t.dtype))
    return g.emit("MatMul", g.emit("Softmax", scores, axis=-1), g.one(v))


@rule("det")
def _det(g: Writer, o: Operation) -> str:
    return g.emit("Det", g.one(o.operands[0]))
