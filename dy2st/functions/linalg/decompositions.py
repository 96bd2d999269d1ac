"""LU factors, products of Householder's reflections, exponentials of matrices, and factors of low rank."""

from __future__ import annotations

from typing import Any, NamedTuple

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, op, tensor
from dy2st.functions.linalg.linalg import matmul, matrix_transpose, same_extents
from dy2st.functions.linalg.matrix_functions import qr, svd, triangular_solve
from dy2st.functions.math import reduction
from dy2st.functions.math.random import standard_normal
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import arange, eye, zeros
from dy2st.functions.shape.diagonals import tril, triu
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


class LUFactors(NamedTuple):
    """What `lu` returns without `get_infos`."""

    LU: Tensor
    pivots: Tensor


def lu(x: Any, pivot: bool = True, get_infos: bool = False, name: str | None = None) -> Any:
    """Return the triangular factors of matrices with exchanged rows, in one matrix, and the exchanges, from 1 on.

    With `get_infos` also, for each matrix, the first k whose pivot is 0 (counted from 1), else 0. Factors of matrices
    of full rank have a derivative. Only `pivot=True` is known.

    >>> import dy2st as paddle
    >>> packed, pivots = paddle.linalg.lu(paddle.to_tensor([[0.0, 2.0], [4.0, 4.0]]))
    >>> packed.tolist(), pivots.tolist()
    ([[4.0, 4.0], [0.0, 2.0]], [2, 2])
    """
    if not pivot:
        raise ValueError("lu: pivot=False is not supported: rows are exchanged")
    x = floating(x, "lu")
    if x.ndim < 2:
        raise ValueError(f"lu needs matrices, not a tensor of shape {x.shape}")
    packed, pivots = _differentiable_lu(x) if current().grad and not x.stop_gradient else apply(op("lu"), x)
    if not get_infos:
        return LUFactors(packed, pivots)
    zero = cast_to(packed.diagonal(axis1=-2, axis2=-1) == 0, dtypes.int32)
    first = cast_to(reduction.argmax(zero, -1), dtypes.int32) + 1
    return packed, pivots, first * reduction.max(zero, -1)


def _differentiable_lu(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors of matrices; those with more rows than columns are made square, for the derivative.

    The columns that are added are those of the identity, exchanged so that they end as such: they exchange nothing.
    """
    rows, columns = x.shape[-2:]
    if not same_extents([rows], [columns]):
        rows, columns = int(rows), int(columns)
    if rows <= columns:
        return apply(op("lu"), x)
    pivots = apply(op("lu"), x.detach())[1]
    last = _permutation(pivots, rows)[..., columns:]
    added = cast_to(arange(rows).unsqueeze(-1) == last.unsqueeze(-2), x.dtype)
    return apply(op("lu"), concat([x, added], -1))[0][..., :columns], pivots


def lu_unpack(
    x: Any, y: Any, unpack_ludata: bool = True, unpack_pivots: bool = True, name: str | None = None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return P, L and U of what `lu` gave, with P L U the matrix; None in the place of what is not asked for."""
    x, y = floating(x, "lu_unpack"), tensor(y, "lu_unpack")
    rows, columns = x.shape[-2:]
    least = min(rows, columns)
    lower = upper = exchanged = None
    if unpack_ludata:
        lower, upper = _lower(x[..., :least]), triu(x[..., :least, :])
    if unpack_pivots:
        places = _permutation(y, rows)
        exchanged = cast_to(arange(rows).unsqueeze(-1) == places.unsqueeze(-2), x.dtype)
    return exchanged, lower, upper


def lu_solve(b: Any, lu: Any, pivots: Any, trans: str = "N", name: str | None = None) -> Tensor:
    """Return X with A X = b from what `lu` gave of A; of its transpose for `trans` "T" or "C"."""
    if trans not in ("N", "T", "C"):
        raise ValueError(f"lu_solve: trans is {trans!r}, not 'N', 'T' or 'C'")
    b, packed = floating(b, "lu_solve"), floating(lu, "lu_solve")
    places = _permutation(tensor(pivots, "lu_solve"), packed.shape[-1])
    if trans == "N":
        ordered = take_along_axis(b, places.unsqueeze(-1), -2)
        halfway = triangular_solve(packed, ordered, upper=False, unitriangular=True)
        return triangular_solve(packed, halfway)
    halfway = triangular_solve(packed, b, transpose=True)
    found = triangular_solve(packed, halfway, upper=False, transpose=True, unitriangular=True)
    return take_along_axis(found, places.argsort(-1).unsqueeze(-1), -2)


def _lower(packed: Tensor) -> Tensor:
    return tril(packed, -1) + eye(packed.shape[-2], packed.shape[-1], packed.dtype)


def _permutation(pivots: Tensor, rows: int) -> Tensor:
    """Return the row that each row came from, when exchanges are done one after the other."""
    places = arange(rows) + zeros([*pivots.shape[:-1], 1], "int64")
    for k in range(pivots.shape[-1]):
        other = cast_to(pivots[..., k : k + 1], dtypes.int64) - 1
        mine, theirs = places[..., k : k + 1], take_along_axis(places, other, -1)
        at = arange(rows)
        kept = (at != k) & (at != other)
        places = (
            cast_to(kept, dtypes.int64) * places
            + cast_to(at == k, dtypes.int64) * theirs
            + cast_to((at == other) & (at != k), dtypes.int64) * mine
        )
    return places


def matrix_exp(x: Any, name: str | None = None) -> Tensor:
    """Return the exponentials of square matrices, the sum of x^k / k!.

    >>> import dy2st as paddle
    >>> paddle.linalg.matrix_exp(paddle.zeros([2, 2])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = floating(x, "matrix_exp")
    if x.ndim < 2 or (isinstance(x.shape[-1], int) and isinstance(x.shape[-2], int) and x.shape[-1] != x.shape[-2]):
        raise ValueError(f"matrix_exp needs square matrices, not {x.shape}")
    return apply(op("matrix_exp"), x)


def householder_product(x: Any, tau: Any, name: str | None = None) -> Tensor:
    """Return the first columns of the product of reflections I - tau v v^T; v is below the diagonal of x, after a 1."""
    x = floating(x, "householder_product")
    return _reflections(x, tensor(tau, "householder_product"))[..., : x.shape[-1]]


def ormqr(x: Any, tau: Any, y: Any, left: bool = True, transpose: bool = False, name: str | None = None) -> Tensor:
    """Return Q y (y Q without `left`), Q being what `householder_product` gives, or its transpose for `transpose`."""
    q = householder_product(x, tau)
    q = matrix_transpose(q) if transpose else q
    return matmul(q, tensor(y, "ormqr")) if left else matmul(y, q)


def _reflections(x: Tensor, tau: Tensor) -> Tensor:
    rows = x.shape[-2]
    product = eye(rows, dtype=x.dtype) + zeros([*x.shape[:-2], 1, 1], x.dtype)
    vectors = tril(x, -1) + eye(rows, x.shape[-1], x.dtype)
    for k in range(tau.shape[-1] - 1, -1, -1):
        v = vectors[..., k : k + 1]
        product = product - tau[..., k : k + 1].unsqueeze(-1) * matmul(v, matmul(v, product, transpose_x=True))
    return product


def svd_lowrank(x: Any, q: int | None = None, niter: int = 2, M: Any = None, name: str | None = None) -> Any:
    """Return U, S and V, the q largest singular values of x - M and their vectors, by random projection.

    N. Halko et al., "Finding structure with randomness" (2011), algorithms 4.4 and 5.1; `niter` subspace iterations.
    """
    x = floating(x, "svd_lowrank")
    x = x if M is None else x - M
    q = min(6, *x.shape[-2:]) if q is None else q
    if not 0 <= q <= min(x.shape[-2:]):
        raise ValueError(f"svd_lowrank: q must be from 0 to {min(x.shape[-2:])}, not {q}")
    start = standard_normal([*x.shape[:-2], x.shape[-1], q], x.dtype)
    basis = qr(matmul(x, start))[0]
    for _ in range(niter):
        basis = qr(matmul(x, qr(matmul(x, basis, transpose_x=True))[0]))[0]
    u, s, vh = svd(matmul(basis, x, transpose_x=True))
    return matmul(basis, u), s, matrix_transpose(vh)


def pca_lowrank(x: Any, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None) -> Any:
    """Return U, S and V of x less the mean of its rows (`center`): the q first principal components."""
    x = floating(x, "pca_lowrank")
    return svd_lowrank(x, q, niter, reduction.mean(x, -2, True) if center else None)
