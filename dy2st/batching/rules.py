"""What ops on tensors become when a lane axis stands before the others.

1. Elementwise ops, and ops that are told a shape like theirs, take the lane axis as any other axis.
2. Ops along axes that an attribute names: the axes move up by one.
3. Ops on the last axes: the lane axis is one more axis in front, which they take already.
4. Ops that take a shape: the number of lanes stands before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.batching.batched_value import BatchedValue, LaneForm, column
from dy2st.batching.batcher import RULES, Batcher, rule
from dy2st.dtypes import bool_
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType

Lanes = Sequence[BatchedValue]


def stacked(*values: Value) -> list[BatchedValue]:
    """Return results that are stacked."""
    return [BatchedValue(v, LaneForm.STACKED) for v in values]


def tensors_stacked(at: Batcher, operation: Operation, lanes: Lanes) -> list[Value] | None:
    """Return the operands, tensors in stacked form; None where a number differs between lanes."""
    made: list[Value] = []
    for lane, old in zip(lanes, operation.operands, strict=True):
        if isinstance(old.type, TensorType):
            made.append(at.stacked(lane))
        elif lane.shared:
            made.append(lane.value)
        else:
            return None
    return made


def again(at: Batcher, operation: Operation, operands: Sequence[Value], **changed: Any) -> list[BatchedValue]:
    """Emit the same op, with some attributes changed; its results are stacked."""
    attributes = {**operation.attributes, **changed}
    return stacked(*at.b.operation(operation.op, operands, attributes).results)


# ---- 1 ------------------------------------------------------------------------------
def elementwise(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Operands of one shape broadcast over the lane axis when one of them lacks it."""
    values = at.b.broadcast_all([_in_rank(at, lane, old) for lane, old in zip(lanes, operation.operands, strict=True)])
    return again(at, operation, values)


def _in_rank(at: Batcher, lane: BatchedValue, old: Value) -> Value:
    """Return an operand such that it broadcasts from the right."""
    return at.b.use(lane.value) if lane.shared or tensor_type(old).rank else at.stacked(lane)


@rule("zeros_like", "ones_like", "detach")
def like_operand(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Whatever the operand is, the result is like it."""
    return again(at, operation, [at.stacked(lanes[0])])


def exchanged(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Processes exchange the lanes of a tensor as they do the tensor."""
    return again(at, operation, [at.stacked(lanes[0])])


@rule("renew")
def renew(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """New and old elements of one type."""
    return again(at, operation, [at.stacked(one) for one in lanes])


# ---- 2 ------------------------------------------------------------------------------
def along_axes(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Ops whose attribute `axis` or `axes` counts the axes of operands and results from the front."""
    operands = tensors_stacked(at, operation, lanes)
    name = "axis" if "axis" in operation.attributes else "axes"
    axes = operation.attributes[name]
    if operands is None or axes is None:
        return None
    return again(at, operation, operands, **{name: axes + 1 if isinstance(axes, int) else tuple(a + 1 for a in axes)})


@rule("argmax", "argmin")
def arg_extremum(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Over all axes, the elements of a lane stand in one line first."""
    if operation.attributes["axis"] is not None:
        return along_axes(at, operation, lanes)
    b, x, rank = at.b, at.stacked(lanes[0]), tensor_type(operation.operands[0]).rank
    flat = b.shaped("reshape", [x], [at.count(), -1])
    made = b.emit(operation.op, [flat], {"axis": 1, "keepdim": False})
    return stacked(column(b, made, rank) if operation.attributes["keepdim"] else made)


@rule("transpose")
def transpose(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """The lane axis stays in front."""
    return again(at, operation, [at.stacked(lanes[0])], perm=(0, *(p + 1 for p in operation.attributes["perm"])))


@rule("dim")
def dim(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """An extent is the same in all lanes."""
    axis = operation.attributes["axis"] + 1
    return [BatchedValue(at.b.emit("dim", [lanes[0].value], {"axis": axis}), LaneForm.SHARED)]


@rule("pad")
def pad(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """No lanes are added. A value of its own for each lane is chosen where there is padding."""
    if not all(lane.shared for lane in lanes[2:]):
        return None
    b, x, dims = at.b, at.stacked(lanes[0]), [lane.value for lane in lanes[2:]]
    widths = {"low": (0, *operation.attributes["low"]), "high": (0, *operation.attributes["high"])}
    if lanes[1].shared:
        return again(at, operation, [x, lanes[1].value, *dims], **widths)
    zero, inside = b.constant(0, tensor_type(x).dtype), b.cast(b.ones_like(x), dtype=bool_)
    padded = b.emit("pad", [x, zero, *dims], widths)
    within = b.emit("pad", [inside, b.constant(False, bool_), *dims], widths)
    return stacked(b.where(within, padded, column(b, lanes[1].value, tensor_type(x).rank - 1)))


# ---- 3 ------------------------------------------------------------------------------
def on_last_axes(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Ops that take any number of axes in front."""
    operands = tensors_stacked(at, operation, lanes)
    return None if operands is None else again(at, operation, operands)


@rule("attention", "attention_grad", "attention_mask_grad")
def attention(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Heads of all lanes; weights are dropped alike in each, so a draw has one lane."""
    operands = tensors_stacked(at, operation, lanes)
    first = next((i for i, v in enumerate(operation.operands) if isinstance(v.type, ScalarType)), None)
    if operands is None or first is None:
        return None if operands is None else again(at, operation, operands)
    extents = first + 4
    return again(at, operation, [*operands[:extents], at.b.scalar(1), *operands[extents:]])


@rule("matmul")
def matmul(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Rows of all lanes times one matrix are one product."""
    (x, y), rank = lanes, tensor_type(operation.operands[0]).rank
    if y.shared and rank == 2 and not operation.attributes["transpose_x"]:
        b, (rows, inner) = at.b, tensor_type(operation.operands[0]).shape
        flat = b.shaped("reshape", [x.value], b.shape((at.lanes * rows, inner)))
        made = b.emit("matmul", [flat, y.value], dict(operation.attributes))
        return stacked(b.shaped("reshape", [made], [at.count(), b.extent(rows), b.shape(made)[1]]))
    return again(at, operation, [at.stacked(x), at.stacked(y)])


@rule("layer_norm")
def layer_norm(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Scale and bias of its own for each lane are applied to what is normalised without."""
    b, (x, scale, bias) = at.b, lanes
    if scale.shared and bias.shared:
        return again(at, operation, [at.stacked(x), scale.value, bias.value])
    kind, more = (
        tensor_type(operation.operands[1]),
        tensor_type(operation.operands[0]).rank - operation.attributes["rank"],
    )
    plain = [b.shaped("full", [b.constant(k, kind.dtype)], b.shape(kind)) for k in (1, 0)]
    made, *moments = b.operation(operation.op, [at.stacked(x), *plain], dict(operation.attributes)).results
    axes = tuple(range(1, 1 + more))
    factor, term = (
        one.value if one.shared or not axes else b.expand_dims(one.value, axes=axes) for one in (scale, bias)
    )
    return stacked(b.add(b.mul(made, factor), term), *moments)


# ---- 4 ------------------------------------------------------------------------------
def with_shape(at: Batcher, operation: Operation, x: Value, dims: Lanes) -> list[BatchedValue] | None:
    """Emit the op on `x` with the lanes before its shape; None where the shape differs between lanes."""
    rest = iter(dims)
    shape: list[int | Value] = [at.count()]
    for extent in operation.attributes["shape"]:
        shape.append(extent if extent is not None else next(rest).value)
    if not all(lane.shared for lane in dims):
        return None
    others = {k: v for k, v in operation.attributes.items() if k != "shape"}
    return stacked(at.b.shaped(operation.name, [x], shape, **others))


@rule("reshape")
def reshape(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """The lane axis is kept."""
    return None if lanes[0].shared else with_shape(at, operation, lanes[0].value, lanes[1:])


@rule("full", "broadcast")
def broadcast(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """New axes of a lane stand behind the lane axis."""
    if lanes[0].shared or not all(lane.shared for lane in lanes[1:]):
        return None
    b, rank = at.b, len(operation.attributes["shape"])
    own = tensor_type(operation.operands[0]).rank
    x = b.emit("expand_dims", [lanes[0].value], {"axes": tuple(range(1, 1 + rank - own))}) if rank > own else None
    value = lanes[0].value if x is None else x
    dims = iter(lanes[1:])
    shape = [e if e is not None else next(dims).value for e in operation.attributes["shape"]]
    return stacked(b.shaped("broadcast", [value], [at.count(), *shape]))


@rule("sum_to")
def sum_to(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Axes that the shape lacks are summed away first, so that the lane axis stands before the others."""
    x, rank = lanes[0], len(operation.attributes["shape"])
    if x.shared:
        return None
    more = tensor_type(operation.operands[0]).rank - rank
    value = x.value
    if more:
        value = at.b.emit("sum", [value], {"axis": tuple(range(1, 1 + more)), "keepdim": False})
    return with_shape(at, operation, value, lanes[1:])


@rule("diagonal_embed")
def diagonal_embed(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """The planes are those of the axes behind the lane axis."""
    rest = iter(lanes[1:])
    if lanes[0].shared or not all(lane.shared for lane in lanes[1:]):
        return None
    shape = [at.count(), *(e if e is not None else next(rest).value for e in operation.attributes["shape"])]
    axes = tuple(a + 1 for a in operation.attributes["axes"])
    offset = operation.attributes["offset"]
    return stacked(at.b.shaped("diagonal_embed", [lanes[0].value], shape, offset=offset, axes=axes))


# ---- which ops are of which family ------------------------------------------------------------------------------
def enter_families() -> None:
    """Give every op its rule that belongs to a family by what its class says of it."""
    for name, op in REGISTRY.items():
        if op.elementwise:
            RULES[name] = elementwise
        elif op.of_last_axes:
            RULES[name] = on_last_axes
        elif name not in RULES and not {"axis", "axes"}.isdisjoint(op.attributes):
            RULES[name] = along_axes
        elif op.exchanges and op.differentiable and name not in RULES:
            RULES[name] = exchanged


enter_families()
