"""Max pooling undone: each maximum goes back to the place it came from, zeros elsewhere."""

from __future__ import annotations

from math import prod
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.shape.creation import zeros
from dy2st.functions.shape.gather_scatter import put_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.window_arguments import channels_last, each
from dy2st.runtime.eager.tensor import Tensor


def max_unpool1d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCL",
    output_size: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Undo `max_pool1d` with the mask that it gave, zeros elsewhere; `output_size` is the length before the pooling.

    >>> import dy2st as paddle
    >>> F = paddle.nn.functional
    >>> pooled, places = F.max_pool1d(paddle.to_tensor([[[1.0, 4.0, 3.0, 2.0]]]), 2, return_mask=True)
    >>> F.max_unpool1d(pooled, places, 2).tolist()
    [[[0.0, 4.0, 3.0, 0.0]]]
    """
    return _unpool(x, indices, kernel_size, stride, padding, data_format, output_size, 1, "max_unpool1d")


def max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCHW",
    output_size: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Undo `max_pool2d` with the mask that it gave, zeros elsewhere; `output_size` is the size before the pooling."""
    return _unpool(x, indices, kernel_size, stride, padding, data_format, output_size, 2, "max_unpool2d")


def max_unpool3d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCDHW",
    output_size: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Undo `max_pool3d` with the mask that it gave, zeros elsewhere; `output_size` is the size before the pooling."""
    return _unpool(x, indices, kernel_size, stride, padding, data_format, output_size, 3, "max_unpool3d")


def _unpool(
    x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, data_format: str, output_size: Any, rank: int,
    name: str,
) -> Tensor:  # fmt: skip
    if channels_last(data_format, rank, name):
        raise ValueError(f"{name}: the mask of a pooling has channels as axis 1, data_format is {data_format!r}")
    x, indices = floating(x, name), tensor(indices, name)
    if x.ndim != rank + 2 or indices.ndim != x.ndim:
        raise ValueError(f"{name} needs x and indices of rank {rank + 2}, not {x.shape} and {indices.shape}")
    kernel = each(kernel_size, rank, "kernel_size", name)
    steps = kernel if stride is None else each(stride, rank, "stride", name)
    sides = each(padding, rank, "padding", name)
    if output_size is None:
        extents = [(e - 1) * s - 2 * p + k for e, s, p, k in zip(x.shape[2:], steps, sides, kernel, strict=True)]
    else:
        extents = list(output_size)[-rank:]
    batch, channels = x.shape[:2]
    pooled = [batch, channels, prod(x.shape[2:])]
    places = reshape(cast_to(indices, dtypes.int64), pooled)
    flat = put_along_axis(zeros([batch, channels, prod(extents)], x.dtype), places, reshape(x, pooled), 2)
    return reshape(flat, [batch, channels, *extents])
