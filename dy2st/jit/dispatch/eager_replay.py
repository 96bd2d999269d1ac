"""What a call leaves behind where an operation raises by itself: what eager mode would have written until there.

A Program writes when it has run. A `raise` hands over what stands there, an operation that raises does not. Nothing was
written then, so the function runs once more, eagerly and unseen, up to where it raises.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from dy2st.ir.context import current, replaced
from dy2st.records import replace
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.interpreter.error_locations import user_traceback
from dy2st.runtime.signal_delivery import comes_from_handler

_UNWRITTEN = "__dy2st_unwritten__"


def note_unwritten(error: Exception) -> None:
    """Note that a Program that writes has raised `error` before it wrote."""
    if not comes_from_handler(error):  # eager mode need not raise it again
        setattr(error, _UNWRITTEN, True)


def leave_as_eager(function: Callable[..., Any], error: Exception, args: Any, keywords: dict[str, Any]) -> None:
    """Write what `function` writes before it raises, where a Program of it has raised `error` before it wrote."""
    if not hasattr(error, _UNWRITTEN):
        return
    delattr(error, _UNWRITTEN)
    default_generator()  # the process that is replaced for a moment must have it
    process = replace(current().process, to_static_enabled=False)
    with replaced(process=process), contextlib.redirect_stdout(None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception):  # it is the one that is on its way already
            function(*args, **keywords)


class EagerReplay:
    """Does what follows where a call that hit the inline cache of a static function has raised, before the error leaves
    it.

    It does not keep the function.
    """

    def __init__(self, function: Any, program: Any):
        self._function, self._program = weakref.ref(function), program

    def __call__(self, error: Exception, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        function = self._function()
        if function is None:
            return
        function.note_run(self._program)
        leave_as_eager(function.dygraph_function, error, args, keywords)
        error.__traceback__ = user_traceback(error.__traceback__)
