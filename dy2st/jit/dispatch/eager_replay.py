"""What a call leaves behind where an operation raises by itself: what eager mode would have written until there.

A Program writes when it has run. A `raise` hands over what stands there, an operation that raises does not. Nothing was
written then, so the function runs once more, eagerly and unseen, up to where it raises. So it is with a `raise` that
hands over tensors: those that the function has then are the caller's own, or have the history of what made them.
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


def note_unwritten(error: Exception, replaced_by: type[BaseException] | None = None) -> None:
    """Note that a Program that writes has raised `error` before it wrote.

    What eager mode raises takes its place, if it is of the class `replaced_by`.
    """
    if not comes_from_handler(error):  # eager mode need not raise it again
        setattr(error, _UNWRITTEN, (replaced_by,))


def leave_as_eager(
    function: Callable[..., Any], error: Exception, args: Any, keywords: dict[str, Any]
) -> Exception | None:
    """Write what `function` writes before it raises, where a Program of it has raised `error` before it wrote.

    Return what is to be raised in its place, if anything is.
    """
    noted: tuple[type[BaseException] | None] | None = getattr(error, _UNWRITTEN, None)
    if noted is None:
        return None
    delattr(error, _UNWRITTEN)
    default_generator()  # the process that is replaced for a moment must have it
    process = replace(current().process, to_static_enabled=False)
    with replaced(process=process), contextlib.redirect_stdout(None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **keywords)
        except Exception as again:  # it is the one that is on its way already
            _forget_context(again, error)
            return again if type(again) is noted[0] else None
    return None


def _forget_context(raised: BaseException, around: BaseException) -> None:
    """Take an exception that was being handled out of the contexts of another one."""
    while raised.__context__ is not None:
        if raised.__context__ is around:
            raised.__context__ = None
            return
        raised = raised.__context__


class EagerReplay:
    """Does what follows where a call that hit the inline cache of a static function has raised, before the error leaves
    it.

    It does not keep the function.
    """

    def __init__(self, function: Any, program: Any):
        self._function, self._program = weakref.ref(function), program

    def __call__(self, error: Exception, args: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
        function = self._function()
        if function is None:
            return None
        function.note_run(self._program)
        again = leave_as_eager(function.dygraph_function, error, args, keywords)
        left = again or error
        left.__traceback__ = user_traceback(left.__traceback__)
        return again
