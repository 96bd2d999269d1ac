"""Where in the user's code an operation comes from."""

from __future__ import annotations

import inspect
import linecache
from dataclasses import dataclass, field
from types import CodeType, FrameType

from dy2st.ir.context import current
from dy2st.naming import is_plain_module

MOST_CALLS = 50
"""A location remembers no more calls than this."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source: file, line and the function's name.

    What was recorded in this process also knows how it came there: the code and the instruction of each of the user's
    functions that were running, innermost first. Programs are compared, printed and saved without that.
    """

    file: str
    line: int
    function: str = ""
    calls: tuple[tuple[CodeType, int], ...] = field(default=(), compare=False, repr=False)

    def source(self) -> str:
        """Return the text of the line, "" when it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def user_frame() -> FrameType | None:
    """Return the innermost frame that runs the user's code."""
    frame = inspect.currentframe()
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    return frame


def is_user_frame(frame: FrameType) -> bool:
    """Say whether a frame runs code that is not of this package, nor of a library."""
    return not is_plain_module(frame.f_globals.get("__name__"))


def user_location() -> Location | None:
    """Return the line of the user's code that is running now, and inside of a trace the calls that led there."""
    frame = user_frame()
    if frame is None:
        return None
    place, calls = frame, [(frame.f_code, frame.f_lasti)]
    bottom = getattr(current().trace, "bottom", None)
    while bottom is not None and frame is not None and frame is not bottom and len(calls) < MOST_CALLS:
        frame = frame.f_back
        if frame is not None and is_user_frame(frame):
            calls.append((frame.f_code, frame.f_lasti))
    return Location(place.f_code.co_filename, place.f_lineno, place.f_code.co_name, tuple(calls))
