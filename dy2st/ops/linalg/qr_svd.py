"""Factors of matrices of any shape, in batches: `qr` and `svd` in the reduced form, k = min(rows, columns).

Derivatives: S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in
optimum experimental design" (2010) for QR; J. Townsend, "Differentiating the singular value decomposition" (2016).
Where singular values are equal, or one is 0, the factors have no derivative; the parts that would divide by 0 are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.ops.linalg.linalg import flipped, inverse_gaps, product
from dy2st.shapes import Extent


class QR(Op):
    """Q with orthonormal columns, and the upper triangular R, with Q @ R = a."""

    name = "qr"
    of_last_axes = True
    computes_in = ("float32", "float64")
    superlinear = True
    defined_on = "f"
    may_raise = True
    fresh = True

    def infer(self, a: TensorType) -> tuple[TensorType, TensorType]:
        batch, rows, columns, least = _extents("qr", a)
        return _typed(a, batch, rows, least), _typed(a, batch, least, columns)

    def eval(self, xp: Any, a: Any) -> Any:
        q, r = xp.linalg.qr(a)
        return q, r

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        (q, r), da = outs, tangents[0]
        turned = flipped(b, b.solve(flipped(b, _first_columns(b, r, q)), flipped(b, _first_columns(b, da, q))))
        inner = product(b, flipped(b, q), turned)
        lower = b.tril(inner, diagonal=-1)
        skew = b.sub(lower, flipped(b, lower))
        dq = b.add(product(b, q, skew), b.sub(turned, product(b, q, inner)))
        return [dq, b.sub(product(b, flipped(b, q), da), product(b, skew, r))]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((4, 3), (3, 3), (2, 2, 4)):
            yield Sample((rng.normal(size=shape),))


class SVD(Op):
    """U, the singular values in descending order, and V^T, with U @ diag(s) @ V^T = a."""

    name = "svd"
    of_last_axes = True
    computes_in = ("float32", "float64")
    superlinear = True
    defined_on = "f"
    may_raise = True
    fresh = True

    def infer(self, a: TensorType) -> tuple[TensorType, TensorType, TensorType]:
        batch, rows, columns, least = _extents("svd", a)
        return (
            _typed(a, batch, rows, least),
            TensorType(a.dtype, (*batch, least)),  # type: ignore[arg-type]
            _typed(a, batch, least, columns),
        )

    def eval(self, xp: Any, a: Any) -> Any:
        if xp is np and not np.isfinite(a).all():  # LAPACK may never come back from an infinity
            raise np.linalg.LinAlgError("SVD did not converge: the matrix has infinities or NaN")
        u, s, vh = xp.linalg.svd(a, full_matrices=False)
        return u, s, vh

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        (u, s, vh), da = outs, tangents[0]
        rank = tensor_type(u).rank
        columns, rows = b.expand_dims(s, axes=(rank - 2,)), b.expand_dims(s, axes=(rank - 1,))
        inner = product(b, product(b, flipped(b, u), da), flipped(b, vh))
        across = flipped(b, inner)
        gaps = inverse_gaps(b, b.sub(b.mul(columns, columns), b.mul(rows, rows)))
        du = product(b, u, b.mul(gaps, b.add(b.mul(inner, columns), b.mul(rows, across))))
        dv = product(b, flipped(b, vh), b.mul(gaps, b.add(b.mul(rows, inner), b.mul(across, columns))))
        du = b.add(du, _outside(b, u, product(b, da, flipped(b, vh)), columns))
        dv = b.add(dv, _outside(b, flipped(b, vh), product(b, flipped(b, da), u), columns))
        return [du, b.diagonal(inner, offset=0, axes=(rank - 2, rank - 1)), flipped(b, dv)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((4, 3), (3, 3), (2, 2, 4)):
            yield Sample((rng.normal(size=shape) + 3 * np.eye(*shape[-2:]) * np.arange(1, shape[-1] + 1),))


def _outside(b: Builder, basis: Any, moved: Any, values: Any) -> Any:
    """Emit the part of moved / values that is at right angles to the basis."""
    scaled = b.mul(moved, inverse_gaps(b, values))
    return b.sub(scaled, product(b, basis, product(b, flipped(b, basis), scaled)))


def _first_columns(b: Builder, x: Any, q: Any) -> Any:
    """Emit as many columns of `x` as `q` has."""
    count, wide = tensor_type(q).shape[-1], tensor_type(x).shape[-1]
    if count == wide:
        return x
    whole = (("slice", None, None, None),) * (tensor_type(x).rank - 1)
    if isinstance(count, int):
        return b.index(x, spec=(*whole, ("slice", None, count, None)))
    return b.index(x, b.shape(q)[-1], spec=(*whole, ("slice", None, "?", None)))


def _extents(name: str, a: TensorType) -> tuple[tuple[Extent, ...], Extent, Extent, Extent | None]:
    if a.rank < 2:
        raise ValueError(f"{name} needs matrices, not {a}")
    rows, columns = a.shape[-2:]
    least: Extent | None = rows if rows == columns else None
    if isinstance(rows, int) and isinstance(columns, int):
        least = min(rows, columns)
    return a.shape[:-2], rows, columns, least


def _typed(a: TensorType, batch: tuple[Extent, ...], rows: Extent | None, columns: Extent | None) -> TensorType:
    return TensorType(a.dtype, (*batch, rows, columns))  # type: ignore[arg-type]
