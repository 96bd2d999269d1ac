"""New tensors: constants, filled ones, ranges."""

from __future__ import annotations

import numpy as np

from dy2st.dtypes import DType, float64, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.types import ListType, ScalarType, TensorType, VariantType
from dy2st.onnx.writing.leaves import Refused
from dy2st.onnx.writing.rules.shapes import zeros
from dy2st.onnx.writing.writer import Writer, rule


@rule("constant")
def _constant(g: Writer, o: Operation) -> str:
    return g.constant(o.attributes["value"])


@rule("full")
def _full(g: Writer, o: Operation) -> str:
    return g.emit("Expand", g.one(o.operands[0]), g.shape(o.attributes["shape"], o.operands[1:]))


@rule("zeros_like")
def _zeros_like(g: Writer, o: Operation) -> str:
    if isinstance(o.operands[0].type, (ListType, VariantType)):
        raise Refused("it makes a list of derivatives")
    return zeros(g, o.operands[0])


@rule("ones_like")
def _ones_like(g: Writer, o: Operation) -> str:
    return g.emit("Expand", g.number(1, o.operands[0]), g.emit("Shape", g.one(o.operands[0])))


def _as(g: Writer, x: str, kind: str, wanted: DType) -> str:
    """Write a Python number in a dtype."""
    have = int64 if kind == "int" else float64
    return x if kind != "bool" and have is wanted else g.cast(x, wanted)


@rule("arange")
def _arange(g: Writer, o: Operation) -> str:
    kinds = [v.type.kind for v in o.operands if isinstance(v.type, ScalarType)]
    wanted, names = o.attributes["dtype"], g.inputs(o)
    if "float" not in kinds:
        made = g.emit("Range", *(_as(g, x, k, int64) for x, k in zip(names, kinds, strict=True)))
        return made if wanted is int64 else g.cast(made, wanted)
    start, stop, step = (_as(g, x, k, float64) for x, k in zip(names, kinds, strict=True))
    count = g.cast(g.emit("Ceil", g.emit("Div", g.emit("Sub", stop, start), step)), int64)
    turns = g.cast(g.emit("Range", g.constant(0, int64), count, g.constant(1, int64)), float64)
    made = g.emit("Add", g.emit("Mul", turns, step), start)
    return made if wanted is float64 else g.cast(made, wanted)


@rule("linspace")
def _linspace(g: Writer, o: Operation) -> str:
    """Write start + i * (stop - start) / (num - 1), and `stop` itself in the last place."""
    kinds = [v.type.kind for v in o.operands if isinstance(v.type, ScalarType)]
    start, stop = (_as(g, x, k, float64) for x, k in zip(g.inputs(o)[:2], kinds, strict=False))
    num, one = g.one(o.operands[2]), g.constant(1, int64)
    turns = g.emit("Range", g.constant(0, int64), num, one)
    last = g.emit("Sub", num, one)
    parts = g.cast(g.emit("Max", last, one), float64)
    step = g.emit("Div", g.emit("Sub", stop, start), parts)
    made = g.emit("Add", g.emit("Mul", g.cast(turns, float64), step), start)
    at_end = g.emit("And", g.emit("Equal", turns, last), g.emit("Greater", turns, g.constant(0, int64)))
    wanted = o.attributes["dtype"]
    made = g.emit("Where", at_end, stop, made)
    return made if wanted is float64 else g.cast(made, wanted)


@rule("eye")
def _eye(g: Writer, o: Operation) -> str:
    zero, one = g.constant(0, int64), g.constant(1, int64)
    rows, columns = (g.emit("Range", zero, n, one) for n in g.inputs(o))
    return g.cast(g.emit("Equal", g.emit("Unsqueeze", rows, g.ints(1)), columns), o.attributes["dtype"])


@rule("one_hot")
def _one_hot(g: Writer, o: Operation) -> str:
    """Compare with 0, 1, ...; what is no class has no 1."""
    classes = o.attributes["num_classes"]
    count = g.one(o.operands[1]) if classes is None else g.constant(classes, int64)
    line = g.emit("Range", g.constant(0, int64), count, g.constant(1, int64))
    x = g.cast(g.emit("Unsqueeze", g.one(o.operands[0]), g.ints(-1)), int64)
    return g.cast(g.emit("Equal", x, line), o.attributes["dtype"])


@rule("scalar_to_tensor")
def _scalar_to_tensor(g: Writer, o: Operation) -> str:
    return g.cast(g.one(o.operands[0]), o.attributes["dtype"])


@rule("item")
def _item(g: Writer, o: Operation) -> str:
    kind = o.results[0].type
    assert isinstance(kind, ScalarType)
    t = tensor_type(o.operands[0])
    x = g.one(o.operands[0]) if not t.rank else g.emit("Reshape", g.one(o.operands[0]), g.constant([], int64))
    wanted = {"int": int64, "float": float64}.get(kind.kind)
    return x if wanted is None or wanted is t.dtype else g.cast(x, wanted)


def zeros_of(g: Writer, t: TensorType) -> str:
    """Return zeros in the shape of a type, empty along axes that it does not know."""
    return g.constant(np.zeros([e if isinstance(e, int) else 0 for e in t.shape], t.dtype.numpy))
