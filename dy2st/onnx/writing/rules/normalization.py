"""Softmax and its logarithm; of other normalizations what Decompose leaves whole, because types do not tell shapes."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.onnx.writing.rules.shapes import places
from dy2st.onnx.writing.writer import WHOLE, Names, Writer, rule

WHOLE.update(("softmax", "log_softmax"))


@rule("softmax")
def _softmax(g: Writer, o: Operation) -> str:
    return _along(g, o, "Softmax")


@rule("log_softmax")
def _log_softmax(g: Writer, o: Operation) -> str:
    return _along(g, o, "LogSoftmax")


def _along(g: Writer, o: Operation, op: str) -> str:
    """Write an operator along an axis; a tensor without axes is a line of one element."""
    x = g.one(o.operands[0])
    if tensor_type(o.operands[0]).rank:
        return g.emit(op, x, axis=o.attributes["axis"])
    return g.emit("Squeeze", g.emit(op, g.vector(x), axis=0), g.ints(0))


def _in(g: Writer, v: Value, like: Value) -> str:
    """Write a value in the dtype of another one."""
    wanted = tensor_type(like).dtype
    return g.one(v) if tensor_type(v).dtype is wanted else g.cast(g.one(v), wanted)


def _moments(g: Writer, x: str, axes: Sequence[int], keepdims: int) -> tuple[str, str, str]:
    """Write what is left of a tensor without its mean, the mean, and the variance."""
    over = g.ints(*axes)
    off = g.emit("Sub", x, g.emit("ReduceMean", x, over, keepdims=1))
    variance = g.emit("ReduceMean", g.emit("Mul", off, off), over, keepdims=keepdims)
    return off, g.emit("ReduceMean", x, over, keepdims=keepdims), variance


@rule("layer_norm")
def _layer_norm(g: Writer, o: Operation) -> Names:
    """Write what is left whole: a scale whose shape meets that of the operand only in a run."""
    x, scale, bias = o.operands
    t = tensor_type(x)
    off, mean, variance = _moments(g, g.one(x), range(t.rank - o.attributes["rank"], t.rank), 1)
    root = g.emit("Sqrt", g.emit("Add", variance, g.number(o.attributes["epsilon"], x)))
    made = g.emit("Mul", g.emit("Div", off, root), _in(g, scale, x))
    return g.emit("Add", made, _in(g, bias, x)), mean, variance


def _scaled(g: Writer, o: Operation, off: str, variance: str) -> str:
    """Write off / sqrt(variance + epsilon) * scale + bias, for each channel."""
    x, scale, bias = o.operands[:3]
    root = g.emit("Sqrt", g.emit("Add", variance, g.number(o.attributes["epsilon"], x)))
    slope = _beside_channels(g, o, g.emit("Div", _in(g, scale, x), root))
    return g.emit("Add", g.emit("Mul", off, slope), _beside_channels(g, o, _in(g, bias, x)))


def _others(o: Operation) -> list[int]:
    return [a for a in range(tensor_type(o.operands[0]).rank) if a != o.attributes["axis"]]


def _beside_channels(g: Writer, o: Operation, v: str) -> str:
    others = _others(o)
    return g.emit("Unsqueeze", v, g.ints(*others)) if others else v


@rule("batch_norm_infer")
def _batch_norm_infer(g: Writer, o: Operation) -> str:
    x, _, _, mean, variance = o.operands
    off = g.emit("Sub", g.one(x), _beside_channels(g, o, _in(g, mean, x)))
    return _scaled(g, o, off, _in(g, variance, x))


@rule("batch_norm_train")
def _batch_norm_train(g: Writer, o: Operation) -> Names:
    off, mean, variance = _moments(g, g.one(o.operands[0]), _others(o), 0)
    return _scaled(g, o, off, variance), mean, variance


@rule("softmax_cross_entropy")
def _softmax_cross_entropy(g: Writer, o: Operation) -> str:
    """Read the logarithm at each label, that of class 0 where the label is ignored, and leave it out there."""
    logits, labels = o.operands
    t, axis = tensor_type(labels), o.attributes["axis"] % tensor_type(logits).rank
    ignored = g.emit("Equal", g.one(labels), g.constant(o.attributes["ignore_index"], t.dtype))
    at = g.cast(g.emit("Where", ignored, g.constant(0, t.dtype), g.one(labels)), int64)
    logs = g.emit("LogSoftmax", g.one(logits), axis=axis)
    loss = g.emit("Neg", g.emit("GatherElements", logs, at, axis=axis))
    return g.emit("Where", ignored, g.number(0, logits), loss)


@rule("class_places")
def _class_places(g: Writer, o: Operation) -> str:
    """Write the labels, -1 for the one that is ignored; what is no class is not noticed."""
    labels, t = g.one(o.operands[0]), tensor_type(o.operands[0]).dtype
    x = g.emit("Cast", labels, to=g.type_number(tensor_type(o.results[0]).dtype))
    ignored = g.emit("Equal", labels, g.constant(o.attributes["ignore_index"], t))
    return g.emit("Where", ignored, g.constant(-1, tensor_type(o.results[0]).dtype), x)


@rule("keep_at")
def _keep_at(g: Writer, o: Operation) -> str:
    x, at = g.inputs(o)
    t, axis = tensor_type(o.operands[0]), o.attributes["axis"] % tensor_type(o.operands[0]).rank
    line = g.cast(places(g, g.extent(x, axis)), tensor_type(o.operands[1]).dtype)
    behind = [*range(1, t.rank - axis)]
    line = g.emit("Unsqueeze", line, g.ints(*behind)) if behind else line
    return g.emit("Where", g.emit("Equal", line, at), x, g.constant(0, t.dtype))
