"""`layer_norm`, `batch_norm_train`, `batch_norm_infer`: (x - mean) / sqrt(variance + epsilon) * scale + bias.

The variance is the biased one (divided by the count). Training ops give mean and variance as results, which their
derivative rules read, so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType, float16, float32
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.shapes import Extent

Tangents = Sequence[Value | None]


class LayerNorm(Op):
    """Normalise over the last `rank` axes, whose shape `scale` and `bias` have.

    Results are the normalised tensor, and mean and variance with extents of 1 in those axes.
    """

    native_in_eager = True
    name = "layer_norm"
    amp = "high"
    defined_on = "f"
    attributes = ("rank", "epsilon")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, scale: TensorType, bias: TensorType, *, rank: int,
              epsilon: float) -> tuple[TensorType, ...]:  # fmt: skip
        _refuse(self.name, x, x.shape[x.rank - rank :], scale=scale, bias=bias)
        small = TensorType(x.dtype, (*x.shape[: x.rank - rank], *(1,) * rank))
        return x, small, small

    def eval(self, xp: Any, x: Any, scale: Any, bias: Any, *, rank: int, epsilon: float) -> Any:
        _refuse(self.name, x, x.shape[x.ndim - rank :], scale=scale, bias=bias)
        axis = tuple(range(x.ndim - rank, x.ndim))
        mean, variance = _moments(xp, x, axis)
        out = _normalised(xp, x, mean, variance, scale, bias, epsilon)
        return out, _narrow(xp, mean, x), _narrow(xp, variance, x)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, rank: int, epsilon: float) -> Any:  # fmt: skip
        (x, scale, _), (dx, dscale, dbias), (_, mean, variance) = primals, tangents, outs
        total = tensor_type(x).rank
        axis = tuple(range(total - rank, total))
        if tensor_type(x).dtype is float16:  # its variance may have overflowed
            x, scale, dx, dscale, dbias = (_cast(b, v, float32) for v in (x, scale, dx, dscale, dbias))
            mean = b.mean(x, axis=axis, keepdim=True)
            variance = b.mean(b.square(b.sub(x, mean)), axis=axis, keepdim=True)
        dmean, dvariance = _moment_tangents(b, x, mean, dx, axis)
        parts = [x, mean, variance, scale], [dx, dmean, dvariance, dscale, dbias]
        made = [_tangent(b, *parts, epsilon), dmean, dvariance]
        return [_cast(b, v, tensor_type(primals[0]).dtype) for v in made]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for rank, shape in ((1, (3, 4)), (2, (2, 3, 4))):
            operands = (rng.normal(size=shape), rng.normal(size=shape[-rank:]), rng.normal(size=shape[-rank:]))
            yield Sample(operands, {"rank": rank, "epsilon": 1e-5})


class BatchNormTrain(Op):
    """Normalise each channel (its axis is `axis`) over all other axes; scale and bias have one element a channel.

    Results are the normalised tensor, and mean and variance of each channel.
    """

    native_in_eager = True
    name = "batch_norm_train"
    amp = "high"
    defined_on = "f"
    attributes = ("axis", "epsilon")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, scale: TensorType, bias: TensorType, *, axis: int,
              epsilon: float) -> tuple[TensorType, ...]:  # fmt: skip
        _refuse(self.name, x, x.shape[axis : axis + 1], scale=scale, bias=bias)
        small = TensorType(x.dtype, (x.shape[axis],))
        return x, small, small

    def eval(self, xp: Any, x: Any, scale: Any, bias: Any, *, axis: int, epsilon: float) -> Any:
        _refuse(self.name, x, x.shape[axis : axis + 1], scale=scale, bias=bias)
        mean, variance = _moments(xp, x, _others(x.ndim, axis))
        out = _normalised(xp, x, mean, variance, scale.reshape(mean.shape), bias.reshape(mean.shape), epsilon)
        return out, _narrow(xp, mean, x).reshape(-1), _narrow(xp, variance, x).reshape(-1)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, epsilon: float) -> Any:  # fmt: skip
        rank, x, dx = tensor_type(primals[0]).rank, primals[0], tangents[0]
        (scale, _), (dscale, dbias) = (_channels(b, t, rank, axis) for t in (primals[1:], tangents[1:]))
        mean, variance = _channels(b, outs[1:], rank, axis)
        dmean, dvariance = _moment_tangents(b, x, mean, dx, _others(rank, axis))
        dout = _tangent(b, [x, mean, variance, scale], [dx, dmean, dvariance, dscale, dbias], epsilon)
        flat = [t if t is None else b.squeeze(t, axes=_others(rank, axis)) for t in (dmean, dvariance)]
        return [dout, *flat]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for axis, shape in ((1, (4, 3, 2)), (1, (5, 2)), (3, (2, 2, 2, 3))):
            operands = (rng.normal(size=shape), rng.normal(size=shape[axis]), rng.normal(size=shape[axis]))
            yield Sample(operands, {"axis": axis, "epsilon": 1e-5})


class BatchNormInfer(Op):
    """Normalise each channel (its axis is `axis`) with a given mean and variance of one element a channel."""

    native_in_eager = True
    name = "batch_norm_infer"
    amp = "high"
    defined_on = "f"
    attributes = ("axis", "epsilon")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, scale: TensorType, bias: TensorType, mean: TensorType, variance: TensorType, *,
              axis: int, epsilon: float) -> TensorType:  # fmt: skip
        _refuse(self.name, x, x.shape[axis : axis + 1], scale=scale, bias=bias, mean=mean, variance=variance)
        return x

    def eval(self, xp: Any, x: Any, scale: Any, bias: Any, mean: Any, variance: Any, *, axis: int,
             epsilon: float) -> Any:  # fmt: skip
        _refuse(self.name, x, x.shape[axis : axis + 1], scale=scale, bias=bias, mean=mean, variance=variance)
        line = tuple(-1 if i == axis else 1 for i in range(x.ndim))
        mean, variance, scale, bias = (p.reshape(line) for p in (mean, variance, scale, bias))
        return _normalised(xp, x, mean, variance, scale, bias, epsilon)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, epsilon: float) -> Any:  # fmt: skip
        rank = tensor_type(primals[0]).rank
        scale, _, mean, variance = _channels(b, primals[1:], rank, axis)
        dscale, dbias, dmean, dvariance = _channels(b, tangents[1:], rank, axis)
        changes = [tangents[0], dmean, dvariance, dscale, dbias]
        return _tangent(b, [primals[0], mean, variance, scale], changes, epsilon)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for axis, shape in ((1, (4, 3, 2)), (1, (5, 2))):
            parts = [rng.normal(size=shape[axis]) for _ in range(3)]
            variance = rng.uniform(0.5, 2, size=shape[axis])
            yield Sample((rng.normal(size=shape), *parts, variance), {"axis": axis, "epsilon": 1e-5})


def _cast(b: Builder, v: Any, dtype: DType) -> Any:
    """Emit a value as one of another dtype; None stands for zeros."""
    return v if v is None or tensor_type(v).dtype is dtype else b.cast(v, dtype=dtype)


def _others(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(rank) if i != axis)


def _channels(b: Builder, values: Sequence[Value | None], rank: int, axis: int) -> list[Any]:
    """Emit tensors of one element a channel as tensors that broadcast along the other axes."""
    return [v if v is None else b.expand_dims(v, axes=_others(rank, axis)) for v in values]


def _moments(xp: Any, x: Any, axis: tuple[int, ...]) -> tuple[Any, Any]:
    """Return mean and variance with extents of 1; those of float16 as float32, where large ones do not overflow."""
    wide = np.dtype(np.float32) if x.dtype == np.float16 else x.dtype
    count = 1
    for a in axis:
        count *= x.shape[a]
    mean = x.sum(axis=axis, keepdims=True, dtype=wide) / wide.type(count)
    off = x - mean
    variance = (off * off).sum(axis=axis, keepdims=True, dtype=wide) / wide.type(count)
    return xp.asarray(mean), xp.asarray(variance)


def _narrow(xp: Any, moment: Any, x: Any) -> Any:
    with np.errstate(over="ignore"):
        return moment.astype(x.dtype, copy=False)


def _normalised(xp: Any, x: Any, mean: Any, variance: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    out = x - mean
    out *= 1 / xp.sqrt(variance + variance.dtype.type(epsilon))
    out *= scale
    out += bias
    return out.astype(x.dtype, copy=False)


def _moment_tangents(b: Builder, x: Value, mean: Value, dx: Value | None, axis: tuple[int, ...]) -> tuple[Any, Any]:
    """Emit d mean = mean(dx) and d variance = 2 mean((x - mean) dx)."""
    if dx is None:
        return None, None
    off = b.sub(x, mean)
    return (
        b.mean(dx, axis=axis, keepdim=True),
        b.mul(b.mean(b.mul(off, dx), axis=axis, keepdim=True), 2),
    )


def _tangent(b: Builder, primals: Sequence[Any], tangents: Sequence[Any], epsilon: float) -> Any:
    """Emit the tangent of (x - mean) * rsqrt(variance + epsilon) * scale + bias; None stands for a zero tangent."""
    x, mean, variance, scale = primals
    dx, dmean, dvariance, dscale, dbias = tangents
    rate = b.rsqrt(b.add(variance, epsilon))
    terms: list[Value] = []
    inner: list[Value] = []
    if dx is not None:
        inner.append(dx)
    if dmean is not None:
        inner.append(b.neg(dmean))
    if dvariance is not None:
        slope = b.mul(b.mul(rate, rate), -0.5)
        inner.append(b.mul(b.sub(x, mean), b.mul(slope, dvariance)))
    if inner:
        terms.append(b.mul(b.mul(_sum(b, inner), rate), scale))
    if dscale is not None:
        terms.append(b.mul(b.mul(b.sub(x, mean), rate), dscale))
    if dbias is not None:
        terms.append(dbias)
    return b.broadcast_to(_sum(b, terms), x.type.shape)


def _sum(b: Builder, terms: list[Value]) -> Value:
    total = terms[0]
    for term in terms[1:]:
        total = b.add(total, term)
    return total


def _refuse(name: str, x: Any, shape: tuple[Extent, ...], **parts: Any) -> None:
    for what, part in parts.items():
        if part.dtype != x.dtype:
            raise TypeError(f"{name}: {what} must have the dtype {x.dtype.name}, not {part.dtype.name}")
        pairs = zip(part.shape, shape, strict=False)
        differ = any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in pairs)
        if len(part.shape) != len(shape) or differ:
            raise ValueError(f"{name}: {what} must have shape {_listed(shape)}, not {_listed(part.shape)}")


def _listed(shape: Sequence[Any]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
