"""The warning that a function, or a call of it, runs eagerly or is split."""

from __future__ import annotations

import warnings
from types import FrameType
from typing import Any

from dy2st.errors import DebuggerCall, Dy2stError
from dy2st.ir.location import frame_at, user_location


class FallbackWarning(UserWarning):
    """A function, or a call of it, runs eagerly or is split; the text says why and where."""


def warn_of_fallback(function: Any, error: Dy2stError, parts: int | None = None) -> None:
    """Warn at the user's line that `function` runs eagerly, or in `parts` with Python between, because of `error`."""
    if parts is None:
        text = f"{named_place(function)} runs eagerly, without a Program: {error}"
    else:
        text = f"{named_place(function)} is split: the line below runs eagerly, as this cannot be one Program: {error}"
    if not isinstance(error, DebuggerCall):
        text += "\nfull_graph=True makes this an error."
    warnings.warn(text, FallbackWarning, stacklevel=stacklevel())


def named_place(function: Any) -> str:
    """Return the name of a function, and where it was written."""
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"`{getattr(function, '__qualname__', repr(function))}`{place}"


def stacklevel() -> int:
    """Return how far out of the function that calls this the user's code is."""
    place = user_location()
    level = 1
    frame: FrameType | None = frame_at(1)
    while frame is not None and place is not None and frame.f_code.co_filename != place.file:
        level, frame = level + 1, frame.f_back
    return level
