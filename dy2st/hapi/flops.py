"""`flops`: how many multiplications a network does for one input, layer by layer, as Paddle counts them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dy2st.functions.shape.creation import ones
from dy2st.ir.context import replaced
from dy2st.nn.layer import Layer
from dy2st.nn.layers import activation, conv, linear, norm, pooling

Rule = Callable[[Any, Any, Any], int]
_TRANSPOSED = (conv.Conv1DTranspose, conv.Conv2DTranspose, conv.Conv3DTranspose)


def flops(
    net: Layer, input_size: Any, custom_ops: dict[type, Callable[..., None]] | None = None, print_detail: bool = False
) -> int:
    """Return how many multiplications (with their additions) a network does for ones of `input_size`.

    Parameters
    ----------
    custom_ops
        For classes of layers, functions of (layer, inputs, output) that add to `layer.total_ops`.
    print_detail
        Print a table of the layers.

    >>> import dy2st as paddle
    >>> paddle.flops(paddle.nn.Linear(3, 2), [1, 3])
    6
    """
    if not isinstance(net, Layer):
        raise TypeError(f"flops needs a Layer, not {type(net).__name__}")
    rows: list[tuple[str, ...]] = []

    def count(layer: Layer, inputs: Any, output: Any) -> None:
        done = _counted(layer, inputs, output, custom_ops or {})
        first = output[0] if isinstance(output, (list, tuple)) else output
        own = sum(p.size for p in layer.parameters())
        rows.append((layer.full_name(), str(list(inputs[0].shape)), str(list(first.shape)), str(own), str(done)))

    leaves = [layer for layer in net.sublayers(include_self=True) if not list(layer.children())]
    hooks = [layer.register_forward_post_hook(count) for layer in leaves]
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    net.eval()
    try:
        with replaced(grad=False):
            net(ones(list(input_size)))
    finally:
        for hook in hooks:
            hook.remove()
        for layer, training in modes:
            layer.training = training
    total = sum(int(row[-1]) for row in rows)
    if print_detail:
        _print(rows, total, sum(p.size for p in net.parameters()))
    return total


def _counted(layer: Any, inputs: Any, output: Any, custom: dict[type, Callable[..., None]]) -> int:
    if type(layer) in custom:
        layer.total_ops = 0
        custom[type(layer)](layer, inputs, output)
        return int(layer.total_ops)
    for kinds, rule in _RULES:
        if isinstance(layer, kinds):
            return rule(layer, inputs[0], output)
    return 0


def _size(x: Any) -> int:
    return math.prod(x.shape)


def _convolved(m: Any, x: Any, y: Any) -> int:
    channels = m.weight.shape[0] // m._groups if isinstance(m, _TRANSPOSED) else m.weight.shape[1]
    return _size(y) * (channels * math.prod(m.weight.shape[2:]) + (m.bias is not None))


def _averaged(m: Any, x: Any, y: Any) -> int:
    parts = (a // b for a, b in zip(x.shape[2:], y.shape[2:], strict=True))
    return _size(y) * (math.prod(parts) + 1)


_RULES: tuple[tuple[tuple[type, ...], Rule], ...] = (
    ((linear.Linear,), lambda m, x, y: _size(y) * m.weight.shape[0]),
    ((conv.Conv1D, conv.Conv2D, conv.Conv3D, *_TRANSPOSED), _convolved),
    ((norm.BatchNorm, norm.BatchNorm1D, norm.BatchNorm2D, norm.BatchNorm3D), lambda m, x, y: 2 * _size(x)),
    ((activation.LeakyReLU, activation.PReLU), lambda m, x, y: _size(x)),
    ((pooling.AvgPool1D, pooling.AvgPool2D, pooling.AvgPool3D), lambda m, x, y: _size(y)),
    ((pooling.AdaptiveAvgPool1D, pooling.AdaptiveAvgPool2D, pooling.AdaptiveAvgPool3D), _averaged),
)


def _print(rows: list[tuple[str, ...]], total: int, parameters: int) -> None:
    heads = ("Layer Name", "Input Shape", "Output Shape", "Params", "Flops")
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    rule = "+-" + "-+-".join("-" * w for w in widths) + "-+"
    print(rule)
    for i, row in enumerate((heads, *rows)):
        print("| " + " | ".join(cell.center(w) for cell, w in zip(row, widths, strict=True)) + " |")
        if i == 0:
            print(rule)
    print(rule)
    print(f"Total Flops: {total}     Total Params: {parameters}")
