"""Errors that an operation raises while a Program runs end at the user's line, not in the code that runs Programs.

The exception object stays the one that the op raised; only its traceback is replaced: the frames of this package and of
the array library go, and a synthetic frame named after the user's function, file and line takes their place, so that
Python prints the user's source line. A call of a function of the Program adds the frame of the calling line in front.
"""

from __future__ import annotations

from functools import lru_cache
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import NoReturn, TypeVar

from dy2st.ir.location import Location

E = TypeVar("E", bound=BaseException)

_HOUSE = __name__.partition(".")[0]
_LIBRARIES = frozenset({"numpy", "cupy", "cupyx"})
_DEEP = "maximum recursion depth exceeded"
_SYNTHETIC = "__dy2st_line__"
_NO_COLUMNS = 0x80 | 13 << 3  # an entry of CPython's line table: a line and no columns, so that no caret is drawn


def raise_at(error: BaseException, location: Location | None) -> NoReturn:
    """Raise `error` as though the line at `location` had raised it."""
    raise located(error, location)


def located(error: E, location: Location | None, calling: bool = False) -> E:
    """Return `error` with a traceback that ends at `location`, to be raised at once.

    An error that already ends in a user's line keeps its frames; `calling` then puts `location` in front of them, as
    the line of a call.
    """
    frames = _kept(error.__traceback__)
    if location is not None and (calling or not any(_SYNTHETIC in f.f_globals for f, _ in frames)):
        frames = [(_frame(location), location.line), *frames]
    return error.with_traceback(_linked(frames))


def too_deep(error: RecursionError, name: str) -> RecursionError:
    """Return Python's bare RecursionError as one that names the function; any other stays."""
    if not str(error).startswith(_DEEP):
        return error
    return RecursionError(f"the function {name!r} of the Program is called too deeply; does its recursion end?")


def _kept(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    """Return the frames that a user should see: synthetic ones, and what Python code of his was called by an op."""
    frames: list[tuple[FrameType, int]] = []
    inside = True
    while traceback is not None:
        frame = traceback.tb_frame
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if _SYNTHETIC in frame.f_globals:
            frames.append((frame, traceback.tb_lineno))
        elif package == _HOUSE:
            inside = True
        elif not (inside and package in _LIBRARIES):
            inside = False
            frames.append((frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames


def _linked(frames: list[tuple[FrameType, int]]) -> TracebackType | None:
    traceback: TracebackType | None = None
    for frame, line in reversed(frames):
        lasti = -1 if _SYNTHETIC in frame.f_globals else frame.f_lasti
        traceback = TracebackType(traceback, frame, lasti, line)
    return traceback


def _frame(location: Location) -> FrameType:
    """Return a frame that has stopped at `location`."""
    try:
        FunctionType(_code(location), {_SYNTHETIC: True, "__name__": location.function})(_Stop())
    except _Stop as stop:
        traceback = stop.__traceback__
        inner = traceback.tb_next if traceback is not None else None
        if inner is not None:
            return inner.tb_frame
    raise AssertionError("the code of a synthetic frame only raises")


class _Stop(Exception):
    """Raised in a synthetic frame to get hold of it."""


def _thrower(error: BaseException) -> NoReturn:
    raise error


@lru_cache(maxsize=1024)
def _code(location: Location) -> CodeType:
    """Return code that raises its argument on the line of `location`."""
    code = _thrower.__code__
    units = len(code.co_code) // 2
    table = bytearray()
    while units > 0:
        covered = min(units, 8)
        table += bytes((_NO_COLUMNS | covered - 1, 0))
        units -= covered
    name = location.function or "<module>"
    return code.replace(
        co_filename=location.file,
        co_name=name,
        co_qualname=name,
        co_firstlineno=max(location.line, 1),
        co_linetable=bytes(table),
        co_exceptiontable=b"",
    )


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package."""
    return _linked(_kept(traceback))
