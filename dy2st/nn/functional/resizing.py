"""Images in another size: `interpolate` (`upsample`), axis by axis, from the elements next to each new place."""

from __future__ import annotations

from collections.abc import Callable
from math import trunc
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, op, tensor, whole
from dy2st.functions.math import math
from dy2st.functions.shape.creation import arange
from dy2st.nn.functional import adaptive_pooling
from dy2st.nn.functional.window_arguments import FIRST, channels_last, to_first, to_last
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_TAKE = op("take")
_RANKS = {"nearest": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}


def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return [batch, channels, ...] in another size: `size` of the spatial axes, or `scale_factor` times theirs.

    Parameters
    ----------
    mode
        "nearest", "area" (means of cells), "linear" (one spatial axis), "bilinear" and "bicubic" (two), "trilinear".
    align_corners
        The outermost elements stay where they are; for the (bi-, tri-)linear and bicubic modes.
    align_mode
        Of the (bi-, tri-)linear modes without `align_corners`: with 0 element i covers [i, i + 1), with 1 it is at i.
    recompute_scale_factor
        Take the ratio of the sizes in place of `scale_factor` where the result is not exactly so much larger.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([[[[1.0, 2.0]]]])
    >>> paddle.nn.functional.interpolate(x, size=[1, 4]).tolist()
    [[[[1.0, 1.0, 2.0, 2.0]]]]
    """
    x = tensor(x, "interpolate")
    rank = x.ndim - 2
    _refuse(rank, x, mode.lower(), align_corners, align_mode, antialias)
    mode = mode.lower()
    last = channels_last(data_format or FIRST[rank][0], rank, "interpolate")
    x = to_first(x, last)
    extents, factors = _sizes(x, size, scale_factor, rank)
    if mode == "area":
        return to_last(_AREA[rank](x, extents), last)
    x = x if mode == "nearest" else floating(x, "interpolate")
    for axis, (extent, factor) in enumerate(zip(extents, factors, strict=True), start=2):
        ratio = None if factor is None or recompute_scale_factor else 1.0 / factor
        x = _resized(x, axis, extent, ratio, mode, align_corners, align_mode)
    return to_last(x, last)


def upsample(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False,
    align_mode: int = 0, data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Do what `interpolate` does."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


_AREA: dict[int, Callable[..., Tensor]] = {
    1: adaptive_pooling.adaptive_avg_pool1d,
    2: adaptive_pooling.adaptive_avg_pool2d,
    3: adaptive_pooling.adaptive_avg_pool3d,
}


def _refuse(rank: int, x: Tensor, mode: str, align_corners: bool, align_mode: int, antialias: bool) -> None:
    if mode not in _RANKS:
        raise ValueError(f"interpolate: mode must be one of {', '.join(_RANKS)}, not {mode!r}")
    if rank not in _RANKS[mode]:
        raise ValueError(f"interpolate: mode {mode!r} does not go with a tensor of shape {x.shape}")
    if align_corners and mode in ("nearest", "area"):
        raise ValueError(f"interpolate: align_corners has no meaning in mode {mode!r}")
    if align_mode not in (0, 1):
        raise ValueError(f"interpolate: align_mode must be 0 or 1, not {align_mode!r}")
    if antialias:
        raise NotImplementedError("interpolate: antialias=True is not supported; mode 'area' averages when shrinking")


def _sizes(x: Tensor, size: Any, scale_factor: Any, rank: int) -> tuple[list[Any], list[float | None]]:
    """Return the new extents, and the factors where those decide."""
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give one of size and scale_factor")
    if size is not None:
        return [whole(e, "interpolate: size") for e in _each(size, rank, "size")], [None] * rank
    factors = [float(f) for f in _each(scale_factor, rank, "scale_factor")]
    if any(f <= 0 for f in factors):
        raise ValueError(f"interpolate: scale_factor must be positive, not {scale_factor!r}")
    return [_scaled(e, f) for e, f in zip(x.shape[2:], factors, strict=True)], list(factors)


def _each(value: Any, rank: int, what: str) -> list[Any]:
    if isinstance(value, Tensor):
        value = value.tolist()
    listed = list(value) if isinstance(value, (list, tuple)) else [value] * rank
    if len(listed) != rank:
        raise ValueError(f"interpolate: {what} needs a number or {rank} of them, not {value!r}")
    return listed


def _scaled(extent: Any, factor: float) -> Any:
    return extent * int(factor) if factor == int(factor) else trunc(extent * factor)


def _resized(x: Tensor, axis: int, extent: Any, ratio: float | None, mode: str, corners: bool, align: int) -> Tensor:
    """Return x with another extent of one axis; `ratio` is the distance of new places in old elements."""
    old = x.shape[axis]
    if any(isinstance(count, int) and count < 1 for count in (old, extent)):
        raise ValueError(f"interpolate: an axis of {old} elements cannot get {extent}")
    if isinstance(old, int) and old == extent and ratio in (None, 1.0):
        return x
    steps = arange(extent, dtype="float64")
    if corners:
        spacing = (_number(old) - 1.0) / math.maximum(_number(extent) - 1.0, 1.0)
    else:
        spacing = _number(old) / _number(extent) if ratio is None else ratio
    if mode == "nearest":
        return apply(_TAKE, x, _inside(math.floor(steps * spacing), old), axis=axis)
    halfway = not corners and (mode == "bicubic" or align == 0)
    places = (steps + 0.5) * spacing - 0.5 if halfway else steps * spacing
    places = places if mode == "bicubic" else math.maximum(places, 0.0)
    floor = math.floor(places)
    weights = _cubic(places - floor) if mode == "bicubic" else _linear(places - floor)
    return _weighted(x, axis, floor, weights, old)


def _weighted(x: Tensor, axis: int, floor: Tensor, weights: dict[int, Tensor], old: Any) -> Tensor:
    """Return the sum of the elements around each place, weighted."""
    beside = [-1 if i == axis else 1 for i in range(x.ndim)]
    terms = [
        apply(_TAKE, x, _inside(floor + float(shift), old), axis=axis) * cast_to(weight, x.dtype).reshape(beside)
        for shift, weight in weights.items()
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _linear(t: Tensor) -> dict[int, Tensor]:
    return {0: 1.0 - t, 1: t}


def _cubic(t: Tensor) -> dict[int, Tensor]:
    """Return the weights of the four neighbours (Keys, 1981, with a = -0.75)."""
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a

    return {-1: far(t + 1.0), 0: near(t), 1: near(1.0 - t), 2: far(2.0 - t)}


def _inside(places: Tensor, extent: Any) -> Tensor:
    """Return integer places, moved to the nearest element there is."""
    return cast_to(math.minimum(math.maximum(places, 0.0), _number(extent) - 1.0), dtypes.int64)


def _number(extent: Any) -> Tensor:
    return tensor(extent, "interpolate", dtypes.float64)
