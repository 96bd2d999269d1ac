"""The operators of Tensor: `x + y`, `x @ y`, `x == y` and the like.

Two tensors of one dtype go straight to the op; what a tensor does not understand gives NotImplemented, so that Python
asks the other operand and then raises its own TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.functions.core.operands import op, pair, understood
from dy2st.functions.linalg import linalg
from dy2st.functions.math import arithmetic, comparison, math
from dy2st.runtime.eager.binary_fast_path import ELSEWHERE, short_way
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


def _same_dtype(name: str, op_name: str) -> Callable[[Tensor, Any], Any]:
    """Make an operator that is one elementwise op of two operands of one dtype."""
    made = op(op_name)
    short = short_way(made)

    def operator(self: Tensor, other: Any) -> Any:
        found = short(self, other)
        if found is not ELSEWHERE:
            return found
        if isinstance(other, Tensor) and self.dtype is other.dtype:
            return apply(made, self, other)
        return apply(made, *pair(self, other, op_name)) if understood(other) else NotImplemented

    operator.__name__ = operator.__qualname__ = name
    return operator


def _reflected(name: str, op_name: str) -> Callable[[Tensor, Any], Any]:
    made = op(op_name)
    short = short_way(made)

    def operator(self: Tensor, other: Any) -> Any:
        found = short(other, self)
        if found is not ELSEWHERE:
            return found
        return apply(made, *pair(other, self, op_name)) if understood(other) else NotImplemented

    operator.__name__ = operator.__qualname__ = name
    return operator


def _short(name: str, function: Callable[..., Any], op_name: str, kinds: str, reflected: bool = False) -> Any:
    """Make an operator of a function that is one op where the operands are of these kinds."""
    short, rest = short_way(op(op_name), kinds), _function(name, function, reflected)

    def operator(self: Tensor, other: Any) -> Any:
        found = short(other, self) if reflected else short(self, other)
        return found if found is not ELSEWHERE else rest(self, other)

    operator.__name__ = operator.__qualname__ = name
    return operator


def _function(name: str, function: Callable[..., Any], reflected: bool = False) -> Callable[[Tensor, Any], Any]:
    """Make an operator of a function that knows more than one op (division, powers, products)."""

    def operator(self: Tensor, other: Any) -> Any:
        if not understood(other):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    operator.__name__ = operator.__qualname__ = name
    return operator


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return arithmetic.floor_divide(x, y), arithmetic.remainder(x, y)


def _product(x: Any, y: Any) -> Tensor:
    return linalg.matmul(x, y)


OPERATORS: dict[str, Callable[..., Any]] = {}
for _name, _op in (("add", "add"), ("mul", "mul")):
    OPERATORS[f"__{_name}__"] = _same_dtype(f"__{_name}__", _op)
    OPERATORS[f"__r{_name}__"] = _reflected(f"__r{_name}__", _op)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    OPERATORS[f"__{_name}__"] = _same_dtype(f"__{_name}__", _name)
for _name, _made in (
    ("floordiv", arithmetic.floor_divide), ("mod", arithmetic.remainder),
    ("pow", arithmetic.power), ("divmod", _divmod), ("matmul", _product), ("and", comparison.bitwise_and),
    ("or", comparison.bitwise_or), ("xor", comparison.bitwise_xor), ("lshift", comparison.bitwise_left_shift),
    ("rshift", comparison.bitwise_right_shift),
):  # fmt: skip
    OPERATORS[f"__{_name}__"] = _function(f"__{_name}__", _made)
    OPERATORS[f"__r{_name}__"] = _function(f"__r{_name}__", _made, reflected=True)
for _name, _made, _op, _kinds in (
    ("sub", arithmetic.subtract, "sub", "iufc"),
    ("truediv", arithmetic.divide, "div", "fc"),
):
    OPERATORS[f"__{_name}__"] = _short(f"__{_name}__", _made, _op, _kinds)
    OPERATORS[f"__r{_name}__"] = _short(f"__r{_name}__", _made, _op, _kinds, reflected=True)
OPERATORS["__neg__"] = lambda self: arithmetic.neg(self)
OPERATORS["__pos__"] = lambda self: self
OPERATORS["__abs__"] = lambda self: math.abs(self)
OPERATORS["__invert__"] = lambda self: comparison.bitwise_not(self)
