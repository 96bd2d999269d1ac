"""Random tensors. A draw takes the seed and the next draw number of the default generator (a state of a Program)."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.operands import default_dtype, op, tensor, whole
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.rng import Generator, default_generator
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import split_shape

_UNIFORM, _NORMAL, _EXPONENTIAL = op("random_uniform"), op("random_normal"), op("random_exponential")
_INT, _BERNOULLI, _PERMUTATION = op("random_int"), op("random_bernoulli"), op("random_permutation")


def next_draw(seed: int = 0) -> tuple[Any, Any]:
    """Return (seed, draw number) of the next draw; a `seed` that is not 0 stands alone and repeats its numbers."""
    if seed:
        return Generator(int(seed)).next()
    trace = current().trace
    return default_generator().next() if trace is None else trace.next_draw()


def _draw(made: Any, shape: Any, dtype: DType, seed: int = 0) -> Tensor:
    template, dims = split_shape(shape)
    if any(e is not None and e < 0 for e in template):
        raise ValueError(f"the extents of a random tensor must not be negative: {list(template)}")
    if not dtype.is_floating:
        raise TypeError(f"random floats were asked for in {dtype.name}")
    return apply(made, *next_draw(seed), *dims, shape=template, dtype=dtype)


def _float(dtype: Any) -> DType:
    return default_dtype() if dtype is None else as_dtype(dtype)


def rand(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return uniform numbers in [0, 1).

    >>> import dy2st as paddle
    >>> paddle.rand([2, 3]).shape
    [2, 3]
    """
    return _draw(_UNIFORM, shape, _float(dtype))


def uniform(
    shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None,
    *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return uniform numbers in [min, max).

    >>> import dy2st as paddle
    >>> x = paddle.uniform([100], min=2.0, max=3.0)
    >>> bool((x >= 2).all()), bool((x < 3).all())
    (True, True)
    """
    return _into(out, _draw(_UNIFORM, shape, _float(dtype), seed) * (max - min) + min)


def standard_normal(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return numbers of the normal distribution with mean 0 and variance 1."""
    return _draw(_NORMAL, shape, _float(dtype))


def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return numbers of the normal distribution with mean 0 and variance 1.

    >>> import dy2st as paddle
    >>> paddle.randn([2, 3]).dtype
    paddle.float32
    """
    return _draw(_NORMAL, shape, _float(dtype))


def gaussian(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = None, name: str | None = None
) -> Tensor:
    """Return numbers of the normal distribution with this mean and standard deviation."""
    return _draw(_NORMAL, shape, _float(dtype), seed) * std + mean


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, name: str | None = None) -> Tensor:
    """Return numbers of normal distributions; where mean or std is a tensor, it gives the shape."""
    given = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not given:
        if shape is None:
            raise ValueError("normal() needs a shape where mean and std are numbers")
        return gaussian(shape, mean, std)
    like = given[0] if len(given) == 1 else mean + std
    return _draw(_NORMAL, like.shape, like.dtype if like.dtype.is_floating else default_dtype()) * std + mean


def log_normal(mean: float = 1.0, std: float = 2.0, shape: Any = None, name: str | None = None) -> Tensor:
    """Return e to the power of normal numbers."""
    return apply(op("exp"), normal(mean, std, [1] if shape is None else shape))


def randint(low: Any = 0, high: Any = None, shape: Any = (1,), dtype: Any = None, name: str | None = None) -> Tensor:
    """Return integers in [low, high), or [0, low) where high is None, in int64 unless a dtype is given.

    >>> import dy2st as paddle
    >>> x = paddle.randint(0, 5, [100])
    >>> x.min().item() >= 0, x.max().item() < 5
    (True, True)
    """
    if high is None:
        low, high = 0, low
    template, dims = split_shape(shape)
    wanted = dtypes.int64 if dtype is None else as_dtype(dtype)
    bounds = whole(low, "randint"), whole(high, "randint")
    return apply(_INT, *next_draw(), *bounds, *dims, shape=template, dtype=wanted)


def randint_like(x: Tensor, low: Any = 0, high: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return integers in [low, high) in the shape, and dtype unless one is given, of x."""
    return randint(low, high, x.shape, x.dtype if dtype is None else dtype)


def rand_like(input: Tensor, name: str | None = None, *, dtype: Any = None) -> Tensor:
    """Return uniform numbers in [0, 1) in the shape and dtype of `input`."""
    return rand(input.shape, input.dtype if dtype is None else dtype)


def randn_like(x: Tensor, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return normal numbers in the shape and dtype of x."""
    return randn(x.shape, x.dtype if dtype is None else dtype)


def bernoulli(x: Any, p: float | None = None, name: str | None = None) -> Tensor:
    """Return 1 with the probability that each element of x says, else 0.

    >>> import dy2st as paddle
    >>> paddle.bernoulli(paddle.to_tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    x = tensor(x, "bernoulli")
    if not x.dtype.is_floating:
        raise TypeError(f"bernoulli() needs probabilities in a float dtype, not {x.dtype.name}")
    odds = x if p is None else apply(op("zeros_like"), x) + p
    return apply(_BERNOULLI, *next_draw(), odds)


def randperm(n: Any, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """Return the numbers 0 .. n-1 in random order.

    >>> import dy2st as paddle
    >>> paddle.randperm(4).sort().tolist()
    [0, 1, 2, 3]
    """
    count = whole(n, "randperm")
    if isinstance(count, int) and count < 0:
        raise ValueError(f"randperm: n must not be negative, not {count}")
    return apply(_PERMUTATION, *next_draw(), count, dtype=as_dtype(dtype))


def shuffle(x: Any, axis: int = 0) -> Tensor:
    """Return the slices of x along an axis in random order."""
    x = tensor(x, "shuffle")
    return apply(op("take"), x, randperm(x.shape[axis]), axis=axis)


def exponential(shape: Any, lam: float = 1.0, dtype: Any = None) -> Tensor:
    """Return numbers of the exponential distribution with rate lam."""
    return _draw(_EXPONENTIAL, shape, _float(dtype)) * (1.0 / lam)


def multinomial(x: Any, num_samples: int = 1, replacement: bool = False, name: str | None = None) -> Tensor:
    """Return indices drawn from the weights of each row (which need not sum to 1), with or without putting back.

    Raises ValueError where more are drawn without putting back than a row has weights.
    """
    x = tensor(x, "multinomial")
    if x.ndim not in (1, 2):
        raise ValueError(f"multinomial needs a vector or a matrix of weights, not {x.shape}")
    axis = x.ndim - 1
    extent = x.shape[axis]
    if replacement:
        total = apply(op("cumsum"), x, axis=axis, reverse=False)
        whole_row = apply(op("max"), total, axis=(axis,), keepdim=True)
        draws = rand([*x.shape[:axis], num_samples], x.dtype) * whole_row
        reached = apply(op("expand_dims"), total, axes=(axis,)) <= apply(op("expand_dims"), draws, axes=(axis + 1,))
        return apply(op("sum"), reached, axis=(axis + 1,), keepdim=False)
    if isinstance(extent, int) and num_samples > extent:
        raise ValueError(f"multinomial: {num_samples} draws without putting back from {extent} weights")
    # Efraimidis and Spirakis (2006): the largest of weight-scaled exponential keys are a draw without putting back
    keys = apply(op("log"), x) - apply(op("log"), _draw(_EXPONENTIAL, x.shape, x.dtype))
    return apply(op("topk"), keys, k=num_samples, axis=axis, largest=True, sorted=True)[1]
