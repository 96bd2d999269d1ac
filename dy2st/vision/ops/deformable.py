"""Convolution whose windows are read at places of their own (Dai et al., 2017; with a mask Zhu et al., 2019)."""

from __future__ import annotations

import math
from typing import Any

from dy2st.dtypes import int64
from dy2st.functions.core.operands import cast_to, floating
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.comparison import logical_and
from dy2st.functions.math.math import clip, floor
from dy2st.functions.shape.creation import arange
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.window_arguments import each
from dy2st.nn.initializer.distributions import Normal
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


def deform_conv2d(
    x: Any, offset: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, deformable_groups: int = 1, groups: int = 1, mask: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the convolution of x [batch, channels, height, width] read beside the pixels of its windows.

    Parameters
    ----------
    offset
        [batch, 2 deformable_groups kh kw, out height, out width]: how far down and right each pixel is read.
    weight
        [out channels, channels / groups, kh, kw].
    deformable_groups
        Into so many parts the channels divide, each with offsets of its own.
    mask
        What each value that is read is times: [batch, deformable_groups kh kw, out height, out width].

    >>> import dy2st as paddle
    >>> x = paddle.arange(9, dtype="float32").reshape([1, 1, 3, 3])
    >>> deform_conv2d(x, paddle.full([1, 2, 3, 3], 0.5), paddle.ones([1, 1, 1, 1]))[0, 0, 0].tolist()
    [2.0, 3.0, 1.75]
    """
    name = "deform_conv2d"
    x, offset = floating(x, name), floating(offset, name)
    (n, c, h, w), (kh, kw) = x.shape, weight.shape[2:]
    (sy, sx), (py, px), (dy, dx) = (each(v, 2, what, name) for v, what in _named(stride, padding, dilation))
    if c % deformable_groups or c % groups:
        raise ValueError(f"{name}: {c} channels do not divide into {deformable_groups} and {groups} groups")
    oh, ow = offset.shape[2:]
    moved = reshape(offset, [n, deformable_groups, kh * kw, 2, oh, ow])

    def places(axis: int, out: Any, step: int, pad: int, apart: int) -> Tensor:
        taps = arange(kh)[:, None] + arange(kw) * 0 if axis == 0 else arange(kh)[:, None] * 0 + arange(kw)
        taps = cast_to(reshape(taps, [-1, 1, 1]), x.dtype) * apart
        base = cast_to(arange(out), x.dtype) * step - pad
        return moved[:, :, :, axis] + (taps + (base[:, None] if axis == 0 else base[None, :]))

    y, x_ = places(0, oh, sy, py, dy), places(1, ow, sx, px, dx)
    planes = reshape(x, [n, deformable_groups, c // deformable_groups, h * w])
    read = _between(planes, reshape(y, [n, deformable_groups, 1, -1]), reshape(x_, [n, deformable_groups, 1, -1]), h, w)
    if mask is not None:
        read = read * reshape(floating(mask, name), [n, deformable_groups, 1, -1])
    columns = reshape(read, [n, groups, (c // groups) * kh * kw, oh * ow])
    out = reshape(matmul(reshape(weight, [groups, -1, (c // groups) * kh * kw]), columns), [n, -1, oh, ow])
    return out if bias is None else out + reshape(bias, [1, -1, 1, 1])


def _named(stride: Any, padding: Any, dilation: Any) -> list[tuple[Any, str]]:
    return [(stride, "stride"), (padding, "padding"), (dilation, "dilation")]


def _between(planes: Tensor, y: Tensor, x: Tensor, h: Any, w: Any) -> Tensor:
    """Return the values of planes [..., channels, h * w] at places between pixels, 0 outside."""
    top, left = floor(y), floor(x)
    total = 0.0
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        v, u = top + row, left + column
        share = (1.0 - (y - v).abs()) * (1.0 - (x - u).abs())
        inside = logical_and(logical_and(v >= 0.0, v < h), logical_and(u >= 0.0, u < w))
        flat = cast_to(clip(v, 0.0, h - 1) * w + clip(u, 0.0, w - 1), int64)
        total = total + take_along_axis(planes, flat, -1) * (share * cast_to(inside, share.dtype))
    return total  # type: ignore[return-value]


class DeformConv2D(Layer):
    """`deform_conv2d` with a weight and a bias of its own."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, deformable_groups: int = 1, groups: int = 1, weight_attr: Any = None, bias_attr: Any = None,
    ):  # fmt: skip
        super().__init__()
        self._kernel_size = each(kernel_size, 2, "kernel_size", "DeformConv2D")
        self._arguments = (stride, padding, dilation, deformable_groups, groups)
        spread = Normal(0.0, math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels)))
        shape = [out_channels, in_channels // groups, *self._kernel_size]
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=spread)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(x, offset, self.weight, self.bias, *self._arguments, mask)
