"""Differences, sums under curves, distances of rows, and other small numerics."""

from __future__ import annotations

import math as python_math
from typing import Any

import numpy as np

from dy2st.functions.core.operands import binary, cast_to, constant, floating, one_axis, op, pair, tensor
from dy2st.functions.linalg.linalg import vector_norm
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import logical_not, where
from dy2st.functions.math.reduction import all as all_of
from dy2st.functions.math.reduction import any as any_of
from dy2st.functions.shape import concat_split
from dy2st.functions.shape.creation import arange
from dy2st.functions.shape.gather_scatter import index_select
from dy2st.functions.shape.manipulation import reshape_to, unsqueeze
from dy2st.runtime.eager.tensor import Tensor


def diff(
    x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None, name: str | None = None
) -> Tensor:
    """Return the differences of neighbours along an axis, n times; `prepend` and `append` are put around it first.

    >>> import dy2st as paddle
    >>> paddle.diff(paddle.to_tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    x = tensor(x, "diff")
    axis = one_axis(axis, x.ndim, "diff")
    if n < 0 or not x.ndim:
        raise ValueError(f"diff needs an axis and n >= 0, not a tensor of shape {x.shape} and n = {n}")
    around = [t for t in (prepend, x, append) if t is not None]
    x = concat_split.concat(around, axis) if len(around) > 1 else x
    extent = x.shape[axis]
    for _ in range(min(n, extent) if isinstance(extent, int) else n):  # nothing is left after that
        high, low = _shifted(x, axis)
        x = high != low if x.dtype.is_bool else high - low
    return x


def _shifted(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return the elements but the first, and but the last."""
    before = (slice(None),) * axis
    return x[(*before, slice(1, None))], x[(*before, slice(None, -1))]


def trapezoid(y: Any, x: Any = None, dx: float | None = None, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the integral of y along an axis by the trapezoidal rule, at places x or `dx` (1 by default) apart."""
    return reduction.sum(_trapezoids(y, x, dx, axis, "trapezoid"), axis)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: float | None = None, axis: int = -1, name: str | None = None
) -> Tensor:
    """Return the integrals of y from the first place to each other one, by the trapezoidal rule."""
    return reduction.cumsum(_trapezoids(y, x, dx, axis, "cumulative_trapezoid"), axis)


def _trapezoids(y: Any, x: Any, dx: float | None, axis: int, name: str) -> Tensor:
    if x is not None and dx is not None:
        raise ValueError(f"{name}: give one of x and dx")
    y = floating(y, name)
    axis = one_axis(axis, y.ndim, name)
    high, low = _shifted(y, axis)
    if x is None:
        return (high + low) * (0.5 * (1.0 if dx is None else dx))
    places = floating(x, name)
    if places.ndim == 1:
        places = reshape_to(places, [-1 if i == axis else 1 for i in range(y.ndim)])
    return (high + low) * diff(places, axis=axis) * 0.5


def sinc(x: Any, name: str | None = None) -> Tensor:
    """Return sin(pi x) / (pi x), 1 at 0."""
    x = floating(x, "sinc")
    angle = where(x == 0, 1.0, x) * python_math.pi
    return where(x == 0, 1.0, math.sin(angle) / angle)


def multigammaln(x: Any, p: int, name: str | None = None) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise ValueError(f"multigammaln: p must be positive, not {p}")
    x = floating(x, "multigammaln")
    total = math.lgamma(x) + p * (p - 1) / 4 * python_math.log(python_math.pi)
    for i in range(1, p):
        total = total + math.lgamma(x - i / 2)
    return total


def gcd(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the greatest common divisors of integers."""
    return _of_integers("gcd", x, y)


def lcm(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the least common multiples of integers."""
    return _of_integers("lcm", x, y)


def _of_integers(name: str, x: Any, y: Any) -> Tensor:
    x, y = pair(x, y, name)
    if not x.dtype.is_integer:
        raise TypeError(f"{name} needs integers, not {x.dtype.name}")
    return binary(op(name), x, y, name)


def nextafter(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the floats next to x in the direction of y."""
    x, y = pair(floating(x, "nextafter"), floating(y, "nextafter"), "nextafter")
    return binary(op("nextafter"), x, y, "nextafter")


def isin(x: Any, test_x: Any, assume_unique: bool = False, invert: bool = False, name: str | None = None) -> Tensor:
    """Return where the elements of x are among those of test_x (are not, with `invert`).

    `assume_unique` would only make it faster elsewhere.
    """
    x, among = pair(x, test_x, "isin")
    found = any_of(unsqueeze(x, -1) == among.reshape([-1]), -1)
    return logical_not(found) if invert else found


def vander(x: Any, n: int | None = None, increasing: bool = False, name: str | None = None) -> Tensor:
    """Return the matrix of the powers of a vector, n columns (as many as elements by default), the highest first."""
    x = tensor(x, "vander")
    if x.ndim != 1:
        raise ValueError(f"vander needs a vector, not a tensor of shape {x.shape}")
    count = x.shape[0] if n is None else n
    if isinstance(count, int) and count < 0:
        raise ValueError(f"vander: n must not be negative, not {n}")
    exponents = cast_to(arange(count), x.dtype)
    return unsqueeze(x, 1) ** (exponents if increasing else exponents.flip(0))


def renorm(x: Any, p: float, axis: int, max_norm: float) -> Tensor:
    """Return x with its parts along an axis scaled down where their p-norm is above max_norm."""
    x = floating(x, "renorm")
    axis = one_axis(axis, x.ndim, "renorm")
    if p <= 0 or max_norm < 0:
        raise ValueError(f"renorm: p must be positive and max_norm not negative, not {p} and {max_norm}")
    norms = vector_norm(x, p, [i for i in range(x.ndim) if i != axis], True)
    return x * where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)


def cdist(
    x: Any, y: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary", name: str | None = None
) -> Tensor:
    """Return [..., m, n]: the p-norms of the differences of rows of x [..., m, k] and y [..., n, k], broadcast.

    `compute_mode` says how others compute it; here differences are always taken. Where rows are equal the gradient
    is 0.
    """
    if compute_mode not in (
        "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
    ):  # fmt: skip
        raise ValueError(f"cdist: compute_mode is {compute_mode!r}")
    x, y = pair(floating(x, "cdist"), floating(y, "cdist"), "cdist")
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError(f"cdist needs rows, tensors of two axes or more, not {x.shape} and {y.shape}")
    return _distance(unsqueeze(x, -2) - unsqueeze(y, -3), p, "cdist")


def pdist(x: Any, p: float = 2.0, name: str | None = None) -> Tensor:
    """Return the p-norms of the differences of all pairs of rows of a matrix, (0, 1), (0, 2), ... (n - 2, n - 1)."""
    x = floating(x, "pdist")
    if x.ndim != 2:
        raise ValueError(f"pdist needs a matrix, not a tensor of shape {x.shape}")
    first, second = (constant(places.astype(np.int64)) for places in np.triu_indices(int(x.shape[0]), 1))
    return _distance(index_select(x, first) - index_select(x, second), p, "pdist")


def reduce_as(x: Any, target: Any, name: str | None = None) -> Tensor:
    """Return x summed over what `target` would have to be broadcast along to have the shape of x."""
    x, target = tensor(x, "reduce_as"), tensor(target, "reduce_as")
    extra = x.ndim - target.ndim
    if extra < 0:
        raise ValueError(f"reduce_as: a tensor of shape {x.shape} cannot be summed to {target.shape}")
    axes = [*range(extra)]
    for i, (wide, narrow) in enumerate(zip(x.shape[extra:], target.shape, strict=True), start=extra):
        if isinstance(narrow, int) and narrow == 1:
            axes.append(i)
        elif isinstance(wide, int) and isinstance(narrow, int) and wide != narrow:
            raise ValueError(f"reduce_as: a tensor of shape {x.shape} cannot be summed to {target.shape}")
    return reshape_to(reduction.sum(x, axes), target.shape) if axes else x


def shard_index(input: Any, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Tensor:
    """Return numbers below index_num counted from the first of shard `shard_id` of nshards; others are ignore_value."""
    if not 0 <= shard_id < nshards:
        raise ValueError(f"shard_index: shard {shard_id} is not one of {nshards}")
    x = tensor(input, "shard_index")
    size = -(-index_num // nshards)
    return where(x // size == shard_id, x % size, ignore_value)


def _distance(difference: Tensor, p: float, name: str) -> Tensor:
    if p < 0:
        raise ValueError(f"{name}: p must not be negative, not {p}")
    same = all_of(difference == 0, -1)
    return where(same, 0.0, vector_norm(where(unsqueeze(same, -1), 1.0, difference), p, -1))
