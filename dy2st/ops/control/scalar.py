"""Python numbers inside a Program, and what is made of two of them: exact Python semantics, no derivative.

`scalar_add(int, int)` is Python's `+` on ints, and so on. A scalar meets a tensor through `scalar_to_tensor`; a 0-D
tensor becomes a number through `item` (scalar_unary.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.ir.types import BOOL, FLOAT, INT, ScalarType
from dy2st.ops.core.base import Op, Sample


class ScalarConstant(Op):
    """A Python int, float or bool."""

    is_scalar = True
    name = "scalar_constant"
    is_constant = True
    attributes = ("value",)
    differentiable = False

    def infer(self, *, value: Any) -> ScalarType:
        if isinstance(value, bool):
            return BOOL
        return ScalarType("int", value) if isinstance(value, int) else FLOAT

    def eval(self, xp: Any, *, value: Any) -> Any:
        return value

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((), {"value": 3})
        yield Sample((), {"value": 0.5})


def python_operator(name: str) -> Callable[..., Any]:
    """Return a function of `operator`, most of which have no types."""
    return getattr(operator, name)


class _Binary(Op):
    is_scalar = True
    abstract = True
    differentiable = False
    meaning: ClassVar[Callable[[Any, Any], Any]]
    exact: ClassVar[Callable[[Any, Any], Any] | None] = None
    """What is known of the result where both operands are known extents."""

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        if a.kind == "float" or b.kind == "float":
            return FLOAT
        if self.exact is not None and a.extent is not None and b.extent is not None:
            return ScalarType("int", type(self).exact(a.extent, b.extent))  # type: ignore[misc]
        return INT

    def eval(self, xp: Any, a: Any, b: Any) -> Any:
        return type(self).meaning(a, b)

    def compile(self, xp: Any, **attributes: Any) -> Callable[..., Any]:
        return type(self).meaning

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((7, 3))
        yield Sample((7.5, 2))


class Arithmetic(_Binary):
    """What is defined of any two numbers."""

    abstract = True


class ScalarAdd(Arithmetic):
    """Python's `+`."""

    name = "scalar_add"
    tensor_op = "add"
    adds_second = 1
    meaning = exact = python_operator("add")


class ScalarSub(Arithmetic):
    """Python's `-`."""

    name = "scalar_sub"
    tensor_op = "sub"
    adds_second = -1
    meaning = exact = python_operator("sub")


class ScalarMul(Arithmetic):
    """Python's `*`."""

    name = "scalar_mul"
    tensor_op = "mul"
    meaning = exact = python_operator("mul")


class ScalarFloorDiv(_Binary):
    """Python's `//`; ZeroDivisionError for a zero divisor."""

    name = "scalar_floordiv"
    tensor_op = "floordiv"
    raises = (ZeroDivisionError,)
    meaning = python_operator("floordiv")
    may_raise = True

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return not (isinstance(types[1].extent, int) and types[1].extent)


class ScalarMod(_Binary):
    """Python's `%`; ZeroDivisionError for a zero divisor."""

    name = "scalar_mod"
    tensor_op = "mod"
    raises = (ZeroDivisionError,)
    meaning = python_operator("mod")
    may_raise = True

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return not (isinstance(types[1].extent, int) and types[1].extent)


def _chosen(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return min or max whose result is a float where one operand is, as the type rule says."""

    def meaning(a: Any, b: Any) -> Any:
        found = choose(a, b)
        if isinstance(a, float) or isinstance(b, float):
            return float(found)
        return found if isinstance(a, bool) and isinstance(b, bool) else int(found)

    return staticmethod(meaning)  # type: ignore[return-value]


class _Chosen(Arithmetic):
    abstract = True

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        return BOOL if a.kind == b.kind == "bool" else super().infer(a, b)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((True, False))
        yield Sample((True, 0))
        yield Sample((0.5, True))


class ScalarMin(_Chosen):
    """The smaller of two numbers, the first of equal ones."""

    name = "scalar_min"
    tensor_op = "minimum"
    meaning = _chosen(min)


class ScalarMax(_Chosen):
    """The larger of two numbers, the first of equal ones."""

    name = "scalar_max"
    tensor_op = "maximum"
    meaning = _chosen(max)


class _Bitwise(_Binary):
    abstract = True

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        return BOOL if a.kind == b.kind == "bool" else INT

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((6, 3))
        yield Sample((True, False))


class ScalarAnd(_Bitwise):
    """Python's `&`."""

    name = "scalar_and"
    tensor_op = "bitwise_and"
    is_conjunction = True
    meaning = python_operator("and_")


class ScalarOr(_Bitwise):
    """Python's `|`."""

    name = "scalar_or"
    tensor_op = "bitwise_or"
    meaning = python_operator("or_")


class ScalarXor(_Bitwise):
    """Python's `^`."""

    name = "scalar_xor"
    tensor_op = "bitwise_xor"
    meaning = python_operator("xor")


class _ToFloat(_Binary):
    abstract = True

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        return FLOAT


class ScalarTrueDiv(_ToFloat):
    """Python's `/`; ZeroDivisionError for a zero divisor."""

    name = "scalar_truediv"
    raises = (ZeroDivisionError,)
    meaning = python_operator("truediv")
    may_raise = True


class ScalarPow(_Binary):
    """Python's `**` of floats, or of an int with an int exponent that is not negative."""

    name = "scalar_pow"
    raises = (ZeroDivisionError, OverflowError)
    may_raise = True

    @staticmethod
    def meaning(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int) and b < 0:
            raise ValueError(f"{a} ** {b}: a negative power of an int gives a float; write float({a}) ** {b}")
        result = a**b
        if isinstance(result, complex):
            raise ValueError(f"{a} ** {b} is a complex number")
        return result


class _Comparison(_Binary):
    abstract = True

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        return BOOL


class ScalarLess(_Comparison):
    """Python's `<`."""

    name = "scalar_lt"
    tensor_op = "lt"
    compares = "lt"
    meaning = python_operator("lt")


class ScalarLessEqual(_Comparison):
    """Python's `<=`."""

    name = "scalar_le"
    tensor_op = "le"
    compares = "le"
    meaning = python_operator("le")


class ScalarEqual(_Comparison):
    """Python's `==`."""

    name = "scalar_eq"
    tensor_op = "eq"
    compares = "eq"
    meaning = python_operator("eq")


class ScalarNotEqual(_Comparison):
    """Python's `!=`."""

    name = "scalar_ne"
    tensor_op = "ne"
    compares = "ne"
    meaning = python_operator("ne")


class ScalarGreater(_Comparison):
    """Python's `>`."""

    name = "scalar_gt"
    tensor_op = "gt"
    compares = "gt"
    meaning = python_operator("gt")


class ScalarGreaterEqual(_Comparison):
    """Python's `>=`."""

    name = "scalar_ge"
    tensor_op = "ge"
    compares = "ge"
    meaning = python_operator("ge")
