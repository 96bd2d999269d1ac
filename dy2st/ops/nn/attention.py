"""Attention as one operation, and its VJPs: the weights, one for each pair of places, need not be written down.

Behind queries, keys, values (and a cotangent) may stand a mask, and numbers by which weights are dropped: the seed and
the number of a draw with an element for each weight, the probability to keep one, what a kept one is multiplied by, and
the extents of batches that the draw has: those of the weights, or 1 where matrices of weights are dropped alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType, Type
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.reduce.softmax import Softmax
from dy2st.ops.shape.random import uniform
from dy2st.records import record

_MATMUL, _SOFTMAX = MatMul(), Softmax()
_PLAIN: dict[str, bool] = {"transpose_x": False, "transpose_y": False}
_ACROSS: dict[str, bool] = {"transpose_x": False, "transpose_y": True}
_DOWN: dict[str, bool] = {"transpose_x": True, "transpose_y": False}
_ROOM = 1 << 22
"""How many weights `eval` holds at a time, at least those of one query."""
T = TypeVar("T")
Tangents = Sequence[Value | None]


class AttentionOp(Op):
    """Attention, or a derivative of it: a contraction whose mask, if there is one, is operand number `mask_at`."""

    abstract = True
    native_in_eager = True
    is_contraction = True
    superlinear = True
    defined_on = ("f", "f", "f", "bf")
    attributes = ("causal",)
    mask_at: ClassVar[int]


class Attention(AttentionOp):
    """softmax(q k^T + mask) v over the last two axes; the mask may be left out, and broadcasts to the weights' shape.

    Where it is `causal` a query sees keys up to its own place. A pass makes it (fuse_attention.py), no function of the
    user's.
    """

    name = "attention"
    mask_at = 3
    may_raise = True
    fresh = True

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *more: Type, causal: bool) -> TensorType:
        _check(self.name, q, more)
        return _MATMUL.infer(_MATMUL.infer(q, k, **_ACROSS), v, **_PLAIN)

    def eval(self, xp: Any, q: Any, k: Any, v: Any, *more: Any, causal: bool = False) -> Any:
        parts: list[Any] = []
        for rows in _blocks(q, k):
            weights = _weights(xp, q[..., rows, :], k, more, rows, causal)
            kept = _kept(xp, drop_of(more, q.ndim), weights, rows, q.shape[-2])
            parts.append(_MATMUL.eval(xp, weights if kept is None else weights * kept, v, **_PLAIN))
        return parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-2)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *_: Any, causal: bool, **__: Any) -> Value | None:  # fmt: skip
        (q, k, v, *more), (dq, dk, dv, *dmore) = primals, tangents
        weights = _emitted_weights(b, q, k, more, causal)
        kept = _emitted_kept(b, more, weights)
        change = _emitted_change(b, (q, k), (dq, dk), mask_of(dmore, tensor_type(q).rank), tensor_type(weights))
        moved = None if change is None else _through_softmax(b, weights, change)
        return _added(b, _product(b, _times(b, moved, kept), v, _PLAIN),
                      _product(b, _times(b, weights, kept), dv, _PLAIN))  # fmt: skip

    def pull(self, b: Builder, operands: Sequence[Value], cts: Sequence[Value | None], wanted: Sequence[bool],
             *_: Any, causal: bool, **__: Any) -> Tangents | None:  # fmt: skip
        """Compute the weights again, block by block."""
        (q, k, v, *more), (ct,) = operands, cts
        if ct is None:
            return None
        made: list[Value | None] = [None] * len(operands)
        if any(wanted[:3]):
            made[:3] = b.emit("attention_grad", [q, k, v, ct, *more], {"causal": causal})
        if mask_of(more, tensor_type(q).rank) and wanted[3]:
            made[3] = b.emit("attention_mask_grad", [q, k, v, ct, *more], {"causal": causal})
        return made

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for causal, (q, k, v, mask) in zip((False, True, False), _extents(), strict=True):
            yield Sample(tuple(rng.normal(size=shape) for shape in (q, k, v, *mask)), {"causal": causal})
            parts = (rng.normal(size=shape) for shape in (q, k, v, *mask))
            yield Sample((*parts, *_DROP, *q[:-2]), {"causal": causal})


class AttentionGrad(AttentionOp):
    """The cotangents of q, k and v from that of softmax(q k^T + mask) v.

    Of the weights w they are dv = w^T ct, and with s = w * (ct v^T - sum(w * ct v^T)) dq = s k and dk = s^T q. Weights
    that are dropped are so in dv, and their cotangents ct v^T.
    """

    name = "attention_grad"
    mask_at = 4
    may_raise = True
    fresh = True

    def infer(self, q: TensorType, k: TensorType, v: TensorType, ct: TensorType,
              *more: Type, causal: bool) -> tuple[TensorType, TensorType, TensorType]:  # fmt: skip
        _check(self.name, q, more)
        scores, slopes = _inferred(q, k, v, ct)
        return _MATMUL.infer(slopes, k, **_PLAIN), _MATMUL.infer(scores, q, **_DOWN), _MATMUL.infer(scores, ct, **_DOWN)

    def eval(self, xp: Any, q: Any, k: Any, v: Any, ct: Any, *more: Any, causal: bool = False) -> Any:
        dqs: list[Any] = []
        dk, dv = xp.zeros_like(k), xp.zeros_like(v)
        for rows in _blocks(q, k):
            weights, slopes = _slopes(xp, (q, k, v, ct), more, rows, causal)
            dqs.append(_MATMUL.eval(xp, slopes, k, **_PLAIN))
            dk += _MATMUL.eval(xp, slopes, q[..., rows, :], **_DOWN)
            dv += _MATMUL.eval(xp, weights, ct[..., rows, :], **_DOWN)
        return dqs[0] if len(dqs) == 1 else xp.concatenate(dqs, axis=-2), dk, dv

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *_: Any, causal: bool, **__: Any) -> Sequence[Value | None]:  # fmt: skip
        (q, k, _v, ct, *_more), (dq, dk, _dv, dct, *_dmore) = primals, tangents
        c = _Change.of(b, primals, tangents, causal)
        w, dw = _times(b, c.weights, c.kept), _times(b, c.dweights, c.kept)
        return [
            _added(b, _product(b, c.dslopes, k, _PLAIN), _product(b, c.slopes, dk, _PLAIN)),
            _added(b, _product(b, c.dslopes, q, _DOWN), _product(b, c.slopes, dq, _DOWN)),
            _added(b, _product(b, dw, ct, _DOWN), _product(b, w, dct, _DOWN)),
        ]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for causal, (q, k, v, mask) in zip((False, True, False), _extents(), strict=True):
            for drop in ((), (*_DROP, *[1] * len(q[:-2]))):
                parts = tuple(rng.normal(size=shape) for shape in (q, k, v, (*q[:-1], v[-1]), *mask))
                yield Sample((*parts, *drop), {"causal": causal})


class AttentionMaskGrad(AttentionOp):
    """The cotangent of a mask that is added to the scores: theirs, added up to its shape."""

    name = "attention_mask_grad"
    mask_at = 4
    may_raise = True
    fresh = True

    def infer(self, q: TensorType, k: TensorType, v: TensorType, ct: TensorType,
              mask: TensorType, *drop: Type, causal: bool) -> TensorType:  # fmt: skip
        _check(self.name, q, (mask, *drop))
        _inferred(q, k, v, ct)
        return mask

    def eval(self, xp: Any, q: Any, k: Any, v: Any, ct: Any, *more: Any, causal: bool = False) -> Any:
        made = xp.zeros_like(more[0])
        for rows in _blocks(q, k):
            _, slopes = _slopes(xp, (q, k, v, ct), more, rows, causal)
            part = made if made.shape[-2] == 1 else made[..., rows, :]
            axes = tuple(i for i, (own, e) in enumerate(zip(part.shape, slopes.shape, strict=True)) if own != e)
            part += slopes.sum(axis=axes, keepdims=True)
        return made

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *_: Any, causal: bool, **__: Any) -> Value | None:  # fmt: skip
        change = _Change.of(b, primals, tangents, causal).dslopes
        mask = b.shape(primals[4])
        return None if change is None else b.shaped("sum_to", [change], mask)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        masks = ((1, 3, 5), (2, 1, 5), (2, 3, 1), (1, 1, 1), (2, 3, 5))
        for i, mask in enumerate(masks):
            parts = tuple(rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2), (2, 3, 2), mask))
            yield Sample((*parts, *((*_DROP, 2) if i % 2 else ())), {"causal": i == 1})


_DROP = (7, 3, 0.75, 1.25)


def _extents() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, ...]]]]:
    """Yield the shapes of queries, keys, values and a mask where there is one."""
    for batch, mask in (((), []), ((2,), [(1, 3, 5)]), ((2, 3), [(2, 1, 1, 5)])):
        yield (*batch, 3, 4), (*batch, 5, 4), (*batch, 5, 2), mask


# ---- operands behind queries, keys and values -----------------------------------------------------------------------
def mask_of(more: Sequence[T], rank: int) -> Sequence[T]:
    """Return the mask, if there is one, of what stands behind queries, keys, values and a cotangent."""
    return more[: len(more) % (2 + rank)]


def drop_of(more: Sequence[T], rank: int) -> Sequence[T]:
    """Return the numbers by which weights are dropped, if they are."""
    return more[len(more) % (2 + rank) :]


def _check(name: str, q: TensorType, more: Sequence[Type]) -> None:
    for mask in mask_of(more, q.rank):
        if not isinstance(mask, TensorType) or mask.dtype is not q.dtype or mask.rank != q.rank:
            raise TypeError(f"{name}: the mask must be a {q.dtype.name} tensor of rank {q.rank}, not {mask}")


def _inferred(q: TensorType, k: TensorType, v: TensorType, ct: TensorType) -> tuple[TensorType, TensorType]:
    """Return the types of the scores and of their cotangents."""
    scores = _MATMUL.infer(q, k, **_ACROSS)
    _MATMUL.infer(scores, v, **_PLAIN)
    return scores, _MATMUL.infer(ct, v, **_ACROSS)


# ---- on arrays -----------------------------------------------------------------------------------------------------
def _blocks(q: Any, k: Any) -> Iterator[slice]:
    """Yield the queries that are taken together, so that not all weights are in memory at once."""
    queries, each = q.shape[-2], k.shape[-2] * max(1, q.size // max(1, q.shape[-2] * q.shape[-1]))
    step = max(1, _ROOM // max(1, each))
    for start in range(0, max(1, queries), step):
        yield slice(start, start + step)


def _weights(xp: Any, q: Any, k: Any, more: Sequence[Any], rows: slice, causal: bool) -> Any:
    scores: Any = _MATMUL.eval(xp, q, k, **_ACROSS)
    for m in mask_of(more, q.ndim):
        scores = scores + (m if m.shape[-2] == 1 else m[..., rows, :])
    if causal:
        seen = xp.tril(xp.ones(scores.shape[-2:], bool), rows.start)
        scores = xp.where(seen, scores, xp.asarray(-np.inf, scores.dtype))
    return _SOFTMAX.eval(xp, scores, axis=scores.ndim - 1)


def _kept(xp: Any, drop: Sequence[Any], weights: Any, rows: slice, queries: int) -> Any:
    """Return what the weights of some queries are multiplied by; None where all are kept."""
    if not drop:
        return None
    seed, draw, keep, factor, *drawn = drop
    *batch, count, keys = weights.shape
    matrices = np.broadcast_to(np.arange(math.prod(drawn)).reshape(drawn), batch)
    places = [(int(matrix) * queries + rows.start) * keys for matrix in matrices.flat]
    numbers = [uniform(xp, seed, draw, count * keys, of_array(weights), first) for first in places]
    below = xp.asarray(numbers, weights.dtype).reshape(weights.shape) < weights.dtype.type(keep)
    return below * weights.dtype.type(factor)


def _slopes(xp: Any, parts: Sequence[Any], more: Sequence[Any], rows: slice, causal: bool) -> tuple[Any, Any]:
    """Return the weights of some queries, dropped as they are, and the cotangents of their scores."""
    q, k, v, ct = parts
    weights = _weights(xp, q[..., rows, :], k, more, rows, causal)
    kept = _kept(xp, drop_of(more, q.ndim), weights, rows, q.shape[-2])
    slopes: Any = _MATMUL.eval(xp, ct[..., rows, :], v, **_ACROSS)
    if kept is not None:
        slopes = slopes * kept
    slopes = weights * (slopes - (weights * slopes).sum(axis=-1, keepdims=True))
    return weights if kept is None else weights * kept, slopes


# ---- in Programs ---------------------------------------------------------------------------------------------------
@record(frozen=True)
class _Change:
    """The values of a VJP, and how they change; None where they do not."""

    weights: Value
    kept: Value | None
    """What weights are multiplied by; None where all are kept."""
    slopes: Value
    """The cotangents of the scores."""
    dweights: Value | None
    dslopes: Value | None

    @staticmethod
    def of(b: Builder, primals: Sequence[Value], tangents: Tangents, causal: bool) -> _Change:
        (q, k, v, ct, *more), (dq, dk, dv, dct, *dmore) = primals, tangents
        w = _emitted_weights(b, q, k, more, causal)
        kept = _emitted_kept(b, more, w)
        u = b.matmul(ct, v, **_ACROSS)
        u = u if kept is None else b.mul(u, kept)
        off = b.sub(u, _mean(b, w, u))
        change = _emitted_change(b, (q, k), (dq, dk), mask_of(dmore, tensor_type(q).rank), tensor_type(w))
        dw = None if change is None else _through_softmax(b, w, change)
        du = _times(b, _added(b, _product(b, dct, v, _ACROSS), _product(b, ct, dv, _ACROSS)), kept)
        ds = None if dw is None else b.sub(b.mul(dw, off), b.mul(w, _mean(b, dw, u)))
        ds = _added(b, ds, None if du is None else _through_softmax(b, w, du))
        return _Change(w, kept, b.mul(w, off), dw, ds)


def _emitted_weights(b: Builder, q: Value, k: Value, more: Sequence[Value], causal: bool) -> Value:
    scores = b.matmul(q, k, **_ACROSS)
    for m in mask_of(more, tensor_type(q).rank):
        scores = b.add(scores, m)
    if causal:
        unseen = b.sub(b.tril(b.ones_like(scores), diagonal=0), 1.0)
        scores = b.where(b.lt(unseen, 0.0), b.mul(unseen, math.inf), scores)
    return b.softmax(scores, axis=tensor_type(scores).rank - 1)


def _emitted_kept(b: Builder, more: Sequence[Value], weights: Value) -> Value | None:
    """Emit what the weights are multiplied by; None where all are kept."""
    shape = tensor_type(weights).shape
    if not drop_of(more, len(shape)):
        return None
    seed, draw, keep, factor, *drawn = drop_of(more, len(shape))
    dtype = tensor_type(weights).dtype
    keep, factor = (b.scalar_to_tensor(number, dtype=dtype) for number in (keep, factor))
    full = b.shaped("full", [keep], [*drawn, *b.shape(shape[-2:])])
    return b.broadcast_to(b.mul(b.emit("random_bernoulli", [seed, draw, full]), factor), shape)


def _emitted_change(
    b: Builder, factors: tuple[Value, Value], tangents: tuple[Value | None, Value | None], dmask: Tangents,
    scores: TensorType,
) -> Value | None:  # fmt: skip
    """Emit the tangent of the scores."""
    (q, k), (dq, dk) = factors, tangents
    change = _added(b, _product(b, dq, k, _ACROSS), _product(b, q, dk, _ACROSS))
    for m in dmask:
        change = _added(b, change, None if m is None else b.broadcast_to(m, scores.shape))
    return change


def _through_softmax(b: Builder, weights: Value, change: Value) -> Value:
    return b.mul(weights, b.sub(change, _mean(b, weights, change)))


def _mean(b: Builder, weights: Value, x: Value) -> Value:
    return b.sum(b.mul(weights, x), axis=(tensor_type(weights).rank - 1,), keepdim=True)


def _times(b: Builder, x: Value | None, kept: Value | None) -> Value | None:
    return x if x is None or kept is None else b.mul(x, kept)


def _product(b: Builder, x: Value | None, y: Value | None, form: dict[str, bool]) -> Value | None:
    return None if x is None or y is None else b.matmul(x, y, **form)


def _added(b: Builder, x: Value | None, y: Value | None) -> Value | None:
    return y if x is None else x if y is None else b.add(x, y)
