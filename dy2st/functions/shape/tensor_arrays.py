"""Python lists: the elements of a tensor, and what Paddle calls tensor arrays, which are lists of tensors here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.operands import tensor, whole
from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor


def tolist(x: Any) -> Any:
    """Return the elements as nested Python lists; of a 0-D tensor the number.

    >>> import dy2st as paddle
    >>> paddle.tolist(paddle.to_tensor([[1, 2]]))
    [[1, 2]]
    """
    return tensor(x, "tolist").tolist()


def create_array(dtype: Any, initialized_list: Any = None) -> list[Tensor]:
    """Return a list for tensors of this dtype, with these tensors in it at first.

    >>> import dy2st as paddle
    >>> paddle.tensor.create_array("float32")
    []
    """
    wanted = as_dtype(dtype)
    items = [] if initialized_list is None else initialized_list
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"create_array: initialized_list must be a list or tuple, not {type(items).__name__}")
    for item in items:
        if not isinstance(item, Tensor):
            raise TypeError(f"create_array: a tensor array holds Tensors, not {type(item).__name__}")
        if item.dtype is not wanted:
            raise TypeError(f"create_array: an array of {wanted.name} cannot hold a tensor of {item.dtype.name}")
    return list(items)


def array_write(x: Tensor, i: Any, array: list[Tensor] | None = None) -> list[Tensor]:
    """Put x at place i of an array (a new one when None), which may be one behind its last; return the array.

    Raises IndexError for a place further behind.

    >>> import dy2st as paddle
    >>> len(paddle.tensor.array_write(paddle.ones([2]), 0))
    1
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"array_write: a tensor array holds Tensors, not {type(x).__name__}")
    return _in_trace(_write)(x, whole(i, "array_write"), [] if array is None else array)


def array_read(array: list[Tensor], i: Any) -> Tensor:
    """Return the tensor at place i of an array."""
    return _in_trace(_read)(array, whole(i, "array_read"))


def array_length(array: list[Tensor]) -> Any:
    """Return how many tensors an array holds."""
    return _in_trace(_length)(array)


def array_pop(array: list[Tensor], i: Any = -1) -> Tensor:
    """Take the tensor at place i out of an array and return it."""
    return _in_trace(_pop)(array, whole(i, "array_pop"))


def _write(x: Any, i: Any, array: Any) -> Any:
    if i < 0 or i > len(array):
        raise IndexError(f"array_write: place {i} is neither in the array nor next to its last")
    if i == len(array):
        array.append(x)
    else:
        array[i] = x
    return array


def _read(array: Any, i: Any) -> Any:
    return array[i]


def _length(array: Any) -> Any:
    return len(array)


def _pop(array: Any, i: Any) -> Any:
    return array.pop(i)


for _function in (array_write, array_read, array_length, array_pop, _write, _read, _length, _pop):
    _function.__dy2st_convert__ = True  # type: ignore[attr-defined]


def _in_trace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, converted where a Program is being built: places and lengths may be symbolic there.

    The public functions are converted too, where converted code calls them, so that they get the list itself.
    """
    trace = current().trace
    return function if trace is None else trace.convert(function)
