"""What leaves a run belongs to the caller: he may write into it, so nothing that a Program keeps may leave.

NumPy constants enter a run as read-only views. A result that is read-only is therefore a constant, a view of one, or a
broadcast whose elements share memory; it is copied. Arrays on a device have no such flag: there a result whose memory
is a constant's, or whose elements share memory, is copied. Anything else leaves as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dy2st.ir.literals import is_array
from dy2st.kinds import is_list, is_tuple
from dy2st.ops.core.bundle import Bundle

Kept = dict[int, Any]


def read_only(array: Any) -> Any:
    """Return a view that cannot be written through; arrays on a device have no such flag and stay as they are."""
    if not is_array(array):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def keeps_memory(constants: Iterable[Any]) -> Kept:
    """Return the device memory of constants, by identity."""
    memory = [c.data.mem for c in constants if not isinstance(c, np.ndarray) and hasattr(c, "data")]
    return {id(m): m for m in memory}


def released(value: Any, kept: Kept | None = None) -> Any:
    """Return a result as the caller may have it."""
    if is_array(value):
        return value if value.flags.writeable else value.copy()
    if is_list(value):
        return _each(value, kept)
    if is_tuple(value):
        return tuple(released(item, kept) for item in value)
    if isinstance(value, Bundle):
        return Bundle([released(item, kept) for item in value.items])
    if hasattr(value, "data") and ((kept and id(value.data.mem) in kept) or _repeats(value)):
        return value.copy()
    return value


def _repeats(array: Any) -> bool:
    """Return whether several elements of an array on a device are one in memory."""
    return any(step == 0 and extent > 1 for step, extent in zip(array.strides, array.shape, strict=True))


def _each(items: list[Any], kept: Kept | None) -> list[Any]:
    """Replace what must be copied; a list without such elements stays the same list."""
    free = [released(item, kept) for item in items]
    return items if all(map(_same, free, items)) else free


def _same(a: object, b: object) -> bool:
    return a is b or (is_tuple(a) and is_tuple(b) and all(map(_same, a, b)))
