"""Tell what the user's code raises while it is traced from a fault of the converter, which no handler may see.

What Python raises by itself (no `raise` statement) in a module that only makes Programs is nothing that eager would
raise: eager never runs that code.
"""

from __future__ import annotations

import dis
from types import TracebackType
from typing import Any

from dy2st.errors import ConversionError, TraceError, located
from dy2st.ir.location import Location, error_at, is_user_frame, user_location
from dy2st.runtime.tracer.control_flow.refusal_hints import hint_for

MAKERS = ("dy2st.ir.", "dy2st.autodiff.", "dy2st.passes.")
"""Packages that only make Programs."""
MODULES = frozenset(
    f"dy2st.runtime.{name}"
    for name in (
        "tracer.builtins.with_statement",
        "tracer.control_flow.conditional",
        "tracer.control_flow.recursion",
        "tracer.control_flow.try_except",
        "tracer.effects.escape_analysis",
        "tracer.effects.side_effect_log",
        "tracer.effects.union_cast",
        "tracer.recording.leaf_gradients",
        "tracer.recording.recorder",
        "tracer.values.abstract",
        "tracer.values.flatten",
        "tracer.values.join",
    )
)
OF_ASSERT = "dy2st.runtime.tracer.control_flow.assert_raise"
"""What raises where an `assert` of the user's does."""
RAISES = (dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"])
HANDS_ON = dis.opmap["CALL_FUNCTION_EX"]
"""A call of the user's function with the arguments that the user gave, which may not fit."""


def refuse_fault(error: BaseException) -> None:
    """Raise TraceError where `error` is a fault of the converter; a RecursionError is the caller's."""
    if isinstance(error, RecursionError):
        raise error
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not _is_fault(error, last):
        return
    raise fault(error) from error


def fault(error: BaseException, function: Any = None) -> TraceError:
    """Return what is said of an exception that eager does not raise, in the trace of a function."""
    return error_at(
        TraceError,
        place_of(error.__traceback__) if function is None else _innermost(error.__traceback__) or _place(function),
        f"dy2st failed to convert this, which is a fault of dy2st: {type(error).__name__}: {error}",
        "please report it with this function",
    )


def placed(error: BaseException, function: Any) -> None:
    """Let a refusal name the innermost line of the user's that it came from, or the function's, and what to do."""
    if not isinstance(error, (TraceError, ConversionError)):
        return
    if error.file is None and (place := _innermost(error.__traceback__) or _place(function)) is not None:
        error.file, error.line = place.file, place.line
    if error.hint is None:
        error.hint = hint_for(error.reason)
    error.args = (located(error.reason, error.file, error.line, error.hint),)


def _is_fault(error: BaseException, at: TracebackType) -> bool:
    name = at.tb_frame.f_globals.get("__name__", "")
    if isinstance(error, AssertionError):
        return name.startswith("dy2st.") and name != OF_ASSERT
    if name not in MODULES and not name.startswith(MAKERS):
        return False
    return at.tb_frame.f_code.co_code[at.tb_lasti] not in (*RAISES, HANDS_ON)


def _begins(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_globals.get("__name__", "").startswith("dy2st.")


def _place(function: Any) -> Location | None:
    """Return where a function begins."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno, code.co_name)


def place_of(traceback: TracebackType | None) -> Location | None:
    """Return the innermost line of the user's that a traceback names, else the one that is running."""
    return _innermost(traceback) or user_location()


def _innermost(traceback: TracebackType | None) -> Location | None:
    found = None
    while traceback is not None and not _begins(traceback):  # what called the static function is not at fault
        traceback = traceback.tb_next
    while traceback is not None:
        if is_user_frame(traceback.tb_frame):
            code = traceback.tb_frame.f_code
            found = Location(code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next
    return found
