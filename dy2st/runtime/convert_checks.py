"""`assert` and `raise` in converted code: where only the run will tell whether they are reached, they become ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.location import user_location
from dy2st.ops.control import RAISABLE
from dy2st.runtime.builtins_table import Text, text_part
from dy2st.runtime.convert_if import predicate

Thunk = Callable[[], Any]


def assert_(trace: Any, test: Thunk, message: Thunk | None) -> None:
    """Do `assert test, message`."""
    condition = test()
    if not trace.is_symbolic(condition):
        if trace.content(condition):
            return
        if not trace.in_control_flow():
            raise AssertionError(*(() if message is None else (message(),)))
        condition = False
    if isinstance(condition, bool):
        value = trace.scalar(condition)
    else:
        value = predicate(trace, trace.truth(condition) if isinstance(condition, list) else condition)
    template, operands = (None, []) if message is None else text_of(trace, message())
    trace.emit("assert", [value, *operands], {"template": template})


def text_of(trace: Any, x: Any) -> tuple[Any, list[Any]]:
    """Return template and operands of the text that an exception is made with."""
    if isinstance(x, Text):
        return x.template, x.operands
    part, operands = text_part(trace, x)
    return (part,), operands


def raise_(trace: Any, exception: Thunk, cause: Thunk | None) -> None:
    """Do `raise exception`: at once where this is certain to run, else when the Program runs."""
    error = exception()
    if not trace.in_control_flow():
        if cause is None:
            raise error
        raise error from cause()
    _emit(trace, error)
    trace.diverge()


def _emit(trace: Any, error: Any) -> None:
    kind = error if isinstance(error, type) else type(error)
    if RAISABLE.get(kind.__name__) is not kind:
        place = user_location()
        raise StructureError(
            f"{kind.__name__} is raised on a path that only the run will take; of exceptions, a Program can raise the "
            "built-in ones",
            file=place.file if place else None,
            line=place.line if place else None,
        )
    args = () if isinstance(error, type) else error.args
    if len(args) > 1:
        raise StructureError(
            f"{kind.__name__} with {len(args)} arguments is raised on a path that only the run will take"
        )
    template, operands = (None, []) if not args else text_of(trace, args[0])
    trace.emit("raise", operands, {"kind": kind.__name__, "template": template})
