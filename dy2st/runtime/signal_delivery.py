"""Errors that handlers of signals raise while dy2st is at work arrive at the caller, whatever catches errors here.

A handler runs between any two lines. What it raises, a TimeoutError say, would be taken for what the user's function
raises, for a conversion that failed, for a file that cannot be read, and be gone. So while a call is traced and its
code is made, handlers run inside of one that raises `Interrupted` in place of their error, which nothing here catches.
Where it is dropped all the same, as Python does in the callback of a weak reference, the error is raised at the end.

    caller --delivered--> work in dy2st --signal--> handler raises TimeoutError
       ^                                                   |
       +------- TimeoutError <--- Interrupted <------------+

In the middle of an import a handler waits: Python's own locks of imports stay taken for ever where an error comes
between taking one and the `try` behind it, and the thread that makes code would wait for them.

Calls that were seen before do without, because they take microseconds: what is caught there is looked at
(`comes_from_handler`).
"""

from __future__ import annotations

import signal
import threading
import types
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from dy2st.forks import send_again

P = ParamSpec("P")
T = TypeVar("T")

_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2",
                 "SIGCHLD", "SIGBREAK")
    if hasattr(signal, name)
)  # fmt: skip


class Interrupted(BaseException):
    """Ends what is being done because a handler of a signal has raised an error."""


class _State:
    """What the main thread is doing."""

    is_inside = False
    """Whether it is in a call of `delivered`."""
    raised: BaseException | None = None
    """What a handler has raised meanwhile."""


class _Carrying:
    """Stands in the place of a handler, and carries what it raises."""

    def __init__(self, handler: Callable[..., Any]):
        self.handler = handler

    def __call__(self, number: int, frame: types.FrameType | None) -> Any:
        if frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            return send_again(number)
        try:
            return self.handler(number, frame)
        except Interrupted:  # of a handler that came while this one was at work
            raise
        except BaseException as error:
            if not _State.is_inside:  # somebody has kept this handler and put it back
                raise
            _State.raised = error
            raise Interrupted from None


def delivered(function: Callable[..., T], *args: Any) -> T:
    """Call a function; what handlers of signals raise meanwhile leaves it, though it catches errors of that kind."""
    if _State.is_inside or threading.current_thread() is not threading.main_thread():
        return function(*args)  # handlers run in the main thread
    placed: list[tuple[int, _Carrying]] = []
    try:
        try:
            _State.is_inside, _State.raised = True, None
            _place(placed)
            result = function(*args)
        finally:
            _State.is_inside = False
            _take_away(placed)
    except BaseException:
        _State.is_inside = False  # the signal may have come in `finally`, before its first line
        _take_away(placed)
        if _State.raised is None:
            raise
    else:
        if _State.raised is None:
            return result
    error, _State.raised = _State.raised, None
    try:
        raise error
    finally:
        del error  # which knows this frame


def delivering(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose calls are those of `delivered`."""

    @wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> T:
        return delivered(partial(function, *args, **keywords))

    return called


def go_on() -> None:
    """End what is being done where a handler has raised an error that somebody dropped: who knows what it cut short."""
    if _State.is_inside and _State.raised is not None and threading.current_thread() is threading.main_thread():
        raise Interrupted


def _place(placed: list[tuple[int, _Carrying]]) -> None:
    """Put handlers that carry errors in the place of those that the user has set."""
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler) and not isinstance(handler, _Carrying):
            carrying = _Carrying(handler)
            placed.append((number, carrying))
            signal.signal(number, carrying)


def _take_away(placed: list[tuple[int, _Carrying]]) -> None:
    """Put the user's handlers back where nobody else has set another one."""
    while placed:
        number, carrying = placed[-1]
        if signal.getsignal(number) is carrying:
            signal.signal(number, carrying.handler)
        placed.pop()


def comes_from_handler(error: BaseException) -> bool:
    """Return whether a handler of a signal has raised an error: it is in the traceback."""
    codes = {_code(signal.getsignal(number)) for number in _SIGNALS}
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code in codes:
            return True
        entry = entry.tb_next
    return False


def _code(handler: Any) -> types.CodeType | None:
    """Return the code of a handler that is written in Python."""
    if isinstance(handler, _Carrying):
        handler = handler.handler
    while isinstance(handler, partial):
        handler = handler.func
    for found in (handler, getattr(handler, "__func__", None), vars(type(handler)).get("__call__")):
        if isinstance(found, types.FunctionType):
            return found.__code__
    return None
