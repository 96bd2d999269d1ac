"""Sums, extremes, means, orders and counts along axes, and what runs along one axis."""

import numpy as np
import scipy.integrate
import scipy.special as special

from tests.values.operands import HOLED, TIES, A, B, C, I, J, N, P, Q, S, V
from tests.values.row import EAGER, row

EMPTY = np.zeros((2, 0))
_LOOSE = (1e-6, 1e-5)
_POINTS = C[0, :, :2].copy()


def _grid(points, bins, ranges=None, **how):
    counts, edges = np.histogramdd(points, bins, ranges, **how)
    return counts, tuple(edges)


_EXACT = ("float64", "strided", "program")  # the dtype is given, so there is one precision
_SIMPLE = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "amax": np.max, "amin": np.min,
    "logsumexp": special.logsumexp, "nansum": np.nansum, "nanmean": np.nanmean,
}  # fmt: skip

ROWS = [
    *(row(n, (C,), f(C)) for n, f in _SIMPLE.items()),
    *(row(n, (C,), f(C, axis=1), axis=1) for n, f in _SIMPLE.items()),
    *(row(n, (C,), f(C, axis=(0, 2), keepdims=True), axis=[0, 2], keepdim=True) for n, f in _SIMPLE.items()),
    *(row(n, (np.array(2.0),), f(np.array(2.0))) for n, f in _SIMPLE.items()),
    *(row(n, (I,), f(I)) for n, f in _SIMPLE.items() if n in ("sum", "prod", "max", "min", "amax", "amin")),
    row("sum", (EMPTY,), np.zeros(2), axis=1),
    row("prod", (EMPTY,), np.ones(2), axis=1),
    row("mean", (EMPTY,), np.full(2, np.nan), axis=1),
    row("sum", (N,), np.asarray(np.nan)),
    row("max", (HOLED,), np.full(2, np.nan), axis=1),
    row("min", (HOLED,), np.full(2, np.nan), axis=1),
    row("logsumexp", (np.array([[-np.inf, -np.inf], [1000.0, 1000.0]]),), np.array([-np.inf, 1000 + np.log(2)]),
        axis=1),
    row("sum", (P,), np.asarray(2)),
    row("sum", (I,), I.sum(dtype=np.int32), dtype="int32").only(*_EXACT),
    row("sum", (C,), C.sum(1).astype(np.float32), axis=1, dtype="float32").but(variants=("float32",)),
    row("prod", (I, -1), I.prod(-1)),
    row("prod", (C,), C.prod(-1, keepdims=True), axis=-1, keepdim=True, dtype="float64").only(*_EXACT),
    row("nansum", (HOLED,), np.nansum(HOLED, 1), axis=1),
    row("nansum", (HOLED,), np.nansum(HOLED), dtype="float64").only(*_EXACT),
    row("nanmean", (HOLED,), np.nanmean(HOLED, 0, keepdims=True), axis=0, keepdim=True),
    *(row(n, (Q,), f(Q)) for n, f in {"all": np.all, "any": np.any}.items()),
    *(row(n, (Q,), f(Q, axis=1, keepdims=True), axis=1, keepdim=True) for n,
        f in {"all": np.all, "any": np.any}.items()),
    *(row(n, (Q[:0],), f(Q[:0], axis=0), axis=0) for n, f in {"all": np.all, "any": np.any}.items()),
    row("argmax", (C,), C.argmax()),
    row("argmax", (C,), C.argmax(1, keepdims=True), axis=1, keepdim=True),
    row("argmax", (TIES,), TIES.argmax(1).astype(np.int32), axis=1, dtype="int32"),
    row("argmin", (C,), C.argmin()),
    row("argmin", (TIES,), TIES.argmin(1), axis=1),
    row("argmin", (C,), C.argmin(-1, keepdims=True).astype(np.int32), axis=-1, keepdim=True, dtype="int32"),
    row("count_nonzero", (I * Q,), np.count_nonzero(I * Q)),
    row("count_nonzero", (I * Q,), np.count_nonzero(I * Q, 0, keepdims=True), axis=0, keepdim=True),
    row("var", (C,), C.var(1, ddof=1), axis=1),
    row("var", (C,), C.var(), unbiased=False),
    row("var", (C,), C.var((0, 2), ddof=1, keepdims=True), axis=[0, 2], keepdim=True),
    row("var", (C,), C.var(1, ddof=2), axis=1, correction=2),
    row("std", (C,), C.std(1, ddof=1), axis=1),
    row("std", (C,), C.std(), unbiased=False),
    row("std", (C,), C.std((0, 2), ddof=1, keepdims=True), axis=[0, 2], keepdim=True),
    row("median", (C,), np.median(C, 1), axis=1),
    row("median", (V,), np.asarray(2.5)),
    row("median", (EMPTY,), np.full(2, np.nan), axis=1).but(known_extents=True),
    row("quantile", (EMPTY, 0.5), np.full((2, 1), np.nan), axis=1, keepdim=True).but(known_extents=True),
    row("median", (HOLED,), np.full((2, 1), np.nan), axis=1, keepdim=True),
    row("median", (TIES,), (np.array([1.0, 0.0]), None), axis=1, mode="min"),
    row("nanmedian", (HOLED,), np.nanmedian(HOLED, 1), axis=1),
    row("nanmedian", (HOLED,), np.nanmedian(HOLED)),
    row("nanmedian", (C,), np.median(C, (0, 2), keepdims=True), axis=[0, 2], keepdim=True),
    row("median", (V[None],), (np.array([[2.0]]), np.array([[2]])), axis=1, mode="min", keepdim=True),
    row("median", (V,), np.asarray(2.0), mode="min"),
    row("nanmedian", (V,), np.asarray(2.0), mode="min"),
    row("nanmedian", (HOLED,), (np.array([1.0, 3.0]), np.array([0, 1])), axis=1, mode="min"),
    row("quantile", (C, 0.3), np.quantile(C, 0.3)),
    row("quantile", (C, [0.25, 0.5]), np.quantile(C, [0.25, 0.5], 1, keepdims=True), axis=1, keepdim=True),
    row("quantile", (HOLED, 0.5), np.full(2, np.nan), axis=1),
    *(row("quantile", (C, 0.3), np.quantile(C, 0.3, 2, method=m), axis=2, interpolation=m)
      for m in ("lower", "higher", "nearest", "midpoint")),
    row("nanquantile", (HOLED, 0.3), np.nanquantile(HOLED, 0.3, 1), axis=1),
    row("nanquantile", (HOLED, [0.3, 0.5]), np.nanquantile(HOLED, [0.3, 0.5], 0, keepdims=True), axis=0, keepdim=True),
    row("nanquantile", (HOLED, 0.3), np.nanquantile(HOLED, 0.3, method="lower"), interpolation="lower"),
    row("mode", (TIES,), (np.array([1.0, 0.0]), np.array([3, 1]))),
    row("mode", (TIES,), (np.array([[1.0], [0.0]]), None), axis=1, keepdim=True),
    row("cumsum", (C,), C.cumsum(1), axis=1),
    row("cumsum", (C,), C.cumsum()),
    row("cumsum", (I,), I.cumsum(0).astype(np.float64), axis=0, dtype="float64").only(*_EXACT),
    row("cumsum", (N,), np.cumsum(N), axis=0),
    row("cumprod", (C,), C.cumprod(-1), dim=-1),
    row("cumprod", (I,), I.cumprod(0).astype(np.float64), dim=0, dtype="float64").only(*_EXACT),
    row("logcumsumexp", (C,), np.log(np.exp(C).cumsum(1)), axis=1),
    row("logcumsumexp", (C,), np.log(np.exp(C).cumsum())),
    row("cummax", (TIES,), (np.maximum.accumulate(TIES, 1), np.array([[0, 0, 2, 2], [0, 1, 2, 3]])), axis=1),
    row("cummax", (C,), (np.maximum.accumulate(C, 0), None), axis=0, dtype="int32"),
    row("cummax", (C,), (np.maximum.accumulate(C.ravel()), None)),
    row("cummin", (TIES,), (np.minimum.accumulate(TIES, 1), np.array([[0, 1, 1, 3], [0, 1, 1, 1]])), axis=1),
    row("cummin", (C,), (np.minimum.accumulate(C, 0), None), axis=0, dtype="int32"),
    row("trapezoid", (A,), np.trapezoid(A)),
    row("trapezoid", (A,), np.trapezoid(A, dx=0.5, axis=0), dx=0.5, axis=0),
    row("trapezoid", (S, V[1:]), np.trapezoid(S, V[1:], axis=0), axis=0),
    row("cumulative_trapezoid", (A,), scipy.integrate.cumulative_trapezoid(A)),
    row("cumulative_trapezoid", (A,), scipy.integrate.cumulative_trapezoid(A, dx=0.5, axis=0), dx=0.5, axis=0),
    row("cumulative_trapezoid", (S, V[1:]), scipy.integrate.cumulative_trapezoid(S, V[1:], axis=0), axis=0),
    row("diff", (C,), np.diff(C)),
    row("diff", (C,), np.diff(C, 2, 1), n=2, axis=1),
    row("diff", (Q,), np.diff(Q)),
    row("diff", (A,), np.diff(A, axis=0, prepend=B, append=A), axis=0, prepend=B,
        append=A).but(variants=("float64", "program")),
    row("bincount", (J[0],), np.bincount(J[0])),
    row("bincount", (J[0],), np.bincount(J[0], A[0], 12), weights=A[0], minlength=12),
    row("histogram", (C,), np.histogram(C, 5, (-1, 1))[0], bins=5, min=-1, max=1),
    row("histogram", (C,), np.histogram(C, 5)[0], bins=5).but(known_extents=True),
    row("histogram", (A,), np.histogram(A, 5, (0, 1), density=True)[0], bins=5, min=0, max=1, density=True).but(
        variants=("float32",)),
    row("histogram", (A,), np.histogram(A, 5, (0, 1), weights=B)[0], bins=5, min=0, max=1, weight=B).but(
        variants=("float32",)),
    row("histogram_bin_edges", (C,), np.histogram_bin_edges(C, 5, (-1, 1)), bins=5, min=-1, max=1),
    row("histogramdd", (A.T[:, :2].copy(),), _grid(A.T[:, :2], [2, 3], [(0, 1), (0.2, 0.8)]), bins=[2, 3],
        ranges=[0.0, 1.0, 0.2, 0.8]).but(variants=EAGER),
    row("histogramdd", (_POINTS,), _grid(_POINTS, 4, density=True), bins=4, density=True).only("float64"),
    row("histogramdd", (_POINTS,), _grid(_POINTS, 3, weights=V[:3]), bins=3, weights=V[:3]).only("float64"),
    row("renorm", (S, 2.0, 0, 1.0), S / np.maximum(np.linalg.norm(S, axis=1, keepdims=True), 1)).but(tolerance=_LOOSE),
    row("renorm", (C, 1.0, 1, 2.0), C * np.minimum(2 / np.abs(C).sum((0, 2), keepdims=True), 1)).but(tolerance=_LOOSE),
    row("reduce_as", (C, C[0, :1]), C.sum((0, 1))[None]).but(known_extents=True),
]  # fmt: skip
