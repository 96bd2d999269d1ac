"""Padding: constants, mirrors, edges and wrap-around."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.functions.core.operands import integers, number, op, tensor
from dy2st.functions.math import math
from dy2st.functions.shape.creation import arange
from dy2st.nn.functional.window_arguments import FIRST, LAST
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar

_PAD, _TAKE = op("pad"), op("take")
_MODES = ("constant", "reflect", "replicate", "circular")


def pad(
    x: Any, pad: Any, mode: str = "constant", value: float = 0.0, data_format: str | None = None,
    pad_from_left_axis: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return x with elements around it: `value`, a mirror image ("reflect"), the edge ("replicate") or the other end.

    `pad` is one int for all spatial sides, or a list of (low, high) for axes: 2 * ndim numbers in mode "constant" from
    the first axis on (`pad_from_left_axis`), else of the spatial axes from the last one backwards (left, right, top,
    bottom, front, back).

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([[1.0, 2.0]])
    >>> paddle.nn.functional.pad(x, [0, 0, 1, 0]).tolist()
    [[0.0, 1.0, 2.0]]
    """
    x = tensor(x, "pad")
    if mode not in _MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_MODES)}, not {mode!r}")
    pairs = _pairs(x, pad, mode, data_format, pad_from_left_axis)
    if mode == "constant":
        return pad_pairs(x, pairs, value)
    for axis, (low, high) in enumerate(pairs):
        if isinstance(low, Scalar) or isinstance(high, Scalar) or low or high:
            x = _pad_axis(x, axis, low, high, mode)
    return x


def pad_pairs(x: Tensor, pairs: Any, value: Any) -> Tensor:
    """Return x with `value` around it: a pair (low, high) of ints or Scalars for each axis; negative ones cut off."""
    if any(isinstance(width, int) and width < 0 for pair in pairs for width in pair):
        cut = tuple(
            slice(max(-low, 0), extent - max(-high, 0)) for (low, high), extent in zip(pairs, x.shape, strict=True)
        )
        return pad_pairs(x[cut], [(max(low, 0), max(high, 0)) for low, high in pairs], value)
    if all(isinstance(width, int) and width == 0 for pair in pairs for width in pair):
        return x
    widths = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    template = tuple(None if isinstance(width, Scalar) else int(width) for width in widths)
    dims = [width for width in widths if isinstance(width, Scalar)]
    around = number(value, x.dtype, x)
    return apply(_PAD, x, around, *dims, low=template[: x.ndim], high=template[x.ndim :])


def zeropad2d(x: Any, padding: Any, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Return images with zeros around them: left, right, top, bottom."""
    return pad(x, padding, "constant", 0.0, data_format)


def _pairs(x: Tensor, widths: Any, mode: str, data_format: str | None, from_left: bool) -> list[tuple[Any, Any]]:
    rank = x.ndim
    if isinstance(widths, (int, np.integer)):
        widths = [int(widths)] * (2 * max(rank - 2, 1))
    given = integers(widths, "pad")
    if len(given) % 2 or len(given) > 2 * rank:
        raise ValueError(f"pad: {len(given)} widths do not fit a tensor of {rank} axes")
    couples = [(given[2 * i], given[2 * i + 1]) for i in range(len(given) // 2)]
    pairs: list[tuple[Any, Any]] = [(0, 0)] * rank
    if mode == "constant" and len(couples) == rank and from_left:
        return couples
    last = _spatial_end(rank, data_format)
    for i, couple in enumerate(couples):
        axis = last - i
        if axis < 0:
            raise ValueError(f"pad: {len(given)} widths do not fit a tensor of {rank} axes in format {data_format}")
        pairs[axis] = couple
    return pairs


def _spatial_end(rank: int, data_format: str | None) -> int:
    """Return the last spatial axis."""
    if data_format is None:
        return rank - 1
    known = {**{f: False for fs in FIRST.values() for f in fs}, **{f: True for fs in LAST.values() for f in fs}}
    if data_format not in known:
        raise ValueError(f"pad: data_format must be one of {', '.join(known)}, not {data_format!r}")
    return rank - 2 if known[data_format] and len(data_format) == rank else rank - 1


def _pad_axis(x: Tensor, axis: int, low: Any, high: Any, mode: str) -> Tensor:
    extent = x.shape[axis]
    most = {"reflect": extent - 1, "replicate": None, "circular": extent}[mode]
    for width in (low, high):
        if isinstance(most, int) and isinstance(width, int) and (width > most or width < 0):
            raise ValueError(
                f"pad: mode {mode!r} can add from 0 to {most} elements to an axis of {extent}, not {width}"
            )
    places = arange(-low, extent + high, dtype="int64")
    if mode == "reflect":
        places = (extent - 1) - math.abs((extent - 1) - math.abs(places))
    elif mode == "replicate":
        places = math.minimum(math.maximum(places, 0), extent - 1)
    else:
        places = places % extent
    return apply(_TAKE, x, places, axis=axis)
