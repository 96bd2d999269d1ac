"""Convolution layers and their transposes, over one to three axes."""

from __future__ import annotations

import math
from typing import Any

from dy2st.nn.functional import conv as F
from dy2st.nn.functional.padding import pad
from dy2st.nn.functional.window_arguments import channels_last, each
from dy2st.nn.initializer.distributions import Normal
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor

_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}
_PAD_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Layer):
    """What convolutions and their transposes keep: projects derive layers of their own from it, and look for it."""

    rank: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, transposed: bool, dims: int, stride: Any = 1,
        padding: Any = 0, padding_mode: str = "zeros", output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
        weight_attr: Any = None, bias_attr: Any = None, data_format: str | None = None, *, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        name = type(self).__name__
        self.rank = dims
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: {in_channels} and {out_channels} channels do not divide into {groups} groups")
        if padding_mode not in _PAD_MODES:
            names = ", ".join(_PAD_MODES)
            raise ValueError(f"{name}: padding_mode must be one of {names}, not {padding_mode!r}")
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = each(kernel_size, dims, "kernel_size", name)
        self._stride = each(stride, dims, "stride", name)
        self._dilation = each(dilation, dims, "dilation", name)
        self._padding, self._padding_mode, self._output_padding = padding, padding_mode, output_padding
        self._param_attr, self._bias_attr = weight_attr, bias_attr
        self._data_format = data_format or _FORMATS[dims]
        self._last = channels_last(self._data_format, dims, name)
        sides = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        spread = None if transposed else Normal(0.0, math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels)))
        self.weight = self.create_parameter([*sides, *self._kernel_size], weight_attr, default_initializer=spread)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def extra_repr(self) -> str:
        parts = f"{self._in_channels}, {self._out_channels}, kernel_size={list(self._kernel_size)}"
        for what in ("stride", "padding", "dilation", "groups"):
            value = getattr(self, f"_{what}")
            if value not in ((0,) if what == "padding" else (1, (1,) * self.rank)):
                parts += f", {what}={list(value) if isinstance(value, tuple) else value}"
        return f"{parts}, data_format={self._data_format}"


class _Conv(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros", weight_attr: Any = None,
        bias_attr: Any = None, data_format: str | None = None, *, bias: bool = True, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, False, self.rank, stride, padding, padding_mode, 0, dilation,
            groups, weight_attr, bias_attr if bias else False, data_format, dtype=dtype,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return convolved(self, x, self.weight)


def convolved(layer: Any, x: Tensor, weight: Tensor) -> Tensor:
    """Return the convolution that a layer computes, with a weight that stands for its own."""
    padding = layer._padding
    if layer._padding_mode != "zeros":
        x, padding = pad(x, _around(layer), layer._padding_mode, data_format=layer._data_format), 0
    how = (layer._stride, padding, layer._dilation, layer._groups, layer._data_format)
    return getattr(F, f"conv{layer.rank}d")(x, weight, layer.bias, *how)


def _around(layer: Any) -> list[int]:
    """Return the padding of a layer as `pad` takes it: the last axis first."""
    rank = layer.rank
    if layer._padding == "SAME":
        extents = zip(layer._kernel_size, each(layer._dilation, rank, "dilation", "Conv"), strict=True)
        pairs = [((k - 1) * d // 2, (k - 1) * d - (k - 1) * d // 2) for k, d in extents]
    else:
        pairs = [(p, p) for p in each(layer._padding, rank, "padding", type(layer).__name__)]
    return [width for pair in reversed(pairs) for width in pair]


class Conv1D(_Conv):
    """Convolution of [batch, channels, length]."""

    rank = 1


class Conv2D(_Conv):
    """Convolution of images; the weight is [out_channels, in_channels / groups, height, width].

    >>> import dy2st as paddle
    >>> paddle.nn.Conv2D(3, 8, 3, padding=1)(paddle.zeros([1, 3, 5, 5])).shape
    [1, 8, 5, 5]
    """

    rank = 2


class Conv3D(_Conv):
    """Convolution of volumes."""

    rank = 3


class _ConvTranspose(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1, groups: int = 1, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str | None = None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, True, self.rank, stride, padding, "zeros", output_padding, dilation,
            groups, weight_attr, bias_attr, data_format,
        )  # fmt: skip

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return getattr(F, f"conv{self.rank}d_transpose")(
            x, self.weight, self.bias, stride=self._stride, padding=self._padding,
            output_padding=0 if output_size is not None else self._output_padding, dilation=self._dilation,
            groups=self._groups, output_size=output_size, data_format=self._data_format,
        )  # fmt: skip


class Conv1DTranspose(_ConvTranspose):
    """Transposed convolution of [batch, channels, length]."""

    rank = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCL",
    ):  # fmt: skip
        where = (stride, padding, output_padding, dilation, groups)
        super().__init__(in_channels, out_channels, kernel_size, *where, weight_attr, bias_attr, data_format)


class Conv2DTranspose(_ConvTranspose):
    """Transposed convolution of images; the weight is [in_channels, out_channels / groups, height, width]."""

    rank = 2


class Conv3DTranspose(_ConvTranspose):
    """Transposed convolution of volumes."""

    rank = 3
