"""`lu`: the triangular factors of matrices by Gaussian elimination with row exchanges.

With P A = L U, dG = L^-1 P dA = U1 A1^-1 dA for the first columns A1 and U1, as many as there are rows, and F the
strictly lower part of dG1 U1^-1, the derivatives are dL = L F and dU = dG - F U (F. de Hoog, R. Anderssen, M. Lukas,
"Differentiation of matrix functionals using triangular factorization", 2011). Exchanges do not move with A. Of
matrices with more rows than columns only the factors are known, not which derivative they have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.ops.linalg.linalg import flipped, product
from dy2st.shapes import Extent


class LU(Op):
    """L (below its diagonal of ones) and U in one matrix, and the row that each row was exchanged with, from 1 on."""

    name = "lu"
    of_last_axes = True
    defined_on = "fc"
    fresh = True

    def infer(self, a: TensorType) -> tuple[TensorType, TensorType]:
        if a.rank < 2:
            raise ValueError(f"lu needs matrices, not {a}")
        rows, columns = a.shape[-2:]
        least: Extent | None = rows if rows == columns else None
        if isinstance(rows, int) and isinstance(columns, int):
            least = min(rows, columns)
        return a, TensorType(dtypes.int32, (*a.shape[:-2], least))  # type: ignore[arg-type]

    def eval(self, xp: Any, a: Any) -> Any:
        rows, columns = a.shape[-2:]
        least = min(rows, columns)
        packed = a.reshape(math.prod(a.shape[:-2]), rows, columns).copy()
        pivots = xp.zeros((len(packed), least), xp.int32)
        every = xp.arange(len(packed))
        for k in range(least):
            found = k + xp.abs(packed[:, k:, k]).argmax(1)
            pivots[:, k] = found + 1
            upper = packed[every, found].copy()
            packed[every, found] = packed[:, k]
            packed[:, k] = upper
            pivot = packed[:, k, k]
            packed[:, k + 1 :, k] /= xp.where(pivot == 0, 1, pivot)[:, None]
            packed[:, k + 1 :, k + 1 :] -= packed[:, k + 1 :, k, None] * packed[:, k, None, k + 1 :]
        return packed.reshape(a.shape), pivots.reshape(*a.shape[:-2], least)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        (a,), (packed, _pivots), (da,) = primals, outs, tangents
        upper = b.triu(packed, diagonal=0)
        first, front = a, packed
        if tensor_type(a).shape[-2] != tensor_type(a).shape[-1]:
            count = b.shape(a)[-2]
            first, front, upper = _columns(b, a, count), _columns(b, packed, count), _made_square(b, upper, count)
        moved = product(b, b.triu(front, diagonal=0), b.solve(first, da))
        turned = b.tril(flipped(b, b.solve(flipped(b, upper), flipped(b, moved))), diagonal=-1)
        lower = b.add(turned, product(b, b.tril(front, diagonal=-1), turned))
        return [b.add(lower, b.triu(b.sub(moved, product(b, turned, upper)), diagonal=0)), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 4, 3), (2, 3), (2, 2, 2)):
            yield Sample((rng.normal(size=shape),), differentiate=shape[-2] <= shape[-1])


def _columns(b: Builder, x: Any, count: Any) -> Any:
    """Emit the first columns, as many as `count` says."""
    whole = (("slice", None, None, None),) * (tensor_type(x).rank - 1)
    return b.index(x, count, spec=(*whole, ("slice", None, "?", None)))


def _made_square(b: Builder, upper: Any, count: Any) -> Any:
    """Emit an upper triangular matrix of `count` rows with the rows of the identity that it lacks below."""
    kind, columns = tensor_type(upper), b.shape(upper)[-1]
    square = b.zeros_like(product(b, flipped(b, upper), upper))
    identity = b.add(square, b.eye(columns, columns, dtype=kind.dtype))
    whole = (("slice", None, None, None),) * (kind.rank - 2)
    below = b.index(identity, count, spec=(*whole, ("slice", "?", None, None), ("slice", None, None, None)))
    return b.concat(upper, below, axis=kind.rank - 2)
