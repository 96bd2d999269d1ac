"""Python numbers inside a Program: exact Python semantics, no derivative.

`scalar_add(int, int)` is Python's `+` on ints, and so on. A scalar meets a tensor through `scalar_to_tensor`; a 0-D
tensor becomes a number through `item`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import DType, float32
from dy2st.ir.types import BOOL, FLOAT, INT, ScalarType, TensorType
from dy2st.ops.base import Op, Sample


class ScalarConstant(Op):
    """A Python int, float or bool."""

    name = "scalar_constant"
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


def _python(name: str) -> Callable[..., Any]:
    """Return a function of `operator`, most of which have no types."""
    return getattr(operator, name)


class _Binary(Op):
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


class ScalarAdd(_Binary):
    """Python's `+`."""

    name = "scalar_add"
    meaning = exact = _python("add")


class ScalarSub(_Binary):
    """Python's `-`."""

    name = "scalar_sub"
    meaning = exact = _python("sub")


class ScalarMul(_Binary):
    """Python's `*`."""

    name = "scalar_mul"
    meaning = exact = _python("mul")


class ScalarFloorDiv(_Binary):
    """Python's `//`; ZeroDivisionError for a zero divisor."""

    name = "scalar_floordiv"
    meaning = _python("floordiv")
    may_raise = True

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return not (isinstance(types[1].extent, int) and types[1].extent)


class ScalarMod(_Binary):
    """Python's `%`; ZeroDivisionError for a zero divisor."""

    name = "scalar_mod"
    meaning = _python("mod")
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


class _Chosen(_Binary):
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
    meaning = _chosen(min)


class ScalarMax(_Chosen):
    """The larger of two numbers, the first of equal ones."""

    name = "scalar_max"
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
    meaning = _python("and_")


class ScalarOr(_Bitwise):
    """Python's `|`."""

    name = "scalar_or"
    meaning = _python("or_")


class ScalarXor(_Bitwise):
    """Python's `^`."""

    name = "scalar_xor"
    meaning = _python("xor")


class _ToFloat(_Binary):
    abstract = True

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        return FLOAT


class ScalarTrueDiv(_ToFloat):
    """Python's `/`; ZeroDivisionError for a zero divisor."""

    name = "scalar_truediv"
    meaning = _python("truediv")
    may_raise = True


class ScalarPow(_Binary):
    """Python's `**` of floats, or of an int with an int exponent that is not negative."""

    name = "scalar_pow"
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
    meaning = _python("lt")


class ScalarLessEqual(_Comparison):
    """Python's `<=`."""

    name = "scalar_le"
    meaning = _python("le")


class ScalarEqual(_Comparison):
    """Python's `==`."""

    name = "scalar_eq"
    meaning = _python("eq")


class ScalarNotEqual(_Comparison):
    """Python's `!=`."""

    name = "scalar_ne"
    meaning = _python("ne")


class ScalarGreater(_Comparison):
    """Python's `>`."""

    name = "scalar_gt"
    meaning = _python("gt")


class ScalarGreaterEqual(_Comparison):
    """Python's `>=`."""

    name = "scalar_ge"
    meaning = _python("ge")


class _Unary(Op):
    abstract = True
    differentiable = False
    meaning: ClassVar[Callable[[Any], Any]]
    result: ClassVar[ScalarType | None] = None

    def infer(self, a: ScalarType) -> ScalarType:
        kept = INT if a.kind == "bool" else ScalarType(a.kind)
        return self.result or kept

    def eval(self, xp: Any, a: Any) -> Any:
        return type(self).meaning(a)

    def compile(self, xp: Any, **attributes: Any) -> Callable[..., Any]:
        return type(self).meaning

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((-3,))
        yield Sample((2.5,))


class ScalarNeg(_Unary):
    """Python's unary `-`."""

    name = "scalar_neg"
    meaning = _python("neg")


class ScalarAbs(_Unary):
    """Python's `abs`."""

    name = "scalar_abs"
    meaning = abs


class ScalarNot(_Unary):
    """Python's `not`."""

    name = "scalar_not"
    meaning = _python("not_")
    result = BOOL


class ScalarBool(_Unary):
    """Python's `bool`."""

    name = "scalar_bool"
    meaning = bool
    result = BOOL


class ScalarInt(_Unary):
    """Python's `int`; truncates a float, refuses NaN and infinity."""

    name = "scalar_int"
    meaning = int
    result = INT
    may_raise = True


class ScalarFloat(_Unary):
    """Python's `float`."""

    name = "scalar_float"
    meaning = float
    result = FLOAT


class ScalarRound(Op):
    """Python's `round`: to an int, or to `digits` decimal digits where that is given."""

    name = "scalar_round"
    attributes = ("digits",)
    differentiable = False
    may_raise = True

    def infer(self, a: ScalarType, *, digits: int | None) -> ScalarType:
        return FLOAT if a.kind == "float" and digits is not None else INT

    def eval(self, xp: Any, a: Any, *, digits: int | None) -> Any:
        return round(a) if digits is None else round(a, digits)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((2.5,), {"digits": None})
        yield Sample((-3.14159,), {"digits": 2})


class ScalarToTensor(Op):
    """A Python number as a 0-D tensor of `dtype`."""

    name = "scalar_to_tensor"
    attributes = ("dtype",)
    differentiable = False

    def infer(self, a: ScalarType, *, dtype: DType) -> TensorType:
        return TensorType(dtype, ())

    def eval(self, xp: Any, a: Any, *, dtype: DType) -> Any:
        return xp.asarray(a, dtype=dtype.numpy)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((3,), {"dtype": float32})


class Item(Op):
    """The one element of a tensor as a Python number; ValueError when there is not exactly one."""

    name = "item"
    differentiable = False
    may_raise = True

    def infer(self, x: TensorType) -> ScalarType:
        return BOOL if x.dtype.is_bool else INT if x.dtype.is_integer else FLOAT

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return any(e != 1 for e in types[0].shape)

    def eval(self, xp: Any, x: Any) -> Any:
        if x.size != 1:
            raise ValueError(
                f"only a tensor of one element has a Python value, this one has shape {list(x.shape)}; "
                "reduce it first, by any(), all() or sum()"
            )
        return x.item()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array([2.5]),))
        yield Sample((np.array(3),))
