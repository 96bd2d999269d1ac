"""Windows of images as columns, and back: `unfold` and its transpose `fold`.

A convolution of single channels whose filters have one 1 each puts every element of a window into a channel of its own;
its transpose adds the elements of columns up where their windows overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.functions.core.operands import constant, floating, op, whole
from dy2st.functions.shape.manipulation import reshape_to
from dy2st.nn.functional.window_arguments import Pairs, each
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import split_shape

_CONV, _CONV_INPUT_GRAD = op("conv"), op("conv_input_grad")


def unfold(
    x: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1, name: str | None = None
) -> Tensor:
    """Return [n, c * kh * kw, windows]: the windows of images [n, c, h, w] as columns.

    `paddings` is one int, (height, width) or (top, left, bottom, right).

    >>> import dy2st as paddle
    >>> paddle.nn.functional.unfold(paddle.ones([1, 2, 3, 3]), 2).shape
    [1, 8, 4]
    """
    x = floating(x, "unfold")
    if x.ndim != 4:
        raise ValueError(f"unfold needs images, tensors of 4 axes, not the shape {x.shape}")
    kernel, how = _windows(kernel_sizes, strides, paddings, dilations, "unfold")
    n, c, h, w = x.shape
    found = apply(_CONV, reshape_to(x, [n * c, 1, h, w]), _picker(x, kernel), groups=1, **how)
    return reshape_to(found, [n, c * kernel[0] * kernel[1], found.shape[2] * found.shape[3]])


def fold(
    x: Any, output_sizes: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return images [n, c, *output_sizes] from columns [n, c * kh * kw, windows]; what overlaps is added up."""
    x = floating(x, "fold")
    if x.ndim != 3:
        raise ValueError(f"fold needs columns, a tensor of 3 axes, not the shape {x.shape}")
    kernel, how = _windows(kernel_sizes, strides, paddings, dilations, "fold")
    (n, rows, count), sizes = x.shape, each(output_sizes, 2, "output_sizes", "fold")
    places = kernel[0] * kernel[1]
    if isinstance(rows, int) and rows % places:
        raise ValueError(f"fold: columns of {rows} elements are not made of windows of {kernel[0]} x {kernel[1]}")
    counts = [_count(sizes[i], kernel[i], how, i) for i in range(2)]
    if isinstance(count, int) and all(isinstance(c, int) for c in counts) and count != counts[0] * counts[1]:
        raise ValueError(f"fold: {count} columns, but images of {list(sizes)} have {counts[0]} x {counts[1]} windows")
    channels = rows // places
    template, dims = split_shape([n * channels, 1, *sizes])
    columns = reshape_to(x, [n * channels, places, *counts])
    images = apply(_CONV_INPUT_GRAD, columns, _picker(x, kernel), *dims, shape=template, groups=1, **how)
    return reshape_to(images, [n, channels, *sizes])


def _windows(kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any, name: str) -> Any:
    four = isinstance(paddings, (list, tuple)) and len(paddings) == 4
    pads = paddings if four else each(paddings, 2, "paddings", name)
    top, left, bottom, right = (whole(p, name) for p in (pads if len(pads) == 4 else (*pads, *pads)))
    pairs: Pairs = ((top, bottom), (left, right))
    how = {
        "stride": each(strides, 2, "strides", name),
        "padding": pairs,
        "dilation": each(dilations, 2, "dilations", name),
    }
    return each(kernel_sizes, 2, "kernel_sizes", name), how


def _count(extent: Any, kernel: int, how: dict[str, Any], axis: int) -> Any:
    """Return how many windows lie along an axis."""
    reach = (kernel - 1) * how["dilation"][axis] + 1
    return (extent + sum(how["padding"][axis]) - reach) // how["stride"][axis] + 1


def _picker(x: Tensor, kernel: tuple[int, ...]) -> Tensor:
    """Return filters [kh * kw, 1, kh, kw], one for each place."""
    places = kernel[0] * kernel[1]
    return constant(np.eye(places, dtype=x.dtype.numpy).reshape(places, 1, *kernel), x.place)
