"""`paddle._legacy_C_ops`: operators called with tensors, then the name and the value of each attribute in turn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dy2st import operators


def __getattr__(name: str) -> Callable[..., Any]:
    """Return an operator of `paddle._C_ops` that takes its attributes as pairs.

    >>> import dy2st as paddle
    >>> values, places = paddle._legacy_C_ops.argsort(paddle.to_tensor([1.0, 3.0, 2.0]), "axis", 0, "descending", True)
    >>> places.tolist()
    [1, 2, 0]
    """
    operator = getattr(operators, name)

    @functools.wraps(operator)
    def call(*arguments: Any) -> Any:
        first = next((i for i, x in enumerate(arguments) if isinstance(x, str)), len(arguments))
        pairs = arguments[first:]
        if len(pairs) % 2 or not all(isinstance(what, str) for what in pairs[::2]):
            raise TypeError(f"{name} takes tensors, then the name and the value of each attribute, not {pairs!r}")
        return operator(*arguments[:first], **dict(zip(pairs[::2], pairs[1::2], strict=True)))

    return call


def __dir__() -> list[str]:
    return dir(operators)
