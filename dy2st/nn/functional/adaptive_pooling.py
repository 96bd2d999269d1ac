"""Pooling to extents that the caller names, whatever the input's are."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, op, tensor, whole
from dy2st.nn.functional.window_arguments import channels_last, to_first, to_last
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_AVERAGE, _MAXIMUM = op("adaptive_avg_pool"), op("adaptive_max_pool")


def adaptive_avg_pool1d(x: Any, output_size: Any, name: str | None = None) -> Tensor:
    """Return means of `output_size` cells of [batch, channels, length]."""
    return _average(x, output_size, "NCL", 1, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(x: Any, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Return means of `output_size` cells of images; None keeps an extent.

    >>> import dy2st as paddle
    >>> image = paddle.arange(16, dtype="float32").reshape([1, 1, 4, 4])
    >>> paddle.nn.functional.adaptive_avg_pool2d(image, 1).tolist()
    [[[[7.5]]]]
    """
    return _average(x, output_size, data_format, 2, "adaptive_avg_pool2d")


def adaptive_avg_pool3d(x: Any, output_size: Any, data_format: str = "NCDHW", name: str | None = None) -> Tensor:
    """Return means of `output_size` cells of volumes; None keeps an extent."""
    return _average(x, output_size, data_format, 3, "adaptive_avg_pool3d")


def adaptive_max_pool1d(x: Any, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """Return maxima of `output_size` cells of [batch, channels, length], and their places where `return_mask`."""
    return _maximum(x, output_size, return_mask, "NCL", 1, "adaptive_max_pool1d")


def adaptive_max_pool2d(x: Any, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """Return maxima of `output_size` cells of images, and their places where `return_mask`."""
    return _maximum(x, output_size, return_mask, "NCHW", 2, "adaptive_max_pool2d")


def adaptive_max_pool3d(x: Any, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """Return maxima of `output_size` cells of volumes, and their places where `return_mask`."""
    return _maximum(x, output_size, return_mask, "NCDHW", 3, "adaptive_max_pool3d")


def _average(x: Any, output_size: Any, data_format: str, rank: int, name: str) -> Tensor:
    last = channels_last(data_format, rank, name)
    x = to_first(floating(x, name), last)
    return to_last(apply(_AVERAGE, x, output=_output(x, output_size, rank, name)), last)


def _maximum(x: Any, output_size: Any, return_mask: bool, data_format: str, rank: int, name: str) -> Any:
    x = tensor(x, name)
    out, places = apply(_MAXIMUM, x, output=_output(x, output_size, rank, name))
    return (out, cast_to(places, dtypes.int32)) if return_mask else out


def _output(x: Tensor, output_size: Any, rank: int, name: str) -> tuple[int, ...]:
    if x.ndim != rank + 2:
        raise ValueError(f"{name} needs a tensor of {rank + 2} axes, not of shape {x.shape}")
    wanted = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    if len(wanted) != rank:
        raise ValueError(f"{name}: output_size needs an int or {rank} of them, not {output_size!r}")
    return tuple(
        int(x.shape[i + 2]) if extent is None else int(whole(extent, f"{name}: output_size"))
        for i, extent in enumerate(wanted)
    )
