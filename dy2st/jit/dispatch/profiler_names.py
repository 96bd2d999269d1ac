"""Calls that stand in profiles under the name, the file and the line of the user's function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from dy2st.runtime.gc_pause import while_it_lives

_SAME_LINE = 0x80 | 13 << 3
"""An entry of CPython's line table (Objects/locations.md) that goes on with the line before it, without columns."""


def named_call(function: Any) -> Callable[..., Any]:
    """Return what calls its first argument with the others, in a frame that is named after a function.

    A Program runs without a frame of the function that it was made of; this one shows in its place.

    >>> def halve(x): return x / 2
    >>> named_call(halve).__code__.co_name
    'halve'
    >>> named_call(halve)(abs, -3)
    3
    """
    code = getattr(function, "__code__", None)
    return _call_as(code) if isinstance(code, types.CodeType) else _call


def named_after(function: Any, made: types.FunctionType) -> types.FunctionType:
    """Return a function that was made, in frames that are named after another; as it is where that has no code."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return made
    return types.FunctionType(_renamed(made.__code__, code), globals(), closure=made.__closure__)


def _call(run: Callable[..., Any], *arguments: Any) -> Any:
    return run(*arguments)


@while_it_lives
def _call_as(code: types.CodeType) -> Callable[..., Any]:
    return types.FunctionType(_renamed(_call.__code__, code), globals())


def _renamed(made: types.CodeType, code: types.CodeType) -> types.CodeType:
    """Return code under the name of another, all of it on the line where that begins."""
    units = len(made.co_code) // 2
    return made.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_linetable=b"".join(bytes((_SAME_LINE | min(units - at, 8) - 1, 0)) for at in range(0, units, 8)),
    )
