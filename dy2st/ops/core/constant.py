"""Constants and filled tensors: `constant` (a literal), `full`, `zeros_like`, `ones_like`, `detach`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType, of_array
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType, Type, tangent_type
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.bundle import Bundle


class Constant(Op):
    """A literal tensor; `value` is a NumPy array."""

    name = "constant"
    is_constant = True
    attributes = ("value",)
    differentiable = False

    def infer(self, *, value: np.ndarray) -> TensorType:
        return TensorType(of_array(value), value.shape)

    def eval(self, xp: Any, *, value: np.ndarray) -> Any:
        return xp.asarray(value)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((), {"value": np.arange(3.0)})


class Full(Op):
    """A tensor of `shape` (a template: None where a scalar operand gives the extent) filled with a 0-D tensor."""

    name = "full"
    rematerializes = True
    is_data_movement = True
    attributes = ("shape",)
    may_raise = True
    fresh = True
    linear_in = (0,)

    def infer(self, value: TensorType, *dims: ScalarType, shape: tuple[int | None, ...]) -> TensorType:
        return TensorType(value.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return any(t.extent is None for t in types[1:])  # an int that is no extent may be negative

    def eval(self, xp: Any, value: Any, *dims: int, shape: tuple[int | None, ...]) -> Any:
        extents = fill(shape, dims)
        if min(extents, default=0) < 0:
            raise ValueError(f"the extents of a new tensor must not be negative: {list(extents)}")
        return xp.full(extents, value, dtype=value.dtype)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        axes = tuple(range(tensor_type(cts[0]).rank))
        return [b.sum(cts[0], axis=axes, keepdim=False), *[None] * (len(operands) - 1)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array(1.5), 3), {"shape": (2, None)})
        yield Sample((np.array(2.5),), {"shape": ()})


class ZerosLike(Op):
    """Zeros of the shape and dtype of the operand; for a list, a list of unset elements; for an optional, unset."""

    name = "zeros_like"
    rematerializes = True
    splat = 0
    differentiable = False

    def infer(self, like: Type) -> Type:
        return tangent_type(like)

    def eval(self, xp: Any, like: Any) -> Any:
        if isinstance(like, (list, tuple)):
            return [(0, None)] * len(cast("list[Any]", like)) if isinstance(like, list) else (0, None)
        if isinstance(like, Bundle):
            return Bundle([(0, None)] * len(like.items))
        return xp.zeros_like(like)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),))


class OnesLike(Op):
    """Ones of the shape and dtype of the operand."""

    name = "ones_like"
    rematerializes = True
    splat = 1
    differentiable = False

    def infer(self, like: TensorType) -> TensorType:
        return like

    def eval(self, xp: Any, like: Any) -> Any:
        return xp.ones_like(like)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),))


class Detach(Op):
    """The operand itself, through which no derivative flows."""

    name = "detach"
    renames = True
    is_identity = True
    is_data_movement = True
    differentiable = False
    is_view = True

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, xp: Any, x: Any) -> Any:
        return x

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value]) -> Value:
        return b.renew(new, base)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2,)),))


class Renew(Op):
    """The first operand, with the derivative of the second: a tensor whose elements were written without history.

    What is computed from a parameter after its update has a gradient with respect to the parameter, as in eager mode,
    where the parameter stays the same leaf.
    """

    name = "renew"
    renames = True
    is_identity = True
    is_data_movement = True

    def infer(self, new: Type, old: Type) -> Type:
        if new != old:
            raise TypeError(f"renew: the new elements are {new}, the old ones {old}")
        return old

    def eval(self, xp: Any, new: Any, old: Any) -> Any:
        return new

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value]) -> Any:
        return tangents[1]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))), differentiate=False)


class Cast(Op):
    """The operand in another dtype; of complex numbers the real part, where that is not complex."""

    name = "cast"
    converts = True
    attributes = ("dtype",)
    elementwise = True
    linear_in = (0,)

    def infer(self, x: TensorType, *, dtype: DType) -> TensorType:
        return TensorType(dtype, x.shape)

    def eval(self, xp: Any, x: Any, *, dtype: DType) -> Any:
        return (x.real if x.dtype.kind == "c" and not dtype.is_complex else x).astype(dtype.numpy)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *, dtype: DType) -> Any:  # fmt: skip
        return b.cast(tangents[0], dtype=dtype) if dtype.is_differentiable else None

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.cast(cts[0], dtype=operands[0].type.dtype)]  # type: ignore[union-attr]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), {"dtype": dtypes.float64})
        yield Sample((np.arange(3),), {"dtype": dtypes.float32}, differentiate=False)
