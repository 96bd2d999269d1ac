"""Checks that functions written for Paddle begin with, and the modes that they are for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.defaults import in_dynamic_mode
from dy2st.runtime.eager.tensor import Tensor


def convert_dtype(dtype: Any) -> str:
    """Return the name of a dtype.

    >>> import dy2st as paddle
    >>> convert_dtype(paddle.float32), convert_dtype("int64")
    ('float32', 'int64')
    """
    return dtypes.dtype(dtype).name


def convert_np_dtype_to_dtype_(np_dtype: Any) -> dtypes.DType:
    """Return the dtype that NumPy's stands for."""
    return dtypes.dtype(np_dtype)


def check_type(input: Any, input_name: str, expected_type: Any, op_name: str, extra_message: str = "") -> None:
    """Raise TypeError unless an argument of a function is of this type, or one of these."""
    expected = tuple(expected_type) if isinstance(expected_type, (tuple, list)) else (expected_type,)
    if not isinstance(input, expected):
        names = " or ".join(t.__name__ for t in expected)
        raise TypeError(
            f"{op_name}: {input_name} must be {names}, not {type(input).__name__}. {extra_message}".rstrip()
        )


def check_dtype(
    input_dtype: Any, input_name: str, expected_dtype: str | Sequence[str], op_name: str, extra_message: str = ""
) -> None:
    """Raise TypeError unless a dtype is one of these."""
    expected = (expected_dtype,) if isinstance(expected_dtype, str) else tuple(expected_dtype)
    if (name := convert_dtype(input_dtype)) not in expected:
        text = f"{op_name}: the dtype of {input_name} must be {' or '.join(expected)}, not {name}. {extra_message}"
        raise TypeError(text.rstrip())


def check_variable_and_dtype(
    input: Any, input_name: str, expected_dtype: str | Sequence[str], op_name: str, extra_message: str = ""
) -> None:
    """Raise TypeError unless an argument is a tensor of one of these dtypes."""
    check_type(input, input_name, Tensor, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


def dygraph_only(function: Any) -> Any:
    """Mark a function that runs at once alone: RuntimeError in static mode."""
    return _only(function, True, "eager")


def static_only(function: Any) -> Any:
    """Mark a function that builds Programs alone: RuntimeError in eager mode."""
    return _only(function, False, "static")


def _only(function: Any, eager: bool, mode: str) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if in_dynamic_mode() is not eager:
            raise RuntimeError(f"{function.__name__} is for {mode} mode")
        return function(*args, **keywords)

    return call
