"""Whether operations are put on the tape: `no_grad`, `enable_grad`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any

from dy2st.ir.context import as_before, current, make_current, with_grad

_new = object.__new__


class GradMode:
    """Gradients on or off for the length of a `with`, or in a decorated function (or generator)."""

    __slots__ = ("_changes",)
    mode: bool
    _changes: Any
    """Of the innermost `with`: what was current before and what it made current; then the same of those around it."""

    def __enter__(self) -> None:
        before = current()
        after = before.switched
        if after is not None and after.grad is self.mode:  # as it mostly is; a call takes as long as all of this
            make_current(after)
        else:
            before, after = with_grad(self.mode)
        self._changes = before, after, self._changes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before, after, self._changes = self._changes
        if current() is after:
            make_current(before)
        else:
            as_before(before, after)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with gradients on or off while it runs."""
        if not callable(function):
            raise TypeError(f"only a function can be decorated, not {type(function).__name__}")
        if inspect.isgeneratorfunction(function):
            return _over_generator(function, self.mode)
        mode = self.mode

        @functools.wraps(function)
        def wrapped(*args: Any, **keywords: Any) -> Any:
            with _mode(mode):
                return function(*args, **keywords)

        return wrapped


def _over_generator(function: Callable[..., Any], mode: bool) -> Callable[..., Any]:
    """Return a generator function in whose iterations gradients are on or off, and as they were between them."""

    @functools.wraps(function)
    def wrapped(*args: Any, **keywords: Any) -> Any:
        turns = function(*args, **keywords)
        sent: Any = None
        while True:
            try:
                with _mode(mode):
                    item = turns.send(sent)
            except StopIteration as end:
                return end.value
            sent = yield item

    return wrapped


class no_grad(GradMode):  # noqa: N801 (Paddle's name)
    """Turn gradients off: `with no_grad():`, or `@no_grad()` (or `@no_grad`) on a function.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> with paddle.no_grad():
    ...     y = x * 2
    >>> y.stop_gradient
    True
    """

    __slots__ = ()
    mode = False

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        made = _new(cls)
        made._changes = ()
        return made if func is None else made(func)


class enable_grad(GradMode):  # noqa: N801 (Paddle's name)
    """Turn gradients on: `with enable_grad():`, or `@enable_grad()` on a function.

    >>> import dy2st as paddle
    >>> with paddle.no_grad(), paddle.enable_grad():
    ...     paddle.is_grad_enabled()
    True
    """

    __slots__ = ()
    mode = True

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        made = _new(cls)
        made._changes = ()
        return made if func is None else made(func)


def _mode(grad: bool) -> GradMode:
    return enable_grad() if grad else no_grad()


class set_grad_enabled(GradMode):  # noqa: N801 (Paddle's name)
    """Turn gradients on or off from now on, or for the length of a `with`.

    >>> import dy2st as paddle
    >>> with paddle.set_grad_enabled(False):
    ...     paddle.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool):
        self.mode, self._changes = bool(mode), ()
        self._at_call, _ = with_grad(self.mode)

    def __enter__(self) -> None:
        self._changes = self._at_call, with_grad(self.mode)[1], self._changes


def is_grad_enabled() -> bool:
    """Return whether operations are put on the tape."""
    return current().grad
