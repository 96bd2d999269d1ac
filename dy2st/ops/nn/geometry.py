"""Windows that slide over the spatial axes of a tensor: their extents, and their views, for convolution and pooling.

Spatial axes are the last ones. A window has a `kernel` extent, moves by `stride`, skips by `dilation`; `padding` holds
a pair (low, high) for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dy2st.shapes import Dim, Extent

Pairs = tuple[tuple[int, int], ...]


def window_count(name: str, extent: Extent, kernel: Extent, stride: int, padding: tuple[int, int],
                 dilation: int = 1) -> Extent:  # fmt: skip
    """Return how many windows fit along an axis; ValueError when none does."""
    room = extent + sum(padding) - ((kernel - 1) * dilation + 1)
    if isinstance(room, int) and room < 0:
        low, high = padding
        raise ValueError(f"{name}: a window of {kernel} (dilation {dilation}) does not fit {low} + {extent} + {high}")
    return (room + stride) // stride


def refuse_attributes(name: str, rank: int, **attributes: Sequence[Any]) -> None:
    """Raise ValueError unless each attribute has an item for each spatial axis, of the sizes that make sense."""
    for key, items in attributes.items():
        if len(items) != rank:
            raise ValueError(f"{name} over {rank} axes needs {rank} items of {key}, not {len(items)}")
        least = 0 if key == "padding" else 1
        flat: list[Any] = [
            e for item in items for e in (cast("tuple[Any, ...]", item) if isinstance(item, tuple) else (item,))
        ]
        if any(isinstance(e, int) and e < least for e in flat):
            raise ValueError(f"{name} needs {key} of at least {least}, not {list(items)}")


def padded(xp: Any, x: Any, padding: Pairs, value: Any = 0) -> Any:
    """Return `x` with `value` around its spatial axes; `x` itself where there is no padding."""
    if not any(low or high for low, high in padding):
        return x
    lead = x.ndim - len(padding)
    spatial = zip(x.shape[lead:], padding, strict=True)
    out = xp.full((*x.shape[:lead], *(n + low + high for n, (low, high) in spatial)), value, x.dtype)
    inside = [slice(low, low + n) for n, (low, _) in zip(x.shape[lead:], padding, strict=True)]
    out[(..., *inside)] = x
    return out


def windows(xp: Any, x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int],
            counts: Sequence[int]) -> Any:  # fmt: skip
    """Return a view of shape [*lead, *counts, *kernel] of the windows of a padded tensor."""
    rank = len(kernel)
    lead, steps = x.ndim - rank, x.strides[x.ndim - rank :]
    strides = (
        *x.strides[:lead],
        *(a * s for a, s in zip(steps, stride, strict=True)),
        *(a * d for a, d in zip(steps, dilation, strict=True)),
    )
    return xp.lib.stride_tricks.as_strided(x, (*x.shape[:lead], *counts, *kernel), strides)


def offsets(kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], counts: Sequence[int]) -> Any:
    """Yield each place in a window with the slices of a padded tensor that all windows have at that place."""
    for place in np.ndindex(*kernel):
        starts = [p * d for p, d in zip(place, dilation, strict=True)]
        spans = zip(starts, stride, counts, strict=True)
        yield place, (..., *(slice(a, a + s * (n - 1) + 1, s) for a, s, n in spans))


def pooled_counts(name: str, extents: Sequence[Extent], kernel: Sequence[int], stride: Sequence[int], padding: Pairs,
                  ceil_mode: bool) -> tuple[Extent | None, ...]:  # fmt: skip
    """Return how many windows pooling has along each axis.

    In `ceil_mode` a last window may reach over the end, if it begins inside the tensor or the padding before it.
    """
    counts: list[Extent | None] = []
    for extent, k, s, (low, high) in zip(extents, kernel, stride, padding, strict=True):
        if not ceil_mode:
            counts.append(window_count(name, extent, k, s, (low, high)))
            continue
        if isinstance(extent, Dim):
            counts.append(None)
            continue
        if extent + low + high < 1:
            raise ValueError(f"{name}: a window of {k} does not fit {low} + {extent} + {high}")
        count = max(0, -(-(extent + low + high - k) // s)) + 1
        counts.append(count - 1 if (count - 1) * s >= extent + low else count)
    return tuple(counts)


def refuse_wide_padding(name: str, kernel: Sequence[int], padding: Pairs) -> None:
    """Raise ValueError where a window could lie in the padding alone."""
    for k, (low, high) in zip(kernel, padding, strict=True):
        if low >= k or high >= k:
            raise ValueError(f"{name}: padding {(low, high)} must be smaller than the window's extent {k}")
