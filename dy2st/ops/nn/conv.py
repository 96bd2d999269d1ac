"""Convolution (cross-correlation, as in deep learning) over 1 to 3 axes, and its two transposes.

    conv(x, w)              x [batch, channels, *spatial], w [filters, channels / groups, *kernel]
    conv_input_grad(c, w)   c [batch, filters, *out]; gives the shape of x       (what conv_transpose layers compute)
    conv_weight_grad(x, c)  gives the shape of w

All three are one sum of products x * w * c over batch, groups, channels, places and windows, less one factor; so each
is bilinear, and the transposes of each are the other two. On arrays, windows are laid out as a matrix for one `matmul`
(Chellapilla et al., "High performance convolutional neural networks for document processing", 2006).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.transpose_helpers import in_shape_of
from dy2st.ops.nn.geometry import Pairs, offsets, padded, refuse_attributes, window_count, windows

Tangents = Sequence[Value | None]
Ints = tuple[int, ...]
Template = tuple[int | None, ...]


class _Conv(Op):
    native_in_eager = True
    abstract = True
    linear_in = (0, 1)
    may_raise = True
    fresh = True


class Conv(_Conv):
    """The convolution of `x` with filters `w`: result [batch, filters, *out]."""

    name = "conv"
    amp = "low"
    is_contraction = True
    superlinear = True
    attributes = ("stride", "padding", "dilation", "groups")

    def infer(self, x: TensorType, w: TensorType, *, stride: Ints, padding: Pairs, dilation: Ints,
              groups: int) -> TensorType:  # fmt: skip
        how = How(stride, padding, dilation, groups)
        return TensorType(x.dtype, _result_shape(self.name, x, w, how))

    def eval(self, xp: Any, x: Any, w: Any, *, stride: Ints, padding: Pairs, dilation: Ints, groups: int) -> Any:
        how = How(stride, padding, dilation, groups)
        shape = _result_shape(self.name, x, w, how)
        columns = _columns(xp, x, w.shape, shape, how)
        filters = w.reshape(groups, w.shape[0] // groups, math.prod(w.shape[1:]))
        return xp.matmul(filters, columns).reshape(shape)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        (ct,), (x, w) = cts, operands
        if linear[0]:
            return [b.shaped("conv_input_grad", [ct, w], b.shape(x), **attributes), None]  # type: ignore[list-item]
        return [None, b.shaped("conv_weight_grad", [x, ct], b.shape(w), **attributes)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for x, w, how in _examples():
            yield Sample((rng.normal(size=x), rng.normal(size=w)), how)


class ConvInputGrad(_Conv):
    """The tensor of `shape` (a template) whose convolution with `w` has the transpose that maps `c` to it."""

    name = "conv_input_grad"
    amp = "low"
    is_contraction = True
    superlinear = True
    attributes = ("shape", "stride", "padding", "dilation", "groups")

    def infer(self, c: TensorType, w: TensorType, *dims: ScalarType, shape: Template, stride: Ints, padding: Pairs,
              dilation: Ints, groups: int) -> TensorType:  # fmt: skip
        refuse_attributes(self.name, len(shape) - 2, stride=stride, padding=padding, dilation=dilation)
        return TensorType(c.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, c: Any, w: Any, *dims: int, shape: Template, stride: Ints, padding: Pairs,
             dilation: Ints, groups: int) -> Any:  # fmt: skip
        how, target = How(stride, padding, dilation, groups), fill(shape, dims)
        _refuse_cotangent(self.name, c.shape, target, w.shape, how)
        batch, counts, kernel = c.shape[0], c.shape[2:], w.shape[2:]
        filters = w.reshape(groups, w.shape[0] // groups, math.prod(w.shape[1:]))
        places = c.reshape(batch, groups, c.shape[1] // groups, math.prod(counts))
        columns = xp.matmul(filters.swapaxes(1, 2), places).reshape(batch, target[1], *kernel, *counts)
        spatial = [n + low + high for n, (low, high) in zip(target[2:], padding, strict=True)]
        out = xp.zeros((batch, target[1], *spatial), c.dtype)
        for place, where in offsets(kernel, stride, dilation, counts):
            part = out[where]  # `out[where] +=` would write twice
            part += columns[(slice(None), slice(None), *place)]
        inside = [slice(low, low + n) for n, (low, _) in zip(target[2:], padding, strict=True)]
        return out[(..., *inside)]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, shape: Template, **attributes: Any) -> Tangents:  # fmt: skip
        (ct,), (c, w, *dims) = cts, operands
        if linear[0]:
            return [in_shape_of(b, b.conv(ct, w, **attributes), c), None, *[None] * len(dims)]
        return [None, b.shaped("conv_weight_grad", [ct, c], b.shape(w), **attributes), *[None] * len(dims)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for x, w, how in _examples():
            c = _result_shape(self.name, np.empty(x), np.empty(w), How(**how))
            template = (*x[:2], None, *x[3:])
            yield Sample((rng.normal(size=c), rng.normal(size=w), x[2]), {"shape": template, **how})


class ConvWeightGrad(_Conv):
    """The filters of `shape` (a template) whose convolution with `x` has the transpose that maps `c` to them."""

    name = "conv_weight_grad"
    is_contraction = True
    superlinear = True
    attributes = ("shape", "stride", "padding", "dilation", "groups")

    def infer(self, x: TensorType, c: TensorType, *dims: ScalarType, shape: Template, stride: Ints, padding: Pairs,
              dilation: Ints, groups: int) -> TensorType:  # fmt: skip
        refuse_attributes(self.name, len(shape) - 2, stride=stride, padding=padding, dilation=dilation)
        return TensorType(x.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, c: Any, *dims: int, shape: Template, stride: Ints, padding: Pairs,
             dilation: Ints, groups: int) -> Any:  # fmt: skip
        how, target = How(stride, padding, dilation, groups), fill(shape, dims)
        _refuse_cotangent(self.name, c.shape, x.shape, target, how)
        columns = _columns(xp, x, target, c.shape, how)
        places = c.reshape(c.shape[0], groups, c.shape[1] // groups, math.prod(c.shape[2:]))
        # one product for each group over batch and places together
        left = places.transpose(1, 2, 0, 3).reshape(groups, places.shape[2], places.shape[0] * places.shape[3])
        right = columns.transpose(1, 2, 0, 3).reshape(groups, columns.shape[2], left.shape[2])
        return xp.matmul(left, right.swapaxes(1, 2)).reshape(target)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, shape: Template, **attributes: Any) -> Tangents:  # fmt: skip
        (ct,), (x, c, *dims) = cts, operands
        if linear[0]:
            return [b.shaped("conv_input_grad", [c, ct], b.shape(x), **attributes), None, *[None] * len(dims)]  # type: ignore[list-item]
        return [None, in_shape_of(b, b.conv(x, ct, **attributes), c), *[None] * len(dims)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for x, w, how in _examples():
            c = _result_shape(self.name, np.empty(x), np.empty(w), How(**how))
            template = (None, *w[1:])
            yield Sample((rng.normal(size=x), rng.normal(size=c), w[0]), {"shape": template, **how})


class How(NamedTuple):
    """The attributes of a convolution."""

    stride: Ints
    padding: Pairs
    dilation: Ints
    groups: int


def _columns(xp: Any, x: Any, w: Sequence[int], result: Sequence[int], how: How) -> Any:
    """Return the windows of `x` as [batch, groups, channels of a group * kernel, places]."""
    kernel, counts = w[2:], result[2:]
    rank = len(kernel)
    around = padded(xp, x, how.padding)
    view = windows(xp, around, kernel, how.stride, how.dilation, counts)
    spatial, inside = range(2, 2 + rank), range(2 + rank, 2 + 2 * rank)
    rows = view.transpose(0, 1, *inside, *spatial)
    return rows.reshape(x.shape[0], how.groups, w[1] * math.prod(kernel), math.prod(counts))


def _result_shape(name: str, x: Any, w: Any, how: How) -> tuple[Any, ...]:
    """Return [batch, filters, *out] for types or arrays; ValueError when they do not fit each other."""
    rank = len(x.shape) - 2
    if len(x.shape) != len(w.shape) or not 1 <= rank <= 3:
        raise ValueError(
            f"{name} needs an input and filters of one rank, 3 to 5, not {_listed(x.shape)} and {_listed(w.shape)}"
        )
    if x.dtype != w.dtype:
        raise TypeError(f"{name} needs an input and filters of one dtype, not {x.dtype.name} and {w.dtype.name}")
    if how.groups < 1:
        raise ValueError(f"{name} needs groups of at least 1, not {how.groups}")
    refuse_attributes(name, rank, stride=how.stride, padding=how.padding, dilation=how.dilation)
    _refuse_channels(name, x.shape, w.shape, how.groups)
    axes = zip(x.shape[2:], w.shape[2:], how.stride, how.padding, how.dilation, strict=True)
    return (x.shape[0], w.shape[0], *(window_count(name, n, k, s, p, d) for n, k, s, p, d in axes))


def _refuse_channels(name: str, x: Sequence[Any], w: Sequence[Any], groups: int) -> None:
    if isinstance(w[0], int) and w[0] % groups:
        raise ValueError(f"{name}: {w[0]} filters cannot be split into {groups} groups; filters are {_listed(w)}")
    if isinstance(x[1], int) and isinstance(w[1], int) and x[1] != w[1] * groups:
        raise ValueError(
            f"{name}: input {_listed(x)} has {x[1]} channels, but filters {_listed(w)} in {groups} groups need "
            f"{w[1] * groups}"
        )


def _refuse_cotangent(name: str, c: Sequence[int], x: Sequence[int], w: Sequence[int], how: How) -> None:
    _refuse_channels(name, x, w, how.groups)
    axes = zip(x[2:], w[2:], how.stride, how.padding, how.dilation, strict=True)
    wanted = (x[0], w[0], *(window_count(name, n, k, s, p, d) for n, k, s, p, d in axes))
    if tuple(c) != wanted:
        raise ValueError(
            f"{name}: input {_listed(x)} and filters {_listed(w)} give {_listed(wanted)}, which is not {_listed(c)}"
        )


def _listed(shape: Sequence[Any]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _examples() -> Iterator[tuple[Ints, Ints, dict[str, Any]]]:
    """Yield shapes of x and w with attributes."""
    yield (2, 3, 6), (4, 3, 3), {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}
    yield (2, 4, 5, 6), (6, 2, 2, 3), {
        "stride": (2, 1), "padding": ((1, 0), (1, 2)), "dilation": (1, 2), "groups": 2,
    }  # fmt: skip
    yield (1, 2, 3, 4, 3), (2, 2, 1, 2, 2), {
        "stride": (1, 2, 1), "padding": ((0, 0), (0, 1), (1, 0)), "dilation": (1, 1, 1), "groups": 1,
    }  # fmt: skip
