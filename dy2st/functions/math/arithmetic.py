"""Arithmetic: sums, products, quotients, remainders, powers."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.assigning import clone, write
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.lists import list_stacked
from dy2st.functions.core.operands import NUMBERS as _NUMBERS
from dy2st.functions.core.operands import binary, cast_to, is_inexact, op, pair, quotient_dtype, tensor
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.union import SymbolicList

_ADD, _SUB, _MUL, _DIV, _FLOORDIV, _MOD, _POW = (op(n) for n in ("add", "sub", "mul", "div", "floordiv", "mod", "pow"))
_SQUARE, _SQRT, _NEG = op("square"), op("sqrt"), op("neg")
_TRUNC = op("trunc")


def add(x: Any, y: Any, name: str | None = None, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return x + alpha * y, broadcast.

    >>> import dy2st as paddle
    >>> paddle.add(paddle.to_tensor([1, 2]), 3).tolist()
    [4, 5]
    """
    return _into(out, binary(_ADD, x, y if _is_one(alpha) else multiply(y, alpha), "add"))


def subtract(x: Any, y: Any, name: str | None = None, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return x - alpha * y, broadcast; of booleans in int64.

    >>> import dy2st as paddle
    >>> paddle.subtract(paddle.to_tensor([5, 2]), 3).tolist()
    [2, -1]
    """
    x, y = pair(x, y if _is_one(alpha) else multiply(y, alpha), "subtract")
    return _into(out, apply(_SUB, counted(x), counted(y)))


def multiply(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return x * y, broadcast.

    >>> import dy2st as paddle
    >>> paddle.multiply(paddle.to_tensor([1, 2]), 3).tolist()
    [3, 6]
    """
    return _into(out, binary(_MUL, x, y, "multiply"))


def divide(
    x: Any, y: Any, name: str | None = None, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """Return x / y, broadcast; integers divide into the default float. `rounding_mode` may be "floor" or "trunc".

    >>> import dy2st as paddle
    >>> paddle.divide(paddle.to_tensor([1, 3]), 2).tolist()
    [0.5, 1.5]
    """
    x, y = pair(x, y, "divide")
    if rounding_mode == "floor":
        return _into(out, apply(_FLOORDIV, counted(x), counted(y)))
    if rounding_mode not in (None, "trunc"):
        raise ValueError(f"divide: rounding_mode is {rounding_mode!r}, not None, 'floor' or 'trunc'")
    given = x.dtype
    dtype = quotient_dtype(given)
    if rounding_mode is None:
        return _into(out, apply(_DIV, cast_to(x, dtype), cast_to(y, dtype)))
    exact = dtypes.float64 if dtype is not given else given
    return _into(out, cast_to(trunc(apply(_DIV, cast_to(x, exact), cast_to(y, exact))), given))


def true_divide(input: Any, other: Any) -> Tensor:
    """Return input / other."""
    return divide(input, other)


def floor_divide(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return floor(x / y), broadcast, as Python's `//`.

    >>> import dy2st as paddle
    >>> paddle.floor_divide(paddle.to_tensor([7, -7]), 2).tolist()
    [3, -4]
    """
    x, y = pair(x, y, "floor_divide")
    return _into(out, apply(_FLOORDIV, counted(x), counted(y)))


def remainder(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return x - y * floor(x / y), broadcast, as Python's `%`.

    >>> import dy2st as paddle
    >>> paddle.remainder(paddle.to_tensor([7, -7]), 3).tolist()
    [1, 2]
    """
    x, y = pair(x, y, "remainder")
    return _into(out, apply(_MOD, counted(x), counted(y)))


mod = floor_mod = remainder


def pow(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return x ** y, broadcast; integers stay integers.

    >>> import dy2st as paddle
    >>> paddle.pow(paddle.to_tensor([2, 3]), 2).tolist(), paddle.pow(paddle.to_tensor([4]), 0.5).tolist()
    ([4, 9], [2.0])
    """
    return _into(out, power(x, y))


def power(x: Any, y: Any) -> Tensor:
    """Return x ** y: `square` and `sqrt` where the exponent is 2 or 0.5."""
    if isinstance(y, (int, float)) and not isinstance(x, _NUMBERS) and y in (2, 0.5):
        if is_inexact(x):
            return apply(_SQUARE if y == 2 else _SQRT, x)
        x, _ = pair(x, y, "pow")
        return apply(_SQUARE if y == 2 else _SQRT, counted(x))
    x, y = pair(x, y, "pow")
    return apply(_POW, counted(x), counted(y))


def neg(x: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return -x; of booleans in int64."""
    return _into(out, apply(_NEG, counted(tensor(x, "neg"))))


negative = neg


def positive(x: Any, name: str | None = None) -> Tensor:
    """Return x."""
    return tensor(x, "positive")


def trunc(input: Any, name: str | None = None) -> Tensor:
    """Return the whole number next to `input` towards 0."""
    return apply(_TRUNC, tensor(input, "trunc"))


def increment(x: Tensor, value: Any = 1.0, name: str | None = None) -> Tensor:
    """Add `value` to x, which has one element, in place; return x.

    >>> import dy2st as paddle
    >>> paddle.increment(paddle.zeros([1])).tolist()
    [1.0]
    """
    from_dtype = cast_to(x + value, x.dtype)
    return write(x, from_dtype)


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of a list of tensors of one shape.

    >>> import dy2st as paddle
    >>> paddle.add_n([paddle.ones([2]), paddle.ones([2]), paddle.ones([2])]).tolist()
    [3.0, 3.0]
    """
    if isinstance(inputs, Tensor):
        return clone(inputs)
    if isinstance(inputs, SymbolicList):
        return apply(op("sum"), list_stacked(inputs, 0, "add_n"), axis=(0,), keepdim=False)
    if not inputs:
        raise ValueError("add_n() needs at least one tensor")
    total = inputs[0] if len(inputs) > 1 else clone(inputs[0])
    for t in inputs[1:]:
        total = add(total, t)
    return total


def _is_one(alpha: Any) -> bool:
    return alpha.__class__ in (int, float) and alpha == 1


def counted(x: Tensor) -> Tensor:
    """Return x, booleans as int64."""
    return x if x.dtype is not dtypes.bool_ else cast_to(x, dtypes.int64)
