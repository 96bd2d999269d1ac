"""Comparisons, logic, bits, and questions about values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.operands import binary, cast_to, op, ordered, pair, tensor
from dy2st.functions.shape.creation import full
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _comparison(called: str, op_name: str, sentence: str) -> Callable[..., Tensor]:
    made = op(op_name)

    def function(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return _into(out, binary(made, x, y, called))

    return _named(function, called, f"Return a bool tensor, true where {sentence}, broadcast.")


def _logical(called: str, sentence: str) -> Callable[..., Tensor]:
    made = op(called)

    def function(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return _into(out, binary(made, x, y, called))

    return _named(function, called, f"Return a bool tensor, true where {sentence}, broadcast.")


def _bits(called: str, sentence: str, op_name: str | None = None) -> Callable[..., Tensor]:
    made = op(op_name or called)

    def function(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return _into(out, bits(made, x, y, called))

    return _named(function, called, f"Return {sentence} of integers (or booleans), broadcast.")


def bits(made: Op, x: Any, y: Any, called: str) -> Tensor:
    """Apply an op on bits; TypeError for floats."""
    x, y = pair(x, y, called)
    if x.dtype.kind not in "biu":
        raise TypeError(f"{called}() needs integer or bool tensors, not {x.dtype.name}")
    return apply(made, x, y)


equal = eq = _comparison("equal", "eq", "x == y")
not_equal = ne = _comparison("not_equal", "ne", "x != y")
less_than = less = lt = _comparison("less_than", "lt", "x < y")
less_equal = le = _comparison("less_equal", "le", "x <= y")
greater_than = greater = gt = _comparison("greater_than", "gt", "x > y")
greater_equal = ge = _comparison("greater_equal", "ge", "x >= y")
logical_and = _logical("logical_and", "both are not zero")
logical_or = _logical("logical_or", "one is not zero")
logical_xor = _logical("logical_xor", "exactly one is not zero")
bitwise_and = _bits("bitwise_and", "x & y")
bitwise_or = _bits("bitwise_or", "x | y")
bitwise_xor = _bits("bitwise_xor", "x ^ y")

_NOT, _INVERT, _LEFT, _RIGHT = op("logical_not"), op("bitwise_not"), op("shift_left"), op("shift_right")
_ISNAN, _ISINF, _ISFINITE, _WHERE, _ALL = op("isnan"), op("isinf"), op("isfinite"), op("where"), op("all")


def logical_not(x: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return a bool tensor, true where x is zero."""
    return _into(out, apply(_NOT, tensor(x, "logical_not")))


def bitwise_not(x: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return ~x of integers, `not x` of booleans."""
    x = tensor(x, "bitwise_not")
    if x.dtype.kind not in "biu":
        raise TypeError(f"bitwise_not() needs an integer or bool tensor, not {x.dtype.name}")
    return _into(out, apply(_INVERT, x))


bitwise_invert = bitwise_not


def bitwise_left_shift(x: Any, y: Any, is_arithmetic: bool = True, name: str | None = None) -> Tensor:
    """Return x << y of integers."""
    return bits(_LEFT, x, y, "bitwise_left_shift")


def bitwise_right_shift(x: Any, y: Any, is_arithmetic: bool = True, name: str | None = None) -> Tensor:
    """Return x >> y of integers; the sign is kept (arithmetic)."""
    if not is_arithmetic and not (isinstance(x, Tensor) and x.dtype.kind == "u"):
        raise ValueError("bitwise_right_shift: a logical shift needs unsigned integers")
    return bits(_RIGHT, x, y, "bitwise_right_shift")


def isnan(x: Any, name: str | None = None) -> Tensor:
    """Return a bool tensor, true where x is NaN."""
    return apply(_ISNAN, tensor(x, "isnan"))


def isinf(x: Any, name: str | None = None) -> Tensor:
    """Return a bool tensor, true where x is infinite."""
    return apply(_ISINF, tensor(x, "isinf"))


def isfinite(x: Any, name: str | None = None) -> Tensor:
    """Return a bool tensor, true where x is neither NaN nor infinite."""
    return apply(_ISFINITE, tensor(x, "isfinite"))


def isposinf(x: Any, name: str | None = None) -> Tensor:
    """Return a bool tensor, true where x is plus infinity."""
    return ordered(x, "isposinf") == float("inf")


def isneginf(x: Any, name: str | None = None) -> Tensor:
    """Return a bool tensor, true where x is minus infinity."""
    return ordered(x, "isneginf") == -float("inf")


def signbit(x: Any, name: str | None = None) -> Tensor:
    """Return a bool tensor, true where x is negative or -0."""
    x = ordered(x, "signbit")
    if x.dtype.kind != "f":
        return x < 0
    return (x < 0) | ((x == 0) & (apply(op("reciprocal"), x) < 0))


def isclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None
) -> Tensor:
    """Return a bool tensor, true where |x - y| <= atol + rtol * |y|, or both are the same infinity (or NaN).

    >>> import dy2st as paddle
    >>> paddle.isclose(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([1.0, 2.1])).tolist()
    [True, False]
    """
    x, y = pair(x, y, "isclose")
    if x.dtype.kind not in "fc":
        x, y = cast_to(x, dtypes.float64), cast_to(y, dtypes.float64)
    near = ((x - y).abs() <= y.abs() * rtol + atol) & isfinite(y)
    close = (x == y) | near
    return close | (isnan(x) & isnan(y)) if equal_nan else close


def allclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None
) -> Tensor:
    """Return a 0-D bool tensor: are all elements close, by `isclose`?"""
    return _all(isclose(x, y, rtol, atol, equal_nan))


def equal_all(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return a 0-D bool tensor: have x and y one shape and equal elements?"""
    x, y = tensor(x, "equal_all"), tensor(y, "equal_all")
    same: list[Any] = []
    for axis, (a, b) in enumerate(zip(x.shape, y.shape, strict=False)):
        if type(a) is int and type(b) is int:
            if a != b:
                return tensor(np.asarray(False), "equal_all")
        elif (equals := a == b) is not True:  # compared as far as both go, and not equal where one goes further
            here = (slice(None),) * axis
            x, y = x[(*here, slice(b))], y[(*here, slice(a))]
            same.append(equals)
    if x.ndim != y.ndim:
        return tensor(np.asarray(False), "equal_all")
    made = _all(equal(x, y))
    for equals in same:
        made = logical_and(made, full([], equals, "bool"))
    return made


def _all(x: Tensor) -> Tensor:
    return apply(_ALL, x, axis=tuple(range(x.ndim)), keepdim=False)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None, *, out: Tensor | None = None) -> Any:
    """Return x where the condition is true, else y, broadcast; without x and y, the places where it is true.

    >>> import dy2st as paddle
    >>> paddle.where(paddle.to_tensor([True, False]), paddle.to_tensor([1, 2]), 0).tolist()
    [1, 0]
    """
    condition = tensor(condition, "where")
    if x is None and y is None:
        found = apply(op("nonzero"), condition)
        return tuple(found[:, i] for i in range(condition.ndim))
    if x is None or y is None:
        raise ValueError("where() needs both x and y, or none of them")
    condition = cast_to(condition, dtypes.bool_)
    return _into(out, apply(_WHERE, condition, *pair(x, y, "where")))


def is_empty(x: Tensor, name: str | None = None) -> Tensor:
    """Return a 0-D bool tensor: has x no elements?"""
    size = x.size
    return tensor(size == 0, "is_empty")


def is_tensor(x: Any) -> bool:
    """Return whether x is a Tensor."""
    return isinstance(x, Tensor)


def is_complex(x: Tensor) -> bool:
    """Return whether the elements are complex numbers."""
    return x.dtype.is_complex


def is_floating_point(x: Tensor) -> bool:
    """Return whether the elements are floats."""
    return x.dtype.is_floating


def is_integer(x: Tensor) -> bool:
    """Return whether the elements are integers."""
    return x.dtype.is_integer
