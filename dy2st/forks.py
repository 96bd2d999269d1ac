"""Locks and forks: one that another thread holds when the process forks would stay locked in the new process, for ever.

1. A fork waits until nobody is at work behind a `ForkLock` or a `Gate`. It takes them outermost first, as threads that
   need two of them do, so that neither waits for the other.
2. What may take long, as a trace, is not waited for: the lock of a `Locked` object is a new one in the new process.
3. Python drops what a handler of a signal raises in here, and with it the rest of what was to be done. So handlers wait
   until the fork is over: a signal that comes meanwhile is sent again.
"""

from __future__ import annotations

import _thread
import itertools
import os
import signal
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class ForkLock(_thread.RLock):  # pyright: ignore[reportGeneralTypeIssues]  typeshed says final, CPython does not
    """A lock that a thread may take again, and that a fork takes; of two, the one of the lower level is taken first.

    `with` takes it in C: in a method written in Python a signal may come between taking it and saying so.
    """

    def __init__(self, level: int):
        self.level = level
        _waited_for.append(self)

    def close(self) -> None:
        """Take it, for a fork."""
        self.acquire()

    def open(self) -> None:
        """Give it back."""
        self.release()

    def renew(self) -> None:
        """Begin anew, in a new process."""
        self._at_fork_reinit()  # pyright: ignore[reportAttributeAccessIssue]  as `threading` does


class Gate:
    """What any number of threads may be behind, but not while a fork goes on.

    A thread that forks does not wait for itself: a signal may have taken it out on the way in, uncounted.
    """

    def __init__(self, level: int):
        self.level = level
        self.renew()
        _waited_for.append(self)

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock:  # not `self._changed`, whose own `with` is written in Python
            self._changed.wait_for(lambda: not self._closed)
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *error: object) -> None:
        me = threading.get_ident()
        with self._lock:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody in, and wait until all are out."""
        with self._lock:
            self._closed = True
            self._inside.pop(threading.get_ident(), None)
            self._changed.wait_for(lambda: not self._inside)

    def open(self) -> None:
        """Let threads in again."""
        with self._lock:
            self._closed = False
            self._changed.notify_all()

    def renew(self) -> None:
        """Begin anew, in a new process."""
        self._lock = threading.RLock()
        self._changed, self._closed = threading.Condition(self._lock), False
        self._inside: dict[int, int] = {}
        """How often each thread is behind it."""


class Locked:
    """An object with a lock of its own, `_lock`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _owners[next(_numbers)] = weakref.ref(self)
        if len(_owners) > _Size.looked_at:
            _forget_dead()


_waited_for: list[ForkLock | Gate] = []
_numbers = itertools.count()
_owners: dict[int, weakref.ref[Locked]] = {}
"""No weak dictionary: Python drops what a signal's handler raises in the callbacks of one."""
_closed: list[ForkLock | Gate] = []
_handlers: list[tuple[int, Callable[..., Any]]] = []
"""The user's handlers, by signal, that do not run now."""
_came: list[int] = []
"""The signals that came meanwhile."""


class _Size:
    looked_at = 64
    """From how many owners on the dead ones are looked for."""


def _forget_dead() -> None:
    for number, owner in _owners.copy().items():  # a list of pairs lets others run between two of them
        if owner() is None:
            _owners.pop(number, None)
    _Size.looked_at = 2 * len(_owners) + 64


@contextmanager
def handlers_wait() -> Iterator[None]:
    """Let handlers of signals wait for the end of a `with`: what they would cut short stays half done."""
    held = _hold_back()
    try:
        yield
    finally:
        came = _let_go() if held else ()
    for number in came:
        signal.raise_signal(number)


def started(thread: threading.Thread) -> threading.Thread:
    """Start a thread and return it; an error of a handler in the middle of that would be a KeyError of `threading`."""
    with handlers_wait():
        thread.start()
    return thread


def _hold_back() -> bool:
    """Only note signals from now on; return whether that is new."""
    if _handlers or threading.current_thread() is not threading.main_thread():  # where handlers run
        return False
    _came.clear()
    for number in signal.valid_signals():
        if callable(handler := signal.getsignal(number)):
            _handlers.append((number, handler))
            signal.signal(number, _note)
    return bool(_handlers)


def _note(number: int, frame: types.FrameType | None) -> None:
    _came.append(number)


def _let_go() -> tuple[int, ...]:
    """Put the user's handlers back; return the signals that came."""
    try:
        while _handlers:
            signal.signal(*_handlers[-1])
            _handlers.pop()
    except BaseException:  # of a handler that is back already
        _let_go()
        raise
    return tuple(_came)


_held: list[bool] = []
"""Whether handlers wait for the end of this fork."""


def _before() -> None:
    _held[:] = [_hold_back()]
    for one in sorted(_waited_for, key=lambda one: one.level):
        one.close()
        _closed.append(one)


def _after_in_parent() -> None:
    while _closed:
        _closed.pop().open()
    if _held == [True] and (came := _let_go()):
        send_again(*came)  # in the hook of a fork what a handler raises is dropped


def send_again(*numbers: int) -> None:
    """Send this process signals in a moment, that come at a bad one."""
    _thread.start_new_thread(_send, (numbers,))


def _send(numbers: tuple[int, ...]) -> None:
    time.sleep(1e-3)
    for number in numbers:
        if callable(signal.getsignal(number)):  # else it would end a process that is about to end by itself
            os.kill(os.getpid(), number)


def _after_in_child() -> None:
    _closed.clear()
    for one in _waited_for:
        one.renew()
    for reference in _owners.copy().values():
        if (owner := reference()) is not None:
            owner._lock = threading.RLock()  # pyright: ignore[reportPrivateUsage] (the class stands above)
    _let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
