"""Sums and their like over axes."""

from __future__ import annotations

from dy2st.dtypes import bool_, int32, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.onnx.writing.writer import WHOLE, Writer, rule

WHOLE.update(("sum", "mean"))


def _reduced(g: Writer, op: str, x: str, o: Operation) -> str:
    axes = o.attributes["axis"]
    if not axes:
        return x
    return g.emit(op, x, g.ints(*axes), keepdims=int(o.attributes["keepdim"]))


@rule("sum", "mean", "prod")
def _total(g: Writer, o: Operation) -> str:
    """Write a reduction of elements in the dtype of the result."""
    x, wanted = g.one(o.operands[0]), tensor_type(o.results[0]).dtype
    if tensor_type(o.operands[0]).dtype is not wanted:
        x = g.cast(x, wanted)
    return _reduced(g, f"Reduce{o.op.name.title()}", x, o)


@rule("max", "min", "top")
def _extreme(g: Writer, o: Operation) -> str:
    x, t = g.one(o.operands[0]), tensor_type(o.operands[0]).dtype
    op = "ReduceMin" if o.op.name.endswith("n") else "ReduceMax"
    if t.name != "int16":
        return _reduced(g, op, x, o)
    return g.cast(_reduced(g, op, g.cast(x, int32), o), t)


@rule("all", "any")
def _counted(g: Writer, o: Operation) -> str:
    """Write whether none is zero, or some is not, by counting."""
    x = g.cast(g.one(o.operands[0]), bool_)
    every = o.op.name.endswith("l")
    count = _reduced(g, "ReduceSum", g.cast(g.emit("Not", x) if every else x, int64), o)
    none = g.emit("Equal", count, g.constant(0, int64))
    return none if every else g.emit("Not", none)


@rule("logsumexp")
def _logsumexp(g: Writer, o: Operation) -> str:
    """Write what is left where there are no axes to shift along."""
    return g.emit("Log", _reduced(g, "ReduceSum", g.emit("Exp", g.one(o.operands[0])), o))


@rule("argmax", "argmin")
def _place(g: Writer, o: Operation) -> str:
    x, t, axis = g.one(o.operands[0]), tensor_type(o.operands[0]), o.attributes["axis"]
    keepdim = o.attributes["keepdim"]
    if t.dtype.name in ("bool", "int16"):
        x = g.cast(x, int32)
    op = "ArgMin" if o.op.name.endswith("n") else "ArgMax"
    if axis is not None and t.rank:
        return g.emit(op, x, axis=axis, keepdims=int(keepdim))
    found = g.emit(op, g.emit("Reshape", x, g.ints(-1)), axis=0, keepdims=0)
    return g.emit("Reshape", found, g.ints(*[1] * t.rank)) if keepdim else found


@rule("sum_to")
def _sum_to(g: Writer, o: Operation) -> str:
    """Sum over the axes in front, and those whose extent is 1 in the shape and not in the operand."""
    x, template = g.one(o.operands[0]), o.attributes["shape"]
    lead = tensor_type(o.operands[0]).rank - len(template)
    if lead:
        x = g.emit("ReduceSum", x, g.ints(*range(lead)), keepdims=0)
    if not template:
        return x
    one = g.constant(1, int64)
    wanted = g.emit("Equal", g.shape(template, o.operands[1:]), one)
    given = g.emit("Equal", g.emit("Shape", x), one)
    places = g.emit("NonZero", g.cast(g.emit("And", wanted, g.emit("Not", given)), int64))
    axes = g.emit("Reshape", places, g.ints(-1))
    return g.emit("ReduceSum", x, axes, keepdims=1, noop_with_empty_axes=1)
