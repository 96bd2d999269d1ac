"""Products of matrices, and attention."""

from __future__ import annotations

from dy2st.dtypes import int32
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
