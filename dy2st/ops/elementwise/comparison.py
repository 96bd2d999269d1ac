"""Comparisons, logic, bits, tests for special values, and `where`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import bool_
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Elementwise, Sample
from dy2st.ops.core.elementwise_base import Tangents, Ufunc, as_array


class _Predicate(Ufunc):
    abstract = True
    differentiable = False
    result_dtype = bool_


class _Comparison(_Predicate):
    abstract = True
    arity = 2

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([1.0, np.nan, 2.0]), np.array([1.0, np.nan, np.inf])))
        yield Sample((np.array([1, 2]), np.array([2, 2])))


class Eq(_Comparison):
    """x == y."""

    name = "eq"
    compares = "eq"
    function = "equal"


class Ne(_Comparison):
    """x != y."""

    name = "ne"
    compares = "ne"
    function = "not_equal"


class Lt(_Comparison):
    """x < y."""

    name = "lt"
    compares = "lt"
    defined_on = REAL_NUMBERS
    function = "less"


class Le(_Comparison):
    """x <= y."""

    name = "le"
    compares = "le"
    defined_on = REAL_NUMBERS
    function = "less_equal"


class Gt(_Comparison):
    """x > y."""

    name = "gt"
    compares = "gt"
    defined_on = REAL_NUMBERS
    function = "greater"


class Ge(_Comparison):
    """x >= y."""

    name = "ge"
    compares = "ge"
    defined_on = REAL_NUMBERS
    function = "greater_equal"


class _Logical(_Predicate):
    abstract = True

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample(tuple(np.asarray(rng.integers(0, 2, size=shape) > 0) for _ in range(self.arity)))
        yield Sample(tuple(np.array([0.0, 2.0, np.nan]) for _ in range(self.arity)))


class LogicalAnd(_Logical):
    """True where both are not zero."""

    name = "logical_and"
    is_conjunction = True
    function = "logical_and"
    arity = 2


class LogicalOr(_Logical):
    """True where one is not zero."""

    name = "logical_or"
    function = "logical_or"
    arity = 2


class LogicalXor(_Logical):
    """True where exactly one is not zero."""

    name = "logical_xor"
    function = "logical_xor"
    arity = 2


class LogicalNot(_Logical):
    """True where the operand is zero."""

    name = "logical_not"
    function = "logical_not"


class _Special(_Predicate):
    abstract = True

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([1.0, np.nan, np.inf, -np.inf]),))
        yield Sample((np.array([1, 2]),))


class IsNan(_Special):
    """True where the operand is NaN."""

    name = "isnan"
    function = "isnan"


class IsInf(_Special):
    """True where the operand is infinite."""

    name = "isinf"
    function = "isinf"


class IsFinite(_Special):
    """True where the operand is neither NaN nor infinite."""

    name = "isfinite"
    function = "isfinite"


class _Bits(Ufunc):
    abstract = True
    differentiable = False
    arity = 2
    booleans: ClassVar[bool] = True

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        found = types[0].dtype
        if not (found.is_integer or (found.is_bool and self.booleans)):
            raise TypeError(f"{self.name} needs integer{' or bool' * self.booleans} tensors, not {found.name}")
        return super().infer(*types)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample(tuple(rng.integers(0, 8, size=shape) for _ in range(self.arity)))
        if self.booleans:
            yield Sample(tuple(rng.integers(0, 2, size=3) > 0 for _ in range(self.arity)))


class BitwiseAnd(_Bits):
    """x & y."""

    name = "bitwise_and"
    function = "bitwise_and"


class BitwiseOr(_Bits):
    """x | y."""

    name = "bitwise_or"
    function = "bitwise_or"


class BitwiseXor(_Bits):
    """x ^ y."""

    name = "bitwise_xor"
    function = "bitwise_xor"


class BitwiseNot(_Bits):
    """~x; of booleans, `not x`."""

    name = "bitwise_not"
    function = "invert"
    arity = 1


class ShiftLeft(_Bits):
    """x << y."""

    name = "shift_left"
    function = "left_shift"
    booleans = False


class ShiftRight(_Bits):
    """x >> y; the sign is kept."""

    name = "shift_right"
    function = "right_shift"
    booleans = False


class Where(Elementwise):
    """x where the condition is true, else y."""

    name = "where"
    linear_together = (1, 2)
    fresh = True

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        condition, x, y = types
        if not condition.dtype.is_bool:
            raise TypeError(f"where needs a bool condition, not {condition.dtype.name}")
        if x.dtype is not y.dtype:
            raise TypeError(f"where needs choices of one dtype, not {x.dtype.name} and {y.dtype.name}")
        return TensorType(x.dtype, super().infer(condition, x, y).shape)

    def eval(self, xp: Any, condition: Any, x: Any, y: Any) -> Any:
        return as_array(xp, xp.where(condition, x, y))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return select(b, primals[0], tangents[1], tangents[2])

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        in_x = select(b, operands[0], cts[0], None) if linear[1] else None
        return [None, in_x, select(b, operands[0], None, cts[0]) if linear[2] else None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            condition = np.asarray(rng.integers(0, 2, size=shape) > 0)
            yield Sample((condition, rng.normal(size=shape), rng.normal(size=shape)))


def select(b: Builder, condition: Value, x: Value | None, y: Value | None) -> Any:
    """Emit `where(condition, x, y)`, in which None stands for zeros that are never materialised."""
    some = x if x is not None else y
    zero = b.constant(0, some.type.dtype)  # type: ignore[union-attr]
    return b.where(condition, zero if x is None else x, zero if y is None else y)
