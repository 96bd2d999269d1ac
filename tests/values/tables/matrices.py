"""Products, norms, inverses, factors and eigenvalues of matrices."""

import numpy as np
import scipy.linalg
import scipy.spatial.distance as distance

from tests.values.operands import A, B, C, S, V, floats
from tests.values.row import EAGER, row

_SPD = np.array([S @ S.T + 2 * np.eye(3), np.eye(3) * 2.0]).astype(np.float32).astype(np.float64)
_LOWER = np.linalg.cholesky(_SPD)
_Y = floats(3, 2)
_T = np.triu(S) + 3 * np.eye(3)
_TALL = floats(4, 3)
_LOOSE = (1e-6, 1e-4)
_RIGHT = floats(4, 2)
_W = np.array([1, 2, 1])
_E = _SPD[0] + np.diag([0.0, 1.0, 2.0])


def _loose(*rows):
    return [r.but(tolerance=_LOOSE) for r in rows]


def _norms(name):
    """Rows of vector norms under a name that takes p, axis, keepdim."""
    for p in (1, 2, 3, 0, np.inf, -np.inf):
        yield row(name, (C,), np.linalg.norm(C, p, 1), p=float(p), axis=1)
    yield row(name, (C,), np.linalg.norm(C.ravel(), 3), p=3.0)
    yield row(name, (C,), np.linalg.norm(C, 2, -1, keepdims=True), p=2.0, axis=-1, keepdim=True)


_PRODUCTS = [
    row("matmul", (S, S), S @ S),
    row("matmul", (C, C), C @ C.swapaxes(-1, -2), transpose_y=True),
    row("matmul", (C, C), C.swapaxes(-1, -2) @ C, transpose_x=True),
    row("matmul", (V, V), np.asarray(V @ V)),
    row("matmul", (C, V), C @ V),
    row("matmul", (S[0], C), S[0] @ C),
    row("matmul", (C[:, None], C[0].T), C[:, None] @ C[0].T).but(known_extents=True),
    row("matmul", (C[:, :0], C[:, :0]), np.zeros((2, 4, 4)), transpose_x=True).but(known_extents=True),
    row("mm", (S, S), S @ S),
    row("bmm", (C, C.swapaxes(1, 2)), C @ C.swapaxes(1, 2)),
    row("mv", (S, S[0]), S @ S[0]),
    row("dot", (V, V), np.asarray(V @ V)),
    row("dot", (A, B), (A * B).sum(-1)),
    row("inner", (A, B), np.inner(A, B)),
    row("outer", (A, V), np.outer(A, V)),
    row("ger", (V, V), np.outer(V, V)),
    row("kron", (A, S), np.kron(A, S)),
    row("vecdot", (A, B), (A * B).sum(-1)),
    row("vecdot", (A, B), (A * B).sum(0), axis=0),
    row("addmm", (S, S, S), 0.5 * S + 2 * S @ S, beta=0.5, alpha=2.0),
    row("addmm", (S[:1], S, S), S[:1] + S @ S),
    row("baddbmm", (C[:, :, :3], C, C.swapaxes(1, 2)), 0.5 * C[:, :, :3] + 2 * C @ C.swapaxes(1, 2), beta=0.5,
        alpha=2.0),
    row("tensordot", (C, C), np.tensordot(C, C, [[1, 2], [1, 2]]), axes=[[1, 2], [1, 2]]),
    row("tensordot", (A, S), np.tensordot(A, S, 1), axes=1),
    row("einsum", ("bij,bkj->bik", C, C), np.einsum("bij,bkj->bik", C, C)),
    row("einsum", ("ii->i", S), np.diag(S)),
    row("einsum", ("i,j", V, V), np.outer(V, V)),
    row("einsum", ("...j->...", C), C.sum(-1)),
    row("cross", (S, S[::-1].copy()), np.cross(S, S[::-1]), axis=1).but(known_extents=True),
    row("cross", (A, B), np.cross(A, B)).but(known_extents=True),
    row("linalg.multi_dot", ([A, S, S],), A @ S @ S),
    row("linalg.matrix_power", (S, 3), S @ S @ S),
    row("linalg.matrix_power", (_SPD, -2), np.linalg.inv(_SPD) @ np.linalg.inv(_SPD)).but(tolerance=_LOOSE),
    row("linalg.matrix_power", (S, 0), np.eye(3)),
]  # fmt: skip
_NORMS = [
    *_norms("norm"), *_norms("linalg.vector_norm"),
    row("norm", (C,), np.linalg.norm(C)),
    row("norm", (S, "fro"), np.linalg.norm(S)),
    row("norm", (S, "nuc"), np.linalg.norm(S, "nuc"), axis=[0, 1]),
    row("norm", (C,), np.linalg.norm(C, 1, (1, 2)), p=1, axis=[1, 2]).but(name="linalg.matrix_norm"),
    *(row("linalg.matrix_norm", (C,), np.linalg.norm(C, p, (1, 2), keepdims=True), p=p, axis=[1, 2], keepdim=True)
      for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
    row("dist", (A, B), np.linalg.norm(A - B)),
    *(row("dist", (A, B), np.linalg.norm((A - B).ravel(), p), p=float(p)) for p in (0, 1, 3, np.inf, -np.inf)),
    row("cdist", (A, S), distance.cdist(A, S)),
    row("cdist", (A, S), distance.cdist(A, S), compute_mode="donot_use_mm_for_euclid_dist"),
    row("cdist", (A, S), distance.cdist(A, S, "cityblock"), p=1.0),
    row("cdist", (A[None], S[None], 3.0), distance.cdist(A, S, "minkowski", p=3)[None]),
    row("cdist", (A, S), distance.cdist(A, S, "chebyshev"), p=float("inf")),
    row("pdist", (S,), distance.pdist(S)).but(known_extents=True),
    row("pdist", (S, 1.0), distance.pdist(S, "cityblock")).but(known_extents=True),
    *(row("linalg.cond", (_SPD,), np.linalg.cond(_SPD, p), p=p) for p in (None, "fro", "nuc", 1, -1, 2, -2, np.inf,
        -np.inf)),
]  # fmt: skip
_FACTORS = [
    row("inverse", (_SPD,), np.linalg.inv(_SPD)),
    row("linalg.inv", (S,), np.linalg.inv(S)),
    row("linalg.det", (_SPD,), np.linalg.det(_SPD)),
    row("linalg.slogdet", (_SPD,), np.stack(np.linalg.slogdet(_SPD))),
    row("linalg.cholesky", (_SPD,), _LOWER),
    row("linalg.cholesky", (_SPD,), _LOWER.swapaxes(1, 2), upper=True),
    row("linalg.cholesky_solve", (_Y, _LOWER[0]), np.linalg.solve(_SPD[0], _Y)),
    row("linalg.cholesky_solve", (_Y, _LOWER[0].T), np.linalg.solve(_SPD[0], _Y), upper=True),
    row("linalg.cholesky_inverse", (_LOWER[0],), np.linalg.inv(_SPD[0])),
    row("linalg.cholesky_inverse", (_LOWER[0].T,), np.linalg.inv(_SPD[0]), upper=True),
    row("linalg.solve", (_SPD[0], _Y), np.linalg.solve(_SPD[0], _Y)),
    row("linalg.solve", (_SPD, V[:3]), np.linalg.solve(_SPD, V[:3])).but(known_extents=True),
    row("linalg.solve", (_SPD[0], _Y.T), np.linalg.solve(_SPD[0].T, _Y).T, left=False),
    row("linalg.triangular_solve", (_T, _Y), scipy.linalg.solve_triangular(_T, _Y)),
    row("linalg.triangular_solve", (_T, _Y), scipy.linalg.solve_triangular(_T, _Y, trans=1), transpose=True),
    row("linalg.triangular_solve", (_T.T, _Y), scipy.linalg.solve_triangular(_T.T, _Y, lower=True), upper=False),
    row("linalg.triangular_solve", (_T, _Y), scipy.linalg.solve_triangular(_T, _Y, unit_diagonal=True),
        unitriangular=True),
    row("linalg.pinv", (_TALL,), np.linalg.pinv(_TALL)),
    row("linalg.pinv", (_E,), np.linalg.pinv(_E, hermitian=True), hermitian=True),
    row("linalg.pinv", (np.diag([3.0, 1.0, 0.01]),), np.diag([1 / 3, 1.0, 0.0]), rcond=0.1),
    row("linalg.matrix_rank", (_TALL,), np.asarray(3)),
    row("linalg.matrix_rank", (np.diag([3.0, 1.0, 0.01]),), np.asarray(2), tol=0.1),
    row("linalg.matrix_rank", (np.diag([3.0, 1.0, 0.01]),), np.asarray(1), atol=2.0),
    row("linalg.matrix_rank", (np.diag([3.0, 1.0, 0.01]),), np.asarray(1), rtol=0.5),
    row("linalg.matrix_rank", (_E,), np.asarray(3), hermitian=True),
    row("linalg.svdvals", (_TALL,), np.linalg.svd(_TALL, compute_uv=False)),
    row("linalg.svd", (_TALL,), (None, np.linalg.svd(_TALL)[1], None)),
    row("linalg.qr", (_TALL,), (None, None)),
    row("linalg.qr", (_TALL,), np.linalg.qr(_TALL)[1], mode="r"),
    row("linalg.eigh", (_E,), (np.linalg.eigvalsh(_E), None)),
    row("linalg.eigh", (np.tril(_E),), (np.linalg.eigvalsh(_E), None), UPLO="L"),
    row("linalg.eigh", (np.triu(_E),), (np.linalg.eigvalsh(_E), None), UPLO="U"),
    row("linalg.eigvalsh", (_E,), np.linalg.eigvalsh(_E)),
    row("linalg.eigvalsh", (_E,), np.linalg.eigvalsh(_E), UPLO="U"),
    row("linalg.eigvals", (_E,), np.linalg.eigvals(_E).astype(complex)).but(variants=EAGER),
    row("linalg.lstsq", (_TALL, _RIGHT), (np.linalg.lstsq(_TALL, _RIGHT)[0], None, None, None)).but(known_extents=True),
    row("linalg.cov", (S,), np.cov(S)).but(known_extents=True),
    row("linalg.cov", (S,), np.cov(S, rowvar=False, ddof=0), rowvar=False, ddof=False).but(known_extents=True),
    row("linalg.cov", (S,), np.cov(S, fweights=_W), fweights=_W).but(variants=("float64",), known_extents=True),
    row("linalg.cov", (S,), np.cov(S, aweights=V[:3]), aweights=V[:3]).but(variants=("float64",), known_extents=True),
    row("linalg.corrcoef", (S,), np.corrcoef(S)),
    row("linalg.corrcoef", (S,), np.corrcoef(S, rowvar=False), rowvar=False),
]  # fmt: skip
_LU, _PIVOTS = scipy.linalg.lu_factor(_TALL[:3])
_PIVOTS = (_PIVOTS + 1).astype(np.int32)
_REFLECTED, _TAUS = scipy.linalg.qr(_TALL, mode="raw")[0]
_REFLECTED = np.ascontiguousarray(_REFLECTED)
_FULL = scipy.linalg.qr(_TALL)[0]
_RANK2 = floats(5, 2) @ floats(2, 4)
_KNOWN = [
    row("linalg.lu", (_TALL[:3],), (_LU, _PIVOTS)),
    row("linalg.lu", (_SPD,), (np.stack([scipy.linalg.lu_factor(a)[0] for a in _SPD]), None)),
    row("linalg.lu", (np.zeros((2, 2)),), (np.zeros((2, 2)), None, np.asarray(1, np.int32)), get_infos=True).but(
        variants=("float64",)),
    row("linalg.lu_unpack", (_LU, _PIVOTS), scipy.linalg.lu(_TALL[:3])),
    row("linalg.lu_unpack", (scipy.linalg.lu_factor(_TALL)[0], _PIVOTS), (None, *scipy.linalg.lu(_TALL)[1:])),
    row("linalg.lu_unpack", (scipy.linalg.lu_factor(_TALL.T)[0], _PIVOTS), (None, *scipy.linalg.lu(_TALL.T)[1:])),
    row("linalg.lu_solve", (_Y, _LU, _PIVOTS), np.linalg.solve(_TALL[:3], _Y)),
    row("linalg.lu_solve", (_Y, _LU, _PIVOTS), np.linalg.solve(_TALL[:3].T, _Y), trans="T"),
    row("linalg.matrix_exp", (S,), scipy.linalg.expm(S)),
    row("linalg.matrix_exp", (_SPD * 10,), scipy.linalg.expm(_SPD * 10)).but(variants=("float64", "program")),
    row("linalg.matrix_exp", (np.zeros((2, 0, 0)),), np.zeros((2, 0, 0))).but(variants=("float64",)),
    row("linalg.householder_product", (_REFLECTED, _TAUS), _FULL[:, :3]),
    row("linalg.ormqr", (_REFLECTED, _TAUS, S), _FULL[:, :3] @ S),
    row("linalg.ormqr", (_REFLECTED, _TAUS, _TALL), _FULL[:, :3].T @ _TALL, transpose=True),
    row("linalg.ormqr", (_REFLECTED, _TAUS, _TALL.T.copy()), _TALL.T @ _FULL[:, :3], left=False),
    row("linalg.svd_lowrank", (_RANK2, 2), (None, np.linalg.svd(_RANK2)[1][:2], None)).but(variants=EAGER),
    row("linalg.svd_lowrank", (_RANK2 + 1, 2), (None, np.linalg.svd(_RANK2)[1][:2], None), niter=4,
        M=np.ones((5, 4))).but(
        variants=("float64",)),
    row("linalg.pca_lowrank", (_RANK2, 2), (None, np.linalg.svd(_RANK2 - _RANK2.mean(0))[1][:2], None), niter=3).but(
        variants=EAGER),
    row("linalg.pca_lowrank", (_RANK2,), (None, np.linalg.svd(_RANK2)[1][:4], None), center=False).but(variants=EAGER),
]  # fmt: skip
ROWS = [*_PRODUCTS, *_loose(*_NORMS), *_loose(*_FACTORS), *_loose(*(r.but(known_extents=True) for r in _KNOWN))]
