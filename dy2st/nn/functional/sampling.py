"""Images sampled along a grid: `affine_grid` makes the grid, `grid_sample` reads between elements."""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math import math
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.creation import arange, ones
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.piecewise import piecewise
from dy2st.runtime.eager.tensor import Tensor


def affine_grid(theta: Any, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Tensor:
    """Return the places that affine maps give to the elements of an image: [batch, height, width, 2].

    `theta` [batch, 2, 3] maps (x, y, 1), both from -1 to 1 over the image of `out_shape` [batch, channels, height,
    width]; of volumes it is [batch, 3, 4]. With `align_corners` -1 and 1 are the outermost elements, else their edges.

    >>> import dy2st as paddle
    >>> same = paddle.to_tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> paddle.nn.functional.affine_grid(same, [1, 1, 1, 2]).tolist()
    [[[[-1.0, 0.0], [1.0, 0.0]]]]
    """
    theta = floating(theta, "affine_grid")
    extents = list(out_shape.tolist() if isinstance(out_shape, Tensor) else out_shape)[2:]
    rank = len(extents)
    if theta.ndim != 3 or rank not in (2, 3) or _differs(theta.shape[1:], [rank, rank + 1]):
        raise ValueError(f"affine_grid: theta of shape {theta.shape} does not go with an out_shape of {rank + 2} axes")
    places = [_places(e, align_corners, theta) for e in extents]
    planes = [
        reshape(p, [-1 if i == axis else 1 for i in range(rank)]) + _zeros(extents, theta)
        for axis, p in enumerate(places)
    ]
    base = stack([*reversed(planes), ones(extents, theta.dtype)], -1)
    flat = matmul(reshape(base, [-1, rank + 1]), theta, transpose_y=True)
    return reshape(flat, [theta.shape[0], *extents, rank])


def _zeros(extents: list[Any], like: Tensor) -> Tensor:
    return ones(extents, like.dtype) * 0.0


def _places(extent: Any, align_corners: bool, like: Tensor) -> Tensor:
    """Return where the elements of an axis lie between -1 and 1."""
    steps = arange(extent, dtype=like.dtype)
    if align_corners:
        gaps = tensor(extent - 1, "affine_grid", like.dtype)
        return steps * (2.0 / math.maximum(gaps, 1.0)) - math.minimum(gaps, 1.0)
    return (steps * 2.0 + 1.0) * (1.0 / extent) - 1.0


def _differs(extents: list[Any], wanted: list[int]) -> bool:
    """Return whether extents are known not to be those that are wanted."""
    return any(isinstance(e, int) and e != w for e, w in zip(extents, wanted, strict=True))


def grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = True,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the elements of images at the places of a grid: x [batch, channels, height, width] at [batch, h, w, 2].

    Parameters
    ----------
    grid
        x, then y (and z, for volumes), from -1 to 1 over the image.
    mode
        "bilinear" reads between the elements around a place, "nearest" the nearest one.
    padding_mode
        What lies outside of the image: "zeros", its "border", or its "reflection".

    >>> import dy2st as paddle
    >>> image = paddle.to_tensor([[[[1.0, 3.0]]]])
    >>> paddle.nn.functional.grid_sample(image, paddle.to_tensor([[[[0.0, 0.0], [1.0, 0.0]]]])).tolist()
    [[[[2.0, 3.0]]]]
    """
    x, grid = floating(x, "grid_sample"), tensor(grid, "grid_sample")
    rank = x.ndim - 2
    if rank not in (2, 3) or grid.ndim != x.ndim or _differs(grid.shape[-1:], [rank]):
        raise ValueError(f"grid_sample: a grid of shape {grid.shape} does not go with a tensor of shape {x.shape}")
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"grid_sample: mode is {mode!r}, not 'bilinear' or 'nearest'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: padding_mode is {padding_mode!r}, not 'zeros', 'border' or 'reflection'")
    extents = x.shape[2:]
    places = [
        _inside(_element(grid[..., rank - 1 - axis], e, align_corners), e, padding_mode, align_corners)
        for axis, e in enumerate(extents)
    ]
    if mode == "nearest":
        return _read(x, [math.round(p) for p in places])
    lows = [math.floor(p) for p in places]
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=rank):
        found = _read(x, [low + up for low, up in zip(lows, corner, strict=True)])
        for place, low, up in zip(places, lows, corner, strict=True):
            share = place - low
            found = found * (share if up else 1.0 - share).unsqueeze(1)
        total = found if total is None else total + found
    assert total is not None
    return total


def _element(place: Tensor, extent: Any, align_corners: bool) -> Tensor:
    """Return a place from -1 to 1 in elements of an axis."""
    return (place + 1.0) * 0.5 * (extent - 1) if align_corners else (place + 1.0) * 0.5 * extent - 0.5


def _inside(place: Tensor, extent: Any, padding_mode: str, align_corners: bool) -> Tensor:
    """Bring a place into the image, unless what lies outside are zeros; at the border it still has its slope."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        span, first = (extent - 1, 0.0) if align_corners else (extent, -0.5)
        away = place - first
        away = piecewise(away < 0.0, -away, away)
        there = cast_to(tensor(2 * span, "grid_sample"), place.dtype)  # and back; 0 for one element
        turn = piecewise(there > 0.0, away % piecewise(there > 0.0, there, 1.0), 0.0)
        place = piecewise(turn > span, 2.0 * span - turn, turn) + first
    last = cast_to(tensor(extent - 1, "grid_sample"), place.dtype)
    return piecewise(place > last, last, piecewise(place < 0.0, 0.0, place))


def _read(x: Tensor, places: list[Tensor]) -> Tensor:
    """Return the elements at whole places, zeros outside of the image: [batch, channels, ...]."""
    extents = x.shape[2:]
    flat, within = None, None
    for place, extent in zip(places, extents, strict=True):
        there = (place >= 0) & (place <= extent - 1)
        safe = cast_to(piecewise(there, place, 0.0), dtypes.int64)
        flat = safe if flat is None else flat * extent + safe
        within = there if within is None else within & there
    assert flat is not None
    assert within is not None
    batch, channels = x.shape[:2]
    rows = reshape(x, [batch, channels, prod(extents)])
    found = take_along_axis(rows, reshape(flat, [batch, 1, prod(flat.shape[1:])]), 2)
    shaped = reshape(found, [batch, channels, *flat.shape[1:]])
    return piecewise(within.unsqueeze(1), shaped, 0.0)
