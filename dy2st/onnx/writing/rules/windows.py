"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.onnx.writing.leaves import Refused
from dy2st.onnx.writing.writer import Writer, rule


def _pads(padding: Sequence[tuple[int, int]]) -> list[int]:
    """Return widths as ONNX has them: all in front, then all behind."""
    return [low for low, _ in padding] + [high for _, high in padding]


@rule("conv")
def _conv(g: Writer, o: Operation) -> str:
    a = o.attributes
    return g.emit("Conv", *g.inputs(o), strides=list(a["stride"]), pads=_pads(a["padding"]),
                  dilations=list(a["dilation"]), group=a["groups"])  # fmt: skip


@rule("conv_input_grad")
def _conv_input_grad(g: Writer, o: Operation) -> str:
    """Write the transposed convolution without padding, cut the padding off, and add places that nothing reached."""
    a, (c, w, *dims) = o.attributes, o.operands
    spatial = tensor_type(w).rank - 2
    whole = g.emit("ConvTranspose", g.one(c), g.one(w), strides=list(a["stride"]), dilations=list(a["dilation"]),
                   group=a["groups"])  # fmt: skip
    target = g.emit("Slice", g.shape(a["shape"], dims), g.ints(2), g.ints(2 + spatial))
    low = g.ints(*(p for p, _ in a["padding"]))
    end = g.emit("Add", target, low)
    lacking = g.emit("Max", g.emit("Sub", end, g.emit("Shape", whole, start=2)), g.ints(*[0] * spatial))
    widths = g.joined([g.ints(*[0] * (2 + spatial + 2)), lacking])
    padded = g.emit("Pad", whole, widths, g.number(0, c))
    return g.emit("Slice", padded, low, end, g.ints(*range(2, 2 + spatial)))


@rule("conv_weight_grad")
def _conv_weight_grad(g: Writer, o: Operation) -> str:
    """Write a convolution of channels as batch: what was the stride is the dilation."""
    a, (x, c, *dims) = o.attributes, o.operands
    rank, groups = tensor_type(x).rank, a["groups"]
    swap = [1, 0, *range(2, rank)]
    kernel = g.emit("Slice", g.shape(a["shape"], dims), g.ints(2), g.ints(rank))
    axes, parts = g.ints(*range(2, rank)), []
    columns = [g.several("Split", [g.one(v)], groups, axis=1, num_outputs=groups) if groups > 1 else [g.one(v)]
               for v in (x, c)]  # fmt: skip
    for part, change in zip(*columns, strict=True):
        made = g.emit("Conv", g.emit("Transpose", part, perm=swap), g.emit("Transpose", change, perm=swap),
                      strides=list(a["dilation"]), dilations=list(a["stride"]), pads=_pads(a["padding"]))  # fmt: skip
        parts.append(g.emit("Transpose", g.emit("Slice", made, g.ints(*[0] * (rank - 2)), kernel, axes), perm=swap))
    return parts[0] if groups == 1 else g.emit("Concat", *parts, axis=0)


def _pooling(o: Operation) -> dict[str, object]:
    a = o.attributes
    return {"kernel_shape": list(a["kernel"]), "strides": list(a["stride"]), "pads": _pads(a["padding"]),
            "ceil_mode": int(a["ceil_mode"])}  # fmt: skip


@rule("max_pool")
def _max_pool(g: Writer, o: Operation) -> list[str]:
    """Write the places in an operator of its own, which is left out where nobody reads them."""
    x, how = g.one(o.operands[0]), _pooling(o)
    (values,) = g.several("MaxPool", [x], 1, **how)
    at = g.several("MaxPool", [x], 2, **how)[1]
    area = g.emit("ReduceProd", g.emit("Shape", x, start=2), keepdims=0)
    return [values, g.emit("Mod", at, area)]


@rule("avg_pool")
def _avg_pool(g: Writer, o: Operation) -> str:
    return g.emit(
        "AveragePool", g.one(o.operands[0]), count_include_pad=int(not o.attributes["exclusive"]), **_pooling(o)
    )


def _averages(extent: int, count: int, dtype: np.dtype) -> np.ndarray:
    matrix = np.zeros((extent, count), dtype)
    for i in range(count):
        cell = slice(i * extent // count, -(-(i + 1) * extent // count))
        matrix[cell, i] = 1.0 / (cell.stop - cell.start)
    return matrix


def _along(g: Writer, x: Value, name: str, axis: int, count: int) -> str:
    """Write the averages along one axis: a mean, or a product with a matrix."""
    t = tensor_type(x)
    if count == 1:
        return g.emit("ReduceMean", name, g.ints(axis), keepdims=1)
    extent = t.shape[axis]
    if not isinstance(extent, int):
        raise Refused(f"how large its cells are along axis {axis} is known only at run time")
    perm = list(range(t.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    moved = g.emit("Transpose", name, perm=perm)
    made = g.emit("MatMul", moved, g.constant(_averages(extent, count, t.dtype.numpy)))
    return g.emit("Transpose", made, perm=perm)


@rule("adaptive_avg_pool")
def _adaptive_avg_pool(g: Writer, o: Operation) -> str:
    made = g.one(o.operands[0])
    for axis, count in enumerate(o.attributes["output"], 2):
        made = _along(g, o.operands[0], made, axis, count)
    return made
