"""`warnings.warn` in converted code: the Program warns where it comes to that line, not the trace."""

from __future__ import annotations

import warnings
from types import CodeType, FrameType
from typing import Any

from dy2st.ir.location import frame_at, is_user_frame
from dy2st.ops.control.warn import CATEGORIES
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.interpreter.error_locations import is_part
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_string import text_part


def warn(
    trace: Trace, message: Any, category: type[Warning] | None = None, stacklevel: int = 1, source: Any = None,
    **keywords: Any,
) -> None:  # fmt: skip
    """Warn when the Program runs."""
    if isinstance(message, Warning):
        category, message = type(message), message.args[0] if len(message.args) == 1 else str(message)
    category = UserWarning if category is None else category
    if CATEGORIES.get(category.__name__) is not category or keywords:
        raise refusal(
            f"a Program cannot warn of a {category.__name__}", "warn with one of Python's own classes of warnings"
        )
    if warnings.filters is not trace.filters:
        raise refusal("warnings.warn() inside of warnings.catch_warnings()", "catch the warnings around the call")
    part, operands = text_part(trace, message)
    attributes = {"template": (part,), "category": category.__name__, "at": line_at(stacklevel)}
    trace.emit("warn", operands, attributes)


def line_at(stacklevel: int) -> tuple[str, int]:
    """Return the file and line of the user's function so many calls further out."""
    place, code = ("<unknown>", 0), None
    frame: FrameType | None = frame_at(1)
    while frame is not None and stacklevel >= 0:
        if is_user_frame(frame) and not _is_around(code, frame.f_code):
            stacklevel -= 1
            if stacklevel < 0:
                break
            place, code = (frame.f_code.co_filename, frame.f_lineno), frame.f_code
        frame = frame.f_back
    return place


def _is_around(inner: CodeType | None, outer: CodeType) -> bool:
    return inner is not None and is_part(inner, outer)
