"""What transpose rules need: zeros of a run-time shape, dense tangents, a cotangent in the shape of its operand."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType


def zeros(b: Builder, dtype: DType, shape: Sequence[int | Value]) -> Value:
    """Emit a tensor of zeros of this run-time shape."""
    return b.shaped("full", [b.constant(0, dtype)], shape)


def zeros_of(b: Builder, like: Value) -> Value:
    """Emit zeros of the type of `like`, which may have no value."""
    assert isinstance(like.type, TensorType)
    return zeros(b, like.type.dtype, b.shape(like))


def dense(b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None]) -> list[Value]:
    """Return the tangents, zeros where one is None."""
    return [t if t is not None else b.zeros_like(p) for p, t in zip(primals, tangents, strict=True)]


def in_shape_of(b: Builder, ct: Value, operand: Value) -> Value:
    """Return `ct`, whose shape is the operand's at run time, with the operand's shape as its type too."""
    assert isinstance(ct.type, TensorType)
    assert isinstance(operand.type, TensorType)
    if ct.type.shape == operand.type.shape:
        return ct
    return b.shaped("reshape", [ct], b.shape(operand))


def summed_to(b: Builder, ct: Value, operand: Value) -> Value:
    """Return `ct` summed over what the operand was broadcast along."""
    assert isinstance(ct.type, TensorType)
    assert isinstance(operand.type, TensorType)
    if ct.type.shape == operand.type.shape:
        return ct
    return b.shaped("sum_to", [ct], b.shape(operand))
