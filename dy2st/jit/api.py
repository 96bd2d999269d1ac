"""The functions of `paddle.jit`: to_static, not_to_static, enable_to_static, ignore_module."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.ir.context import current
from dy2st.jit.static_function import StaticFunction
from dy2st.kinds import is_class, is_int, type_of
from dy2st.nn.layer import Layer
from dy2st.runtime.tracer.recording.loop_checkpointing import Policy, valid_policy

_DESCRIPTORS: tuple[type, ...] = (staticmethod, classmethod)


def to_static(
    function: Any = None,
    input_spec: Sequence[Any] | None = None,
    build_strategy: Any = None,
    backend: Any = None,
    *,
    full_graph: bool = False,
    checkpoint: Policy | None = None,
    strict: bool = False,
    max_programs: int | None = None,
    **keywords: Any,
) -> Any:
    """Turn a function, a method, a Layer or a Layer class into one whose calls run as a Program.

    `input_spec` declares the inputs (`paddle.static.InputSpec`). What cannot be converted runs eagerly with one
    warning, or raises with `full_graph=True`. `checkpoint` says what gradients keep of the iterations of loops, as in
    `autograd.checkpoint_policy`. `strict=True` (or `build_strategy.strict`) makes native code that gives the same bits
    on every CPU and for every number of threads, and functions that are right to one unit in the last place; it is
    slower. A function keeps `max_programs` Programs at most, 64 where it is None; those that were not called lately
    are dropped for others. Nothing else of `build_strategy`, and nothing of `backend`, changes anything.

    >>> import dy2st as paddle
    >>> @paddle.jit.to_static
    ... def relu(x):
    ...     return x if x > 0 else 0 * x
    >>> float(relu(paddle.to_tensor(-2.0)))
    -0.0
    """
    for name in keywords:
        if name not in ("property", "for_inference", "check_trace"):
            raise TypeError(f"to_static() got an unexpected keyword argument '{name}'")
    if checkpoint is not None:
        valid_policy(checkpoint)
    strict = strict or bool(getattr(build_strategy, "strict", False))
    if max_programs is not None and (not is_int(max_programs) or max_programs < 1):
        raise ValueError(f"max_programs is an int of at least 1, not {max_programs!r}")
    options: dict[str, Any] = {
        "full_graph": full_graph, "checkpoint": checkpoint, "strict": strict, "max_programs": max_programs
    }  # fmt: skip
    if function is None:
        return functools.partial(to_static, input_spec=input_spec, **options)
    if isinstance(function, StaticFunction):
        return function
    if isinstance(function, Layer):
        forward = function.forward
        if not isinstance(forward, StaticFunction):
            plain = forward.__func__ if isinstance(forward, types.MethodType) else forward
            instance = function if isinstance(forward, types.MethodType) else None
            function.forward = StaticFunction(plain, input_spec, instance=instance, **options)
        return function
    if is_class(function) and issubclass(function, Layer):
        function.forward = StaticFunction(function.forward, input_spec, **options)
        return function
    if isinstance(function, types.MethodType):
        return StaticFunction(function.__func__, input_spec, instance=function.__self__, **options)
    if isinstance(function, _DESCRIPTORS):
        return type_of(function)(to_static(function.__func__, input_spec, **options))
    if not callable(function):
        raise TypeError(f"to_static takes a function, a method or a Layer, not {type(function).__name__}")
    return StaticFunction(function, input_spec, **options)


def not_to_static(func: Callable[..., Any] | None = None) -> Any:
    """Mark a function that must run as it is when converted code calls it; return it."""
    if func is None:
        return not_to_static
    if not callable(func):
        raise TypeError(f"not_to_static marks a function, not {type(func).__name__} {func!r:.40}")
    func.__dy2st_not_to_static__ = True  # type: ignore[attr-defined]
    return func


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Switch all `to_static` functions of the process to Programs (True) or to eager mode (False)."""
    if type(enable_to_static_bool) is not bool:
        raise TypeError(f"enable_to_static takes True or False, not {enable_to_static_bool!r}")
    current().process.to_static_enabled = enable_to_static_bool


def ignore_module(modules: Sequence[types.ModuleType]) -> None:
    """Leave the functions of these modules unconverted when converted code calls them."""
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                not_to_static(value)
