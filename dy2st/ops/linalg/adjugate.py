"""The adjugates of square matrices, which are the derivatives of determinants, and their own derivative in a direction.

adj(A) is det(A) inv(A) where there is an inverse, and a polynomial of the elements everywhere, so a determinant has
derivatives at singular matrices too. With A = U S Vh, adj(A) = det(U Vh) V adj(S) U^H; the elements of adj(S) and of
its derivative are products of all singular values but one or two (I. C. F. Ipsen and R. Rehman, "Perturbation bounds
for determinants and characteristic polynomials", 2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.ops.linalg.linalg import flipped, product, refuse_oblong, trace_of_product


class Adjugate(Op):
    """The adjugates of square matrices: element [i, j] is the cofactor of element [j, i]."""

    name = "adjugate"
    of_last_axes = True
    defined_on = "fc"
    may_raise = True
    fresh = True

    def infer(self, a: TensorType) -> TensorType:
        refuse_oblong(self.name, a.shape)
        return a

    def eval(self, xp: Any, a: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        found = _by_inverse(xp, a)
        if found is None:
            u, s, vh, sign = _factors(xp, a)
            middle = _all_but_one(xp, s)[..., None] * xp.eye(s.shape[-1], dtype=s.dtype)
            found = sign[..., None, None] * _back(xp, vh, middle, u)
        return found.astype(a.dtype, copy=False)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        return b.adjugate_slope(primals[0], tangents[0])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 2, 2)):
            yield Sample((rng.normal(size=shape),))
        yield Sample((np.outer(rng.normal(size=3), rng.normal(size=3)),), differentiate=False)  # of rank one


class AdjugateSlope(Op):
    """The derivative of the adjugate at A in the direction E: linear in E. Its own derivative needs det(A) not 0."""

    name = "adjugate_slope"
    of_last_axes = True
    defined_on = "fc"
    linear_in = (1,)
    may_raise = True
    fresh = True

    def infer(self, a: TensorType, e: TensorType) -> TensorType:
        if a.dtype is not e.dtype or a.rank != e.rank:
            raise ValueError(f"adjugate_slope needs matrices of one dtype and rank, not {a} and {e}")
        refuse_oblong(self.name, e.shape)
        return e

    def eval(self, xp: Any, a: Any, e: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        u, s, vh, sign = _factors(xp, a)
        turned = _across(xp, u) @ e @ _across(xp, vh)
        rest = _all_but_two(xp, s)
        diagonal = xp.einsum("...jj,...ij->...i", turned, rest)
        middle = -turned * rest + diagonal[..., None] * xp.eye(s.shape[-1])
        return (sign[..., None, None] * _back(xp, vh, middle, u)).astype(a.dtype, copy=False)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        (a, e), (da, de), (out,) = primals, tangents, outs
        along_e = None if de is None else b.adjugate_slope(a, de)
        if da is None:
            return along_e
        adj, moved = b.adjugate(a), b.adjugate_slope(a, da)
        # det(A) out = tr(adj E) adj - adj E adj, differentiated
        total = b.sub(_scaled(b, trace_of_product(b, moved, e), adj), product(b, product(b, moved, e), adj))
        total = b.add(total, _scaled(b, trace_of_product(b, adj, e), moved))
        total = b.sub(total, product(b, product(b, adj, e), moved))
        total = b.sub(total, _scaled(b, trace_of_product(b, adj, da), out))
        along_a = _scaled(b, b.reciprocal(b.det(a)), total)
        return along_a if along_e is None else b.add(along_a, along_e)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **_: Any) -> Sequence[Value | None]:  # fmt: skip
        return [None, flipped(b, b.adjugate_slope(operands[0], flipped(b, cts[0])))]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2)):
            yield Sample((rng.normal(size=shape) + 2 * np.eye(shape[-1]), rng.normal(size=shape)))


def _by_inverse(xp: Any, a: Any) -> Any:
    """Return det(A) inv(A), which takes a tenth of the time, where that is exact to half of the digits at least."""
    try:
        inverse = xp.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None
    bound = float(np.finfo(a.dtype).eps) ** -0.5
    condition = xp.abs(a).sum(-1).max(-1, initial=0) * xp.abs(inverse).sum(-1).max(-1, initial=0)
    return xp.linalg.det(a)[..., None, None] * inverse if bool((condition < bound).all()) else None


def _factors(xp: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Return U, S and Vh, and the sign of the determinant: NaN where a matrix has elements that are not finite."""
    finite = xp.isfinite(a).all((-2, -1))
    u, s, vh = xp.linalg.svd(xp.where(finite[..., None, None], a, xp.eye(a.shape[-1], dtype=a.dtype)))
    return u, s, vh, xp.where(finite, xp.linalg.det(u) * xp.linalg.det(vh), np.nan)


def _across(xp: Any, x: Any) -> Any:
    return xp.conjugate(xp.swapaxes(x, -1, -2))


def _back(xp: Any, vh: Any, middle: Any, u: Any) -> Any:
    return _across(xp, vh) @ middle @ _across(xp, u)


def _all_but_one(xp: Any, s: Any) -> Any:
    """Return the products of all values but each one."""
    before, behind = xp.ones_like(s), xp.ones_like(s)
    before[..., 1:] = xp.cumprod(s[..., :-1], -1)
    behind[..., :-1] = xp.flip(xp.cumprod(xp.flip(s[..., 1:], -1), -1), -1)
    return before * behind


def _all_but_two(xp: Any, s: Any) -> Any:
    """Return the products of all values but those of row and column; zeros on the diagonal."""
    count, one = s.shape[-1], xp.ones((), s.dtype)
    before, behind, between = xp.ones_like(s), xp.ones_like(s), xp.ones((*s.shape, s.shape[-1]), s.dtype)
    before[..., 1:] = xp.cumprod(s[..., :-1], -1)
    behind[..., :-1] = xp.flip(xp.cumprod(xp.flip(s[..., 1:], -1), -1), -1)
    later = xp.arange(count)[None, :] > xp.arange(count)[:, None]
    between[..., 1:] = xp.cumprod(xp.where(later, s[..., None, :], one), -1)[..., :-1]
    upper = xp.where(later, before[..., :, None] * between * behind[..., None, :], xp.zeros((), s.dtype))
    return upper + xp.swapaxes(upper, -1, -2)


def _scaled(b: Builder, number: Value, matrix: Value) -> Value:
    """Emit matrices times a number each."""
    rank = number.type.rank  # type: ignore[union-attr]
    return b.mul(b.expand_dims(number, axes=(rank, rank + 1)), matrix)
