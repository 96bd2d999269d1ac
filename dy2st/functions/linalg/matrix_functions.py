"""Functions of matrices, over batches of them: inverses, determinants, linear equations, factors, eigenvalues.

They run on `numpy.linalg` (or CuPy's); what LAPACK refuses, such as a singular matrix, raises NumPy's LinAlgError, a
ValueError. All have derivatives but those of general eigenvalues and of ranks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dy2st import dtypes
from dy2st.errors import AutodiffError
from dy2st.functions.core.defaults import finfo
from dy2st.functions.core.operands import cast_to, floating, op, pair, tensor
from dy2st.functions.linalg.linalg import matmul, matrix_norm, matrix_transpose, one_batch, same_extents
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import where
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import eye, zeros, zeros_like
from dy2st.functions.shape.manipulation import reshape
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_INVERSE, _SOLVE, _CHOLESKY, _EIGH = op("inverse"), op("solve"), op("cholesky"), op("eigh")
_TRIL, _TRIU, _EXPAND, _SQUEEZE = op("tril"), op("triu"), op("expand_dims"), op("squeeze")


def inverse(x: Any, name: str | None = None) -> Tensor:
    """Return the inverses of square matrices.

    >>> import dy2st as paddle
    >>> paddle.inverse(paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return apply(_INVERSE, _matrices(x, "inverse", of_complex=True))


inv = inverse


def det(x: Any, name: str | None = None) -> Tensor:
    """Return the determinants of square matrices."""
    return apply(op("det"), _matrices(x, "det", of_complex=True))


def slogdet(x: Any, name: str | None = None) -> Tensor:
    """Return [2, ...]: the signs of the determinants, and the logarithms of their absolute values."""
    return stack(list(apply(op("slogdet"), _matrices(x, "slogdet"))), 0)


def solve(x: Any, y: Any, left: bool = True, name: str | None = None) -> Tensor:
    """Return the z with x @ z = y (z @ x = y unless `left`), over broadcast batches; y is a matrix, or a vector.

    >>> import dy2st as paddle
    >>> paddle.linalg.solve(paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]]), paddle.to_tensor([2.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    x, y = _floats(x, y, "solve", of_complex=True)
    if not left:
        return matrix_transpose(solve(matrix_transpose(x), matrix_transpose(y)))
    if y.ndim == 1 or (y.ndim == x.ndim - 1 and same_extents(y.shape, x.shape[:-1])):
        found = apply(_SOLVE, *one_batch(x, apply(_EXPAND, y, axes=(y.ndim,))))
        return apply(_SQUEEZE, found, axes=(found.ndim - 1,))
    return apply(_SOLVE, *one_batch(x, y))


def triangular_solve(
    x: Any, y: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False, name: str | None = None
) -> Tensor:
    """Return the z with x @ z = y (x^T @ z = y with `transpose`), of x only one triangle being read.

    With `unitriangular` the diagonal of x counts as ones.
    """
    x, y = _floats(x, y, "triangular_solve")
    x = apply(_TRIU if upper else _TRIL, x, diagonal=int(unitriangular) * (1 if upper else -1))
    x = x + eye(x.shape[-1], dtype=x.dtype) if unitriangular else x
    return solve(matrix_transpose(x) if transpose else x, y)


def cholesky(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """Return the lower triangular L with L @ L^T = x (U = L^T with `upper`), for symmetric positive definite x.

    Of an x that is not symmetric the symmetric part is taken, so that the gradient is symmetric.
    """
    lower = apply(_CHOLESKY, _matrices(x, "cholesky"))
    return matrix_transpose(lower) if upper else lower


def cholesky_solve(x: Any, y: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """Return the z with A @ z = x, where y is the Cholesky factor of A."""
    y = _matrices(y, "cholesky_solve")
    lower = matrix_transpose(y) if upper else y
    return triangular_solve(lower, triangular_solve(lower, x, upper=False), upper=False, transpose=True)


def cholesky_inverse(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """Return the inverse of the matrix whose Cholesky factor is x."""
    x = _matrices(x, "cholesky_inverse")
    return cholesky_solve(eye(x.shape[-1], dtype=x.dtype) + zeros_like(x), x, upper)


def eigh(x: Any, UPLO: str = "L", name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues, ascending, and the eigenvectors (columns) of symmetric matrices.

    Of `UPLO` "L" or "U", the lower or the upper triangle is read.
    """
    return apply(_EIGH, _mirrored(x, UPLO, "eigh"))


def eigvalsh(x: Any, UPLO: str = "L", name: str | None = None) -> Tensor:
    """Return the eigenvalues of symmetric matrices, ascending."""
    return apply(_EIGH, _mirrored(x, UPLO, "eigvalsh"))[0]


def eig(x: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors (columns) of square matrices, complex; they have no derivative here."""
    return apply(op("eig"), _without_gradient(x, "eig"))


def eigvals(x: Any, name: str | None = None) -> Tensor:
    """Return the eigenvalues of square matrices, complex; they have no derivative here."""
    return apply(op("eig"), _without_gradient(x, "eigvals"))[0]


class QRFactors(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


def qr(x: Any, mode: str = "reduced", name: str | None = None) -> Any:
    """Return Q and R with Q @ R = x, Q of min(rows, columns) columns; R alone with mode "r".

    With mode "complete" Q is square, its last columns at right angles to those of x, and R has zeros below; there is
    no derivative then where x has more rows than columns (AutodiffError), as those columns are not determined by x.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete' or 'r', not {mode!r}")
    x = _matrices(x, "qr")
    rows, columns = x.shape[-2:]
    wide = isinstance(rows, int) and isinstance(columns, int) and rows <= columns
    if mode == "complete" and not wide and not same_extents([rows], [columns]):
        return _complete_qr(x)
    q, r = apply(op("qr"), x)
    return r if mode == "r" else QRFactors(q, r)


def _complete_qr(x: Tensor) -> QRFactors:
    """Return the square Q and R of matrices with more rows than columns.

    Householder's reflections of [x, I] are first those that x alone has: its Q is that of x, made complete.
    """
    rows, columns = x.shape[-2:]
    if current().grad and not x.stop_gradient:
        raise AutodiffError("qr: mode 'complete' of matrices with more rows than columns has no derivative; "
                            "use mode 'reduced'")  # fmt: skip
    more = eye(rows, dtype=x.dtype) + zeros([*x.shape[:-2], rows, rows], x.dtype)
    q, r = apply(op("qr"), concat([x, more], -1))
    return QRFactors(q, r[..., :columns])


def svd(x: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, the singular values in descending order, and V^T, in the reduced form."""
    if full_matrices:
        raise NotImplementedError("svd: full_matrices=True is not supported; the reduced form has all of x")
    return apply(op("svd"), _matrices(x, "svd"))


def svdvals(x: Any, name: str | None = None) -> Tensor:
    """Return the singular values in descending order."""
    return svd(x)[1]


def pinv(x: Any, rcond: Any = 1e-15, hermitian: bool = False, name: str | None = None) -> Tensor:
    """Return the Moore-Penrose inverses: singular values up to rcond times the largest one count as 0."""
    x = _matrices(x, "pinv")
    x = (x + matrix_transpose(x)) / 2 if hermitian else x
    if any(isinstance(e, int) and e == 0 for e in x.shape):
        return matrix_transpose(x)
    u, s, vh = apply(op("svd"), x)
    least = reduction.max(s, -1, True) * _with_axis(rcond, s)
    kept = s > least
    scaled = where(kept, math.reciprocal(where(kept, s, 1.0)), 0.0)
    return matmul(matrix_transpose(vh) * apply(_EXPAND, scaled, axes=(scaled.ndim - 1,)), matrix_transpose(u))


def matrix_rank(
    x: Any, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None, name: str | None = None
) -> Tensor:
    """Return how many singular values are above max(atol, rtol * the largest); `tol` is another word for atol.

    Without any, rtol is the larger extent times the precision of the dtype.
    """
    x = _matrices(x, "matrix_rank").detach()
    if any(isinstance(e, int) and e == 0 for e in x.shape):
        return zeros(x.shape[:-2], "int64")
    s = svdvals((x + matrix_transpose(x)) / 2 if hermitian else x)
    atol = tol if tol is not None else atol
    if rtol is None:
        rtol = 0.0 if atol is not None else _rounding(x)
    bound = reduction.max(s, -1, True) * _with_axis(rtol, s)
    bound = bound if atol is None else math.maximum(bound, _with_axis(atol, s))
    return reduction.sum(cast_to(s > bound, dtypes.int64), -1)


def lstsq(
    x: Any, y: Any, rcond: float | None = None, driver: str | None = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the z with the least |x @ z - y|, the sums of squares that are left, the ranks and singular values of x.

    `driver` only says how LAPACK would compute it. The sums are empty unless x has more rows than columns, all
    independent.
    """
    x, y = _floats(x, y, "lstsq")
    limit = _rounding(x) if rcond is None else rcond
    found = matmul(pinv(x, limit), y)
    rank = matrix_rank(x, rtol=limit)
    rows, columns = (int(e) for e in x.shape[-2:])
    left = reduction.sum(math.square(matmul(x, found) - y), -2)
    whole = rows > columns and (current().trace is not None or bool((rank == columns).all()))
    return found, left if whole else left[..., :0], rank, svdvals(x)


def cond(x: Any, p: Any = None, name: str | None = None) -> Tensor:
    """Return the condition numbers: |x| |x^-1| for the norm p ("fro", 1, -1, inf, -inf), or 2 (None) or -2."""
    x = _matrices(x, "cond")
    if p in (None, 2, -2):
        s = svdvals(x)
        return s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    return matrix_norm(x, p) * matrix_norm(inverse(x), p)


def corrcoef(x: Any, rowvar: bool = True, name: str | None = None) -> Tensor:
    """Return the correlations of rows (columns without `rowvar`)."""
    x = _matrices(x, "corrcoef", 1)
    alone = x.ndim == 1
    x = x.reshape([1, -1]) if alone else x
    x = x if rowvar else matrix_transpose(x)
    centred = x - reduction.mean(x, -1, True)
    scaled = centred / math.sqrt(reduction.sum(math.square(centred), -1, keepdim=True))
    found = math.clip(matmul(scaled, scaled, transpose_y=True), -1.0, 1.0)
    return found.reshape([]) if alone else found


def cov(
    x: Any, rowvar: bool = True, ddof: bool = True, fweights: Any = None, aweights: Any = None, name: str | None = None
) -> Tensor:
    """Return the covariances of rows (columns without `rowvar`), 0-D for one row.

    `fweights` say how often each observation was made, `aweights` how much it counts. Without `ddof` the divisor is the
    number of observations, not one less.
    """
    x = floating(x, "cov")
    if not 1 <= x.ndim <= 2:
        raise ValueError(f"cov needs a vector or a matrix, not a tensor of shape {x.shape}")
    x = reshape(x, [1, -1]) if x.ndim == 1 else x if rowvar else matrix_transpose(x)
    weights = [tensor(w, "cov", x.dtype) for w in (fweights, aweights) if w is not None]
    if weights:
        spread, centred, divisor = _weighed(x, weights, ddof, aweights is not None)
    else:
        spread = centred = x - reduction.mean(x, 1, True)
        divisor = tensor(x.shape[1] - (1 if ddof else 0), "cov", x.dtype)
    beside = apply(op("conj"), centred) if x.dtype.is_complex else centred
    result = matmul(spread, beside, transpose_y=True) / divisor
    return reshape(result, []) if x.shape[0] == 1 else result


def _weighed(x: Tensor, weights: list[Tensor], ddof: bool, graded: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return deviations from the weighed means times their weights, the deviations, and the divisor of `cov`.

    With weights that are no counts (`graded`, the last ones), one observation less is sum(w a) / sum(w) of them.
    """
    w = cast_to(weights[0] if len(weights) == 1 else weights[0] * weights[1], x.dtype)
    total = reduction.sum(w)
    centred = x - reduction.sum(x * w, 1, keepdim=True) / total
    less = reduction.sum(w * cast_to(weights[-1], x.dtype)) / total if graded else 1.0
    return centred * w, centred, total - less if ddof else total


def _matrices(x: Any, name: str, least: int = 2, of_complex: bool = False) -> Tensor:
    x = floating(x, name)
    if x.dtype.kind == "c" and not of_complex:
        raise TypeError(f"{name}() of complex matrices is not supported")
    if x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise TypeError(f"{name}() of {x.dtype.name} matrices is not supported: LAPACK has none; cast to float32")
    if x.ndim < least:
        raise ValueError(f"{name} needs matrices, not a tensor of shape {x.shape}")
    return x


def _floats(x: Any, y: Any, name: str, of_complex: bool = False) -> tuple[Tensor, Tensor]:
    x, y = pair(_matrices(x, name, of_complex=of_complex), floating(y, name), name)
    return x, y


def _mirrored(x: Any, uplo: str, name: str) -> Tensor:
    """Return the symmetric matrices of which x has one triangle."""
    if uplo not in ("L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', not {uplo!r}")
    x = _matrices(x, name)
    half, strict = (_TRIL, -1) if uplo == "L" else (_TRIU, 1)
    return apply(half, x, diagonal=0) + matrix_transpose(apply(half, x, diagonal=strict))


def _without_gradient(x: Any, name: str) -> Tensor:
    x = _matrices(x, name)
    if current().grad and not x.stop_gradient:
        raise AutodiffError(f"{name} has no derivative here: use eigh for symmetric matrices, or x.detach()")
    return x


def _rounding(x: Tensor) -> Any:
    """Return the larger extent of matrices times the precision of their dtype."""
    rows, columns = (tensor(e, "matrix_rank", x.dtype) for e in x.shape[-2:])
    return math.maximum(rows, columns) * float(finfo(x.dtype).eps)


def _with_axis(bound: Any, s: Tensor) -> Any:
    """Return a bound, one number or one for each matrix, so that it stands beside singular values."""
    return apply(_EXPAND, bound, axes=(bound.ndim,)) if isinstance(bound, Tensor) and bound.ndim else tensor(
        bound, "a bound of singular values", s.dtype
    )  # fmt: skip
