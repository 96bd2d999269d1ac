"""Weights as integers with scales: read as numbers, and as the right factor of a product.

A row of a weight is what makes one output: row i stands for `weight[i] * scale[i]`. With `bits` 4 a byte holds two
rows, 2i in the low half and 2i + 1 in the high one. With a `group`, each so many elements of a row have a scale of
their own, and `scale` is [groups, rows].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import int8
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.shapes import Extent

GROUP_STEP = 16
"""A group is a multiple of so many elements: whole vectors of native code."""


class Dequantize(Op):
    """The numbers that a weight of integers stands for: integer times scale, of the dtype of the scales."""

    name = "dequantize"
    attributes = ("bits", "group")
    linear_in = (1,)
    may_raise = True
    fresh = True

    def infer(self, weight: TensorType, scale: TensorType, *, bits: int, group: int) -> TensorType:
        return TensorType(scale.dtype, _numbers_shape(weight, scale, bits, group))

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return not _is_known_to_fit(*types, **attributes)

    def eval(self, xp: Any, weight: Any, scale: Any, *, bits: int, group: int) -> Any:
        return _numbers(xp, weight, scale, bits, group)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, bits: int, group: int) -> Tangents:  # fmt: skip
        weight, scale = operands
        return [None, None if cts[0] is None else _of_scales(b, cts[0], weight, scale, bits, group)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for weight, scale, attributes in _weights(rng):
            yield Sample((weight, scale), attributes)
        filters = rng.integers(-127, 128, size=(4, 2, 3, 3), dtype=np.int8)
        yield Sample((filters, rng.random(4)), {"bits": 8, "group": 0})
        yield Sample((filters, rng.random(8)), {"bits": 4, "group": 0})
        yield Sample((filters[:, 0, 0, 0].copy(), rng.random(4)), {"bits": 8, "group": 0})


class QuantizedMatMul(Op):
    """x times the transpose of what a weight of integers stands for; native code reads them as they are.

    x is [m, k], the weight [n, k] (of 4 bits [n / 2, k]), the result [m, n] in the dtype of x, which the scales have,
    too. float16 is accumulated in float32.
    """

    name = "quantized_matmul"
    is_contraction = True
    superlinear = True
    attributes = ("bits", "group")
    linear_in = (0, 2)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, weight: TensorType, scale: TensorType, *, bits: int, group: int) -> TensorType:
        rows, inner = _matrix_shape(weight, scale, bits, group)
        if x.rank != 2 or x.dtype is not scale.dtype:
            raise TypeError(f"quantized_matmul needs a matrix of the dtype of the scales, not {x} and {scale}")
        if _are_apart(x.shape[1], inner):
            raise ValueError(f"quantized_matmul: the inner extents differ: {x.shape[1]} and {inner}")
        return TensorType(x.dtype, (x.shape[0], rows))

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        x, weight, scale = types
        return x.shape[1] != weight.shape[1] or not _is_known_to_fit(weight, scale, **attributes)

    def eval(self, xp: Any, x: Any, weight: Any, scale: Any, *, bits: int, group: int) -> Any:
        if x.ndim != 2 or x.shape[1] != weight.shape[1]:
            raise ValueError(f"quantized_matmul: [{', '.join(map(str, x.shape))}] times {weight.shape[1]} elements")
        if x.dtype == np.float16:
            x, scale = x.astype(np.float32), scale.astype(np.float32)
            return xp.matmul(x, _numbers(xp, weight, scale, bits, group).T).astype(np.float16)
        return xp.matmul(x, _numbers(xp, weight, scale, bits, group).T)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, bits: int, group: int) -> Tangents:  # fmt: skip
        (x, weight, scale), (ct,) = operands, cts
        if ct is None:
            return [None, None, None]
        if linear[0]:
            numbers = b.dequantize(weight, scale, bits=bits, group=group)
            return [b.matmul(ct, numbers, transpose_x=False, transpose_y=False), None, None]
        slope = b.matmul(ct, x, transpose_x=True, transpose_y=False)
        return [None, None, _of_scales(b, slope, weight, scale, bits, group)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for weight, scale, attributes in _weights(rng):
            for rows in (1, 3, 10):
                yield Sample((rng.normal(size=(rows, weight.shape[1])), weight, scale), attributes)
        empty = {"bits": 8, "group": 0}
        yield Sample((np.ones((2, 0)), np.ones((3, 0), np.int8), np.ones(3)), empty)
        yield Sample((np.ones((0, 2)), np.ones((3, 2), np.int8), np.ones(3)), empty)


def _of_scales(b: Builder, ct: Value, weight: Value, scale: Value, bits: int, group: int) -> Value:
    """Emit the cotangent of scales from that of the numbers: what integers times it add up to."""
    ones = b.shaped("full", [b.constant(1, tensor_type(scale).dtype)], b.shape(scale))
    terms = b.mul(ct, b.dequantize(weight, ones, bits=bits, group=group))
    if not group:
        rank = tensor_type(terms).rank
        return b.sum(terms, axis=tuple(range(1, rank)), keepdim=False) if rank > 1 else terms
    groups, rows = b.shape(scale)
    split = b.shaped("reshape", [b.transpose(terms, perm=(1, 0))], [groups, group, rows])
    return b.sum(split, axis=(1,), keepdim=False)


def _weights(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, dict[str, int]]]:
    """Yield weights, scales and attributes of small matrices."""
    for bits in (8, 4):
        low, high = (-128, 128) if bits == 4 else (-127, 128)
        for rows, inner in ((4, 5), (6, 35)):
            weight = rng.integers(low, high, size=(rows * bits // 8, inner), dtype=np.int8)
            yield weight, rng.random(rows) / 127, {"bits": bits, "group": 0}
        weight = rng.integers(low, high, size=(6 * bits // 8, 48), dtype=np.int8)
        yield weight, rng.random((3, 6)) / 127, {"bits": bits, "group": 16}


def _numbers(xp: Any, weight: Any, scale: Any, bits: int, group: int) -> Any:
    """Compute the numbers; ValueError where scales are not as many as the rows and groups are."""
    integers = unpacked(xp, weight) if bits == 4 else weight
    wanted = (integers.shape[1] // group, integers.shape[0]) if group else integers.shape[:1]
    if tuple(scale.shape) != tuple(wanted) or (group and integers.shape[1] % group):
        raise ValueError(f"dequantize: scales of {_listed(scale.shape)} for integers of {_listed(integers.shape)}")
    if group:
        return integers.astype(scale.dtype) * xp.repeat(scale.T, group, axis=1)
    return integers.astype(scale.dtype) * scale.reshape(-1, *(1,) * (integers.ndim - 1))


def unpacked(xp: Any, weight: Any) -> Any:
    """Return the integers of 4 bits that bytes hold, two rows in each row of bytes."""
    low = xp.right_shift(xp.left_shift(weight, 4), 4)
    both = xp.stack([low, xp.right_shift(weight, 4)], axis=1)
    return both.reshape(2 * weight.shape[0], *weight.shape[1:])


def _matrix_shape(weight: TensorType, scale: TensorType, bits: int, group: int) -> tuple[Extent, Extent]:
    if weight.rank != 2:
        raise ValueError(f"quantized_matmul needs a weight of rank 2, not {weight}")
    rows, inner = _numbers_shape(weight, scale, bits, group)
    return rows, inner


def _numbers_shape(weight: TensorType, scale: TensorType, bits: int, group: int) -> tuple[Extent, ...]:
    """Return the shape of the numbers; TypeError and ValueError where operands and attributes do not fit."""
    if weight.dtype is not int8 or scale.dtype.kind != "f":
        raise TypeError(f"dequantize needs int8 and scales that are floats, not {weight} and {scale}")
    if bits not in (4, 8) or group < 0 or group % GROUP_STEP:
        raise ValueError(f"dequantize: bits are 4 or 8, a group a multiple of {GROUP_STEP}, not {bits} and {group}")
    if weight.rank == 0 or scale.rank != (2 if group else 1) or (group and weight.rank != 2):
        raise ValueError(f"dequantize: {weight} has no scales {scale}")
    rows = weight.shape[0] if bits == 8 else weight.shape[0] * 2
    if _are_apart(rows, scale.shape[-1]):
        raise ValueError(f"dequantize: {scale} for {rows} rows")
    groups, inner = (scale.shape[0], weight.shape[1]) if group else (0, 0)
    if isinstance(groups, int) and isinstance(inner, int) and groups * group != inner:
        raise ValueError(f"dequantize: {scale} for rows of {inner} elements in groups of {group}")
    return (rows, *weight.shape[1:])


def _is_known_to_fit(weight: TensorType, scale: TensorType, *, bits: int, group: int) -> bool:
    rows = weight.shape[0] if bits == 8 else weight.shape[0] * 2
    return rows == scale.shape[-1] and (not group or scale.shape[0] * group == weight.shape[1])


def _are_apart(a: Extent, b: Extent) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _listed(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(str, shape))}]"
