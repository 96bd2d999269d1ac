"""Errors that an operation raises while a Program runs end at the user's line, not in the code that runs Programs.

The exception object stays the one that the op raised; only its traceback is replaced: the frames of this package and of
the array library go, and synthetic frames take their place, one for each of the user's functions that were running when
the operation was recorded. They are named after function, file and line, and their line tables say the columns, so that
Python prints the user's source with carets. A call of a function of the Program adds the frames of its own in front.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import NoReturn, TypeVar

from dy2st.ir.location import Location
from dy2st.records import record
from dy2st.runtime.gc_pause import while_it_lives

E = TypeVar("E", bound=BaseException)

_HOUSE = __name__.partition(".")[0]
_LIBRARIES = frozenset({"numpy", "cupy", "cupyx"})
_DEEP = "maximum recursion depth exceeded"
_SYNTHETIC = "__dy2st_line__"
"""The global of a synthetic frame: the code that it stands for."""
_ENTRY, _NO_COLUMNS, _LONG_FORM = 0x80, 13, 14  # of CPython's line table (Objects/locations.md)


def located(error: E, location: Location | None, calling: bool = False) -> E:
    """Return `error` with a traceback that ends at `location`, to be raised at once.

    An error that already ends in a user's line keeps its frames; `calling` then puts `location` in front of them, as
    the line of a call.
    """
    linked = _linked_before(error.__traceback__)
    frames = _kept(error.__traceback__, linked)
    if location is not None and (calling or linked is None):
        frames = [*_frames_of(location), *frames]
    return error.with_traceback(_linked(frames, linked))


def let_go(error: BaseException) -> None:
    """Clear what ended frames of this package hold, which synthetic ones keep: the arrays of a run, up to a collection.

    A frame keeps those that called it.
    """
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame.f_back if _SYNTHETIC in traceback.tb_frame.f_globals else None
        while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == _HOUSE:
            try:
                frame.clear()
            except RuntimeError:  # it runs, and so do those that called it
                break
            frame = frame.f_back
        traceback = traceback.tb_next


def too_deep(error: RecursionError, name: str) -> RecursionError:
    """Return Python's bare RecursionError as one that names the function; any other stays."""
    if not str(error).startswith(_DEEP):
        return error
    return RecursionError(f"the function {name!r} of the Program is called too deeply; does its recursion end?")


def _linked_before(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that `located` has made: deep recursion has a thousand frames there."""
    while traceback is not None and _SYNTHETIC not in traceback.tb_frame.f_globals:
        traceback = traceback.tb_next
    return traceback


def _kept(traceback: TracebackType | None, end: TracebackType | None = None) -> list[tuple[FrameType, int]]:
    """Return the frames that a user should see: synthetic ones, and what Python code of his was called by an op."""
    frames: list[tuple[FrameType, int]] = []
    inside = True
    while traceback is not end and traceback is not None:
        frame = traceback.tb_frame
        line = traceback.tb_lineno or frame.f_code.co_firstlineno  # a signal may come at code of no line
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if _SYNTHETIC in frame.f_globals:
            frames.append((frame, line))
        elif package == _HOUSE:
            inside = True
        elif not (inside and package in _LIBRARIES):
            inside = False
            frames.append((frame, line))
        traceback = traceback.tb_next
    return frames


def _linked(frames: list[tuple[FrameType, int]], traceback: TracebackType | None = None) -> TracebackType | None:
    """Put frames in front of a traceback; of parts of one converted function that hold each other, the innermost."""
    inner = None if traceback is None else traceback.tb_frame.f_globals[_SYNTHETIC]
    for frame, line in reversed(frames):
        code = frame.f_globals.get(_SYNTHETIC, frame.f_code)
        if inner is None or not is_part(inner, code):
            traceback = TracebackType(traceback, frame, frame.f_lasti if _SYNTHETIC not in frame.f_globals else 0, line)
        inner = code
    return traceback


def is_part(inner: CodeType, outer: CodeType) -> bool:
    """Return whether `inner` is a branch or the body of a loop in the converted form of the function of `outer`, or a
    part of it where it is split.
    """
    if inner.co_qualname != outer.co_qualname or inner.co_filename != outer.co_filename:
        return False
    return inner in _inside(outer) or outer.co_firstlineno < inner.co_firstlineno <= _last_line(outer)


@while_it_lives
def _last_line(code: CodeType) -> int:
    return max(line for _, _, line in code.co_lines() if line is not None)


@while_it_lives
def _inside(code: CodeType) -> frozenset[CodeType]:
    found = [c for c in code.co_consts if isinstance(c, CodeType)]
    return frozenset(found).union(*map(_inside, found))


def _frames_of(location: Location) -> list[tuple[FrameType, int]]:
    """Return a synthetic frame for each call that led to a location, outermost first."""
    if not location.calls:
        return [(_frame(_Spot(location.file, location.function, location.line)), location.line)]
    spots = [(code, _spot(code, instruction)) for code, instruction in reversed(location.calls)]
    return [(_frame(spot, code), spot.line) for code, spot in spots]


@record(frozen=True)
class _Spot:
    """A part of a line; without columns, the whole line."""

    file: str
    function: str
    line: int
    end_line: int = 0
    column: int | None = None
    end_column: int = 0


def _spot(code: CodeType, instruction: int) -> _Spot:
    """Return the part of the source that an instruction stands for."""
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None))
    line, end_line, column, end_column = positions
    name = code.co_name
    if line is None or column is None or end_line is None or end_column is None:
        return _Spot(code.co_filename, name, line or code.co_firstlineno)
    return _Spot(code.co_filename, name, line, end_line, column, end_column)


def _frame(spot: _Spot, code: CodeType | None = None) -> FrameType:
    """Return a frame that has stopped at a spot; `code` is the user's that it stands for."""
    made = _code(spot)
    try:
        FunctionType(made, {_SYNTHETIC: code or made, "__name__": spot.function})(_Stop())
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
def _code(spot: _Spot) -> CodeType:
    """Return code that raises its argument at a spot."""
    code = _thrower.__code__
    units = len(code.co_code) // 2
    table = bytearray()
    while units > 0:
        covered = min(units, 8)
        table += _entry(spot, covered)
        units -= covered
    name = spot.function or "<module>"
    return code.replace(
        co_filename=spot.file,
        co_name=name,
        co_qualname=name,
        co_firstlineno=max(spot.line, 1),
        co_linetable=bytes(table),
        co_exceptiontable=b"",
    )


def _entry(spot: _Spot, units: int) -> bytes:
    """Return an entry of CPython's line table: `units` instructions that stand on a spot."""
    if spot.column is None:
        return bytes((_ENTRY | _NO_COLUMNS << 3 | units - 1, 0))
    spans = (spot.end_line - spot.line, spot.column + 1, spot.end_column + 1)
    return bytes((_ENTRY | _LONG_FORM << 3 | units - 1, 0)) + b"".join(map(_varint, spans))


def _varint(n: int) -> bytes:
    """Return a number in groups of six bits, the lowest first; all but the last are marked."""
    made = bytearray()
    while n >= 64:
        made.append(64 | n & 63)
        n >>= 6
    return bytes((*made, n))


def user_lines(traceback: TracebackType | None) -> list[Location]:
    """Return the lines of a traceback that are the user's, outermost first."""
    return [Location(f.f_code.co_filename, line, f.f_code.co_name) for f, line in _kept(traceback)]


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package."""
    return _linked(_kept(traceback))
