"""Convolution over one to three axes, and its transpose."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import op, together, whole
from dy2st.missing import missing_in
from dy2st.nn.functional.window_arguments import channels_last, each, paddings, to_first, to_last
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import split_shape

_CONV, _CONV_INPUT_GRAD = op("conv"), op("conv_input_grad")


@composite
def conv1d(
    x: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCL", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the convolution of [batch, channels, length] with filters [out, channels / groups, width]."""
    return _conv(x, weight, bias, stride, padding, dilation, groups, data_format, 1, "conv1d")


@composite
def conv2d(
    x: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the convolution of images with filters [out, channels / groups, height, width].

    >>> import dy2st as paddle
    >>> image, filters = paddle.ones([1, 1, 3, 3]), paddle.ones([1, 1, 2, 2])
    >>> paddle.nn.functional.conv2d(image, filters).tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """
    return _conv(x, weight, bias, stride, padding, dilation, groups, data_format, 2, "conv2d")


@composite
def conv3d(
    x: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCDHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the convolution of volumes with filters [out, channels / groups, depth, height, width]."""
    return _conv(x, weight, bias, stride, padding, dilation, groups, data_format, 3, "conv3d")


def _conv(
    x: Any, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int,
    data_format: str, rank: int, name: str,
) -> Tensor:  # fmt: skip
    last = channels_last(data_format, rank, name)
    x, weight = together((x, weight), name)
    _check(x, weight, groups, rank, last, name)
    x = to_first(x, last)
    strides, dilations = each(stride, rank, "stride", name), each(dilation, rank, "dilation", name)
    pads = paddings(padding, x, tuple(weight.shape[2:]), strides, dilations, name, last)
    out = apply(_CONV, x, weight, stride=strides, padding=pads, dilation=dilations, groups=groups)
    return to_last(_biased(out, bias), last)


def _check(x: Tensor, weight: Tensor, groups: int, rank: int, last: bool, name: str) -> None:
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise ValueError(f"{name} needs an input and filters of {rank + 2} axes, not {x.shape} and {weight.shape}")
    channels = x.shape[-1 if last else 1]
    if isinstance(channels, int) and channels != weight.shape[1] * groups:
        raise ValueError(
            f"{name}: the input (shape {x.shape}) has {channels} channels, the filters (shape {weight.shape}, "
            f"groups {groups}) take {weight.shape[1] * groups}"
        )


def _biased(out: Tensor, bias: Tensor | None) -> Tensor:
    return out if bias is None else out + bias.reshape([1, -1, *[1] * (out.ndim - 2)])


@composite
def conv1d_transpose(
    x: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1, output_size: Any = None, data_format: str = "NCL", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the transposed convolution of [batch, channels, length] with filters [channels, out / groups, width]."""
    how = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return _conv_transpose(x, weight, bias, *how, 1, "conv1d_transpose")


@composite
def conv2d_transpose(
    x: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, groups: int = 1, output_size: Any = None, data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the transposed convolution of images with filters [channels, out / groups, height, width].

    An extent n becomes (n - 1) * stride - padding + dilation * (kernel - 1) + 1 + output_padding; `output_size` gives
    the extents instead of `output_padding`.
    """
    how = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return _conv_transpose(x, weight, bias, *how, 2, "conv2d_transpose")


@composite
def conv3d_transpose(
    x: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1, output_size: Any = None, data_format: str = "NCDHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the transposed convolution of volumes with filters [channels, out / groups, depth, height, width]."""
    how = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return _conv_transpose(x, weight, bias, *how, 3, "conv3d_transpose")


def _conv_transpose(
    x: Any, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any, dilation: Any,
    groups: int, output_size: Any, data_format: str, rank: int, name: str,
) -> Tensor:  # fmt: skip
    last = channels_last(data_format, rank, name)
    x, weight = together((x, weight), name)
    x = to_first(x, last)
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise ValueError(f"{name} needs an input and filters of {rank + 2} axes, not {x.shape} and {weight.shape}")
    if isinstance(x.shape[1], int) and x.shape[1] != weight.shape[0]:
        raise ValueError(
            f"{name}: the input has {x.shape[1]} channels, the filters {weight.shape} take {weight.shape[0]}"
        )
    strides, dilations = each(stride, rank, "stride", name), each(dilation, rank, "dilation", name)
    kernel = tuple(weight.shape[2:])
    pads = paddings(padding, x, kernel, strides, dilations, name, last)
    least = [
        (n - 1) * s - low - high + d * (k - 1) + 1
        for n, s, (low, high), d, k in zip(x.shape[2:], strides, pads, dilations, kernel, strict=True)
    ]
    spatial = _extents(least, output_size, output_padding, strides, dilations, name)
    template, dims = split_shape([x.shape[0], weight.shape[1] * groups, *spatial])
    out = apply(
        _CONV_INPUT_GRAD, x, weight, *dims, shape=template, stride=strides, padding=pads, dilation=dilations,
        groups=groups,
    )  # fmt: skip
    return to_last(_biased(out, bias), last)


def _extents(
    least: list[Any], output_size: Any, output_padding: Any, strides: tuple[int, ...], dilations: tuple[int, ...],
    name: str,
) -> list[Any]:  # fmt: skip
    rank = len(least)
    if output_size is None:
        more = each(output_padding, rank, "output_padding", name)
        if any(m >= max(s, d) for m, s, d in zip(more, strides, dilations, strict=True)):
            raise ValueError(f"{name}: output_padding {list(more)} must be below the stride or the dilation")
        return [n + m for n, m in zip(least, more, strict=True)]
    if any(each(output_padding, rank, "output_padding", name)):
        raise ValueError(f"{name}: give output_size or output_padding, not both")
    wanted = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    wanted = [whole(extent, f"{name}: output_size") for extent in wanted]
    for n, w, s in zip(least, wanted, strides, strict=True):
        if isinstance(n, int) and isinstance(w, int) and not n <= w < n + s:
            raise ValueError(f"{name}: output_size {wanted} cannot be: an extent must be from {n} to {n + s - 1}")
    return wanted


__getattr__ = missing_in(__name__, "dy2st.nn.functional")
