"""Which lines of a function stand in the way of its Program."""

from __future__ import annotations

import types
from collections.abc import Iterator

from dy2st.errors import ConversionError, Dy2stError
from dy2st.jit.tracing.conversion_cache import convert
from dy2st.naming import is_plain_module


def refused_lines(error: Dy2stError, function: types.FunctionType) -> tuple[frozenset[int], bool]:
    """Return the lines of `function` on the way to a refusal, and whether it came from another function.

    A refusal that was raised at the end of the trace has no such way; it may name the line.
    """
    try:
        code = convert(function).code
    except ConversionError:  # there is no source to cut
        return frozenset(), False
    mine = set(_nested(code))
    lines: set[int] = set()
    called = False
    for frame_code, line, name in _frames(error):
        if frame_code in mine and not (frame_code is code and lines):
            lines.add(line)
        elif lines and not is_plain_module(name):
            called = True
            break
    file, line = getattr(error, "file", None), getattr(error, "line", None)
    if not lines and file == code.co_filename and line in _lines_of(function.__code__):
        lines.add(line)
    return frozenset(lines), called


def _frames(error: BaseException) -> Iterator[tuple[types.CodeType, int, str]]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame.f_code, traceback.tb_lineno, traceback.tb_frame.f_globals.get("__name__", "")
        traceback = traceback.tb_next


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _lines_of(code: types.CodeType) -> set[int]:
    """Return the lines of a function, without the one that its `def` stands on."""
    found = {line for one in _nested(code) for _, _, line in one.co_lines() if line is not None}
    return found - {code.co_firstlineno}
