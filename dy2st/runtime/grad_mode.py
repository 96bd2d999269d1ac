"""Whether operations are put on the tape: `no_grad`, `enable_grad`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any

from dy2st.ir.context import Context, as_before, current, with_grad


class _GradMode:
    """Gradients on or off for the length of a `with`, or in a decorated function (or generator)."""

    mode: bool
    _changes: list[tuple[Context, Context]]
    """Of each `with` that is around: what was current before, and what it made current."""

    def __enter__(self) -> None:
        self._changes.append(with_grad(self.mode))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        as_before(*self._changes.pop())

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
    """Return a generator function in whose turns gradients are on or off, and as they were between them."""

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


class no_grad(_GradMode):  # noqa: N801 (Paddle's name)
    """Turn gradients off: `with no_grad():`, or `@no_grad()` (or `@no_grad`) on a function.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> with paddle.no_grad():
    ...     y = x * 2
    >>> y.stop_gradient
    True
    """

    mode = False

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        made._changes = []
        return made if func is None else made(func)


class enable_grad(_GradMode):  # noqa: N801 (Paddle's name)
    """Turn gradients on: `with enable_grad():`, or `@enable_grad()` on a function.

    >>> import dy2st as paddle
    >>> with paddle.no_grad(), paddle.enable_grad():
    ...     paddle.is_grad_enabled()
    True
    """

    mode = True

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        made._changes = []
        return made if func is None else made(func)


def _mode(grad: bool) -> _GradMode:
    return enable_grad() if grad else no_grad()


class set_grad_enabled(_GradMode):  # noqa: N801 (Paddle's name)
    """Turn gradients on or off from now on, or for the length of a `with`.

    >>> import dy2st as paddle
    >>> with paddle.set_grad_enabled(False):
    ...     paddle.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool):
        self.mode, self._changes = bool(mode), []
        self._at_call, _ = with_grad(self.mode)

    def __enter__(self) -> None:
        self._changes.append((self._at_call, with_grad(self.mode)[1]))


def is_grad_enabled() -> bool:
    """Say whether operations are put on the tape."""
    return current().grad
