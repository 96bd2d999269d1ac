"""Eager mode as arbiter of what a trace raises: only what the function raises eagerly as well is the user's.

A trace leaves everything as it was. So a call whose trace ends in an exception runs eagerly; where it raises there too,
that is what the user sees, and where it does not, the trace was at fault and the function falls back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dy2st.errors import Dy2stError
from dy2st.jit.dispatch.dynamic_scalars import DynamicScalars
from dy2st.jit.guards.call_signature import FlatCall
from dy2st.runtime.tracer.control_flow.internal_errors import fault


class Undecided(Exception):
    """Tracing raised what the function itself may raise or not: a run of it, which is eager then, tells."""

    def __init__(self, key: Any, made: FlatCall, error: Exception):
        self.key, self.made, self.error = key, made, error


Outcome = tuple[Any, FlatCall | None, Undecided | None]
"""What a call gives; or its arguments, where it is to run eagerly, and what that run decides."""


def decide(
    found: Undecided, lock: AbstractContextManager[Any], open_ones: DynamicScalars,
    fall_back: Callable[[Any, Dy2stError], None], function: Any,
) -> None:  # fmt: skip
    """Take what tracing raised for a fault of the trace: the call did not raise when it ran eagerly."""
    with lock:
        if found.made.numbers or found.made.opened:
            open_ones.close_arguments(found.made)
        else:
            fall_back(found.key, fault(found.error, function).with_traceback(found.error.__traceback__))
