"""Tensors from what others hold: Python numbers and lists, arrays, DLPack capsules; and the way back to DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.lists import list_of_numbers
from dy2st.functions.core.operands import (
    NUMBERS,
    cast_to,
    constant,
    default_dtype,
    dtype_of_kind,
    kind_of,
    number,
    op,
    tensor,
)
from dy2st.functions.shape.concat_split import stack
from dy2st.ir.context import current
from dy2st.ops.core.rounded import has_low
from dy2st.runtime.eager import device
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.dlpack import Capsule, array_of
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList

_CAST = op("cast")


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """Return a tensor with the elements of Python numbers, nested lists, arrays or tensors; the data are copied.

    Floats become the default float (float32), ints int64; arrays keep their dtype. Raises TypeError for what is no
    number, ValueError for lists of different lengths.

    >>> import dy2st as paddle
    >>> paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]).dtype
    paddle.float32
    """
    made = _copied(data, None if dtype is None else as_dtype(dtype))
    if place is not None and current().trace is None:
        made = Tensor(device.move(made.array(), device.parse(place)))
    elif current().trace is None:
        made = Tensor(device.move(made.array(), device.current_place()))
    made.stop_gradient = stop_gradient
    if not stop_gradient and current().trace is not None:
        current().trace.note_leaf(made)
    return made


def _copied(data: Any, dtype: DType | None) -> Tensor:
    if isinstance(data, Tensor):
        return apply(op("detach"), apply(_CAST, data, dtype=dtype or data.dtype))
    if isinstance(data, np.generic):
        data = np.asarray(data)
    if isinstance(data, NUMBERS):
        return number(data, dtype or dtype_of_kind(kind_of(data)))
    if isinstance(data, (list, tuple, range)):
        return _from_sequence(data, dtype)
    if isinstance(data, SymbolicList):
        return apply(op("detach"), list_of_numbers(data, dtype))
    if isinstance(data, np.ndarray) or hasattr(data, "__array_interface__") or type(data).__module__ == "cupy":
        return _from_array(data, dtype)
    if hasattr(data, "__dlpack__"):
        return _from_array(array_of(data), dtype)
    if hasattr(data, "__array__"):
        return _from_array(np.asarray(data), dtype)
    raise TypeError(f"to_tensor() needs numbers, lists, arrays or tensors, not {type(data).__name__} {data!r:.40}")


def _from_array(data: Any, dtype: DType | None) -> Tensor:
    if isinstance(data, np.ndarray) or not hasattr(data, "dtype"):
        data = np.asarray(data)
        if data.dtype == object and current().trace is not None:
            return _from_sequence(data.tolist(), dtype)  # extents, which NumPy keeps as they are
        if data.dtype == np.uint16:  # as Paddle has it
            data = data.view(dtypes.bfloat16.numpy)
        if data.dtype.kind not in "biufc" and not has_low(data):
            raise TypeError(f"to_tensor() needs numbers, not an array of {data.dtype}")
    array = data.astype(dtype.numpy) if dtype is not None else data.copy()
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return constant(array, None if isinstance(array, np.ndarray) else device.place_of(array))


def _from_sequence(data: Any, dtype: DType | None) -> Tensor:
    if _holds_tensors(data):
        parts = [_from_sequence(d, dtype) if isinstance(d, (list, tuple)) else tensor(d, "to_tensor") for d in data]
        made = stack(parts)
        return made if dtype is None else cast_to(made, dtype)
    try:
        array = np.array(data)
    except ValueError:
        raise ValueError("to_tensor() needs nested lists of equal lengths") from None
    if array.dtype.kind not in "biufc" and not has_low(array):
        raise TypeError(f"to_tensor() needs lists of numbers, not of {_first_odd(data)}")
    if dtype is None and not array.size:
        dtype = default_dtype()
    if dtype is None:
        dtype = {"f": default_dtype(), "c": dtype_of_kind("complex")}.get(array.dtype.kind)
    return constant(array if dtype is None else array.astype(dtype.numpy))


def _holds_tensors(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_tensors(d) for d in data)
    return isinstance(data, (Tensor, Scalar))


def _first_odd(data: Any) -> str:
    if isinstance(data, (list, tuple)):
        return next((found for d in data if (found := _first_odd(d))), "")
    return "" if isinstance(data, (*NUMBERS, np.generic)) else f"{type(data).__name__} {data!r:.40}"


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of an array."""
    return constant(ndarray)


def from_dlpack(dlpack: Any, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of anything that speaks DLPack (a copy where `copy` is true).

    A bare capsule, which can be read once, is taken to be on the CPU; its memory is read-only.

    >>> import numpy as np, dy2st as paddle
    >>> array = np.zeros(2, np.float32)
    >>> paddle.from_dlpack(array)[0] = 5.0
    >>> array.tolist()
    [5.0, 0.0]
    """
    if type(dlpack).__name__ == "PyCapsule":
        dlpack = Capsule(dlpack)
    if not hasattr(dlpack, "__dlpack__"):
        raise TypeError(f"from_dlpack() needs an object with __dlpack__, not {type(dlpack).__name__}")
    on_cpu = int(dlpack.__dlpack_device__()[0]) in (1, 3)
    array = array_of(dlpack) if on_cpu else device.cuda().from_dlpack(dlpack)
    array = array.copy() if copy else array
    dtypes.of_array(array)
    return Tensor(array)


def to_dlpack(x: Tensor) -> Any:
    """Return a DLPack capsule that shares the memory of a tensor."""
    return x.__dlpack__()
