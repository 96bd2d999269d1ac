"""Normalisation: by statistics of a batch, of one element's features, of groups of channels; and to unit length."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.assigning import set_value
from dy2st.functions.core.operands import cast_to, floating, one_axis, op
from dy2st.functions.math import math
from dy2st.functions.shape.creation import ones, ones_like, zeros
from dy2st.ir.context import replaced
from dy2st.ir.location import line_here
from dy2st.missing import missing_in
from dy2st.nn.functional.for_test import unless_testing
from dy2st.nn.functional.padding import pad_pairs
from dy2st.nn.functional.pooling import avg_pool2d
from dy2st.ops.collective.world import world
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_LAYER_NORM, _TRAIN, _INFER = op("layer_norm"), op("batch_norm_train"), op("batch_norm_infer")
_ALL_REDUCE = op("all_reduce")


def batch_norm(
    x: Any, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.9, epsilon: float = 1e-5, data_format: str = "NCHW",
    use_global_stats: bool | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return (x - mean) / sqrt(variance + epsilon) * weight + bias for each channel (Ioffe and Szegedy, 2015).

    In training mean and variance (the biased one) are the batch's, and the running ones become
    momentum * running + (1 - momentum) * batch; otherwise, or with `use_global_stats`, the running ones are used.
    """
    x = floating(x, "batch_norm")
    axis = _channel_axis(x, data_format, "batch_norm")
    weight, bias = _affine(weight, bias, running_mean.shape, running_mean)
    parts = [cast_to(t, x.dtype) for t in (weight, bias)]
    running_ones = (running_mean, running_var)

    def tested() -> Tensor:
        stats = [cast_to(t, x.dtype) for t in running_ones]
        return apply(_INFER, x, *parts, *stats, axis=axis, epsilon=float(epsilon))

    if not training or use_global_stats:
        return tested()
    out, mean, variance = apply(_TRAIN, x, *parts, axis=axis, epsilon=float(epsilon))
    unless_testing(out, tested, running_ones)
    with replaced(grad=False):
        for running, batch in zip(running_ones, (mean, variance), strict=True):
            fresh = cast_to(batch, running.dtype)
            set_value(running, running * momentum + fresh * (1.0 - momentum))
    return out


def batch_norm_of_all(
    x: Any, running_mean: Tensor, running_var: Tensor, weight: Tensor | None, bias: Tensor | None, momentum: float,
    epsilon: float, data_format: str,
) -> Tensor:  # fmt: skip
    """Return `batch_norm` in training, of the batches of all processes together."""
    x = floating(x, "batch_norm")
    axis = _channel_axis(x, data_format, "batch_norm")
    axes = [a for a in range(x.ndim) if a != axis]
    weight, bias = _affine(weight, bias, running_mean.shape, running_mean)
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]
    count = _of_all(ones_like(x).sum(axes))
    mean = _of_all(x.sum(axes)) / count
    away = x - mean.reshape(shape)
    variance = _of_all((away * away).sum(axes)) / count
    out = away * (math.rsqrt(variance + epsilon) * cast_to(weight, x.dtype)).reshape(shape)
    with replaced(grad=False):
        for running, batch in ((running_mean, mean), (running_var, variance)):
            set_value(running, running * momentum + cast_to(batch.detach(), running.dtype) * (1.0 - momentum))
    return out + cast_to(bias, x.dtype).reshape(shape)


def _of_all(x: Tensor) -> Tensor:
    """Return the sum over all processes."""
    return apply(_ALL_REDUCE, x, reduction="sum", ranks=tuple(range(world().size)), at=line_here())


@composite
def layer_norm(
    x: Any, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, epsilon: float = 1e-5,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axes, those of `normalized_shape`.

    Ba et al., "Layer normalization", 2016. `weight` and `bias` have that shape, or are flat.
    """
    x = floating(x, "layer_norm")
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if len(shape) > x.ndim or _differ(x.shape[x.ndim - len(shape) :], shape):
        raise ValueError(f"layer_norm: normalized_shape {shape} is not the end of the input's shape {x.shape}")
    weight, bias = _affine(weight, bias, shape, x)
    parts = [cast_to(t if t.ndim == len(shape) else t.reshape(shape), x.dtype) for t in (weight, bias)]
    return apply(_LAYER_NORM, x, *parts, rank=len(shape), epsilon=float(epsilon))[0]


@composite
def rms_norm(
    input: Any, normalized_shape: Any, weight: Tensor | None = None, eps: float = 1e-5, name: str | None = None
) -> Tensor:
    """Return x / sqrt(mean(x^2) + eps) * weight over the last axes (Zhang and Sennrich, 2019)."""
    x = floating(input, "rms_norm")
    rank = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    axes = list(range(x.ndim - rank, x.ndim))
    out = x * math.rsqrt(math.square(x).mean(axes, keepdim=True) + eps)
    return out if weight is None else out * weight


@composite
def group_norm(
    x: Any, num_groups: int, epsilon: float = 1e-5, weight: Tensor | None = None, bias: Tensor | None = None,
    data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normalise each group of channels of each element on its own (Wu and He, 2018)."""
    x = floating(x, "group_norm")
    axis = _channel_axis(x, data_format, "group_norm")
    channels = x.shape[axis]
    if isinstance(channels, int) and channels % num_groups:
        raise ValueError(f"group_norm: {channels} channels do not divide into {num_groups} groups")
    first = _channels_first(x, axis)
    grouped = first.reshape([0, num_groups, -1])
    flat = _normalised(grouped, epsilon).reshape(first.shape)
    return _channels_back(_scaled(flat, weight, bias), axis)


@composite
def instance_norm(
    x: Any, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.9, eps: float = 1e-5,
    data_format: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normalise each channel of each element on its own (Ulyanov et al., 2016)."""
    x = floating(x, "instance_norm")
    if x.ndim < 2:
        raise ValueError(f"instance_norm needs [batch, channels, ...], not a tensor of shape {x.shape}")
    axis = _channel_axis(x, data_format, "instance_norm")
    if not use_input_stats and running_mean is not None and running_var is not None:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps, data_format)
    first = _channels_first(x, axis)
    flat = _normalised(first.reshape([0, 0, -1]), eps).reshape(first.shape)
    return _channels_back(_scaled(flat, weight, bias), axis)


@composite
def local_response_norm(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta (Krizhevsky et al., 2012)."""
    x = floating(x, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(f"local_response_norm needs [batch, channels, ...], not a tensor of shape {x.shape}")
    first = _channels_first(x, _channel_axis(x, data_format, "local_response_norm"))
    squares = math.square(first).reshape([0, 1, first.shape[1], -1])
    around = pad_pairs(squares, ((0, 0), (0, 0), (size // 2, (size - 1) // 2), (0, 0)), 0.0)
    means = avg_pool2d(around, (size, 1), 1).reshape(first.shape)
    out = first / (means * alpha + k) ** beta
    return _channels_back(out, _channel_axis(x, data_format, "local_response_norm"))


@composite
def normalize(x: Any, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """Return x / max(p-norm of x along the axis, epsilon).

    >>> import dy2st as paddle
    >>> paddle.nn.functional.normalize(paddle.to_tensor([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    x = floating(x, "normalize")
    axis = one_axis(axis if x.ndim > 1 else 0, x.ndim, "normalize")
    return x / math.maximum(_p_norm(x, p, axis), epsilon)


def _p_norm(x: Tensor, p: float, axis: int) -> Tensor:
    if p == 2 and not x.dtype.is_complex:
        return math.sqrt(math.square(x).sum(axis, keepdim=True))
    sizes = math.abs(x)
    if p == float("inf"):
        return sizes.max(axis, keepdim=True)
    return (sizes ** float(p)).sum(axis, keepdim=True) ** (1.0 / float(p))


def _channel_axis(x: Tensor, data_format: str, name: str) -> int:
    if data_format not in ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise ValueError(f"{name}: data_format {data_format!r} is not known; use 'NCHW', 'NHWC' or their like")
    if x.ndim < 2:
        raise ValueError(f"{name} needs [batch, channels, ...], not a tensor of shape {x.shape}")
    return x.ndim - 1 if data_format in ("NLC", "NHWC", "NDHWC") else 1


def _channels_first(x: Tensor, axis: int) -> Tensor:
    return x if axis == 1 else x.transpose([0, axis, *range(1, axis)])


def _channels_back(x: Tensor, axis: int) -> Tensor:
    return x if axis == 1 else x.transpose([0, *range(2, axis + 1), 1])


def _normalised(x: Tensor, epsilon: float) -> Tensor:
    """Return [a, b, n] with mean 0 and variance 1 over n."""
    away = x - x.mean(-1, keepdim=True)
    return away * math.rsqrt(math.square(away).mean(-1, keepdim=True) + epsilon)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    shape = [1, -1, *[1] * (x.ndim - 2)]
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def _affine(weight: Any, bias: Any, shape: Any, like: Tensor) -> tuple[Tensor, Tensor]:
    weight = ones(shape, like.dtype) if weight is None else weight
    return weight, zeros(shape, like.dtype) if bias is None else bias


def _differ(given: list[Any], wanted: list[Any]) -> bool:
    return any(isinstance(g, int) and isinstance(w, int) and g != w for g, w in zip(given, wanted, strict=True))


__getattr__ = missing_in(__name__, "dy2st.nn.functional")
