"""Functions under the names, and with the arguments, that other libraries have for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core import operands
from dy2st.functions.core.assigning import clone
from dy2st.functions.core.operands import cast_to, floating, one_axis, op
from dy2st.functions.shape import concat_split, creation
from dy2st.functions.shape.broadcasting import tile
from dy2st.functions.shape.from_data import to_tensor
from dy2st.runtime.eager import device as places
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of this dtype: `data` itself where it is one."""
    if not isinstance(data, Tensor):
        return to_tensor(data, dtype)
    return data if dtype is None else cast_to(data, as_dtype(dtype))


def asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of this dtype; with `copy` one of its own, and with copy=False ValueError where that has to be.

    >>> import dy2st as paddle
    >>> paddle.asarray([1, 2], dtype="float64").dtype
    paddle.float64
    """
    found = as_tensor(obj, dtype)
    if copy is False and found is not obj:
        raise ValueError("asarray: copy=False, but what is given is no tensor of this dtype")
    return clone(found) if copy and found is obj else found


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """Return the shape to which shapes broadcast; ValueError, naming them, when they do not."""
    return operands.broadcast_shapes(*shapes)


def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return exp(input) divided by its sum along an axis: without `dim`, the first of 0, 1 or 3 axes, else the second.

    >>> import dy2st as paddle
    >>> paddle.softmax(paddle.zeros([2])).tolist()
    [0.5, 0.5]
    """
    x = floating(input, "softmax")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    if x.ndim == 0:
        return x - x + 1.0
    axis = (0 if x.ndim in (1, 3) else 1) if dim is None else dim
    return apply(op("softmax"), x, axis=one_axis(axis, x.ndim, "softmax"))


def repeat(input: Any, *repeats: Any) -> Tensor:
    """Return the tensor repeated so often along each axis."""
    return tile(input, repeats[0] if len(repeats) == 1 and isinstance(repeats[0], (list, tuple)) else list(repeats))


def split_with_sizes(x: Tensor, split_sizes: Any, dim: int = 0) -> list[Tensor]:
    """Return pieces of these sizes along an axis."""
    return concat_split.split(x, list(split_sizes), dim)


def new_empty(x: Tensor, size: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of this shape with any elements, in the dtype of x unless one is given."""
    return creation.empty(size, x.dtype if dtype is None else dtype)


def is_same_shape(x: Tensor, y: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    return list(x.shape) == list(y.shape)


def stride(x: Tensor, dim: int | None = None) -> Any:
    """Return how many elements lie between neighbours along an axis, or a list of these numbers for all axes."""
    array = x.array("its strides")
    found = [s // array.itemsize for s in array.strides]
    return found if dim is None else found[one_axis(dim, x.ndim, "stride")]


def get_device(x: Tensor) -> int:
    """Return the number of the CUDA device of a tensor, -1 on the CPU."""
    return -1 if x.place.is_cpu_place() else x.place.get_device_id()


def device(x: Tensor) -> places.Place:
    """The place of the tensor."""
    return x.place


def is_cuda(x: Tensor) -> bool:
    """Whether the tensor is on a CUDA device."""
    return x.place.is_gpu_place()


def requires_grad(x: Tensor) -> bool:
    """Whether gradients flow to the tensor: the opposite of `stop_gradient`."""
    return not x.stop_gradient


def set_requires_grad(x: Tensor, value: bool) -> None:
    """Return whether gradients flow to the tensor."""
    x.stop_gradient = not value


def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Return whether gradients flow to the tensor; return it."""
    x.stop_gradient = not requires_grad
    return x
