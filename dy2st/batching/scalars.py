"""Python numbers that differ between lanes: an int64, float64 or bool vector over the lanes.

What may raise (a division, int() of a NaN) runs lane by lane, unless it is known not to.
"""

from __future__ import annotations

from dy2st.batching.batched_value import NUMBERS, BatchedValue
from dy2st.batching.batcher import Batcher, rule
from dy2st.batching.rules import Lanes, stacked
from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType
from dy2st.ops.control.scalar_unary import ScalarFloat, ScalarNot


def _vector(at: Batcher, lane: BatchedValue, dtype: DType) -> Value:
    """Return a number as a tensor of a dtype: 0-D where the lanes share it."""
    b = at.b
    if lane.shared and isinstance(lane.value.type, ScalarType):
        return b.scalar_to_tensor(lane.value, dtype=dtype)
    return lane.value if tensor_type(lane.value).dtype is dtype else b.cast(lane.value, dtype=dtype)


def _kinds(operation: Operation) -> list[str]:
    return [v.type.kind for v in operation.operands if isinstance(v.type, ScalarType)]


def _may_raise(op: OpDef, operation: Operation) -> bool:
    return op.can_raise([v.type for v in operation.operands], operation.attributes)


@rule(
    "scalar_add", "scalar_sub", "scalar_mul", "scalar_min", "scalar_max", "scalar_floordiv", "scalar_mod", "scalar_neg",
    "scalar_abs", "scalar_float",
)  # fmt: skip
def arithmetic(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Sums, products and the like, in the dtype of their result."""
    if _may_raise(operation.op, operation):
        return None
    kind = operation.results[0].type
    assert isinstance(kind, ScalarType)
    dtype = NUMBERS[kind.kind]
    operands = [_vector(at, lane, dtype) for lane in lanes]
    if isinstance(operation.op, ScalarFloat):
        return stacked(operands[0])
    return stacked(getattr(at.b, operation.op.tensor_op)(*operands))


@rule("scalar_lt", "scalar_le", "scalar_eq", "scalar_ne", "scalar_gt", "scalar_ge")
def comparison(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Comparisons, in the dtype in which Python compares."""
    dtype = float64 if "float" in _kinds(operation) else int64
    return stacked(getattr(at.b, operation.op.tensor_op)(*(_vector(at, lane, dtype) for lane in lanes)))


@rule("scalar_and", "scalar_or", "scalar_xor")
def bits(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Operators on bits, and on truths."""
    dtype = bool_ if set(_kinds(operation)) == {"bool"} else int64
    return stacked(getattr(at.b, operation.op.tensor_op)(*(_vector(at, lane, dtype) for lane in lanes)))


@rule("scalar_not", "scalar_bool")
def truth(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Truth and its negation."""
    value = at.b.cast(lanes[0].value, dtype=bool_)
    return stacked(at.b.logical_not(value) if isinstance(operation.op, ScalarNot) else value)


@rule("scalar_int")
def whole(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Return int(x) of what is no float."""
    return None if _kinds(operation) == ["float"] else stacked(_vector(at, lanes[0], int64))


@rule("scalar_truediv")
def quotient(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """A quotient by a number that is known not to be zero."""
    divisor = operation.operands[1].operation
    if divisor is None or not divisor.op.is_constant or not divisor.attributes["value"]:
        return None
    return stacked(at.b.div(*(_vector(at, lane, float64) for lane in lanes)))


@rule("scalar_to_tensor")
def to_tensor(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """A number as a 0-D tensor."""
    return stacked(_vector(at, lanes[0], operation.attributes["dtype"]))


@rule("item")
def item(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """The one element of a tensor."""
    if _may_raise(operation.op, operation):
        return None
    kind, b = operation.results[0].type, at.b
    assert isinstance(kind, ScalarType)
    flat = b.shaped("reshape", [lanes[0].value], [at.count()]) if tensor_type(operation.operands[0]).rank else None
    value = lanes[0].value if flat is None else flat
    dtype = NUMBERS[kind.kind]
    return None if tensor_type(value).dtype.kind == "c" else stacked(b.cast(value, dtype=dtype))
