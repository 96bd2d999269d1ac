"""What becomes of one Python number inside a Program: another number, or a tensor; and of a tensor of one element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import DType, float32
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.types import BOOL, FLOAT, INT, ScalarType, TensorType
from dy2st.ops.control.scalar import python_operator
from dy2st.ops.core.base import Op, Sample


class _Unary(Op):
    is_scalar = True
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
    tensor_op = "neg"
    meaning = python_operator("neg")


class ScalarAbs(_Unary):
    """Python's `abs`."""

    name = "scalar_abs"
    tensor_op = "abs"
    meaning = abs


class ScalarNot(_Unary):
    """Python's `not`."""

    name = "scalar_not"
    meaning = python_operator("not_")
    result = BOOL


class ScalarBool(_Unary):
    """Python's `bool`."""

    name = "scalar_bool"
    meaning = bool
    result = BOOL


class ScalarInt(_Unary):
    """Python's `int`; truncates a float, refuses NaN and infinity."""

    name = "scalar_int"
    raises = (ValueError, OverflowError)
    meaning = int
    result = INT
    may_raise = True


class ScalarFloat(_Unary):
    """Python's `float`."""

    name = "scalar_float"
    tensor_op = "cast"
    meaning = float
    result = FLOAT


class ScalarRound(Op):
    """Python's `round`: to an int, or to `digits` decimal digits where that is given."""

    is_scalar = True
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

    is_scalar = True
    name = "scalar_to_tensor"
    converts = True
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
    converts = True
    raises = (ValueError,)
    defined_on = REAL_NUMBERS
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
