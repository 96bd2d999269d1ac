"""Attention as one operation: the weights need not be written down."""

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
_FORMS = ({"transpose_x": False, "transpose_y": True}, {"transpose_x": False, "transpose_y": False})


class Attention(Op):
    """softmax(q k^T + mask) v over the last two axes; the mask may be left out, and broadcasts to the weights' shape.

    A pass makes it (passes/attend.py), no function of the user's.
    """

    name = "attention"
    may_raise = True
    fresh = True

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *mask: TensorType) -> TensorType:
        scores = _MATMUL.infer(q, k, **_FORMS[0])
        if any(m.dtype is not q.dtype or m.rank != q.rank for m in mask):
            raise TypeError(f"attention: the mask must be a {q.dtype.name} tensor of rank {q.rank}, not {mask[0]}")
        return _MATMUL.infer(scores, v, **_FORMS[1])

    def eval(self, xp: Any, q: Any, k: Any, v: Any, *mask: Any) -> Any:
        scores: Any = _MATMUL.eval(xp, q, k, **_FORMS[0])
        for m in mask:
            scores = scores + m
        weights = _SOFTMAX.eval(xp, scores, axis=scores.ndim - 1)
        return _MATMUL.eval(xp, weights, v, **_FORMS[1])

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *_: Any, **__: Any) -> Value | None:  # fmt: skip
        (q, k, v, *mask), (dq, dk, dv, *dmask) = primals, tangents
        scores = b.matmul(q, k, **_FORMS[0])
        for m in mask:
            scores = b.add(scores, m)
        axis = tensor_type(scores).rank - 1
        weights = b.softmax(scores, axis=axis)
        changes = [b.matmul(*factors, **_FORMS[0]) for factors in ((dq, k), (q, dk)) if None not in factors]
        changes += [b.broadcast_to(m, tensor_type(scores).shape) for m in dmask if m is not None]
        terms: list[Value] = []
        if changes:
            change = changes[0]
            for other in changes[1:]:
                change = b.add(change, other)
            mean = b.sum(b.mul(weights, change), axis=(axis,), keepdim=True)
            terms.append(b.matmul(b.mul(weights, b.sub(change, mean)), v, **_FORMS[1]))
        if dv is not None:
            terms.append(b.matmul(weights, dv, **_FORMS[1]))
        return b.add(*terms) if len(terms) == 2 else terms[0] if terms else None

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for batch, mask in (((), None), ((2,), (1, 3, 5)), ((2, 3), (2, 1, 1, 5))):
            parts = [rng.normal(size=(*batch, *s)) for s in ((3, 4), (5, 4), (5, 2))]
            yield Sample((*parts, *([rng.normal(size=mask)] if mask else [])))
