"""Attention as one operation, and its pull-back: the weights, one for each pair of places, need not be written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.base import Op, Sample
from dy2st.ops.matmul import MatMul
from dy2st.ops.softmax import Softmax

_MATMUL, _SOFTMAX = MatMul(), Softmax()
_PLAIN: dict[str, bool] = {"transpose_x": False, "transpose_y": False}
_ACROSS: dict[str, bool] = {"transpose_x": False, "transpose_y": True}
_DOWN: dict[str, bool] = {"transpose_x": True, "transpose_y": False}
_ROOM = 1 << 22
"""How many weights `eval` holds at a time, at least those of one query."""
MASKED = 1e9
"""What is taken from a score that is not seen: its weight is 0 then."""
Tangents = Sequence[Value | None]


class Attention(Op):
    """softmax(q k^T + mask) v over the last two axes; the mask may be left out, and broadcasts to the weights' shape.

    Where it is `causal` a query sees keys up to its own place. A pass makes it (passes/attend.py), no function of the
    user's.
    """

    name = "attention"
    attributes = ("causal",)
    may_raise = True
    fresh = True

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *mask: TensorType, causal: bool) -> TensorType:
        _check_mask(self.name, q, mask)
        return _MATMUL.infer(_MATMUL.infer(q, k, **_ACROSS), v, **_PLAIN)

    def eval(self, xp: Any, q: Any, k: Any, v: Any, *mask: Any, causal: bool = False) -> Any:
        parts = [
            _MATMUL.eval(xp, _weights(xp, q[..., rows, :], k, mask, rows, causal), v, **_PLAIN)
            for rows in _blocks(q, k)
        ]
        return parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-2)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *_: Any, causal: bool, **__: Any) -> Value | None:  # fmt: skip
        (q, k, v, *mask), (dq, dk, dv, *dmask) = primals, tangents
        weights = _emitted_weights(b, q, k, mask, causal)
        change = _emitted_change(b, (q, k), (dq, dk), dmask, tensor_type(weights))
        moved = None if change is None else _through_softmax(b, weights, change)
        return _added(b, _product(b, moved, v, _PLAIN), _product(b, weights, dv, _PLAIN))

    def pull(self, b: Builder, operands: Sequence[Value], cts: Sequence[Value | None], wanted: Sequence[bool],
             *_: Any, causal: bool, **__: Any) -> Tangents | None:  # fmt: skip
        """Compute the weights again, block by block; a mask that learns has as many cotangents as there are weights."""
        (q, k, v, *mask), (ct,) = operands, cts
        if ct is None or any(wanted[3:]):
            return None
        return [*b.emit("attention_grad", [q, k, v, ct, *mask], {"causal": causal}), *(None for _ in mask)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for causal, (q, k, v, mask) in zip((False, True, False), _extents(), strict=True):
            yield Sample(tuple(rng.normal(size=shape) for shape in (q, k, v, *mask)), {"causal": causal})


class AttentionGrad(Op):
    """The cotangents of q, k and v from that of softmax(q k^T + mask) v.

    Of the weights w they are dv = w^T ct, and with s = w * (ct v^T - sum(w * ct v^T)) dq = s k and dk = s^T q.
    """

    name = "attention_grad"
    attributes = ("causal",)
    may_raise = True
    fresh = True

    def infer(self, q: TensorType, k: TensorType, v: TensorType, ct: TensorType,
              *mask: TensorType, causal: bool) -> tuple[TensorType, TensorType, TensorType]:  # fmt: skip
        _check_mask(self.name, q, mask)
        scores = _MATMUL.infer(q, k, **_ACROSS)
        _MATMUL.infer(scores, v, **_PLAIN)
        slopes = _MATMUL.infer(ct, v, **_ACROSS)
        return _MATMUL.infer(slopes, k, **_PLAIN), _MATMUL.infer(scores, q, **_DOWN), _MATMUL.infer(scores, ct, **_DOWN)

    def eval(self, xp: Any, q: Any, k: Any, v: Any, ct: Any, *mask: Any, causal: bool = False) -> Any:
        dqs: list[Any] = []
        dk, dv = xp.zeros_like(k), xp.zeros_like(v)
        for rows in _blocks(q, k):
            weights = _weights(xp, q[..., rows, :], k, mask, rows, causal)
            slopes: Any = _MATMUL.eval(xp, ct[..., rows, :], v, **_ACROSS)
            slopes = weights * (slopes - (weights * slopes).sum(axis=-1, keepdims=True))
            dqs.append(_MATMUL.eval(xp, slopes, k, **_PLAIN))
            dk += _MATMUL.eval(xp, slopes, q[..., rows, :], **_DOWN)
            dv += _MATMUL.eval(xp, weights, ct[..., rows, :], **_DOWN)
        return dqs[0] if len(dqs) == 1 else xp.concatenate(dqs, axis=-2), dk, dv

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *_: Any, causal: bool, **__: Any) -> Sequence[Value | None]:  # fmt: skip
        (q, k, v, ct, *mask), (dq, dk, dv, dct, *dmask) = primals, tangents
        w = _emitted_weights(b, q, k, mask, causal)
        t = tensor_type(w)
        slopes = b.matmul(ct, v, **_ACROSS)
        off = b.sub(slopes, _mean(b, w, slopes))
        change = _emitted_change(b, (q, k), (dq, dk), dmask, t)
        dw = None if change is None else _through_softmax(b, w, change)
        dslopes = _added(b, _product(b, dct, v, _ACROSS), _product(b, ct, dv, _ACROSS))
        ds = None if dw is None else b.sub(b.mul(dw, off), b.mul(w, _mean(b, dw, slopes)))
        ds = _added(b, ds, None if dslopes is None else _through_softmax(b, w, dslopes))
        s = b.mul(w, off)
        return [
            _added(b, _product(b, ds, k, _PLAIN), _product(b, s, dk, _PLAIN)),
            _added(b, _product(b, ds, q, _DOWN), _product(b, s, dq, _DOWN)),
            _added(b, _product(b, dw, ct, _DOWN), _product(b, w, dct, _DOWN)),
        ]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for causal, (q, k, v, mask) in zip((False, True, False), _extents(), strict=True):
            parts = tuple(rng.normal(size=shape) for shape in (q, k, v, (*q[:-1], v[-1]), *mask))
            yield Sample(parts, {"causal": causal})


def _extents() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, ...]]]]:
    """Yield the shapes of queries, keys, values and a mask where there is one."""
    for batch, mask in (((), []), ((2,), [(1, 3, 5)]), ((2, 3), [(2, 1, 1, 5)])):
        yield (*batch, 3, 4), (*batch, 5, 4), (*batch, 5, 2), mask


def _check_mask(name: str, q: TensorType, mask: Sequence[TensorType]) -> None:
    if any(m.dtype is not q.dtype or m.rank != q.rank for m in mask):
        raise TypeError(f"{name}: the mask must be a {q.dtype.name} tensor of rank {q.rank}, not {mask[0]}")


# ---- on arrays -----------------------------------------------------------------------------------------------------
def _blocks(q: Any, k: Any) -> Iterator[slice]:
    """Yield the queries that are taken together, so that not all weights are in memory at once."""
    queries, each = q.shape[-2], k.shape[-2] * max(1, q.size // max(1, q.shape[-2] * q.shape[-1]))
    step = max(1, _ROOM // max(1, each))
    for start in range(0, max(1, queries), step):
        yield slice(start, start + step)


def _weights(xp: Any, q: Any, k: Any, mask: Sequence[Any], rows: slice, causal: bool) -> Any:
    scores: Any = _MATMUL.eval(xp, q, k, **_ACROSS)
    for m in mask:
        scores = scores + (m if m.shape[-2] == 1 else m[..., rows, :])
    if causal:
        seen = xp.tril(xp.ones(scores.shape[-2:], bool), rows.start)
        scores = xp.where(seen, scores, xp.asarray(-np.inf, scores.dtype))
    return _SOFTMAX.eval(xp, scores, axis=scores.ndim - 1)


# ---- in Programs ---------------------------------------------------------------------------------------------------
def _emitted_weights(b: Builder, q: Value, k: Value, mask: Sequence[Value], causal: bool) -> Value:
    scores = b.matmul(q, k, **_ACROSS)
    for m in mask:
        scores = b.add(scores, m)
    if causal:
        unseen = b.sub(b.tril(b.ones_like(scores), diagonal=0), 1.0)
        scores = b.add(scores, b.mul(unseen, MASKED))
    return b.softmax(scores, axis=tensor_type(scores).rank - 1)


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


def _product(b: Builder, x: Value | None, y: Value | None, form: dict[str, bool]) -> Value | None:
    return None if x is None or y is None else b.matmul(x, y, **form)


def _added(b: Builder, x: Value | None, y: Value | None) -> Value | None:
    return y if x is None else x if y is None else b.add(x, y)
