"""Regions of images, each made [height, width]: by values between pixels, by maxima, by means over channels of its own.

A region is a box (x1, y1, x2, y2), and `boxes_num` says how many of them are of the first image, the second, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.dtypes import int64
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.comparison import logical_and, where
from dy2st.functions.math.math import ceil, clip, floor, maximum, round_half_away
from dy2st.functions.math.reduction import cumsum
from dy2st.functions.math.search import searchsorted
from dy2st.functions.shape.creation import arange, full_like, zeros_like
from dy2st.functions.shape.gather_scatter import gather
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class _Regions:
    """Rows of pixels [batch * height * width, channels], and the number of the image of each box."""

    def __init__(self, x: Any, boxes: Any, boxes_num: Any, name: str):
        x = floating(x, name)
        self.n, self.c, self.h, self.w = x.shape
        self.rows = reshape(transpose(x, [0, 2, 3, 1]), [-1, self.c])
        self.boxes = floating(boxes, name)
        self.count = self.boxes.shape[0]
        ends = cumsum(cast_to(tensor(boxes_num, name), int64))
        self.image = searchsorted(ends, arange(self.count, dtype="int64"), right=True)

    def at(self, y: Tensor, x: Tensor) -> Tensor:
        """Return the pixels of each box at rows y [boxes, a] and columns x [boxes, b]: [boxes, a, b, channels]."""
        flat = (self.image[:, None, None] * self.h + y[:, :, None]) * self.w + x[:, None, :]
        return reshape(gather(self.rows, reshape(flat, [-1])), [self.count, y.shape[1], x.shape[1], self.c])


def _size(output_size: Any) -> tuple[int, int]:
    return (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)


def roi_align(
    x: Any, boxes: Any, boxes_num: Any, output_size: Any, spatial_scale: float = 1.0, sampling_ratio: int = -1,
    aligned: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return [boxes, channels, height, width]: means over parts of each box, read between pixels (He et al., 2017).

    Parameters
    ----------
    output_size
        (height, width), or one for both.
    spatial_scale
        What the boxes are times to be in pixels of x.
    sampling_ratio
        How many values along each side of a part are read; by default one for each pixel that it begins.
    aligned
        Whether a pixel's value is that of its middle.

    >>> import dy2st as paddle
    >>> x = paddle.arange(16, dtype="float32").reshape([1, 1, 4, 4])
    >>> roi_align(x, paddle.to_tensor([[0.0, 0, 4, 4]]), paddle.to_tensor([1]), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    regions = _Regions(x, boxes, boxes_num, "roi_align")
    height, width = _size(output_size)
    placed = regions.boxes * spatial_scale - (0.5 if aligned else 0.0)
    down, right = (
        _samples(placed[:, a], placed[:, a + 2], parts, sampling_ratio, extent, aligned)
        for a, parts, extent in ((1, height, regions.h), (0, width, regions.w))
    )
    total = 0.0
    for y, share_y in down:
        for x_, share_x in right:
            total = total + regions.at(y, x_) * (share_y[:, :, None] * share_x[:, None, :])[..., None]
    out = reshape(total, [regions.count, height, -1, width, right[0][0].shape[1] // width, regions.c])
    return transpose(out.sum([2, 4]), [0, 3, 1, 2])


def _samples(
    low: Tensor, high: Tensor, parts: int, ratio: int, extent: Any, aligned: bool
) -> list[tuple[Tensor, Tensor]]:
    """Return, along one axis, the two pixels around each place that is read, with their shares of the mean."""
    length = high - low if aligned else clip(high - low, min=1.0)
    each = length / parts
    count = full_like(each, float(ratio)) if ratio > 0 else clip(ceil(each), min=1.0)
    steps = cast_to(arange(count.max() if ratio <= 0 else ratio), each.dtype)
    inside = cast_to(steps < count[:, None], each.dtype)[:, None, :]
    part = cast_to(arange(parts), each.dtype)[None, :, None]
    place = low[:, None, None] + each[:, None, None] * (part + ((steps + 0.5) / count[:, None])[:, None, :])
    read = cast_to(logical_and(place >= -1.0, place <= cast_to(tensor(extent, "roi_align"), each.dtype)), each.dtype)
    share = reshape(read * inside / count[:, None, None], [low.shape[0], -1])
    place = clip(reshape(place, [low.shape[0], -1]), 0.0, extent - 1)
    first = floor(place)
    beside = cast_to(first, int64)
    far = place - first
    return [(beside, share * (1.0 - far)), (clip(beside + 1, max=extent - 1), share * far)]


def roi_pool(
    x: Any, boxes: Any, boxes_num: Any, output_size: Any, spatial_scale: float = 1.0, name: str | None = None
) -> Tensor:
    """Return [boxes, channels, height, width]: the largest pixel of each part of a box, 0 of an empty one."""
    regions = _Regions(x, boxes, boxes_num, "roi_pool")
    height, width = _size(output_size)
    corners = round_half_away(regions.boxes * spatial_scale)

    def ends(axis: int, parts: int) -> tuple[Tensor, Tensor]:
        first = corners[:, axis, None]
        each = maximum(corners[:, axis + 2, None] - first + 1.0, full_like(first, 1.0)) / parts
        steps = cast_to(arange(parts), each.dtype)
        return floor(steps * each) + first, ceil((steps + 1.0) * each) + first

    values, inside = _parts(regions, ends(1, height), ends(0, width))
    most = where(inside, values, full_like(values, -float("inf"))).max([2, 4])
    return transpose(where(inside.any([2, 4]), most, zeros_like(most)), [0, 3, 1, 2])


def psroi_pool(
    x: Any, boxes: Any, boxes_num: Any, output_size: Any, spatial_scale: float = 1.0, name: str | None = None
) -> Tensor:
    """Return [boxes, channels / (height width), height, width]: means, of other channels for each part of a box."""
    regions = _Regions(x, boxes, boxes_num, "psroi_pool")
    height, width = _size(output_size)
    if regions.c % (height * width):
        raise ValueError(f"psroi_pool: {regions.c} channels do not divide into parts of {height} x {width}")

    def ends(axis: int, parts: int) -> tuple[Tensor, Tensor]:
        first = (round_half_away(regions.boxes[:, axis]) * spatial_scale)[:, None]
        last = ((round_half_away(regions.boxes[:, axis + 2]) + 1.0) * spatial_scale)[:, None]
        each = clip(last - first, min=0.1) / parts
        steps = cast_to(arange(parts), each.dtype)
        return floor(steps * each + first), ceil((steps + 1.0) * each + first)

    values, inside = _parts(regions, ends(1, height), ends(0, width))
    taken = cast_to(inside, values.dtype)
    mean = (values * taken).sum([2, 4]) / clip(taken.sum([2, 4]), min=1.0)
    whole = reshape(mean, [regions.count, height, width, -1, height * width])
    own = cast_to(
        reshape(arange(height * width)[:, None] == arange(height * width), [height, width, 1, -1]), mean.dtype
    )
    return transpose((whole * own).sum(-1), [0, 3, 1, 2])


def _parts(regions: _Regions, down: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the pixels of each part, [boxes, height, a, width, b, channels], and which of them are in it."""

    def pixels(ends: tuple[Tensor, Tensor], extent: Any) -> tuple[Tensor, Tensor]:
        low, high = (clip(e, 0.0, extent) for e in ends)
        steps = cast_to(arange(clip((high - low).max(), min=1.0)), low.dtype)
        place = low[..., None] + steps
        inside = place < high[..., None]
        return cast_to(clip(reshape(place, [regions.count, -1]), 0.0, extent - 1), int64), inside

    (y, in_y), (x, in_x) = pixels(down, regions.h), pixels(right, regions.w)
    (height, a), (width, b) = in_y.shape[1:], in_x.shape[1:]
    values = reshape(regions.at(y, x), [regions.count, height, a, width, b, regions.c])
    return values, logical_and(in_y[:, :, :, None, None, None], in_x[:, None, None, :, :, None])


class _Pool(Layer):
    pool: Callable[..., Tensor]

    def __init__(self, output_size: Any, spatial_scale: float = 1.0):
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> Tensor:
        return type(self).pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)

    def extra_repr(self) -> str:
        return f"output_size={self._output_size}, spatial_scale={self._spatial_scale}"


class RoIPool(_Pool):
    """`roi_pool` of one size."""

    pool = staticmethod(roi_pool)


class PSRoIPool(_Pool):
    """`psroi_pool` of one size."""

    pool = staticmethod(psroi_pool)


class RoIAlign(_Pool):
    """`roi_align` of one size."""

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor, aligned: bool = True) -> Tensor:
        return roi_align(x, boxes, boxes_num, self._output_size, self._spatial_scale, aligned=aligned)
