"""The extension `linalg` of the array API standard."""

from __future__ import annotations

from typing import Any, NamedTuple

from dy2st import linalg
from dy2st.array_api.arranging import broadcast_arrays, diagonal_of
from dy2st.array_api.elementwise import vecdot
from dy2st.array_api.reducing import sum
from dy2st.functions.linalg import linalg as linear_algebra
from dy2st.functions.linalg.linalg import matmul, matrix_transpose, tensordot
from dy2st.functions.linalg.matrix_functions import det, inv, svdvals
from dy2st.runtime.eager.tensor import Tensor

__all__ = [
    "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh",
    "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues, the smallest first, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """Return the triangle whose product with its own transpose is x."""
    return linalg.cholesky(x, upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the cross products of vectors of 3 elements along an axis."""
    x1, x2 = broadcast_arrays(x1, x2)
    return linalg.cross(x1, x2, axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices."""
    return diagonal_of(x, offset)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sums of the diagonals of matrices."""
    return sum(diagonal_of(x, offset), axis=-1, dtype=dtype)


def eigh(x: Any, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*linalg.eigh(x))


def eigvalsh(x: Any, /) -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices."""
    return linalg.eigvalsh(x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return the norms of matrices."""
    return linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Return the n-th power of square matrices."""
    return linalg.matrix_power(x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return how many singular values are larger than `rtol` times the largest."""
    return linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """Return the products of each element of one vector with each of another."""
    return linear_algebra.outer(x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the pseudo-inverses of matrices."""
    return linalg.pinv(x) if rtol is None else linalg.pinv(x, rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Return the factors Q and R of matrices."""
    return QRResult(*linalg.qr(x, mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Return the sign of the determinants and the logarithm of their size."""
    both = linalg.slogdet(x)
    return SlogdetResult(both[0], both[1])


def solve(x1: Any, x2: Any, /) -> Tensor:
    """Return the solutions of systems of linear equations; `x2` is a vector or has matrices."""
    if x2.ndim == 1:
        return linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    return linalg.solve(x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular values and vectors of matrices."""
    return SVDResult(*linalg.svd(x, full_matrices and x.shape[-1] != x.shape[-2]))  # of a square both are the same


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Return the norms of vectors along axes, of all elements where none is given."""
    return linalg.vector_norm(x, ord, list(axis) if isinstance(axis, tuple) else axis, keepdims)
