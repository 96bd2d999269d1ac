"""Elements at places."""

from __future__ import annotations

from typing import Any

from dy2st import tensor as T
from dy2st.onnx.reading.rules.elementwise import like
from dy2st.onnx.reading.runner import Node, operator


def _from_front(at: Any, extent: int) -> Any:
    at = T.cast(at, "int64")
    return T.where(at < 0, at + extent, at)


@operator("Gather")
def _gather(node: Node, x: Any, at: Any) -> Any:
    axis = node.get("axis", 0) % x.ndim
    at = _from_front(at, x.shape[axis])
    return x[(*[slice(None)] * axis, at)]


@operator("GatherElements")
def _gather_elements(node: Node, x: Any, at: Any) -> Any:
    axis = node.get("axis", 0) % x.ndim
    return T.take_along_axis(x, _from_front(at, x.shape[axis]), axis, broadcast=False)


@operator("GatherND")
def _gather_nd(node: Node, x: Any, at: Any) -> Any:
    batch, depth = node.get("batch_dims", 0), int(at.shape[-1])
    lead: list[Any] = []
    for axis in range(batch):
        shape = [1] * (at.ndim - 1)
        shape[axis] = x.shape[axis]
        lead.append(T.reshape(T.arange(x.shape[axis]), shape))
    places = [_from_front(at[..., i], x.shape[batch + i]) for i in range(depth)]
    return x[(*lead, *places)]


@operator("ScatterElements", "Scatter")
def _scatter_elements(node: Node, x: Any, at: Any, updates: Any) -> Any:
    axis, how = node.get("axis", 0) % x.ndim, node.get("reduction", "none")
    modes = {"none": "assign", "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}
    at = _from_front(at, x.shape[axis])
    return T.put_along_axis(x, at, updates, axis, modes[how], include_self=True, broadcast=False)


@operator("ScatterND")
def _scatter_nd(node: Node, x: Any, at: Any, updates: Any) -> Any:
    """Scatter into the tensor with its first axes made one."""
    depth, how = int(at.shape[-1]), node.get("reduction", "none")
    rows, flat = 1, T.zeros(list(at.shape[:-1]), "int64")
    for i in range(depth):
        flat = flat * x.shape[i] + _from_front(at[..., i], x.shape[i])
        rows = rows * x.shape[i]
    rest = list(x.shape[depth:])
    size = 1
    for extent in rest:
        size = size * extent
    data, values = T.reshape(x, [rows, size]), T.reshape(updates, [-1, size])
    places = T.broadcast_to(T.reshape(flat, [-1, 1]), values.shape)
    modes = {"none": "assign", "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}
    made = T.put_along_axis(data, places, values, 0, modes[how], include_self=True, broadcast=False)
    return T.reshape(made, x.shape)


@operator("NonZero")
def _nonzero(node: Node, x: Any) -> Any:
    return T.transpose(T.nonzero(x), [1, 0])


@operator("Compress")
def _compress(node: Node, x: Any, mask: Any) -> Any:
    axis = node.get("axis")
    if axis is None:
        x, axis = T.reshape(x, [-1]), 0
    at = T.reshape(T.nonzero(mask), [-1])
    return T.index_select(x, at, axis % x.ndim)


@operator("TensorScatter")
def _tensor_scatter(node: Node, past: Any, update: Any, starts: Any = None) -> Any:
    axis = node.get("axis", -2) % past.ndim
    extent, length = past.shape[axis], update.shape[axis]
    first = T.zeros([past.shape[0]], "int64") if starts is None else starts
    at = T.unsqueeze(first, 1) + T.arange(length)
    if node.get("mode", "linear") == "circular":
        at = at % extent
    shape = [1] * past.ndim
    shape[0], shape[axis] = past.shape[0], length
    places = T.broadcast_to(T.reshape(at, shape), update.shape)
    return T.put_along_axis(past, places, update, axis, "assign", broadcast=False)


@operator("ArrayFeatureExtractor")
def _features(node: Node, x: Any, at: Any) -> Any:
    return like(T.index_select(x, T.reshape(at, [-1]), x.ndim - 1), x)
