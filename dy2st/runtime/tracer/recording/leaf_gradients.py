"""Gradients of leaves in a trace, which may not be there: what only an untaken branch used has none, not zeros.

While cotangents are pulled back, "there or not" is an optional. As `x.grad` the user sees a variant of None and a
Tensor, so that `x.grad is None` is a question for the run.
"""

from __future__ import annotations

from typing import Any

from dy2st.autodiff.reverse import accumulate, set_flag
from dy2st.ir.program import Value
from dy2st.ir.types import UNSET, ConstType, TensorType, VariantType, is_optional, optional
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import Const, TensorLike, Unset
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.trace import Values
from dy2st.runtime.tracer.values.union import Variant

NONE, SET = 1, 2
"""The tags of such a variant; 0 is "unset"."""


def added_to_gradient(recorder: Values, so_far: Any, ct: Value) -> Any:
    """Return what `leaf.grad` becomes in a trace where a cotangent, dense or optional, is added to it."""
    if isinstance(ct.type, TensorType) and ct.type.dtype.is_complex:
        ct = recorder.builder.conj(ct)
    if so_far is not None:
        before = _as_cotangent(recorder, so_far) if isinstance(so_far, Variant) else recorder.value_of(so_far)
        ct = accumulate(recorder.builder, before, ct)
    return as_gradient(recorder, ct)


def gradient_parts(recorder: Values, gradient: Any, like: Tensor) -> tuple[Tensor, Scalar | None]:
    """Return a gradient as a tensor, zeros where it is not there, and whether it is (None: always)."""
    if not isinstance(gradient, Variant):
        return gradient, None
    ct = _as_cotangent(recorder, gradient)
    dense = recorder.builder.emit("variant_or_zeros", [ct, recorder.value_of(like)], {"tag": 1})
    return recorder.wrap(dense), Scalar(set_flag(recorder.builder, ct))


def as_gradient(recorder: Values, ct: Value) -> Any:
    """Return a cotangent as what `x.grad` is: a tensor, or one of None and a tensor."""
    if not is_optional(ct.type):
        return recorder.wrap(ct)
    assert isinstance(ct.type, VariantType)
    found = ct.type.alternatives[1]
    assert isinstance(found, TensorType)
    kind = VariantType((UNSET, ConstType(None), found))
    value = recorder.builder.emit("variant_cast", [ct], {"type": kind, "tags": (NONE, SET)})
    return Variant(value, (Unset(""), Const(None), TensorLike(found, True)))


def _as_cotangent(recorder: Values, gradient: Variant) -> Value:
    """Return the optional that a variant of None and a tensor stands for, whichever order these are in."""
    tags = [0] * len(gradient.alternatives)
    found: TensorType | None = None
    for tag, alternative in enumerate(gradient.alternatives):
        if isinstance(alternative, TensorLike):
            if found is not None:
                raise TypeError("a gradient is one of two tensors that differ in dtype or rank")
            tags[tag], found = 1, alternative.type
    assert found is not None
    return recorder.builder.emit("variant_cast", [gradient.value], {"type": optional(found), "tags": tuple(tags)})
