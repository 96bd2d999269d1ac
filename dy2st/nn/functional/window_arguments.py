"""Kernel extents, strides, dilations and paddings in the forms that callers write, as the ops take them.

Padding is an int for all sides, an int an axis, a pair (low, high) an axis, written flat, pairs for all axes of the
tensor (zeros for batch and channels), "VALID" (none) or "SAME" (as many windows as elements over the stride).
"""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import whole
from dy2st.runtime.eager.tensor import Tensor

Pairs = tuple[tuple[int, int], ...]

FIRST = {1: ("NCL", "NCW"), 2: ("NCHW",), 3: ("NCDHW",)}
LAST = {1: ("NLC", "NWC"), 2: ("NHWC",), 3: ("NDHWC",)}


def channels_last(data_format: str, rank: int, name: str) -> bool:
    """Return whether the channels are the last axis; ValueError for a format of another rank."""
    if data_format in FIRST[rank]:
        return False
    if data_format in LAST[rank]:
        return True
    raise ValueError(f"{name}: data_format must be {FIRST[rank][0]!r} or {LAST[rank][0]!r}, not {data_format!r}")


def to_first(x: Tensor, last: bool) -> Tensor:
    """Return the tensor with its channels as axis 1."""
    return x.transpose([0, x.ndim - 1, *range(1, x.ndim - 1)]) if last else x


def to_last(x: Tensor, last: bool) -> Tensor:
    """Return a tensor with channels as axis 1 in the caller's format."""
    return x.transpose([0, *range(2, x.ndim), 1]) if last else x


def each(value: Any, rank: int, what: str, name: str) -> tuple[int, ...]:
    """Return one int for each of `rank` axes, from an int or a sequence of that length."""
    listed = list(value) if isinstance(value, (list, tuple)) else [value] * rank
    if len(listed) == 1:
        listed *= rank
    if len(listed) != rank:
        raise ValueError(f"{name}: {what} needs an int or {rank} of them, not {value!r}")
    return tuple(whole(item, f"{name}: {what}") for item in listed)


def paddings(
    padding: Any, x: Tensor, kernel: tuple[Any, ...], stride: tuple[int, ...], dilation: tuple[int, ...], name: str,
    last: bool = False,
) -> Pairs:  # fmt: skip
    """Return a pair (low, high) for each spatial axis of `x`, which has its channels as axis 1."""
    rank = len(kernel)
    if isinstance(padding, str):
        return _named(padding.upper(), x, kernel, stride, dilation, name)
    if not isinstance(padding, (list, tuple)):
        width = whole(padding, f"{name}: padding")
        return ((width, width),) * rank
    if padding and isinstance(padding[0], (list, tuple)):
        pairs = [tuple(whole(item, f"{name}: padding") for item in pair) for pair in padding]
        if len(pairs) == rank + 2:
            outer, pairs = ((pairs[0], pairs[-1]), pairs[1:-1]) if last else ((pairs[0], pairs[1]), pairs[2:])
            if any(any(pair) for pair in outer):
                raise ValueError(f"{name}: batch and channels cannot be padded, padding is {padding!r}")
        if len(pairs) == rank and all(len(pair) == 2 for pair in pairs):
            return tuple(pairs)  # type: ignore[return-value]
    else:
        flat = [whole(item, f"{name}: padding") for item in padding]
        if len(flat) == 1:
            flat *= rank
        if len(flat) == rank:
            return tuple((width, width) for width in flat)
        if len(flat) == 2 * rank:
            return tuple((flat[2 * i], flat[2 * i + 1]) for i in range(rank))
    raise ValueError(f"{name}: padding {padding!r} does not fit {rank} spatial axes")


def _named(
    padding: str, x: Tensor, kernel: tuple[Any, ...], stride: tuple[int, ...], dilation: tuple[int, ...], name: str
) -> Pairs:
    if padding == "VALID":
        return ((0, 0),) * len(kernel)
    if padding != "SAME":
        raise ValueError(f"{name}: padding must be 'SAME', 'VALID' or numbers, not {padding!r}")
    pairs: list[tuple[int, int]] = []
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        if s == 1:
            total = (k - 1) * d
        else:
            extent = int(x.shape[axis + 2])
            total = max((-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)
