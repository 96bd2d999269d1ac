"""Pooling over windows: the maximum, the mean, and p-norms."""

from __future__ import annotations

import math
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, op, tensor
from dy2st.missing import missing_in
from dy2st.nn.functional.padding import pad_pairs
from dy2st.nn.functional.window_arguments import channels_last, each, paddings, to_first, to_last
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_MAX_POOL, _AVG_POOL = op("max_pool"), op("avg_pool")


def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False, ceil_mode: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return the maximum of each window of [batch, channels, length], and its place where `return_mask`."""
    return _max_pool(x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL", 1, "max_pool1d")


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False, ceil_mode: bool = False,
    data_format: str = "NCHW", name: str | None = None,
) -> Any:  # fmt: skip
    """Return the maximum of each window of images, and its place (row * width + column) where `return_mask`.

    >>> import dy2st as paddle
    >>> image = paddle.arange(16, dtype="float32").reshape([1, 1, 4, 4])
    >>> paddle.nn.functional.max_pool2d(image, 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    return _max_pool(x, kernel_size, stride, padding, return_mask, ceil_mode, data_format, 2, "max_pool2d")


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False, ceil_mode: bool = False,
    data_format: str = "NCDHW", name: str | None = None,
) -> Any:  # fmt: skip
    """Return the maximum of each window of volumes, and its place where `return_mask`."""
    return _max_pool(x, kernel_size, stride, padding, return_mask, ceil_mode, data_format, 3, "max_pool3d")


def _max_pool(
    x: Any, kernel_size: Any, stride: Any, padding: Any, return_mask: bool, ceil_mode: bool, data_format: str,
    rank: int, name: str,
) -> Any:  # fmt: skip
    last = channels_last(data_format, rank, name)
    if last and return_mask:
        raise ValueError(f"{name}: return_mask=True needs data_format with channels as axis 1, not {data_format!r}")
    x, how = _windows(tensor(x, name), kernel_size, stride, padding, ceil_mode, rank, last, name)
    out, places = apply(_MAX_POOL, x, **how)
    return (out, cast_to(places, dtypes.int32)) if return_mask else to_last(out, last)


def avg_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, exclusive: bool = True, ceil_mode: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean of each window of [batch, channels, length]; without the padding where `exclusive`."""
    return _avg_pool(x, kernel_size, stride, padding, exclusive, ceil_mode, None, "NCL", 1, "avg_pool1d")


def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, exclusive: bool = True,
    divisor_override: float | None = None, data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean of each window of images; `divisor_override` replaces the number of elements."""
    how = (exclusive, ceil_mode, divisor_override, data_format)
    return _avg_pool(x, kernel_size, stride, padding, *how, 2, "avg_pool2d")


def avg_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, exclusive: bool = True,
    divisor_override: float | None = None, data_format: str = "NCDHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean of each window of volumes; `divisor_override` replaces the number of elements."""
    how = (exclusive, ceil_mode, divisor_override, data_format)
    return _avg_pool(x, kernel_size, stride, padding, *how, 3, "avg_pool3d")


def _avg_pool(
    x: Any, kernel_size: Any, stride: Any, padding: Any, exclusive: bool, ceil_mode: bool, divisor: float | None,
    data_format: str, rank: int, name: str,
) -> Tensor:  # fmt: skip
    last = channels_last(data_format, rank, name)
    x, how = _windows(floating(x, name), kernel_size, stride, padding, ceil_mode, rank, last, name)
    if divisor is None:
        return to_last(apply(_AVG_POOL, x, exclusive=bool(exclusive), **how), last)
    if divisor == 0:
        raise ValueError(f"{name}: divisor_override cannot be 0")
    return to_last(_sums(x, how) / float(divisor), last)


def lp_pool1d(
    x: Any, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NCL", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return (sum of x^p over each window)^(1/p) of [batch, channels, length]."""
    return _lp_pool(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format, 1, "lp_pool1d")


def lp_pool2d(
    x: Any, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return (sum of x^p over each window)^(1/p) of images; p = inf takes the maximum."""
    return _lp_pool(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format, 2, "lp_pool2d")


def _lp_pool(
    x: Any, norm_type: float, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, data_format: str,
    rank: int, name: str,
) -> Tensor:  # fmt: skip
    if norm_type <= 0:
        raise ValueError(f"{name}: norm_type must be positive, not {norm_type}")
    if norm_type == math.inf:
        return _max_pool(x, kernel_size, stride, padding, False, ceil_mode, data_format, rank, name)
    last = channels_last(data_format, rank, name)
    x, how = _windows(floating(x, name), kernel_size, stride, padding, ceil_mode, rank, last, name)
    return to_last(_sums(x ** float(norm_type), how) ** (1.0 / float(norm_type)), last)


def _windows(
    x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, rank: int, last: bool, name: str
) -> tuple[Tensor, dict[str, Any]]:
    """Return the tensor with channels as axis 1, and the attributes of a pooling op."""
    if x.ndim != rank + 2:
        raise ValueError(f"{name} needs a tensor of {rank + 2} axes, not of shape {x.shape}")
    x = to_first(x, last)
    kernel = each(kernel_size, rank, "kernel_size", name)
    strides = kernel if stride is None or stride == [] else each(stride, rank, "stride", name)
    pads = paddings(padding, x, kernel, strides, (1,) * rank, name, last)
    return x, {"kernel": kernel, "stride": strides, "padding": pads, "ceil_mode": bool(ceil_mode)}


def _sums(x: Tensor, how: dict[str, Any]) -> Tensor:
    """Return the sum of each window."""
    kernel, count = how["kernel"], float(math.prod(how["kernel"]))
    pads = list(how["padding"])
    if how["ceil_mode"]:
        for i, (k, s) in enumerate(zip(kernel, how["stride"], strict=True)):
            extent, (low, high) = int(x.shape[i + 2]), pads[i]
            windows = -(-(extent + low + high - k) // s)
            windows -= windows * s >= extent + low
            pads[i] = (low, max(high, windows * s + k - extent - low))
    padded = pad_pairs(x, ((0, 0), (0, 0), *pads), 0.0)
    without = {**how, "padding": ((0, 0),) * len(kernel), "ceil_mode": False}
    return apply(_AVG_POOL, padded, exclusive=False, **without) * count


__getattr__ = missing_in(__name__, "dy2st.nn.functional")
