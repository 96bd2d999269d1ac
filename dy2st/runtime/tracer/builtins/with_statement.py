"""`with` in converted code: managers of the user run converted, and see what only the run raises.

A manager with `__enter__` and `__exit__` of the user's is a `try`: `__exit__` stands in its handler and at its end.
What `@contextmanager` makes runs once while tracing, and cannot both be thrown into and go on: where it has a `try` and
the body raises on a path that only the run will take, it is refused. Managers of libraries belong to the trace.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import pairwise
from types import FunctionType
from typing import Any

from dy2st.errors import Dy2stError, StructureError
from dy2st.ir.location import error_at, is_user_frame, user_location
from dy2st.ir.program import Operation
from dy2st.kinds import is_generator, type_of
from dy2st.runtime.tracer.builtins.calls import convertible
from dy2st.runtime.tracer.control_flow.conditional import Diverged
from dy2st.runtime.tracer.control_flow.recursion import call_function
from dy2st.runtime.tracer.control_flow.try_except import with_handlers
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import cleans_up

Thunk = Callable[[], Any]
_LIKE_USERS: tuple[type, ...] = (suppress, closing)
"""Managers of the library that do things to what is the user's, or end what only the run raises."""


def with_(trace: Trace, manager: Any, body: Callable[[Any], None], get_state: Thunk, set_state: Callable[[Any], None],
          names: Sequence[str]) -> None:  # fmt: skip
    """Run a `with` statement."""
    if not (_is_users(manager) or isinstance(manager, _LIKE_USERS)):
        with context_manager(trace, manager) as entered:
            body(entered)
        return
    entered = _call(trace, manager, "__enter__")

    def failed(error: BaseException) -> None:
        if not trace.content(_ended(trace, manager, error)):
            raise error

    def finished() -> None:
        _call(trace, manager, "__exit__", None, None, None)

    kinds = (BaseException,) if _may_end(type_of(manager).__exit__) else ()
    with_handlers(trace, lambda: body(entered), failed, finished, lambda: kinds, get_state, set_state, names)


def _ended(trace: Trace, manager: Any, error: BaseException) -> bool:
    """Return whether a manager ends an exception."""
    found = _call(trace, manager, "__exit__", type(error), error, error.__traceback__)
    if trace.is_symbolic(found):
        raise _error(
            "only the run will tell whether this `with` ends an exception: let `__exit__` return a Python bool"
        )
    return bool(found)


def _may_end(method: Any) -> bool:
    """Return whether `__exit__` returns anything but None and False."""
    if not isinstance(method, FunctionType):
        return True
    code = list(dis.get_instructions(method))
    ends = [i for i in code if i.opname == "RETURN_CONST"]
    ends += [before for before, after in pairwise(code) if after.opname == "RETURN_VALUE"]
    return any(i.opname not in ("LOAD_CONST", "RETURN_CONST") or i.argval not in (None, False) for i in ends)


def _call(trace: Trace, manager: Any, name: str, *args: Any) -> Any:
    method = getattr(type_of(manager), name)
    if convertible(method):
        return call_function(trace, method, manager, *args)
    if (method.__module__ or "").startswith("dy2st."):
        return method(manager, *args)
    return natively(trace, method, manager, *args)


def _is_users(manager: Any) -> bool:
    return any(convertible(getattr(type_of(manager), name, None)) for name in ("__enter__", "__exit__"))


class ConvertedManager:
    """A context manager whose body may raise nothing known only at run time."""

    def __init__(self, trace: Trace, manager: Any):
        self.trace, self.manager = trace, manager

    def __enter__(self) -> Any:
        self.place, self.mark = user_location(), self.trace.checkpoint()[0]
        entered = _call(self.trace, self.manager, "__enter__")
        self.trace.made.note_iterator(getattr(self.manager, "gen", None), self.trace.builder.block)
        return entered

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        if isinstance(error, Dy2stError):
            return False
        if kind is Diverged and not _catches(self.manager):
            return False
        leaves = kind is Diverged or next(raises(self.trace.builder.since(self.mark)), None) is not None
        if leaves and _catches(self.manager):
            raise _error(
                "an exception that only the run will raise leaves this `with`, whose manager would have to see it: "
                "write a class with `__enter__` and `__exit__`, or `try` and `except`",
                self.place,
            )
        return _call(self.trace, self.manager, "__exit__", kind, error, traceback)


def _catches(manager: Any) -> bool:
    """Return whether a manager does anything but to pass on what leaves its body."""
    generator = getattr(manager, "gen", None)
    return not is_generator(generator) or cleans_up(generator)


_LIBRARYS: tuple[type, ...] = (*_LIKE_USERS, ExitStack)


def context_manager(trace: Trace, manager: Any) -> Any:
    """Return what a `with` that stays Python's takes in place of `manager`."""
    generator = getattr(manager, "gen", None)  # of @contextmanager
    if is_generator(generator):
        users = generator.gi_frame is None or is_user_frame(generator.gi_frame)
    else:
        users = _is_users(manager) or isinstance(manager, _LIBRARYS)
    return ConvertedManager(trace, manager) if users else manager


def raises(operations: Iterable[Operation], caught: frozenset[Any] = frozenset()) -> Iterator[Operation]:
    """Give the `raise`s among operations, and in their blocks, that no `try` among them catches."""
    for o in operations:
        if o.op.is_raise and (o.attributes["label"] is None or o.attributes["label"] not in caught):
            yield o
        for i, block in enumerate(o.blocks):
            inner = caught | {o.attributes["label"]} if o.op.is_try and i == 0 else caught
            yield from raises(block.operations, inner)


def _error(message: str, place: Any = None) -> StructureError:
    return error_at(StructureError, place or user_location(), message)
