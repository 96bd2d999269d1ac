"""Products of matrices and vectors, norms, and what is made of them."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.operands import all_axes, cast_to, floating, one_axis, op, pair, tensor, together
from dy2st.functions.math import arithmetic, math, reduction
from dy2st.functions.shape import broadcasting, concat_split, diagonals, manipulation
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_WHERE, _ZEROS = op("where"), op("zeros_like")
_MATMUL, _EXPAND, _SQUEEZE, _SUM, _MUL = op("matmul"), op("expand_dims"), op("squeeze"), op("sum"), op("mul")
_TRANSPOSE = op("transpose")
_MATRIX_AND_VECTOR = 3
"""The ranks of the two, added up."""


def matmul(
    x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None,
    *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the product of matrices, over broadcast batches of them; a vector is a row on the left, a column right.

    Raises ValueError, naming the shapes, where the inner extents differ.

    >>> import dy2st as paddle
    >>> paddle.matmul(paddle.to_tensor([[1.0, 2.0]]), paddle.to_tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    if not (isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype is y.dtype):
        x, y = pair(x, y, "matmul")
    left, right = x.ndim, y.ndim
    if left < 2 or right < 2:
        return _into(out, _with_vector(x, y, transpose_x, transpose_y))
    if left != right or left > 2:
        x, y = one_batch(x, y)
    return _into(out, apply(_MATMUL, x, y, transpose_x=bool(transpose_x), transpose_y=bool(transpose_y)))


def _with_vector(x: Tensor, y: Tensor, transpose_x: bool, transpose_y: bool) -> Tensor:
    left, right = x.ndim, y.ndim
    if left == 0 or right == 0:
        raise ValueError(f"matmul needs operands of rank 1 or more, not {x.shape} and {y.shape}")
    if left + right <= _MATRIX_AND_VECTOR and _is_unrecorded(x, y):
        made = _of_arrays(x, y, transpose_x, transpose_y)
        if made is not None:
            return made
    inner_x = x.shape[-2] if transpose_x and left > 1 else x.shape[-1]
    inner_y = y.shape[-1] if (transpose_y and right > 1) or right == 1 else y.shape[-2]
    if isinstance(inner_x, int) and isinstance(inner_y, int) and inner_x != inner_y:
        raise ValueError(f"matmul: the inner extents differ: {x.shape} and {y.shape} ({inner_x} against {inner_y})")
    if left == 1:
        x, transpose_x = apply(_EXPAND, x, axes=(0,)), False
    if right == 1:
        y, transpose_y = apply(_EXPAND, y, axes=(1,)), False
    result = matmul(x, y, transpose_x, transpose_y)
    axes = ((result.ndim - 2,) if left == 1 else ()) + ((result.ndim - 1,) if right == 1 else ())
    return apply(_SQUEEZE, result, axes=axes)


def _is_unrecorded(x: Tensor, y: Tensor) -> bool:
    """Return whether a product is of NumPy's arrays, at once, and nobody will ask how it came to be."""
    context = current()
    if context.trace is not None or context.amp is not None:
        return False
    if context.grad and not (x.stop_gradient and y.stop_gradient):
        return False
    return x.payload.__class__ is ndarray and y.payload.__class__ is ndarray


def _of_arrays(x: Tensor, y: Tensor, transpose_x: bool, transpose_y: bool) -> Tensor | None:
    """Return a product with a vector without views on a tape; None where the extents do not fit."""
    a, b = x.payload, y.payload
    shape: tuple[int, ...] = ()
    if b.ndim == 1:
        y, transpose_y = Tensor(b.reshape(-1, 1)), False
    else:
        shape = (b.shape[0 if transpose_y else 1],)
    if a.ndim == 1:
        x, transpose_x = Tensor(a.reshape(1, -1)), False
    else:
        shape = (a.shape[1 if transpose_x else 0],)
    if x.payload.shape[0 if transpose_x else 1] != y.payload.shape[1 if transpose_y else 0]:
        return None
    made = apply(_MATMUL, x, y, transpose_x=bool(transpose_x), transpose_y=bool(transpose_y))
    return Tensor(made.payload.reshape(shape))


def one_batch(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcast batch extents: eagerly the op does it where ranks agree, and gradients need the explicit form."""
    a, b = x.shape, y.shape
    if same_extents(a[:-2], b[:-2]):
        return x, y
    try:
        batch = broadcasting.common_shape([a[:-2], b[:-2]])
    except ValueError:
        raise ValueError(f"matmul: the batch extents cannot be broadcast: {a} and {b}") from None
    return broadcasting.expand(x, [*batch, *a[-2:]]), broadcasting.expand(y, [*batch, *b[-2:]])


def same_extents(a: list[Any], b: list[Any]) -> bool:
    """Return whether two shapes are known to be the same."""
    return len(a) == len(b) and all(type(p) is type(q) is int and p == q for p, q in zip(a, b, strict=True))


def mm(input: Any, mat2: Any, name: str | None = None) -> Tensor:
    """Return the product of two matrices."""
    return matmul(input, mat2)


def bmm(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the products of two batches of matrices, of rank 3."""
    x, y = tensor(x, "bmm"), tensor(y, "bmm")
    if x.ndim != 3 or y.ndim != 3:
        raise ValueError(f"bmm needs tensors of rank 3, not {x.shape} and {y.shape}")
    return matmul(x, y)


def mv(x: Any, vec: Any, name: str | None = None) -> Tensor:
    """Return the product of a matrix and a vector."""
    return matmul(x, vec)


def dot(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the sum of products over the last axis of vectors, or of batches of them."""
    x, y = pair(x, y, "dot")
    if x.ndim not in (1, 2) or x.ndim != y.ndim:
        raise ValueError(f"dot needs two vectors, or two batches of vectors, not {x.shape} and {y.shape}")
    return apply(_SUM, apply(_MUL, x, y), axis=(x.ndim - 1,), keepdim=False)


def vecdot(x: Any, y: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the sum of products over an axis, broadcast; complex numbers of x are conjugated."""
    x, y = pair(x, y, "vecdot")
    return reduction.sum(apply(_MUL, apply(op("conj"), x) if x.dtype.is_complex else x, y), axis)


def inner(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the sums of products over the last axes of x and y."""
    x, y = pair(x, y, "inner")
    if x.ndim == 0 or y.ndim == 0:
        return apply(_MUL, x, y)
    a, b = x.shape, y.shape
    flat = matmul(manipulation.reshape(x, [-1, a[-1]]), manipulation.reshape(y, [-1, b[-1]]), transpose_y=True)
    return manipulation.reshape(flat, [*a[:-1], *b[:-1]])


def outer(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the matrix of all products of an element of x and one of y."""
    x, y = pair(x, y, "outer")
    return apply(_MUL, manipulation.reshape(x, [-1, 1]), manipulation.reshape(y, [1, -1]))


ger = outer


def addmm(input: Any, x: Any, y: Any, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Tensor:
    """Return beta * input + alpha * (x @ y)."""
    return arithmetic.add(arithmetic.multiply(input, beta), arithmetic.multiply(matmul(x, y), alpha))


baddbmm = addmm


def tensordot(x: Any, y: Any, axes: Any = 2, name: str | None = None) -> Tensor:
    """Return the sums of products over some axes of x and y: the last and first `axes`, or two lists of axes."""
    x, y = pair(x, y, "tensordot")
    if isinstance(axes, Tensor):
        axes = axes.tolist()
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        both = list(axes)
        if not both or not isinstance(both[0], (list, tuple)):
            both = [both, both]
        left, right = list(both[0]), list(both[1] if len(both) > 1 else both[0])
    left = [one_axis(a, x.ndim, "tensordot") for a in left]
    right = [one_axis(a, y.ndim, "tensordot") for a in right]
    if len(left) != len(right):
        raise ValueError(f"tensordot: {len(left)} axes of x against {len(right)} of y")
    free_x = [i for i in range(x.ndim) if i not in left]
    free_y = [i for i in range(y.ndim) if i not in right]
    inner_extent, outer_x, outer_y = (_product(t, axes) for t, axes in ((x, left), (x, free_x), (y, free_y)))
    rows = manipulation.reshape(manipulation.transpose(x, [*free_x, *left]), [outer_x, inner_extent])
    columns = manipulation.reshape(manipulation.transpose(y, [*right, *free_y]), [inner_extent, outer_y])
    return manipulation.reshape(matmul(rows, columns), [x.shape[i] for i in free_x] + [y.shape[i] for i in free_y])


def _product(x: Tensor, axes: list[int]) -> Any:
    """Return how many elements the axes have together."""
    count: Any = 1
    for axis in axes:
        count = count * x.shape[axis]
    return count


def norm(
    x: Any, p: Any = None, axis: Any = None, keepdim: bool = False, dtype: Any = None, name: str | None = None,
    *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the p-norm over axes (all when None): p may be a number, infinity, or "fro".

    Over two axes, 1, -1, 2, -2, infinity and "nuc" are norms of matrices.

    >>> import dy2st as paddle
    >>> paddle.norm(paddle.to_tensor([3.0, 4.0])).item()
    5.0
    """
    x = floating(x, "norm")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    if axis is not None and isinstance(axis, (list, tuple)) and len(axis) == 2 and p not in (None, "fro"):
        return _into(out, matrix_norm(x, p, axis, keepdim))
    return _into(out, vector_norm(x, 2.0 if p in (None, "fro") else p, axis, keepdim))


def vector_norm(
    x: Any, p: float = 2.0, axis: Any = None, keepdim: bool = False, name: str | None = None, *, dtype: Any = None
) -> Tensor:
    """Return (sum |x| ** p) ** (1 / p) over axes (all when None); the extreme |x| for infinite p, the count for 0.

    The gradient at the origin, which is a corner for p = 2, is 0.
    """
    x = floating(x, "vector_norm")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    x = math.abs(x) if x.dtype.is_complex else x
    axes = all_axes(axis, x.ndim, "vector_norm")
    keep = {"axis": axes, "keepdim": bool(keepdim)}
    if isinstance(p, str):
        raise ValueError(f"vector_norm: p is {p!r}, not a number")
    if p == 2:
        total = apply(_SUM, math.square(x), **keep)
        return apply(_WHERE, total == 0, apply(_ZEROS, total), math.sqrt(total))
    size = math.abs(x)
    if p == float("inf"):
        return apply(op("max"), size, **keep)
    if p == -float("inf"):
        return apply(op("min"), size, **keep)
    if p == 0:
        return apply(_SUM, cast_to(size != 0, size.dtype), **keep)
    if p == 1:
        return apply(_SUM, size, **keep)
    return arithmetic.power(apply(_SUM, arithmetic.power(size, p), **keep), 1.0 / p)


def matrix_norm(x: Any, p: Any = "fro", axis: Any = (-2, -1), keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return a norm of the matrices over two axes: "fro", of sums 1, -1, inf, -inf, of singular values 2, -2, "nuc".

    >>> import dy2st as paddle
    >>> paddle.linalg.matrix_norm(paddle.eye(3), "nuc").item()
    3.0
    """
    x = floating(x, "matrix_norm")
    if p == "fro":
        return vector_norm(x, 2.0, axis, keepdim)
    rows, columns = (one_axis(a, x.ndim, "matrix_norm") for a in axis)
    if p in ("nuc", 2, -2):
        return _spectral_norm(x, p, (rows, columns), keepdim)
    if p not in (1, -1, float("inf"), -float("inf")):
        raise ValueError(f"matrix_norm: p is {p!r}, not 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    summed, over = (rows, columns) if p in (1, -1) else (columns, rows)
    sums = apply(_SUM, math.abs(x), axis=(summed,), keepdim=True)
    best = apply(op("max") if p > 0 else op("min"), sums, axis=(over,), keepdim=True)
    return best if keepdim else apply(_SQUEEZE, best, axes=tuple(sorted((rows, columns))))


def _spectral_norm(x: Tensor, p: Any, axes: tuple[int, int], keepdim: bool) -> Tensor:
    rest = [i for i in range(x.ndim) if i not in axes]
    values = apply(op("svd"), manipulation.transpose(x, [*rest, *axes]))[1]
    found = reduction.sum(values, -1) if p == "nuc" else values[..., 0 if p == 2 else -1]
    for axis in sorted(axes) if keepdim else ():
        found = apply(_EXPAND, found, axes=(axis,))
    return found


def dist(x: Any, y: Any, p: float = 2, name: str | None = None) -> Tensor:
    """Return the p-norm of x - y."""
    return vector_norm(arithmetic.subtract(x, y), p)


def multi_dot(x: list[Tensor], name: str | None = None) -> Tensor:
    """Return the product of matrices, from the left."""
    operands = together(x, "multi_dot")
    result = operands[0]
    for t in operands[1:]:
        result = matmul(result, t)
    return result


def matrix_power(x: Any, n: int, name: str | None = None) -> Tensor:
    """Return the product of n copies of square matrices (of -n copies of their inverses), by repeated squaring."""
    x = floating(x, "matrix_power")
    if n < 0:
        x, n = apply(op("inverse"), x), -n
    result: Tensor | None = None
    factor = x
    while n:
        if n % 2:
            result = factor if result is None else matmul(result, factor)
        n //= 2
        factor = matmul(factor, factor) if n else factor
    if result is not None:
        return result
    identity = apply(op("eye"), x.shape[-1], x.shape[-1], dtype=x.dtype)
    return broadcasting.expand(identity, x.shape)


def t(input: Tensor, name: str | None = None) -> Tensor:
    """Return the transpose of a matrix; a vector or 0-D tensor as it is."""
    if input.ndim > 2:
        raise ValueError(f"t() needs a tensor of rank 2 or less, not {input.shape}")
    return input if input.ndim < 2 else apply(_TRANSPOSE, input, perm=(1, 0))


def matrix_transpose(x: Tensor, name: str | None = None) -> Tensor:
    """Return the tensor with its last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs a tensor of rank 2 or more, not {x.shape}")
    rank = x.ndim
    return apply(_TRANSPOSE, x, perm=(*range(rank - 2), rank - 1, rank - 2))


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Tensor:
    """Return the sum of a diagonal of the planes of two axes."""
    return reduction.sum(diagonals.diagonal(x, offset, axis1, axis2), -1)


def cross(x: Any, y: Any, axis: int = 9, name: str | None = None) -> Tensor:
    """Return the cross product over an axis of extent 3 (the first such axis when none is given)."""
    x, y = pair(x, y, "cross")
    return _cross_over_first(x, y) if axis == 9 else _cross(x, y, one_axis(axis, x.ndim, "cross"))


def _cross_over_first(x: Tensor, y: Tensor, start: int = 0) -> Tensor:
    """Return the cross product over the first axis of extent 3 from `start` on; the run may tell which that is."""
    found = [i for i, e in enumerate(x.shape) if i >= start and (not isinstance(e, int) or e == 3)]
    if not found:
        raise ValueError(f"cross needs an axis of extent 3, not {x.shape}")
    first, trace = found[0], current().trace
    extent = x.shape[first]
    if isinstance(extent, int) or len(found) == 1:  # the one known only at run time must be the one
        return _cross(x, y, first)
    if trace is None or not trace.of_function:
        raise ValueError(f"cross: only the run tells which axis of {x.shape} has extent 3; name it by axis=")
    return trace.if_exp(extent == 3, lambda: _cross(x, y, first), lambda: _cross_over_first(x, y, first + 1))


def _cross(x: Tensor, y: Tensor, axis: int) -> Tensor:
    a, b = (concat_split.unbind(_of_three(t, axis), axis) for t in (x, y))
    if len(a) != 3 or len(b) != 3:
        raise ValueError(f"cross needs an axis of extent 3, not {x.shape} and {y.shape}")
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return apply(op("stack"), *parts, axis=axis)


def _of_three(x: Tensor, axis: int) -> Tensor:
    """Return a tensor whose axis is known to have extent 3 where it is known only at run time; it raises where it has
    not.
    """
    if isinstance(x.shape[axis], int):
        return x
    return manipulation.reshape(x, [3 if i == axis else e for i, e in enumerate(x.shape)])


def kron(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the Kronecker product: blocks of y times each element of x."""
    x, y = pair(x, y, "kron")
    rank = max(x.ndim, y.ndim)
    a, b = [1] * (rank - x.ndim) + x.shape, [1] * (rank - y.ndim) + y.shape
    wide = manipulation.reshape(x, [e for extent in a for e in (extent, 1)])
    tiles = manipulation.reshape(y, [e for extent in b for e in (1, extent)])
    return manipulation.reshape(apply(_MUL, wide, tiles), [p * q for p, q in zip(a, b, strict=True)])
