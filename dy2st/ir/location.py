"""Where in the user's code an operation comes from."""

from __future__ import annotations

import inspect
import linecache
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TypeVar

from dy2st.errors import TraceError
from dy2st.ir.context import current
from dy2st.naming import is_plain_module
from dy2st.records import field, record

Error = TypeVar("Error", bound=TraceError)

MOST_CALLS = 50
"""A location remembers no more calls than this."""


_LONG = 4096
"""From so many bytes of code on, a table of its lines is made."""


class _Lines(threading.local):
    """Where the lines of a long function begin, the one that was asked for last."""

    code: CodeType | None = None
    lines: Sequence[tuple[int, int]] = ()


_long = _Lines()


@record(frozen=True, slots=True)
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


frame_at: Callable[[int], FrameType] = sys._getframe  # pyright: ignore[reportPrivateUsage] (CPython's)


def user_frame() -> FrameType | None:
    """Return the innermost frame that runs the user's code."""
    frame: FrameType | None = frame_at(1)
    while frame is not None and is_plain_module(frame.f_globals.get("__name__")):  # `is_user_frame`, without its call
        frame = frame.f_back
    return frame


def line_here() -> tuple[str, int]:
    """Return the file and line of the user's code that is running, as the attribute of an op."""
    frame = user_frame()
    return ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, _line(frame))


def is_user_frame(frame: FrameType) -> bool:
    """Return whether a frame runs code that is not of this package, nor of a library."""
    return not is_plain_module(frame.f_globals.get("__name__"))


def user_location() -> Location | None:
    """Return the line of the user's code that is running now, and inside of a trace the calls that led there."""
    frame = user_frame()
    if frame is None:
        return None
    calls = (frame.f_code, frame.f_lasti), *_callers(frame)
    return Location(frame.f_code.co_filename, _line(frame), frame.f_code.co_name, calls)


def error_at(kind: type[Error], place: Location | None, message: str, hint: str | None = None) -> Error:
    """Return an error that names a place, where it is known; `hint` says what to write instead."""
    file, line = (None, None) if place is None else (place.file, place.line)
    return kind(message, file=file, line=line, hint=hint)


def error_here(kind: type[Error], message: str, hint: str | None = None) -> Error:
    """Return an error that names the line of the user's code that is running now."""
    return error_at(kind, user_location(), message, hint)


def _line(frame: FrameType) -> int:
    """Return the line that a frame is at. Python looks through all lines before it each time."""
    code, at = frame.f_code, frame.f_lasti
    if at < _LONG:
        return frame.f_lineno
    if _long.code is not code:
        _long.code, _long.lines = code, [(start, line or 0) for start, _, line in code.co_lines()]
    return _long.lines[bisect_right(_long.lines, (at, sys.maxsize)) - 1][1]


def _callers(frame: FrameType) -> tuple[tuple[CodeType, int], ...]:
    """Return the calls of the trace that led to a frame: they stand still while it runs (a generator may move)."""
    trace = current().trace
    bottom = getattr(trace, "bottom", None)
    if bottom is None:
        return ()
    if trace.callers[0] is frame and trace.callers[1] is bottom:
        return trace.callers[2]
    calls: list[tuple[CodeType, int]] = []
    outer: FrameType | None = frame
    while outer is not None and outer is not bottom and len(calls) < MOST_CALLS - 1:
        outer = outer.f_back
        if outer is not None and is_user_frame(outer):
            calls.append((outer.f_code, outer.f_lasti))
    if not frame.f_code.co_flags & inspect.CO_GENERATOR:
        trace.callers = frame, bottom, tuple(calls)
    return tuple(calls)
