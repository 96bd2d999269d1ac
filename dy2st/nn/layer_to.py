"""Moving a layer: parameters, buffers and gradients to another device or dtype, keeping the tensors themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.runtime.eager import device as places
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.version_counter import VersionCounter

if TYPE_CHECKING:
    from dy2st.nn.layer import Layer


def move(layer: Layer, device: Any, dtype: Any) -> Layer:
    """Move and cast in place what a layer owns; only floating tensors are cast."""
    place = None if device is None else places.parse(device)
    wanted = None if dtype is None else dtypes.dtype(dtype)
    for part in layer.sublayers(include_self=True):
        move_own(part, wanted, place)
    return layer


def move_own(layer: Layer, dtype: DType | None, place: places.Place | None = None) -> None:
    """Move and cast what a layer owns itself, not its sublayers."""
    for tensor in (*layer._parameters.values(), *layer._buffers.values()):
        if tensor is not None:
            _move_tensor(tensor, place, dtype)
            if tensor._grad is not None:
                _move_tensor(tensor._grad, place, dtype)
    if dtype is not None and dtype.is_floating:
        layer._dtype = dtype


def _move_tensor(tensor: Tensor, place: places.Place | None, dtype: DType | None) -> None:
    array = tensor.array("moving a layer")
    if place is not None:
        array = places.move(array, place)
    if dtype is not None and dtypes.of_array(array).is_floating:
        array = array.astype(dtype.numpy, copy=False)
    if array is not tensor.payload:
        tensor.payload = array
        if tensor.storage_version is not None:
            tensor.storage_version = VersionCounter(tensor.storage_version.number + 1, tensor.storage_version.spoiled)
