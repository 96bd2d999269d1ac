"""`logging` in converted code: the Program logs where it comes to that line, not the trace.

A logger that is not to be had by its name, or of a class with methods of its own, is met as any other object.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from dy2st.kinds import is_dict
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.tracer.builtins.string_formatting import percent
from dy2st.runtime.tracer.builtins.warnings import line_at
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_string import text_part

LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "warn": logging.WARNING,
    "error": logging.ERROR, "critical": logging.CRITICAL, "log": None,
}  # fmt: skip
"""The methods of a logger that log a text, and with what level; None where an argument says it."""


def logging_call(trace: Trace, f: Any) -> Callable[..., None] | None:
    """Return what logs when the Program runs, for a method of a logger or a function of `logging`."""
    name, owner = getattr(f, "__name__", ""), getattr(f, "__self__", None)
    if name not in LEVELS:
        return None
    if f is getattr(logging, name, None):
        return functools.partial(_log, trace, "", LEVELS.get(name))
    if not isinstance(owner, logging.Logger) or getattr(type(owner), name) is not getattr(logging.Logger, name, None):
        return None
    known = logging.getLogger(owner.name) is owner
    return functools.partial(_log, trace, owner.name, LEVELS.get(name)) if known else None


def _log(trace: Trace, logger: str, level: int | None, *args: Any, stacklevel: int = 1, **keywords: Any) -> None:
    """Log when the Program runs."""
    level, (message, *values) = (args[0], args[1:]) if level is None else (level, args)
    if keywords or type(level) is not int or level < 0:
        raise refusal("logging with exc_info, stack_info, extra, or a level that is no number", "log the text alone")
    if values:
        message = percent(trace, message, values[0] if is_dict(values[0]) else tuple(values))
    part, operands = text_part(trace, message)
    trace.emit(
        "log_record", operands, {"template": (part,), "logger": logger, "level": level, "at": line_at(stacklevel)}
    )
