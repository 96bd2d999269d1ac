"""`summary`: a table of the layers of a network, with the shapes that went through them and their parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import dtype as as_dtype
from dy2st.ir.context import replaced
from dy2st.nn.layer import Layer
from dy2st.nn.layers.containers import LayerDict, LayerList, Sequential
from dy2st.runtime.eager.device import namespace
from dy2st.runtime.eager.tensor import Tensor

Row = tuple[str, str, str, int]
HEADS = ("Layer (type)", "Input Shape", "Output Shape", "Param #")


def summary(net: Layer, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print the layers of a network with the shapes of what goes through; return how many parameters it has.

    Parameters
    ----------
    input_size
        The shape of the input, or a list of shapes (or InputSpecs); None and -1 stand for 1. The network runs once on
        ones, in the mode of evaluation and without gradients.
    dtypes
        The dtype of each input; float32 by default.
    input
        The input itself, in place of a size: a tensor, or a list or dict of them.

    >>> import dy2st as paddle
    >>> paddle.summary(paddle.nn.Linear(3, 2), (1, 3))
    --------------------------------------------------
    Layer (type)  Input Shape  Output Shape  Param #
    ==================================================
    Linear-1      [[1, 3]]     [1, 2]        8
    ==================================================
    Total params: 8
    Trainable params: 8
    Non-trainable params: 0
    --------------------------------------------------
    {'total_params': 8, 'trainable_params': 8}
    """
    if not isinstance(net, Layer):
        raise TypeError(f"summary needs a Layer, not {type(net).__name__}")
    if (input is None) == (input_size is None):
        raise ValueError("summary: give one of input_size and input")
    given = input if input is not None else _ones(input_size, dtypes)
    rows = _run(net, given)
    total = sum(_count(p) for p in net.parameters())
    trainable = sum(_count(p) for p in net.parameters() if not p.stop_gradient)
    print(_table(rows, total, trainable))
    return {"total_params": total, "trainable_params": trainable}


def _ones(sizes: Any, kinds: Any) -> list[Tensor]:
    several = isinstance(sizes, (list, tuple)) and sizes and not all(e is None or isinstance(e, int) for e in sizes)
    shapes = [getattr(s, "shape", s) for s in (sizes if several else [sizes])]
    listed = list(kinds) if isinstance(kinds, (list, tuple)) else [kinds] * len(shapes)
    if len(listed) != len(shapes):
        raise ValueError(f"summary: {len(listed)} dtypes for {len(shapes)} inputs")
    found: list[Tensor] = []
    for shape, kind in zip(shapes, listed, strict=True):
        extents = [1 if e is None or e < 0 else int(e) for e in ([shape] if isinstance(shape, int) else shape)]
        found.append(Tensor(namespace().ones(extents, as_dtype(kind or "float32").numpy)))
    return found


def _run(net: Layer, given: Any) -> list[Row]:
    """Run the network once and note what goes through the layers that are no containers."""
    rows: list[Row] = []
    seen: set[int] = set()

    def note(layer: Layer, inputs: Any, outputs: Any) -> None:
        own = sum(_count(p) for p in layer._parameters.values() if p is not None and id(p) not in seen)
        seen.update(id(p) for p in layer._parameters.values())
        rows.append((f"{type(layer).__name__}-{len(rows) + 1}", str(_shapes(inputs)), str(_shapes(outputs)), own))

    parts = [layer for layer in net.sublayers(include_self=True) if _is_shown(layer, net)]
    hooks = [layer.register_forward_post_hook(note) for layer in parts]
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    net.eval()
    try:
        with replaced(grad=False):
            net(**given) if isinstance(given, dict) else net(*(given if isinstance(given, (list, tuple)) else [given]))
    finally:
        for hook in hooks:
            hook.remove()
        for layer, training in modes:
            layer.training = training
    return rows


def _is_shown(layer: Layer, net: Layer) -> bool:
    container = isinstance(layer, (Sequential, LayerList, LayerDict)) or (layer is net and layer.sublayers())
    return not container


def _shapes(x: Any) -> Any:
    if isinstance(x, Tensor):
        return list(x.shape)
    if isinstance(x, (list, tuple)):
        return [_shapes(item) for item in x]
    if isinstance(x, dict):
        return {key: _shapes(item) for key, item in x.items()}
    return type(x).__name__


def _count(p: Tensor) -> int:
    return math.prod(int(e) for e in p.shape)


def _table(rows: Sequence[Row], total: int, trainable: int) -> str:
    texts = [HEADS, *((*row[:3], f"{row[3]:,}") for row in rows)]
    widths = [max(len(text[i]) for text in texts) + 2 for i in range(4)]
    lines = ["".join(t.ljust(w) for t, w in zip(text, widths, strict=True)).rstrip() for text in texts]
    rule, double = "-" * sum(widths), "=" * sum(widths)
    counts = [f"Total params: {total:,}", f"Trainable params: {trainable:,}",
              f"Non-trainable params: {total - trainable:,}"]  # fmt: skip
    return "\n".join([rule, lines[0], double, *lines[1:], double, *counts, rule])
