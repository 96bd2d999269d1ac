"""Functions that have no Program, known before they are traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dy2st.errors import ConversionError


def refuse_generator(function: Callable[..., Any]) -> None:
    """Raise ConversionError for a generator function: its values would be asked for after the Program ran.

    >>> def halves(x): yield x / 2
    >>> refuse_generator(halves)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dy2st.errors.ConversionError: `halves` cannot become a Program: it is a generator function, ...
    """
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is not None and code.co_flags & inspect.CO_GENERATOR:
        raise ConversionError(
            f"`{code.co_name}` cannot become a Program: it is a generator function, whose code runs after the call",
            file=code.co_filename,
            line=code.co_firstlineno,
            hint="Collect the values in a list and return that.",
        )
