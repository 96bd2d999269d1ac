"""Elements and slices at places: gather, scatter, and their kin along an axis or under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.functions.core.assigning import clone
from dy2st.functions.core.operands import cast_to, number, one_axis, op, pair, tensor
from dy2st.functions.shape import broadcasting, concat_split, manipulation
from dy2st.functions.shape.indexing import setitem
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.union import SymbolicList

_TAKE, _INDEX = op("take"), op("index")
_TAKE_ALONG, _PUT_ALONG, _COMBINE = op("take_along_axis"), op("put_along_axis"), op("combine_along_axis")
_INDEX_SET, _INDEX_ADD, _GATHER_ND, _SCATTER_ND = (
    op("index_set"), op("index_add"), op("gather_nd"), op("scatter_nd_add"),
)  # fmt: skip
_WHOLE = ("slice", None, None, None)


def gather(x: Any, index: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return the slices of x along an axis (the first when None) at the places of a vector (or 0-D tensor).

    >>> import dy2st as paddle
    >>> paddle.gather(paddle.to_tensor([[1, 2], [3, 4]]), paddle.to_tensor([1, 1])).tolist()
    [[3, 4], [3, 4]]
    """
    x, index = tensor(x, "gather"), tensor(index, "gather")
    axis = one_axis(0 if axis is None else axis, x.ndim, "gather")
    if index.ndim == 2:
        index = manipulation.reshape(index, [-1])
    if index.ndim > 1:
        raise ValueError(f"gather needs a vector of places, not a tensor of shape {index.shape}")
    return apply(_TAKE, x, index, axis=axis)


def index_select(x: Any, index: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Return the slices of x along an axis at the places of a vector."""
    return gather(x, index, axis)


def take(x: Any, index: Any, mode: str = "raise", name: str | None = None) -> Tensor:
    """Return the elements of x, counted in row-major order, at places; `mode` says what happens outside.

    "raise" is an IndexError, "wrap" counts around, "clip" takes the nearest end.
    """
    x, index = manipulation.reshape(tensor(x, "take"), [-1]), tensor(index, "take")
    if mode == "wrap":
        index = index % x.shape[0]
    elif mode == "clip":
        index = index.clip(0, x.shape[0] - 1)
    elif mode != "raise":
        raise ValueError(f"take: mode is {mode!r}, not 'raise', 'wrap' or 'clip'")
    return apply(_TAKE, x, index, axis=0)


def gather_nd(x: Any, index: Any, name: str | None = None) -> Tensor:
    """Return the slices of x at places; the last axis of `index` holds a place on each of the first axes of x.

    >>> import dy2st as paddle
    >>> paddle.gather_nd(paddle.to_tensor([[1, 2], [3, 4]]), paddle.to_tensor([[1, 0]])).tolist()
    [3]
    """
    x, index = tensor(x, "gather_nd"), tensor(index, "gather_nd")
    return apply(_GATHER_ND, x, index, depth=_depth(index, "gather_nd"))


def _depth(index: Tensor, name: str) -> int:
    """Return the extent of the last axis: on how many axes `index` names places."""
    depth = index.shape[-1] if index.ndim else 0
    if not isinstance(depth, int):
        raise ValueError(f"{name}: the last extent of the index must be known while tracing; reshape it to [..., k]")
    return depth


def scatter_nd_add(x: Any, index: Any, updates: Any, name: str | None = None) -> Tensor:
    """Return x with updates added at places as in `gather_nd`; places that repeat add up."""
    x, updates = pair(x, updates, "scatter_nd_add")
    index = tensor(index, "scatter_nd_add")
    return apply(_SCATTER_ND, x, updates, index, depth=_depth(index, "scatter_nd_add"))


def scatter_nd(index: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return zeros of a shape with updates added at places as in `gather_nd`."""
    updates = tensor(updates, "scatter_nd")
    from_shape = broadcasting.expand(number(0, updates.dtype, updates), shape)
    return scatter_nd_add(from_shape, index, updates)


def scatter(x: Any, index: Any, updates: Any, overwrite: bool = True, name: str | None = None) -> Tensor:
    """Return x with rows replaced by updates; without `overwrite`, the rows are the sums of their updates."""
    x, index, updates = tensor(x, "scatter"), tensor(index, "scatter"), tensor(updates, "scatter")
    updates = cast_to(updates, x.dtype)
    index = manipulation.reshape(index, [-1]) if index.ndim == 2 else index
    spec = (("tensor",),)
    if overwrite:
        return apply(_INDEX_SET, x, updates, index, spec=spec)
    cleared = apply(_INDEX_SET, x, number(0, x.dtype, x), index, spec=spec)
    return apply(_INDEX_ADD, cleared, updates, index, spec=spec)


def index_add(x: Any, index: Any, axis: int, value: Any, alpha: float = 1, name: str | None = None) -> Tensor:
    """Return x with slices of `value`, times alpha, added along an axis at the places of a vector."""
    x, index = tensor(x, "index_add"), tensor(index, "index_add")
    axis = one_axis(axis, x.ndim, "index_add")
    value = tensor(value, "index_add")
    value = cast_to(value if alpha == 1 else value * alpha, x.dtype)
    return apply(_INDEX_ADD, x, value, index, spec=(*(_WHOLE,) * axis, ("tensor",)))


def index_fill(x: Any, index: Any, axis: int, value: Any, name: str | None = None) -> Tensor:
    """Return x with one value in the slices along an axis at the places of a vector."""
    x, index = tensor(x, "index_fill"), tensor(index, "index_fill")
    axis = one_axis(axis, x.ndim, "index_fill")
    return apply(_INDEX_SET, x, tensor(value, "index_fill", x.dtype), index, spec=(*(_WHOLE,) * axis, ("tensor",)))


def index_put(x: Any, indices: Any, value: Any, accumulate: bool = False, name: str | None = None) -> Tensor:
    """Return x with `value` at x[indices], or added there with `accumulate`."""
    x = tensor(x, "index_put")
    places = [tensor(i, "index_put") for i in indices]
    spec = tuple(("mask",) if p.dtype.is_bool else ("tensor",) for p in places)
    made = _INDEX_ADD if accumulate else _INDEX_SET
    return apply(made, x, tensor(value, "index_put", x.dtype), *places, spec=spec)


def index_sample(x: Any, index: Any) -> Tensor:
    """Return, for each row of a matrix, its elements at the places in the same row of `index`."""
    return take_along_axis(x, index, 1, broadcast=False)


def take_along_axis(arr: Any, indices: Any, axis: int, broadcast: bool = True) -> Tensor:
    """Return the elements at indices along an axis; the other axes are broadcast together, or else begin alike."""
    arr, indices = tensor(arr, "take_along_axis"), tensor(indices, "take_along_axis")
    axis = one_axis(axis, arr.ndim, "take_along_axis")
    if broadcast:
        arr, indices = _broadcast_but(arr, indices, axis)
    elif (part := _beginning(arr, indices, axis)) is not None:
        arr = arr[part]
    return apply(_TAKE_ALONG, arr, indices, axis=axis)


take_along_dim = take_along_axis


def _broadcast_but(arr: Tensor, indices: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    if arr.ndim != indices.ndim:
        raise ValueError(f"indices of shape {indices.shape} have not the rank of the tensor, {arr.shape}")
    a, b = arr.shape, indices.shape
    rest = broadcasting.common_shape([[1 if i == axis else e for i, e in enumerate(s)] for s in (a, b)])
    wide_a = [a[axis] if i == axis else e for i, e in enumerate(rest)]
    wide_b = [b[axis] if i == axis else e for i, e in enumerate(rest)]
    return _expanded(arr, wide_a), _expanded(indices, wide_b)


def _beginning(arr: Tensor, indices: Tensor, axis: int | None) -> tuple[slice, ...] | None:
    """Return the slices of `arr` that the indices cover on the axes but one; None where that is all of it."""
    if arr.ndim != indices.ndim:
        raise ValueError(f"indices of shape {indices.shape} have not the rank of the tensor, {arr.shape}")
    rest = [i for i in range(arr.ndim) if i != axis and arr.shape[i] is not indices.shape[i]]
    cut = [i for i in rest if not (isinstance(arr.shape[i], int) and arr.shape[i] == indices.shape[i])]
    return tuple(slice(indices.shape[i]) if i in cut else slice(None) for i in range(arr.ndim)) if cut else None


def _expanded(x: Tensor, shape: list[Any]) -> Tensor:
    same = all(isinstance(e, int) and e == f for e, f in zip(shape, x.shape, strict=True))
    return x if same else broadcasting.expand(x, shape)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int, reduce: str = "assign", include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:  # fmt: skip
    """Return arr with values put at indices along an axis, or combined with what is there.

    `reduce` is "assign", "add", "mul" (or "multiply"), "amax", "amin" or "mean". The other axes of the indices are
    broadcast; without `broadcast` they and those of the values may be longer or shorter, and begin alike.
    """
    arr, indices = tensor(arr, "put_along_axis"), tensor(indices, "put_along_axis")
    axis = one_axis(axis, arr.ndim, "put_along_axis")
    values = tensor(values, "put_along_axis", arr.dtype)
    mode = {"multiply": "mul", "sum": "add", "prod": "mul"}.get(reduce, reduce)
    if mode not in ("assign", "add", "mul", "amax", "amin", "mean"):
        raise ValueError(f"put_along_axis: reduce is {reduce!r}, not assign, add, mul, amax, amin or mean")
    if broadcast:
        shape = list(arr.shape)
        shape[axis] = indices.shape[axis]
        indices = _expanded(indices, shape)
    elif values.ndim and (part := _beginning(values, indices, None)) is not None:
        values = values[part]
    values = broadcasting.expand(values, indices.shape)
    part = None if broadcast else _beginning(arr, indices, axis)
    if part is None:
        return _put(arr, indices, values, axis, mode, include_self)
    made = clone(arr)
    setitem(made, part, _put(arr[part], indices, values, axis, mode, include_self))
    return made


def _put(arr: Tensor, indices: Tensor, values: Tensor, axis: int, mode: str, include_self: bool) -> Tensor:
    if mode == "mean":
        return _mean_along(arr, indices, values, axis, include_self)
    if not include_self and mode != "assign":
        start = {"add": 0, "mul": 1}.get(mode, _limit(arr, mode))
        blank = number(start, arr.dtype, arr)
        arr = apply(_PUT_ALONG, arr, indices, broadcasting.expand(blank, indices.shape), axis=axis, mode="assign")
    made = _PUT_ALONG if mode in ("assign", "add") else _COMBINE
    return apply(made, arr, indices, values, axis=axis, mode=mode)


def _limit(x: Tensor, mode: str) -> Any:
    if x.dtype.kind == "f":
        return -float("inf") if mode == "amax" else float("inf")
    info = np.iinfo(x.dtype.numpy)
    return int(info.min if mode == "amax" else info.max)


def _mean_along(arr: Tensor, indices: Tensor, values: Tensor, axis: int, include_self: bool) -> Tensor:
    one = apply(op("ones_like"), values)
    total = _put(arr, indices, values, axis, "add", include_self)
    count = _put(apply(op("ones_like"), arr), indices, one, axis, "add", include_self)
    return cast_to(total / count, arr.dtype) if arr.dtype.kind == "f" else total // count


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with src added at indices along an axis."""
    return put_along_axis(input, index, src, dim, "add", broadcast=False)


def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """Return `input` combined with src at indices along an axis: "sum", "prod", "mean", "amin", "amax"."""
    return put_along_axis(input, index, src, dim, reduce, include_self, broadcast=False)


def masked_select(x: Any, mask: Any, name: str | None = None) -> Tensor:
    """Return the elements where a bool mask, broadcast, is true, in row-major order."""
    x, mask = broadcasting.broadcast_tensors([tensor(x, "masked_select"), tensor(mask, "masked_select")])
    return apply(op("masked_select"), x, cast_to(mask, dtypes.bool_))


def masked_fill(x: Any, mask: Any, value: Any, name: str | None = None) -> Tensor:
    """Return x with one value where a bool mask, broadcast, is true."""
    x = tensor(x, "masked_fill")
    return apply(op("where"), cast_to(tensor(mask, "masked_fill"), dtypes.bool_), tensor(value, "", x.dtype), x)


def masked_scatter(x: Any, mask: Any, value: Any, name: str | None = None) -> Tensor:
    """Return x with, where a bool mask is true, the first elements of `value` in row-major order."""
    x = tensor(x, "masked_scatter")
    mask = broadcasting.expand(cast_to(tensor(mask, "masked_scatter"), dtypes.bool_), x.shape)
    value = manipulation.reshape(tensor(value, "masked_scatter", x.dtype), [-1])
    count = apply(op("sum"), mask, axis=tuple(range(mask.ndim)), keepdim=False)
    taken = value[: count.item()]
    return apply(_INDEX_SET, x, taken, mask, spec=(("mask",),))


def multiplex(inputs: Any, index: Any, name: str | None = None) -> Tensor:
    """Return, for each row, that row of the tensor whose number `index` holds."""
    stacked = concat_split.stack(inputs if isinstance(inputs, SymbolicList) else list(inputs))
    index = manipulation.reshape(tensor(index, "multiplex"), [-1])
    rows = apply(op("arange"), 0, index.shape[0], 1, dtype=dtypes.int64)
    return apply(_INDEX, stacked, cast_to(index, dtypes.int64), rows, spec=(("tensor",), ("tensor",)))
