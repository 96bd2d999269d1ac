"""Functions of sparse tensors: of their values, of two of them, products."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dy2st.functions.core.operands import tensor
from dy2st.functions.linalg import linalg
from dy2st.functions.math import arithmetic, comparison, math, reduction
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.concat_split import slice as dense_slice
from dy2st.functions.shape.creation import zeros
from dy2st.functions.shape.gather_scatter import gather_nd, index_add
from dy2st.functions.shape.manipulation import cast, reshape
from dy2st.functions.shape.manipulation import transpose as dense_transpose
from dy2st.runtime.eager.tensor import Tensor
from dy2st.sparse.tensors import SparseCooTensor, SparseCsrTensor, _flat, _Sparse, _unflat, to_sparse_coo


def of_values(function: Callable[..., Tensor], name: str) -> Callable[..., Any]:
    """Return what applies a function, which gives 0 for 0, to the values of a sparse tensor."""

    def applied(x: Any, *args: Any, **keywords: Any) -> Any:
        return sparse(x, name).with_values(function(x.values(), *args, **keywords))

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"Return a sparse tensor with `{name}` of the values."
    return applied


def sparse(x: Any, name: str) -> Any:
    """Return x; TypeError, naming the function, where it is not sparse."""
    if not isinstance(x, _Sparse):
        raise TypeError(f"sparse.{name} needs a sparse tensor, not {type(x).__name__}")
    return x


abs, asin, asinh, atan = (of_values(getattr(math, n), n) for n in ("abs", "asin", "asinh", "atan"))
atanh, deg2rad, expm1, log1p = (of_values(getattr(math, n), n) for n in ("atanh", "deg2rad", "expm1", "log1p"))
rad2deg, sin, sinh, sqrt = (of_values(getattr(math, n), n) for n in ("rad2deg", "sin", "sinh", "sqrt"))
square, tan, tanh = (of_values(getattr(math, n), n) for n in ("square", "tan", "tanh"))
neg, pow, isnan = (
    of_values(arithmetic.neg, "neg"),
    of_values(arithmetic.pow, "pow"),
    of_values(comparison.isnan, "isnan"),
)


def cast_(x: Any, index_dtype: Any = None, value_dtype: Any = None) -> Any:
    """Return a sparse tensor with places and values in other dtypes."""
    x = sparse(x, "cast")
    made = x if value_dtype is None else x.astype(value_dtype)
    if index_dtype is None:
        return made
    if isinstance(made, SparseCooTensor):
        return SparseCooTensor(cast(made._indices, index_dtype), made._values, made.shape, made._coalesced)
    return SparseCsrTensor(cast(made._crows, index_dtype), cast(made._cols, index_dtype), made._values, made.shape)


def coalesce(x: SparseCooTensor, name: str | None = None) -> SparseCooTensor:
    """Return the sums of values at the same place, in the order of places."""
    return x.coalesce()


def is_same_shape(x: Any, y: Any) -> bool:
    """Return whether two tensors have the same shape."""
    return list(x.shape) == list(y.shape)


def add(x: Any, y: Any, name: str | None = None) -> Any:
    """Return the sum of two sparse tensors, or of a sparse and a dense one, which is dense.

    >>> import dy2st as paddle
    >>> x = paddle.sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [3])
    >>> paddle.sparse.add(x, x).to_dense().tolist()
    [2.0, 4.0, 0.0]
    """
    return _joined(x, y, 1.0, "add")


def subtract(x: Any, y: Any, name: str | None = None) -> Any:
    """Return the difference of two sparse tensors, or of a sparse and a dense one, which is dense."""
    return _joined(x, y, -1.0, "subtract")


def multiply(x: Any, y: Any, name: str | None = None) -> Any:
    """Return x times a number or a tensor, at the places of x."""
    return _at_places(x, y, operator.mul, "multiply")


def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """Return x divided by a number or a tensor, at the places of x."""
    return _at_places(x, y, operator.truediv, "divide")


def _joined(x: Any, y: Any, sign: float, name: str) -> Any:
    if not isinstance(x, _Sparse) or not isinstance(y, _Sparse):
        dense = [t.to_dense() if isinstance(t, _Sparse) else tensor(t, name) for t in (x, y)]
        return dense[0] + dense[1] if sign > 0 else dense[0] - dense[1]
    if not is_same_shape(x, y):
        raise ValueError(f"sparse.{name}: shapes {x.shape} and {y.shape} differ")
    a, b = x.to_sparse_coo(), y.to_sparse_coo()
    second = b._values if sign > 0 else -b._values
    both = SparseCooTensor(concat([a._indices, b._indices], 1), concat([a._values, second]), a.shape).coalesce()
    return both.to_sparse_csr() if isinstance(x, SparseCsrTensor) else both


def _at_places(x: Any, y: Any, op: Callable[[Any, Any], Tensor], name: str) -> Any:
    x = sparse(x, name)
    if isinstance(y, _Sparse) or (isinstance(y, Tensor) and y.ndim):
        dense = y.to_dense() if isinstance(y, _Sparse) else y
        if list(dense.shape) != list(x.shape):
            dense = dense.expand(x.shape)
        y = gather_nd(dense, dense_transpose(x.to_sparse_coo()._indices, [1, 0]))
    return x.with_values(op(x.values(), y))


def matmul(x: Any, y: Any, name: str | None = None) -> Any:
    """Return the product of a sparse matrix (or several) with a dense one, dense; or with a sparse one, sparse.

    >>> import dy2st as paddle
    >>> x = paddle.sparse.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], [2, 2])
    >>> paddle.sparse.matmul(x, paddle.to_tensor([[1.0], [10.0]])).tolist()
    [[20.0], [3.0]]
    """
    x = sparse(x, "matmul")
    if isinstance(y, _Sparse):
        made = to_sparse_coo(matmul(x, y.to_dense()))
        return made.to_sparse_csr() if isinstance(x, SparseCsrTensor) else made
    y, coo = tensor(y, "matmul"), x.to_sparse_coo()
    if y.ndim != x.ndim:
        raise ValueError(f"sparse.matmul: shapes {x.shape} and {y.shape} have different numbers of axes")
    front, at = list(x.shape[:-2]), coo._indices
    rows = _flat(at[:-1], x.shape[:-1])
    from_rows = at[-1] if not front else _flat(at[:-2], front) * x.shape[-1] + at[-1]
    width = y.shape[-1]
    parts = reshape(y, [-1, width])[from_rows] * coo._values.unsqueeze(1)
    count: Any = 1
    for extent in x.shape[:-1]:
        count = count * extent
    return reshape(index_add(zeros([count, width], parts.dtype), rows, 0, parts), [*x.shape[:-1], width])


def mv(x: Any, vec: Any, name: str | None = None) -> Tensor:
    """Return the product of a sparse matrix with a vector."""
    return matmul(x, tensor(vec, "mv").unsqueeze(1))[:, 0]


def addmm(input: Any, x: Any, y: Any, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Any:
    """Return beta * input + alpha * x @ y."""
    product = matmul(x, y)
    if isinstance(product, _Sparse):
        return add(multiply(input, beta), multiply(product, alpha))
    return beta * (input.to_dense() if isinstance(input, _Sparse) else input) + alpha * product


def masked_matmul(x: Any, y: Any, mask: Any, name: str | None = None) -> Any:
    """Return the product of dense matrices at the places of a sparse one."""
    x, y, mask = tensor(x, "masked_matmul"), tensor(y, "masked_matmul"), sparse(mask, "masked_matmul")
    return mask_as(linalg.matmul(x, y), mask)


def mask_as(x: Any, mask: Any, name: str | None = None) -> Any:
    """Return what a dense tensor has at the places of a sparse one."""
    at = sparse(mask, "mask_as").to_sparse_coo()._indices
    return mask.with_values(gather_nd(tensor(x, "mask_as"), dense_transpose(at, [1, 0])))


def transpose(x: Any, perm: Any, name: str | None = None) -> Any:
    """Return x with its axes in another order."""
    return sparse(x, "transpose").transpose(perm)


def reshape_(x: Any, shape: Any, name: str | None = None) -> Any:
    """Return the same values in another shape; x has no dense axes."""
    coo = sparse(x, "reshape").to_sparse_coo()
    shape = list(reshape(zeros(x.shape, "bool"), shape).shape)
    made = SparseCooTensor(_unflat(_flat(coo._indices, coo.shape), shape), coo._values, shape, coo._coalesced)
    return made.to_sparse_csr() if isinstance(x, SparseCsrTensor) else made


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
    """Return the sum over axes, or over all, as a sparse tensor."""
    total = reduction.sum(sparse(x, "sum").to_dense(), axis, dtype, keepdim)
    if not total.ndim:
        total = total.reshape([1])
    made = to_sparse_coo(total)
    return made.to_sparse_csr() if isinstance(x, SparseCsrTensor) and total.ndim in (2, 3) else made


def slice(x: Any, axes: Any, starts: Any, ends: Any, name: str | None = None) -> Any:
    """Return a part of x along axes."""
    made = to_sparse_coo(dense_slice(sparse(x, "slice").to_dense(), axes, starts, ends))
    return made.to_sparse_csr() if isinstance(x, SparseCsrTensor) else made


for _operator, _function in (
    ("add", add),
    ("sub", subtract),
    ("mul", multiply),
    ("truediv", divide),
    ("matmul", matmul),
):
    setattr(_Sparse, f"__{_operator}__", lambda self, other, _function=_function: _function(self, other))
_Sparse.__rmul__ = lambda self, other: multiply(self, other)  # type: ignore[attr-defined]
for _name in ("abs", "sin", "tanh", "sqrt", "square", "pow", "matmul", "add", "subtract", "multiply", "divide"):
    setattr(_Sparse, _name, globals()[_name])
