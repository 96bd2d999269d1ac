"""Rearranging channels: pixels into channels and back, shuffling groups, shifting in time; masks of lengths."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import arange, zeros_like
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.nn.functional.window_arguments import channels_last, to_first, to_last
from dy2st.runtime.eager.tensor import Tensor


def pixel_shuffle(x: Any, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Return [n, c / r^2, h r, w r] from [n, c, h, w]: channels become r x r pixels (Shi et al., 2016).

    >>> import dy2st as paddle
    >>> paddle.nn.functional.pixel_shuffle(paddle.ones([1, 4, 2, 3]), 2).shape
    [1, 1, 4, 6]
    """
    x, last = _image(x, data_format, "pixel_shuffle")
    r = _factor(upscale_factor, "pixel_shuffle: upscale_factor")
    n, c, h, w = x.shape
    _divides(c, r * r, "pixel_shuffle", "channels", x)
    parts = transpose(reshape(x, [n, c // (r * r), r, r, h, w]), [0, 1, 4, 2, 5, 3])
    return to_last(reshape(parts, [n, c // (r * r), h * r, w * r]), last)


def pixel_unshuffle(x: Any, downscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Return [n, c r^2, h / r, w / r] from [n, c, h, w]: the inverse of `pixel_shuffle`."""
    x, last = _image(x, data_format, "pixel_unshuffle")
    r = _factor(downscale_factor, "pixel_unshuffle: downscale_factor")
    n, c, h, w = x.shape
    for extent in (h, w):
        _divides(extent, r, "pixel_unshuffle", "pixels", x)
    parts = transpose(reshape(x, [n, c, h // r, r, w // r, r]), [0, 1, 3, 5, 2, 4])
    return to_last(reshape(parts, [n, c * r * r, h // r, w // r]), last)


def channel_shuffle(x: Any, groups: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Return the channels in another order: the first of each group, then the second of each (Zhang et al., 2018)."""
    x, last = _image(x, data_format, "channel_shuffle")
    groups = _factor(groups, "channel_shuffle: groups")
    n, c, h, w = x.shape
    _divides(c, groups, "channel_shuffle", "channels", x)
    parts = transpose(reshape(x, [n, groups, c // groups, h, w]), [0, 2, 1, 3, 4])
    return to_last(reshape(parts, [n, c, h, w]), last)


def temporal_shift(
    x: Any, seg_num: int, shift_ratio: float = 0.25, name: str | None = None, data_format: str = "NCHW"
) -> Tensor:
    """Return [n t, c, h, w] with a share of the channels one step later, as many one earlier (Lin et al., 2019)."""
    x, last = _image(x, data_format, "temporal_shift")
    if not 0.0 <= shift_ratio <= 0.5:
        raise ValueError(f"temporal_shift: shift_ratio must be from 0 to 0.5, not {shift_ratio}")
    c, h, w = x.shape[1:]
    one, two = int(c * shift_ratio), int(c * 2 * shift_ratio)
    steps = reshape(x, [-1, seg_num, c, h, w])
    empty = zeros_like(steps[:, :1])
    later, earlier = concat([empty, steps[:, :-1]], 1), concat([steps[:, 1:], empty], 1)
    moved = concat([later[:, :, :one], earlier[:, :, one:two], steps[:, :, two:]], 2)
    return to_last(reshape(moved, [-1, c, h, w]), last)


def sequence_mask(x: Any, maxlen: Any = None, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """Return [..., maxlen] with 1 at the first x places and 0 behind; maxlen is by default the largest x.

    >>> import dy2st as paddle
    >>> paddle.nn.functional.sequence_mask(paddle.to_tensor([1, 3])).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    x = tensor(x, "sequence_mask")
    if not x.dtype.is_integer:
        raise TypeError(f"sequence_mask: the lengths must be integers, not {x.dtype.name}")
    if maxlen is None:
        maxlen = x.max()
    return cast_to(cast_to(arange(maxlen), x.dtype) < x.unsqueeze(-1), dtypes.dtype(dtype))


def _image(x: Any, data_format: str, name: str) -> tuple[Tensor, bool]:
    x = tensor(x, name)
    if x.ndim != 4:
        raise ValueError(f"{name} needs images, tensors of 4 axes, not the shape {x.shape}")
    last = channels_last(data_format, 2, name)
    return to_first(x, last), last


def _factor(value: Any, name: str) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a positive int, not {value!r}")
    return value


def _divides(extent: Any, by: int, name: str, what: str, x: Tensor) -> None:
    if isinstance(extent, int) and extent % by:
        raise ValueError(f"{name}: {extent} {what} (shape {x.shape}) do not divide by {by}")
