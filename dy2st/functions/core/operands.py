"""What functions take: tensors, numbers, NumPy arrays; brought to one dtype by the table of dtypes.py.

A number becomes a 0-D tensor of the dtype in which it meets the tensor beside it; an array becomes a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType, promote, promote_number
from dy2st.ir.context import current
from dy2st.ir.opdef import lookup, undefined
from dy2st.ops.core.base import Op
from dy2st.runtime.eager import device
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.values.symbolic_scalar import NumPyNumber, Scalar
from dy2st.runtime.tracer.values.union import SymbolicList

NUMBERS = (bool, int, float, complex, Scalar)
_INEXACT, _ORDERED = frozenset("fc"), frozenset("biuf")
_UNDERSTOOD = (Tensor, *NUMBERS, np.ndarray, np.generic)
_OF_NUMPY = (np.generic, NumPyNumber)


def op(name: str) -> Op:
    """Return the op of this name."""
    found = lookup(name)
    assert isinstance(found, Op)
    return found


_CAST, _CONSTANT, _SCALAR_TO_TENSOR = op("cast"), op("constant"), op("scalar_to_tensor")


def default_dtype() -> DType:
    """Return the dtype of floats for which none is given: float32, unless `set_default_dtype` changed it."""
    context = current()
    found, trace = context.process.default_dtype, context.trace
    if trace is not None and trace.of_function:  # a Program holds for this dtype
        return trace.read_attribute(context.process, "default_dtype", found)
    return found


def cast_to(x: Tensor, dtype: DType) -> Tensor:
    """Return `x` in this dtype, itself when it has it."""
    return x if x.dtype is dtype else apply(_CAST, x, dtype=dtype)


def constant(array: np.ndarray, place: device.Place | None = None) -> Tensor:
    """Return an array as a tensor: in a trace as a constant of the Program, else on `place` (the current one if None).

    Eagerly the memory is shared.
    """
    if current().trace is not None:
        return apply(_CONSTANT, value=np.array(array))
    dtypes.of_array(array)
    if not isinstance(array, np.ndarray):
        return Tensor(array if place is None else device.move(array, place))
    place = place or device.current_place()
    return Tensor(array if place.kind == "cpu" else device.move(array, place))


def number(value: Any, dtype: DType, beside: Any = None) -> Tensor:
    """Return a Python number, concrete or symbolic, as a 0-D tensor; `beside` is a tensor whose place it shares."""
    if isinstance(value, Scalar):
        return apply(_SCALAR_TO_TENSOR, value, dtype=dtype)
    array = _array_of(value, dtype)
    if current().trace is not None:
        return apply(_CONSTANT, value=array)
    if beside is None:
        return constant(array)
    payload = beside.payload
    if isinstance(payload, np.ndarray):
        return Tensor(array)
    return constant(array, beside.place)


def _array_of(value: Any, dtype: DType) -> np.ndarray:
    """Return a number as a 0-D array; a float beyond the dtype's range becomes an infinity, without a warning."""
    if isinstance(value, float) and not -65504.0 <= value <= 65504.0:
        with np.errstate(over="ignore"):
            return np.asarray(value, dtype.numpy)
    return np.asarray(value, dtype.numpy)


def kind_of(value: Any) -> str:
    """Return "bool", "int", "float" or "complex" for a number, concrete or symbolic."""
    return value.kind if isinstance(value, Scalar) else dtypes.kind_of_number(value)


def dtype_of_kind(kind: str) -> DType:
    """Return the dtype of a tensor made of a Python number of this kind."""
    if kind == "complex":
        return dtypes.complex128 if default_dtype() is dtypes.float64 else dtypes.complex64
    return default_dtype() if kind == "float" else {"bool": dtypes.bool_, "int": dtypes.int64}[kind]


def quotient_dtype(t: DType) -> DType:
    """Return the dtype of a quotient of tensors of this dtype."""
    return default_dtype() if t.kind in "biu" else t


def _beside(t: DType, x: Any) -> DType:
    """Return the dtype in which a tensor of this dtype and a number meet."""
    kind = kind_of(x)
    return default_dtype() if kind == "float" and t.kind not in "fc" else promote_number(t, kind)


def understood(value: Any) -> bool:
    """Return whether `value` can stand beside a tensor: a tensor, number, NumPy number or array."""
    return isinstance(value, _UNDERSTOOD)


def tensor(value: Any, name: str, dtype: DType | None = None) -> Tensor:
    """Return `value` as a tensor, in `dtype` if it is given; TypeError, naming the function, for what is none."""
    if dtype is None and value.__class__ is Tensor:
        return value
    if isinstance(value, _OF_NUMPY):
        value = value.item()
    if isinstance(value, NUMBERS):
        return number(value, dtype or dtype_of_kind(kind_of(value)))
    if isinstance(value, np.ndarray):
        value = constant(value)
    if isinstance(value, SymbolicList):
        raise needs_value(f"{name}() of a list was asked for, and only the run will tell how long this list is")
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}() needs a Tensor, not {type(value).__name__} {_shown(value)}")
    return value if dtype is None else cast_to(value, dtype)


def pair(x: Any, y: Any, name: str) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors of the dtype in which they meet."""
    if x.__class__ is y.__class__ is Tensor and x.dtype is y.dtype:
        return x, y
    x = x.item() if isinstance(x, _OF_NUMPY) else x
    y = y.item() if isinstance(y, _OF_NUMPY) else y
    if isinstance(y, NUMBERS) and not isinstance(x, NUMBERS):
        x = tensor(x, name)
        dtype = _beside(x.dtype, y)
        return cast_to(x, dtype), number(y, dtype, x)
    if isinstance(x, NUMBERS) and not isinstance(y, NUMBERS):
        y = tensor(y, name)
        dtype = _beside(y.dtype, x)
        return number(x, dtype, y), cast_to(y, dtype)
    x, y = tensor(x, name), tensor(y, name)
    dtype = promote(x.dtype, y.dtype)
    return cast_to(x, dtype), cast_to(y, dtype)


def _kind(x: Any) -> str | None:
    """Return the kind of the dtype of a tensor that has an array of NumPy's; None for anything else."""
    array: Any = x.payload if x.__class__ is Tensor else None
    return array.dtype.kind if array.__class__ is np.ndarray else None


def is_inexact(x: Any) -> bool:
    """Return whether x is a tensor of floats or complex numbers, with an array of NumPy's, whose dtype no real number
    beside it changes.
    """
    return _kind(x) in _INEXACT


def together(values: Sequence[Any], name: str) -> list[Tensor]:
    """Return several operands as tensors of the dtype in which all meet."""
    tensors = [tensor(v, name) for v in values]
    if not tensors:
        raise ValueError(f"{name}() needs at least one tensor")
    dtype = tensors[0].dtype
    for t in tensors:
        if t.dtype is not dtype:
            break
    else:
        return tensors
    for t in tensors[1:]:
        dtype = promote(dtype, t.dtype)
    return [cast_to(t, dtype) for t in tensors]


def floating(x: Any, name: str) -> Tensor:
    """Return `x` as a float (or complex) tensor: integers and booleans become the default float."""
    if _kind(x) in _INEXACT:
        return x
    x = tensor(x, name)
    return x if x.dtype.kind in "fc" else cast_to(x, default_dtype())


def ordered(x: Any, name: str) -> Tensor:
    """Return `x` as a tensor of numbers that have an order; TypeError, naming the function, for complex ones."""
    if _kind(x) in _ORDERED:
        return x
    x = tensor(x, name)
    if x.dtype.is_complex:
        raise undefined(name, [x.dtype])
    return x


def ordered_floating(x: Any, name: str) -> Tensor:
    """Return `x` as a float tensor; TypeError, naming the function, for complex numbers."""
    if _kind(x) == "f":
        return x
    return floating(ordered(x, name), name)


def binary(op: Op, x: Any, y: Any, name: str) -> Tensor:
    """Apply an elementwise op of two operands."""
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype is y.dtype:
        return apply(op, x, y)
    return apply(op, *pair(x, y, name))


def one_axis(axis: Any, rank: int, name: str) -> int:
    """Return an axis counted from the front; ValueError when it is out of range."""
    if axis.__class__ is int and -rank <= axis < rank:
        return axis % rank
    if isinstance(axis, Tensor):
        axis = int(axis)
    try:
        found = axis.__index__()
    except AttributeError:
        raise TypeError(f"{name}: an axis must be an int, not {type(axis).__name__} {_shown(axis)}") from None
    if not -rank <= found < rank:
        raise ValueError(f"{name}: axis {found} is out of range for a tensor of {rank} axes")
    return found % rank if rank else 0


def all_axes(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Return axes (all when None or an empty list), counted from the front, ascending; each may be named once."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, Tensor):
        axis = axis.tolist()
    if not isinstance(axis, (list, tuple)):
        return (one_axis(axis, rank, name),) if rank or axis not in (0, -1) else ()
    if not axis:
        return tuple(range(rank))
    found = [one_axis(a, rank, name) for a in axis]
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: the axes {list(axis)} name one axis twice")
    return tuple(sorted(found))


def integers(values: Any, name: str) -> list[Any]:
    """Return ints and Scalars given as one number, a list or tuple (of numbers and 0-D tensors), or a 1-D tensor."""
    if isinstance(values, Tensor):
        values = unstacked(values)
    if not isinstance(values, (list, tuple)):
        values = [values]
    return [whole(v, name) for v in values]


def unstacked(x: Tensor) -> list[Any]:
    """Return the elements of a 1-D tensor (or the one of a 0-D tensor) as numbers."""
    if x.ndim == 0:
        return [x.item()]
    return [x[i].item() for i in range(len(x))] if current().trace is not None else x.numpy().reshape(-1).tolist()


def whole(value: Any, name: str) -> Any:
    """Return an int or a Scalar from an int, a Scalar, a NumPy integer or an integer tensor of one element."""
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, Scalar):
        return value
    try:
        return int(value.__index__())
    except AttributeError:
        raise TypeError(f"{name}: an int is needed, not {type(value).__name__} {_shown(value)}") from None


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """Return the shape to which shapes broadcast; ValueError, naming them, when they do not."""
    try:
        return list(np.broadcast_shapes(*(tuple(s) for s in shapes)))
    except ValueError:
        listed = " and ".join(str(list(s)) for s in shapes)
        raise ValueError(f"shapes {listed} cannot be broadcast together") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
