"""Arrays [height, width, channels] resized, and read at the places that a map of the plane gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

_CUBIC = -0.75  # as OpenCV has it


def resized(image: np.ndarray, height: int, width: int, interpolation: str) -> np.ndarray:
    """Return the image with other extents; pixels are squares, so a place is that of its middle."""
    rows = _weights(image.shape[0], height, interpolation)
    columns = _weights(image.shape[1], width, interpolation)
    found = np.einsum("hy,ywc->hwc", rows, image.astype(rows.dtype), optimize=True)
    return like(np.einsum("wx,hxc->hwc", columns, found, optimize=True), image)


def like(values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Return values in the dtype of an image, rounded and within its range where that is of integers."""
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        values = np.clip(np.rint(values), limits.min, limits.max)
    return values.astype(image.dtype)


def _weights(extent: int, new: int, interpolation: str) -> np.ndarray:
    """Return [new, extent]: what each old row gives to a new one."""
    made = np.zeros([new, extent], "float64")
    each, scale = np.arange(new), extent / new
    if interpolation == "area":
        low, high, cell = each[:, None] * scale, (each[:, None] + 1) * scale, np.arange(extent)
        return np.clip(np.minimum(high, cell + 1) - np.maximum(low, cell), 0, None) / scale
    if interpolation == "nearest":
        made[each, np.minimum((each * scale).astype(int), extent - 1)] = 1
        return made
    place = (each + 0.5) * scale - 0.5
    first = np.floor(place).astype(int)
    for tap in (0, 1) if interpolation == "bilinear" else (-1, 0, 1, 2):
        share = _share(np.abs(place - first - tap), interpolation)
        np.add.at(made, (each, np.clip(first + tap, 0, extent - 1)), share)
    return made


def _share(distance: np.ndarray, interpolation: str) -> np.ndarray:
    if interpolation == "bilinear":
        return 1 - distance
    if interpolation != "bicubic":
        raise ValueError(f"interpolation is nearest, bilinear, bicubic or area, not {interpolation!r}")
    d, a = distance, _CUBIC
    near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, far)


def warped(
    image: np.ndarray, inverse: np.ndarray, size: tuple[int, int], interpolation: str, fill: Any = 0
) -> np.ndarray:
    """Return [height, width] pixels of an image: that at (x, y) is read at `inverse` @ (x, y, 1), `fill` outside."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    u, v, w = np.tensordot(inverse, np.stack([x, y, np.ones_like(x)]), 1)
    u, v = u / w, v / w
    if interpolation == "nearest":
        return _at(image, np.floor(v + 0.5).astype(int), np.floor(u + 0.5).astype(int), fill)
    if interpolation != "bilinear":
        raise ValueError(f"interpolation is nearest or bilinear, not {interpolation!r}")
    top, left = np.floor(v).astype(int), np.floor(u).astype(int)
    total = np.zeros([height, width, image.shape[2]])
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        share = (1 - np.abs(v - top - row)) * (1 - np.abs(u - left - column))
        total += share[..., None] * _at(image, top + row, left + column, fill)
    return like(total, image)


def _at(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, fill: Any) -> np.ndarray:
    height, width = image.shape[:2]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    found = image[np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)]
    return np.where(inside[..., None], found, np.asarray(fill)).astype(image.dtype)


def rotation(angle: float, center: Sequence[float]) -> np.ndarray:
    """Return the map that turns the plane by degrees, counter-clockwise where y goes down, around a place."""
    a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    x, y = center
    return np.array([[a, b, (1 - a) * x - b * y], [-b, a, b * x + (1 - a) * y], [0, 0, 1]])


def affine_map(
    angle: float, translate: Sequence[float], scale: float, shear: Sequence[float], center: Sequence[float]
) -> np.ndarray:
    """Return the map that shears, turns clockwise, scales around a place, then moves."""
    turn, (sx, sy) = math.radians(angle), (math.radians(s) for s in shear)
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    linear = scale * np.array([[a, b], [c, d]])
    x = np.asarray(center, "float64")
    return np.vstack([np.column_stack([linear, x + np.asarray(translate) - linear @ x]), [0, 0, 1]])


def perspective_map(start: Sequence[Sequence[float]], end: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the projective map that takes four places to four others."""
    rows, wanted = [], []
    for (x, y), (u, v) in zip(start, end, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        wanted += [u, v]
    return np.append(np.linalg.solve(np.array(rows, "float64"), np.array(wanted, "float64")), 1).reshape(3, 3)
