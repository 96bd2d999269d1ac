"""Max pooling over windows whose borders lie at fractions of a random number.

B. Graham, "Fractional max-pooling" (2014).
"""

from __future__ import annotations

from math import inf
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, number, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.math import minimum
from dy2st.functions.math.random import rand
from dy2st.functions.math.reduction import argmax
from dy2st.functions.shape.creation import arange, full
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.nn.functional.window_arguments import each
from dy2st.runtime.eager.tensor import Tensor


def fractional_max_pool2d(
    x: Any, output_size: Any, kernel_size: Any = None, random_u: float | None = None, return_mask: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return the maxima of `output_size` windows of images, and their places (row * width + column) with `return_mask`.

    Windows follow each other, or have `kernel_size` and overlap; their borders lie at multiples of the ratio of the
    sizes, moved by `random_u` in (0, 1), which is drawn unless it is given.

    >>> import dy2st as paddle
    >>> row = paddle.to_tensor([2.0, 4, 3, 1, 5, 2, 3]).reshape([1, 1, 1, 7])
    >>> paddle.nn.functional.fractional_max_pool2d(row, [1, 5], random_u=0.3).tolist()
    [[[[2.0, 4.0, 1.0, 5.0, 3.0]]]]
    """
    return _pool(x, output_size, kernel_size, random_u, return_mask, 2, "fractional_max_pool2d")


def fractional_max_pool3d(
    x: Any, output_size: Any, kernel_size: Any = None, random_u: float | None = None, return_mask: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return the maxima of `output_size` windows of volumes, and their places with `return_mask`; as for images."""
    return _pool(x, output_size, kernel_size, random_u, return_mask, 3, "fractional_max_pool3d")


def _pool(x: Any, size: Any, kernel: Any, random_u: float | None, mask: bool, rank: int, name: str) -> Any:
    x = floating(x, name)
    if x.ndim != rank + 2:
        raise ValueError(f"{name} needs a tensor of {rank + 2} axes, not of shape {x.shape}")
    if random_u is not None and not 0.0 < random_u < 1.0:
        raise ValueError(f"{name}: random_u lies between 0 and 1, not {random_u}")
    u = rand([], "float32") if random_u is None else number(random_u, dtypes.float32)
    extents = x.shape[2:]
    sizes = list(size) if isinstance(size, (list, tuple)) else [size] * rank
    sizes = [e if s is None else s for e, s in zip(extents, sizes, strict=True)]
    kernels = (0,) * rank if kernel is None else each(kernel, rank, "kernel_size", name)
    flat = number(0, dtypes.int64)
    inside = number(True, dtypes.bool_)
    for axis, (extent, out, k) in enumerate(zip(extents, sizes, kernels, strict=True)):
        places, fits = _windows(u, extent, out, k)
        spread = [1] * (2 * rank)
        spread[axis], spread[rank + axis] = places.shape
        flat = flat * extent + reshape(places, spread)
        inside = inside & reshape(fits, spread)
    total = 1
    for extent in extents:
        total = total * extent
    count = 1
    for extent in flat.shape[rank:]:
        count = count * extent
    batch, channels = x.shape[:2]
    flat = reshape(flat, [-1, count])
    columns = reshape(x, [batch * channels, total])[:, reshape(flat, [-1])]
    columns = reshape(columns, [batch * channels, -1, count])
    columns = where(reshape(inside, [-1, count]), columns, full([], -inf, x.dtype))
    best = argmax(columns, -1, keepdim=True)
    found = reshape(take_along_axis(columns, best, -1), [batch, channels, *sizes])
    if not mask:
        return found
    where_from = take_along_axis(flat, transpose(best[:, :, 0], [1, 0]), 1)
    return found, cast_to(reshape(transpose(where_from, [1, 0]), [batch, channels, *sizes]), dtypes.int32)


def _windows(u: Tensor, extent: Any, out: Any, kernel: int) -> tuple[Tensor, Tensor]:
    """Return the places of each window's elements along one axis, [out, longest window], and which of them count."""
    float32 = dtypes.float32
    if isinstance(extent, int) and isinstance(out, int) and extent < out - 1 + max(kernel, 1):
        raise ValueError(f"a fractional pooling gives no {out} windows of {max(kernel, 1)} from {extent} elements")
    span, steps = number(extent - kernel, dtypes.int64), number(out - 1 if kernel else out, dtypes.int64)
    ratio = cast_to(span, float32) / cast_to(steps, float32)
    if not kernel:
        base = cast_to(number(extent // out, dtypes.int64), float32)
        whole, many = (cast_to(number(n, dtypes.int64), float32) for n in (extent, out))
        u = u * minimum((base + 2.0) / ratio - 1.0, (whole + 1.0 - base) / ratio - (many - 1.0))
    first = cast_to(u * ratio, dtypes.int64)
    turns = cast_to(arange(out), float32)
    start = cast_to((turns + u) * ratio, dtypes.int64) - first
    if kernel:
        start = where(tensor(arange(out) == out - 1, "windows"), span, start)
        end = start + kernel
    else:
        end = cast_to((turns + 1.0 + u) * ratio, dtypes.int64) - first
    places = reshape(start, [-1, 1]) + arange(kernel or extent // out + 2)
    fits = (places < reshape(end, [-1, 1])) & (places < extent)
    return minimum(places, extent - 1), fits
