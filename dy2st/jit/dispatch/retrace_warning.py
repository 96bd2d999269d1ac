"""The warning that a function is traced again and again: each time costs what hundreds of calls cost."""

from __future__ import annotations

import warnings
from typing import Any

from dy2st.jit.dispatch.fallback_warning import named_place, stacklevel

MANY = 16
"""So many traces of one function are taken for a mistake, and are told of once."""


class RetraceWarning(UserWarning):
    """A function was traced very often; the text says what changed from call to call."""


def warn_of_tracing(function: Any, why: str, most: int) -> None:
    """Warn at the user's line that calls of `function` do not find a Program; `why` is the last reason.

    It keeps so many Programs at `most`.
    """
    warnings.warn(
        f"{named_place(function)} was traced {MANY} times, the last time because {why}\n"
        "Pass what changes as an argument that is a tensor or a number; explain() lists every reason. "
        f"Of more than {most} Programs those are dropped that were not called lately.",
        RetraceWarning,
        stacklevel=stacklevel(),
    )
