"""Random tensors: pure functions of a generator's seed and the number of the draw, on Philox bits (philox.py).

How words become numbers is part of the meaning, and the same on every device: element i of

    32 or 16 bits, uniform      word i, as many of its upper bits as the dtype has digits
    float64 uniform             words 2i and 2i + 1, their upper 53 bits
    integers                    words 2i and 2i + 1 as one number r: low + floor(r * (high - low) / 2**64); no value is
                                favoured by more than (high - low) / 2**64
    normal                      Box and Muller (1958) on a pair: elements 2j and 2j + 1 are r cos t and r sin t, with
                                r = sqrt(-2 log u), t = 2 pi v, u in (0, 1], v in [0, 1)

`shape` is a template: None where a scalar operand gives the extent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType, float32, float64, int64, of_array
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.index_spec import extent_of
from dy2st.ops.shape.philox import words, words64

Template = tuple[int | None, ...]
KEPT = {"float32": 24, "float16": 11, "bfloat16": 8}
"""How many bits of a word become a number."""


class _Draw(Op):
    """A draw of a known shape and dtype."""

    abstract = True
    attributes = ("shape", "dtype")
    differentiable = False
    random = True
    native_in_eager = True
    fresh = True
    numbers: Callable[..., Any]
    """Return the first `count` numbers of a draw: numbers(xp, seed, draw, count, dtype)."""

    def infer(self, seed: ScalarType, draw: ScalarType, *dims: ScalarType, shape: Template, dtype: DType) -> TensorType:
        if not dtype.is_floating:
            raise TypeError(f"{self.name} draws floats, not {dtype.name}")
        return TensorType(dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, seed: int, draw: int, *dims: int, shape: Template, dtype: DType) -> Any:
        target = _extents(self.name, shape, dims)
        return self.numbers(xp, seed, draw, math.prod(target), dtype).reshape(target)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (float32, float64):
            yield Sample((7, 3, 5), {"shape": (2, None), "dtype": dtype})
        yield Sample((7, 3), {"shape": (), "dtype": float32})
        yield Sample((7, 3), {"shape": (0, 2), "dtype": float32})


class RandomUniform(_Draw):
    """Uniform numbers in [0, 1)."""

    name = "random_uniform"
    draws_bits = True
    nanoseconds = 7
    random_elementwise = True

    def numbers(self, xp: Any, seed: int, draw: int, count: int, dtype: DType) -> Any:
        return uniform(xp, seed, draw, count, dtype)


class RandomNormal(_Draw):
    """Numbers of the normal distribution with mean 0 and variance 1."""

    name = "random_normal"
    picoseconds = 40_000
    nanoseconds = 35
    random_elementwise = True

    def numbers(self, xp: Any, seed: int, draw: int, count: int, dtype: DType) -> Any:
        pairs = -(-count // 2)
        if dtype is float64:
            bits = (words64(xp, seed, draw, 2 * pairs) >> np.uint64(11)).reshape(pairs, 2)
            unit = 2.0**-53
        else:
            bits, unit = words(xp, seed, draw, 2 * pairs).reshape(pairs, 2), 2.0**-32
        radius = xp.sqrt(-2.0 * xp.log((bits[:, 0].astype(np.float64) + 1.0) * unit))
        angle = bits[:, 1].astype(np.float64) * (2.0 * math.pi * unit)
        out = xp.empty((pairs, 2), dtype.numpy)
        out[:, 0] = radius * xp.cos(angle)
        out[:, 1] = radius * xp.sin(angle)
        return out.reshape(-1)[:count]


class RandomExponential(_Draw):
    """Numbers of the exponential distribution with mean 1: -log(1 - u) of a uniform u."""

    name = "random_exponential"
    picoseconds = 30_000
    nanoseconds = 20
    random_elementwise = True

    def numbers(self, xp: Any, seed: int, draw: int, count: int, dtype: DType) -> Any:
        u = uniform(xp, seed, draw, count, float64)
        return (-xp.log1p(-u)).astype(dtype.numpy, copy=False)


class RandomInt(Op):
    """Integers in [low, high), each equally likely; `low` and `high` are ints."""

    name = "random_int"
    draws_bits = True
    picoseconds = 20_000
    random_elementwise = True
    attributes = ("shape", "dtype")
    differentiable = False
    random = True
    native_in_eager = True
    may_raise = True
    fresh = True

    def infer(self, seed: ScalarType, draw: ScalarType, low: ScalarType, high: ScalarType, *dims: ScalarType,
              shape: Template, dtype: DType) -> TensorType:  # fmt: skip
        return TensorType(dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, seed: int, draw: int, low: int, high: int, *dims: int, shape: Template,
             dtype: DType) -> Any:  # fmt: skip
        span = high - low
        if not 0 < span < 1 << 64:
            raise ValueError(f"random integers need low < high, not {low} and {high}")
        target = _extents(self.name, shape, dims)
        product = multiply_high(words64(xp, seed, draw, math.prod(target)), span)
        numbers = (product + np.uint64(low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)
        return numbers.astype(dtype.numpy, copy=False).reshape(target)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((7, 3, -2, 5, 4), {"shape": (2, None), "dtype": int64})
        yield Sample((7, 3, 0, 9), {"shape": (), "dtype": int64})
        yield Sample((7, 3, 0, 9), {"shape": (3,), "dtype": float32})


class RandomBernoulli(Op):
    """1 with the probability that each element of `p` says, else 0: uniform(p's dtype) < p."""

    name = "random_bernoulli"
    draws_bits = True
    nanoseconds = 8
    random_elementwise = True
    differentiable = False
    random = True
    native_in_eager = True
    fresh = True

    def infer(self, seed: ScalarType, draw: ScalarType, p: TensorType) -> TensorType:
        if not p.dtype.is_floating:
            raise TypeError(f"random_bernoulli needs float probabilities, not {p.dtype.name}")
        return p

    def eval(self, xp: Any, seed: int, draw: int, p: Any) -> Any:
        u = uniform(xp, seed, draw, p.size, of_array(p)).reshape(p.shape)
        return xp.asarray(u < p).astype(p.dtype)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((7, 3, rng.uniform(size=(2, 3))))
        yield Sample((7, 3, np.array(0.5, np.float32)))


class RandomPermutation(Op):
    """The numbers 0 .. n-1 in random order: the stable argsort of n random 64-bit keys."""

    name = "random_permutation"
    draws_bits = True
    attributes = ("dtype",)
    differentiable = False
    random = True
    fresh = True

    def infer(self, seed: ScalarType, draw: ScalarType, n: ScalarType, *, dtype: DType) -> TensorType:
        return TensorType(dtype, (extent_of(n),))  # type: ignore[arg-type]

    def eval(self, xp: Any, seed: int, draw: int, n: int, *, dtype: DType) -> Any:
        if n < 0:
            raise ValueError(f"random_permutation: n must not be negative, but is {n}")
        keys = words64(xp, seed, draw, n)
        return xp.argsort(keys, kind="stable").astype(dtype.numpy, copy=False)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((7, 3, 10), {"dtype": int64})
        yield Sample((7, 3, 0), {"dtype": int64})


def _extents(name: str, shape: Template, dims: Sequence[int]) -> tuple[int, ...]:
    target = fill(shape, dims)
    if any(e < 0 for e in target):
        raise ValueError(f"{name}: extents must not be negative: {list(target)}")
    return target


def uniform(xp: Any, seed: int, draw: int, count: int, dtype: DType, first: int = 0) -> Any:
    """Return `count` uniform numbers of a draw, in [0, 1), from element `first` on."""
    if dtype is float64:
        return (words64(xp, seed, draw, count, first) >> np.uint64(11)) * 2.0**-53
    kept = KEPT[dtype.name]
    bits = words(xp, seed, draw, count, first) >> np.uint32(32 - kept)
    return (bits.astype(np.float32) * np.float32(2.0**-kept)).astype(dtype.numpy, copy=False)


def multiply_high(r: Any, span: int) -> Any:
    """Return floor(r * span / 2**64) of uint64 numbers.

    >>> int(multiply_high(np.array([2**64 - 1], np.uint64), 10)[0])
    9
    """
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    high, low = r >> half, r & mask
    span_high, span_low = np.uint64(span >> 32), np.uint64(span & 0xFFFFFFFF)
    middle = high * span_low + (low * span_low >> half)
    other = low * span_high + (middle & mask)
    return high * span_high + (middle >> half) + (other >> half)
