"""`softmax_cross_entropy`: the loss of class scores against class numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.reduce.softmax import shifted, total

Tangents = Sequence[Value | None]


class SoftmaxCrossEntropy(Op):
    """-log_softmax(logits)[label] along `axis`, which has extent 1 in the labels and in the result.

    Where a label is `ignore_index` the loss is 0 and so is its derivative. Other labels that are no class are a
    ValueError.
    """

    native_in_eager = True
    name = "softmax_cross_entropy"
    amp = "high"
    defined_on = ("f", "iu")
    attributes = ("axis", "ignore_index")
    may_raise = True
    fresh = True

    def infer(self, logits: TensorType, labels: TensorType, *, axis: int, ignore_index: int) -> TensorType:
        if not logits.dtype.is_floating:
            raise TypeError(f"{self.name} needs float logits, not {logits.dtype.name}")
        if not labels.dtype.is_integer:
            raise TypeError(f"{self.name} needs integer labels, not {labels.dtype.name}")
        _refuse_shapes(self.name, logits.shape, labels.shape, axis)
        return TensorType(logits.dtype, (*logits.shape[:axis], 1, *logits.shape[axis + 1 :]))

    def eval(self, xp: Any, logits: Any, labels: Any, *, axis: int, ignore_index: int) -> Any:
        _refuse_shapes(self.name, logits.shape, labels.shape, axis)
        kept, classes = labels != ignore_index, logits.shape[axis]
        outside = kept & ((labels < 0) | (labels >= classes))
        if bool(xp.any(outside)):
            raise ValueError(f"{self.name}: label {int(labels[outside][0])} is not one of {classes} classes")
        if not labels.size or not classes:
            return xp.zeros(labels.shape, logits.dtype)
        scores = shifted(xp, logits, axis)
        chosen = xp.take_along_axis(scores, xp.where(kept, labels, 0), axis)
        loss = (xp.log(total(xp.exp(scores), axis)) - chosen).astype(logits.dtype, copy=False)
        return xp.where(kept, loss, xp.zeros((), loss.dtype))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, ignore_index: int) -> Any:  # fmt: skip
        (logits, labels), dx = primals, tangents[0]
        share = b.softmax(logits, axis=axis)
        at = b.class_places(labels, b.dim(logits, axis=axis), ignore_index=ignore_index)
        mean = b.sum(b.mul(share, dx), axis=(axis,), keepdim=True)
        change = b.sub(mean, b.sum(b.keep_at(dx, at, axis=axis), axis=(axis,), keepdim=True))
        return b.where(b.eq(labels, ignore_index), b.zeros_like(outs[0]), change)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        labels = np.array([[2], [-100], [0]])
        yield Sample((rng.normal(size=(3, 4)), labels), {"axis": 1, "ignore_index": -100})
        yield Sample((rng.normal(size=(2, 3, 2)), np.array([[[2, 0]], [[1, 2]]])), {"axis": 1, "ignore_index": 1})


def _refuse_shapes(name: str, logits: Sequence[Any], labels: Sequence[Any], axis: int) -> None:
    wanted = (*logits[:axis], 1, *logits[axis + 1 :])
    pairs = zip(labels, wanted, strict=False)
    if len(labels) != len(wanted) or any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in pairs):
        raise ValueError(f"{name}: labels of shape {_listed(labels)} do not fit logits of shape {_listed(logits)}")


def _listed(shape: Sequence[Any]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
