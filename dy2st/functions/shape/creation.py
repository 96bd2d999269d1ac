"""Making tensors of a shape: filled, counted, and what tells a shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.operands import (
    cast_to,
    constant,
    default_dtype,
    dtype_of_kind,
    kind_of,
    number,
    op,
    tensor,
    whole,
)
from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.context import current
from dy2st.runtime.eager import device
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar, is_number, split_shape

_FULL, _ZEROS_LIKE, _ONES_LIKE = op("full"), op("zeros_like"), op("ones_like")
_ARANGE, _LINSPACE, _EYE = op("arange"), op("linspace"), op("eye")


def full(shape: Any, fill_value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor of a shape with one value everywhere, in the default dtype unless it is a bool or complex.

    >>> import dy2st as paddle
    >>> paddle.full([2], 7).tolist(), paddle.full([2], 7, "int64").tolist()
    ([7.0, 7.0], [7, 7])
    """
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    if isinstance(fill_value, str):
        fill_value = float(fill_value)
    if dtype is not None:
        wanted = as_dtype(dtype)
    else:
        known = isinstance(fill_value, (Tensor, np.ndarray))
        given = as_dtype(fill_value.dtype) if known else dtype_of_kind(kind_of(fill_value))
        wanted = default_dtype() if given.is_integer else given
    return _filled(shape, fill_value, wanted)


def _filled(shape: Any, value: Any, dtype: DType) -> Tensor:
    template, dims = split_shape(shape)
    if any(e is not None and e < 0 for e in template):
        raise ValueError(f"the extents of a new tensor must not be negative: {list(template)}")
    if isinstance(value, (int, float)) and current().trace is None:
        if dtype.is_integer and isinstance(value, float):
            value = int(value)
        return Tensor(device.namespace().full(template, value, dtype.numpy)) if not dims else _refuse_symbolic(dims)
    one = tensor(value, "full", dtype)
    if one.ndim:
        if one.size != 1:
            raise ValueError(f"full() needs one value, not a tensor of shape {one.shape}")
        one = apply(op("reshape"), one, shape=())
    return apply(_FULL, one, *dims, shape=template)


def _refuse_symbolic(dims: list[Scalar]) -> Tensor:
    raise TypeError(f"a symbolic extent was used outside of the Program it belongs to: {dims[0]!r}")


def fill_constant(
    shape: Any, dtype: Any, value: Any, force_cpu: bool = False, place: Any = None, name: str | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of a shape and dtype with one value everywhere, on `place` where one is given.

    >>> import dy2st as paddle
    >>> paddle.tensor.fill_constant([2], "int32", 3).tolist()
    [3, 3]
    """
    made = full(shape, value, dtype)
    where = "cpu" if force_cpu else place
    return _into(out, made if where is None else to_tensor(made, place=where))


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return zeros, in the default float where no dtype is given.

    >>> import dy2st as paddle
    >>> paddle.zeros([2]).tolist()
    [0.0, 0.0]
    """
    return _filled(shape, 0, default_dtype() if dtype is None else as_dtype(dtype))


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return ones, in the default float where no dtype is given.

    >>> import dy2st as paddle
    >>> paddle.ones([2]).tolist()
    [1.0, 1.0]
    """
    return _filled(shape, 1, default_dtype() if dtype is None else as_dtype(dtype))


def empty(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor whose elements are yet to be written; here they are zeros."""
    return zeros(shape, dtype)


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return zeros of the shape, and dtype unless one is given, of x."""
    return _like(_ZEROS_LIKE, x, dtype, "zeros_like")


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return ones of the shape, and dtype unless one is given, of x.

    >>> import dy2st as paddle
    >>> paddle.ones_like(paddle.zeros([2])).tolist()
    [1.0, 1.0]
    """
    return _like(_ONES_LIKE, x, dtype, "ones_like")


def empty_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of x whose elements are yet to be written; here they are zeros."""
    return zeros_like(x, dtype)


def _like(made: Any, x: Any, dtype: Any, name: str) -> Tensor:
    x = tensor(x, name)
    result = apply(made, x)
    return result if dtype is None else cast_to(result, as_dtype(dtype))


def full_like(x: Any, fill_value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor of the shape, and dtype unless one is given, of x with one value everywhere."""
    x = tensor(x, "full_like")
    return _filled(x.shape, fill_value, x.dtype if dtype is None else as_dtype(dtype))


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return start, start + step, ... before end; in int64 where all are ints, else in the default float.

    >>> import dy2st as paddle
    >>> paddle.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    if end is None:
        start, end = 0, start
    bounds = [_number_of(b) for b in (start, end, step)]
    if dtype is not None:
        wanted = as_dtype(dtype)
    else:
        given = [b.dtype for b in (start, end, step) if isinstance(b, Tensor)]
        kinds = {kind_of(b) for b in bounds}
        wanted = given[0] if given else (dtypes.int64 if kinds <= {"int", "bool"} else default_dtype())
    return apply(_ARANGE, *bounds, dtype=wanted)


def _number_of(x: Any) -> Any:
    if isinstance(x, (Tensor, np.generic)):
        return x.item()
    if not is_number(x):
        raise TypeError(f"a bound of a range is a number, not {type(x).__name__} {x!r:.40}")
    return x


def range(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return start, start + step, ... up to `end`, which is included, in the default float."""
    if end is None:
        start, end = 0, start
    start, end, step = float(_number_of(start)), float(_number_of(end)), float(_number_of(step))
    return arange(start, end + step / 2, step, default_dtype() if dtype is None else dtype)


def linspace(start: Any, stop: Any, num: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return `num` numbers from start to stop, both included, with equal steps.

    >>> import dy2st as paddle
    >>> paddle.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    return apply(_LINSPACE, _number_of(start), _number_of(stop), whole(num, "linspace"), dtype=wanted)


def logspace(start: Any, stop: Any, num: Any, base: float = 10.0, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return base ** e for `num` exponents e from start to stop, with equal steps."""
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    exponents = linspace(start, stop, num, dtypes.float64)
    return cast_to(apply(op("exp"), exponents * math.log(base)), wanted)


def eye(num_rows: Any, num_columns: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return a matrix with 1 on its diagonal, 0 elsewhere."""
    rows = whole(num_rows, "eye")
    columns = rows if num_columns is None else whole(num_columns, "eye")
    return apply(_EYE, rows, columns, dtype=default_dtype() if dtype is None else as_dtype(dtype))


def tril_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = "int64") -> Tensor:
    """Return the places of the lower triangle of a matrix: a row of row numbers, a row of column numbers."""
    found = np.stack(np.tril_indices(row, offset, row if col is None else col))
    return constant(found.astype(as_dtype(dtype).numpy))


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = "int64") -> Tensor:
    """Return the places of the upper triangle of a matrix: a row of row numbers, a row of column numbers."""
    found = np.stack(np.triu_indices(row, offset, row if col is None else col))
    return constant(found.astype(as_dtype(dtype).numpy))


def shape(input: Tensor) -> Tensor:
    """Return the extents of a tensor as an int64 tensor.

    >>> import dy2st as paddle
    >>> paddle.shape(paddle.zeros([2, 3])).tolist()
    [2, 3]
    """
    extents = input.shape
    if not any(isinstance(e, Scalar) for e in extents):
        return constant(np.asarray(extents, np.int64))
    return apply(op("stack"), *(number(e, dtypes.int64) for e in extents), axis=0)


def numel(x: Tensor, name: str | None = None) -> Tensor:
    """Return the number of elements as a 0-D int64 tensor."""
    return number(x.size, dtypes.int64)


def rank(input: Tensor) -> Tensor:
    """Return the number of axes as a 0-D int32 tensor."""
    return number(input.ndim, dtypes.int32)
