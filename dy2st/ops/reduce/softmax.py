"""`softmax` and `log_softmax` along one axis, shifted by the maximum so that nothing overflows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample

Tangents = Sequence[Value | None]


class _OverAxis(Op):
    native_in_eager = True
    abstract = True
    defined_on = "f"
    attributes = ("axis",)
    fresh = True

    def infer(self, x: TensorType, *, axis: int) -> TensorType:
        if not x.dtype.is_floating:
            raise TypeError(f"{self.name} needs floats, not {x.dtype.name}")
        return x

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3, 4)),), {"axis": 1})
        yield Sample((rng.normal(size=(5,)),), {"axis": 0})
        yield Sample((np.zeros((0, 3)),), {"axis": 1})


class Softmax(_OverAxis):
    """exp(x) / sum(exp(x)) along `axis`; ds = s * (dx - sum(s * dx))."""

    name = "softmax"
    amp = "high"

    def eval(self, xp: Any, x: Any, *, axis: int) -> Any:
        if not x.size:
            return xp.empty_like(x)
        out = shifted(xp, x, axis)
        xp.exp(out, out=out)
        out /= total(out, axis)
        return out

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int) -> Any:  # fmt: skip
        (s,), (dx,) = outs, tangents
        return b.mul(s, b.sub(dx, b.sum(b.mul(s, dx), axis=(axis,), keepdim=True)))


class LogSoftmax(_OverAxis):
    """log(softmax(x)); its derivative is dx - sum(softmax(x) * dx)."""

    name = "log_softmax"
    amp = "high"

    def eval(self, xp: Any, x: Any, *, axis: int) -> Any:
        if not x.size:
            return xp.empty_like(x)
        out = shifted(xp, x, axis)
        out -= xp.log(total(xp.exp(out), axis))
        return out

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int) -> Any:  # fmt: skip
        (out,), (dx,) = outs, tangents
        return b.sub(dx, b.sum(b.mul(b.exp(out), dx), axis=(axis,), keepdim=True))


def total(x: Any, axis: int) -> Any:
    """Return the sum along `axis`, kept as an extent of 1; float16 is accumulated in float32."""
    return x.sum(axis=axis, keepdims=True, dtype=np.float32 if x.dtype == np.float16 else x.dtype)


def shifted(xp: Any, x: Any, axis: int) -> Any:
    """Return `x` less its maximum along `axis`, a new array."""
    return x - x.max(axis=axis, keepdims=True)
