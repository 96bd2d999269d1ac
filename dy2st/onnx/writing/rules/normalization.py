"""Softmax and its logarithm; other normalizations are decomposed before they come here."""

from __future__ import annotations

from dy2st.ir.program import Operation, tensor_type
from dy2st.onnx.writing.rules.shapes import places
from dy2st.onnx.writing.writer import WHOLE, Writer, rule

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
