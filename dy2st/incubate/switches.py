"""`paddle.incubate.jit`: functions for inference."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from dy2st.ir.context import current
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tape.grad_mode import no_grad


def inference(function: Any = None, **options: Any) -> Any:
    """Return a function, or layer, that runs as a Program without gradients; options change nothing.

    >>> import dy2st as paddle
    >>> paddle.incubate.jit.inference(lambda x: x * 2)(paddle.ones([1])).tolist()
    [2.0]
    """
    if function is None:
        return lambda f: inference(f, **options)
    if isinstance(function, Layer):
        function.forward = inference(function.forward)  # type: ignore[method-assign]
        return function
    static: Callable[..., Any] = current().process.to_static(function)

    @wraps(function)
    def run(*args: Any, **keywords: Any) -> Any:
        with no_grad():
            return static(*args, **keywords)

    run.__dy2st_inference__ = True  # type: ignore[attr-defined]
    return run


def is_inference_mode(function: Any) -> bool:
    """Return whether `inference` made a function."""
    return hasattr(function, "__dy2st_inference__")
