"""Convolutions, pools and batch normalisation: the lane axis becomes part of the batch or of the channels.

The batch is enough where filters are the same for all lanes. Filters of its own for each lane make channels
of their own: so many groups more, which is why the number of lanes must then be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.batching.batched_value import BatchedValue, moved, tells
from dy2st.batching.batcher import Batcher, rule
from dy2st.batching.rules import Lanes, again, stacked
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.nn.conv import Conv
from dy2st.ops.reduce.normalization import BatchNormInfer
from dy2st.shapes import Extent

BATCH, CHANNELS, FILTERS = 0, 1, 0


def folded(at: Batcher, x: Value, axis: int) -> Value:
    """Emit a stacked tensor with the lane axis as the slower part of a lane's `axis`."""
    b, shape = at.b, tensor_type(x).shape[1:]
    whole = [*shape[:axis], at.lanes * shape[axis], *shape[axis + 1 :]]
    return b.shaped("reshape", [moved(b, x, 0, axis)], b.shape(tuple(whole)))


def unfolded(at: Batcher, x: Value, axis: int, extent: Extent) -> Value:
    """Emit the inverse of `folded`, where a lane has this extent."""
    b, shape = at.b, tensor_type(x).shape
    own = extent if tells(b, extent) else -1
    apart = (*shape[:axis], at.lanes, own, *shape[axis + 1 :])
    return moved(b, b.shaped("reshape", [x], b.shape(apart)), axis, 0)


def _results(at: Batcher, operation: Operation, made: Sequence[Value], axes: Sequence[int]) -> list[BatchedValue]:
    pairs = zip(made, operation.results, axes, strict=True)
    return stacked(*(unfolded(at, new, axis, tensor_type(old).shape[axis]) for new, old, axis in pairs))


def _emit(
    at: Batcher, operation: Operation, operands: Sequence[Value], dims: Lanes, part: int, axes: Sequence[int],
    **changed: Any,
) -> list[BatchedValue]:  # fmt: skip
    """Emit the op on folded operands; axis `part` of the shape that it is told has the lanes in it."""
    b, attributes = at.b, {**operation.attributes, **changed}
    template = attributes.pop("shape", None)
    if template is None:
        made = b.operation(operation.op, operands, attributes).results
    else:
        rest = iter(dims)
        shape: list[Any] = [e if e is not None else next(rest).value for e in template]
        shape[part] = _times(at, shape[part])
        made = [b.shaped(operation.name, operands, shape, **attributes)]
    return _results(at, operation, made, axes)


def _times(at: Batcher, extent: int | Value) -> int | Value:
    count = at.count()
    if isinstance(count, int) and isinstance(extent, int):
        return count * extent
    return at.b.scalar_mul(count, extent)


@rule("max_pool", "avg_pool", "avg_pool_grad", "adaptive_avg_pool", "adaptive_avg_pool_grad", "adaptive_max_pool")
def pool(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """All images of all lanes are one batch."""
    if lanes[0].shared or not all(lane.shared for lane in lanes[1:]):
        return None
    x = folded(at, lanes[0].value, BATCH)
    return _emit(at, operation, [x], lanes[1:], BATCH, [BATCH] * len(operation.results))


@rule("conv", "conv_input_grad")
def conv(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Images, or cotangents of results, with filters."""
    x, w, *dims = lanes
    if not all(lane.shared for lane in dims):
        return None
    if w.shared:
        return _emit(at, operation, [folded(at, x.value, BATCH), w.value], dims, BATCH, [BATCH])
    if x.shared and isinstance(operation.op, Conv) and operation.attributes["groups"] == 1:
        return _emit(at, operation, [x.value, folded(at, w.value, FILTERS)], dims, BATCH, [CHANNELS])
    return _grouped(at, operation, [folded(at, at.stacked(x), CHANNELS), folded(at, w.value, FILTERS)], dims, CHANNELS)


@rule("conv_weight_grad")
def conv_weight_grad(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Images with cotangents of results."""
    x, ct, *dims = lanes
    if not all(lane.shared for lane in dims):
        return None
    if x.shared and operation.attributes["groups"] == 1:
        return _emit(at, operation, [x.value, folded(at, ct.value, CHANNELS)], dims, FILTERS, [FILTERS])
    operands = [folded(at, at.stacked(x), CHANNELS), folded(at, at.stacked(ct), CHANNELS)]
    return _grouped(at, operation, operands, dims, FILTERS)


def _grouped(
    at: Batcher, operation: Operation, operands: Sequence[Value], dims: Lanes, axis: int
) -> list[BatchedValue] | None:
    """Emit the op with the groups of each lane side by side."""
    if not isinstance(at.lanes, int):
        return None
    return _emit(at, operation, operands, dims, axis, [axis], groups=at.lanes * operation.attributes["groups"])


@rule("batch_norm_train", "batch_norm_infer")
def batch_norm(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Each lane has channels of its own."""
    if isinstance(operation.op, BatchNormInfer) and all(lane.shared for lane in lanes[1:]):
        return again(at, operation, [lane.value for lane in lanes], axis=operation.attributes["axis"] + 1)
    axis = operation.attributes["axis"]
    operands = [folded(at, at.stacked(lane), axis if i == 0 else 0) for i, lane in enumerate(lanes)]
    made = at.b.operation(operation.op, operands, dict(operation.attributes)).results
    return _results(at, operation, made, [axis, *(0 for _ in made[1:])])


@rule("gather_tree")
def gather_tree(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """The beams of all lanes are one batch."""
    operands = [folded(at, at.stacked(lane), 1) for lane in lanes]
    return _results(at, operation, at.b.operation(operation.op, operands).results, [1])
