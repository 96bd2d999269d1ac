"""`with` in converted code: a context manager that runs converted, and never misses an exception of the run.

What Python raises while the body is traced reaches `__exit__` as Python does it. A `raise` that only the run takes would
pass `__exit__` by; a manager that would have to see it is refused, so that the function runs eagerly.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from types import GeneratorType
from typing import Any

from dy2st.errors import Dy2stError, StructureError
from dy2st.ir.location import is_user_frame, user_location
from dy2st.ir.program import Operation
from dy2st.runtime.convert_call import convertible
from dy2st.runtime.convert_if import Diverged
from dy2st.runtime.convert_recursion import call_function

SWALLOWING = (suppress, ExitStack)
"""Managers of libraries that may end an exception."""


class ConvertedManager:
    """A context manager of the user's or of a library's; the methods of the user's run converted."""

    def __init__(self, trace: Any, manager: Any):
        self.trace, self.manager = trace, manager

    def __enter__(self) -> Any:
        self.place, self.mark = user_location(), self.trace.checkpoint()[0]
        return self._call("__enter__")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        if isinstance(error, Dy2stError):
            return False
        if kind is Diverged or next(raises(self.trace.builder.since(self.mark)), None) is not None:
            raise StructureError(
                "an exception that only the run will raise leaves this `with`, whose `__exit__` would have to see it",
                file=self.place.file if self.place else None,
                line=self.place.line if self.place else None,
                hint="write the same with `try` and `except` or `finally`",
            )
        return self._call("__exit__", kind, error, traceback)

    def _call(self, name: str, *args: Any) -> Any:
        method = getattr(type(self.manager), name)
        if convertible(method):
            return call_function(self.trace, method, self.manager, *args)
        return method(self.manager, *args)


def context_manager(trace: Any, manager: Any) -> Any:
    """Return what `with` takes in place of `manager`: those of libraries do nothing that belongs to the run."""
    generator = getattr(manager, "gen", None)  # of @contextmanager
    if isinstance(generator, GeneratorType):
        users = generator.gi_frame is None or is_user_frame(generator.gi_frame)
    else:
        users = any(convertible(getattr(type(manager), name, None)) for name in ("__enter__", "__exit__"))
    return ConvertedManager(trace, manager) if users or isinstance(manager, SWALLOWING) else manager


def raises(operations: Iterable[Operation], caught: frozenset[Any] = frozenset()) -> Any:
    """Give the `raise`s among operations, and in their blocks, that no `try` among them catches."""
    for o in operations:
        if o.name == "raise" and (o.attributes["label"] is None or o.attributes["label"] not in caught):
            yield o
        for i, block in enumerate(o.blocks):
            inner = caught | {o.attributes["label"]} if o.name == "try" and i == 0 else caught
            yield from raises(block.operations, inner)
