"""Weights of integers over lanes: rows of all lanes are the rows of one weight."""

from __future__ import annotations

from dy2st.batching.batched_value import BatchedValue
from dy2st.batching.batcher import Batcher, rule
from dy2st.batching.rules import Lanes, stacked
from dy2st.ir.program import Operation, Value, tensor_type


@rule("dequantize")
def dequantize(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Read the weights of all lanes as one."""
    return stacked(_numbers(at, operation, lanes))


@rule("quantized_matmul")
def quantized_matmul(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Rows of all lanes times one weight are one product; weights that differ are read as numbers."""
    b, (x, weight, scale) = at.b, lanes
    if not (weight.shared and scale.shared):
        numbers = _numbers(at, operation, lanes[1:])
        return stacked(b.matmul(at.stacked(x), numbers, transpose_x=False, transpose_y=True))
    rows, inner = tensor_type(operation.operands[0]).shape
    flat = b.shaped("reshape", [x.value], b.shape((at.lanes * rows, inner)))
    made = b.emit("quantized_matmul", [flat, weight.value, scale.value], dict(operation.attributes))
    return stacked(b.shaped("reshape", [made], [at.count(), b.extent(rows), b.shape(made)[1]]))


def _numbers(at: Batcher, operation: Operation, lanes: Lanes) -> Value:
    """Return the numbers that the weights of lanes stand for, stacked."""
    b, group = at.b, operation.attributes["group"]
    weight, scale = (at.stacked(lane) for lane in lanes)
    kept, *rest = tensor_type(operation.operands[-2]).shape
    rows = kept * 2 if operation.attributes["bits"] == 4 else kept
    groups = tensor_type(operation.operands[-1]).shape[:1] if group else ()
    scale = b.transpose(scale, perm=(1, 0, 2)) if group else scale
    made = b.emit(
        "dequantize",
        [
            b.shaped("reshape", [weight], b.shape((at.lanes * kept, *rest))),
            b.shaped("reshape", [scale], b.shape((*groups, at.lanes * rows))),
        ],
        dict(operation.attributes),
    )
    return b.shaped("reshape", [made], [at.count(), *b.shape((rows, *rest))])
