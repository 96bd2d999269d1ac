"""Dropout (Srivastava et al., 2014): elements are zeroed at random in training."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import all_axes, floating
from dy2st.functions.math.random import bernoulli
from dy2st.functions.shape.creation import full
from dy2st.nn.functional.for_test import unless_testing
from dy2st.runtime.eager.tensor import Tensor


def dropout(
    x: Any,
    p: Any = 0.5,
    axis: Any = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """Return x with each element zeroed with probability p in training, and x itself otherwise.

    With `axis` whole slices are zeroed: the axes named are those along which decisions differ. The mode says where the
    mean is kept: "upscale_in_train" divides by 1 - p in training, "downscale_in_infer" multiplies by 1 - p outside.
    """
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(f"dropout: mode must be 'upscale_in_train' or 'downscale_in_infer', not {mode!r}")
    x = floating(x, "dropout")
    p = float(p)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p must be between 0 and 1, not {p}")
    keep = 1.0 - p
    if not training:
        return x if mode == "upscale_in_train" or p == 0.0 else x * keep
    if p == 0.0:
        return x
    out = _dropped(x, keep, axis, mode == "upscale_in_train")
    unless_testing(out, lambda: dropout(x, p, axis, training=False, mode=mode))
    return out


def _dropped(x: Tensor, keep: float, axis: Any, upscale: bool) -> Tensor:
    if keep == 0.0:
        return x * 0.0
    shape = x.shape
    if axis is not None:
        differ = all_axes(axis, x.ndim, "dropout")
        shape = [extent if i in differ else 1 for i, extent in enumerate(shape)]
    mask = bernoulli(full(shape, keep, x.dtype))
    return x * (mask * (1.0 / keep) if upscale else mask)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of [batch, channels, length] at random in training."""
    return dropout(input, p, _channels(input, 3, False, "dropout1d"), training)


def dropout2d(
    x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: str | None = None
) -> Tensor:
    """Zero whole channels of images at random in training."""
    return dropout(x, p, _channels(x, 4, _last(data_format, ("NCHW", "NHWC")), "dropout2d"), training)


def dropout3d(
    x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: str | None = None
) -> Tensor:
    """Zero whole channels of volumes at random in training."""
    return dropout(x, p, _channels(x, 5, _last(data_format, ("NCDHW", "NDHWC")), "dropout3d"), training)


def alpha_dropout(x: Any, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """Set elements to the lower limit of selu at random, keeping mean 0 and variance 1 (Klambauer et al., 2017)."""
    x = floating(x, "alpha_dropout")
    return _alpha_dropout(x, p, training, x.shape)


def feature_alpha_dropout(x: Any, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """Do as `alpha_dropout`, deciding for whole channels."""
    x = floating(x, "feature_alpha_dropout")
    return _alpha_dropout(x, p, training, [*x.shape[:2], *[1] * (x.ndim - 2)])


def _alpha_dropout(x: Tensor, p: float, training: bool, shape: list[Any]) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"alpha_dropout: p must be between 0 and 1, not {p}")
    if not training or p == 0.0:
        return x
    out = x * 0.0 if p == 1.0 else _kept_or_low(x, p, shape)
    unless_testing(out, lambda: x)
    return out


def _kept_or_low(x: Tensor, p: float, shape: list[Any]) -> Tensor:
    low = -1.0507009873554805 * 1.6732632423543772
    scale = ((1.0 - p) * (1.0 + p * low**2)) ** -0.5
    keep = bernoulli(full(shape, 1.0 - p, x.dtype))
    return (x * keep + (1.0 - keep) * low) * scale - scale * low * p


def _channels(x: Any, rank: int, last: bool, name: str) -> list[int]:
    if x.ndim not in (rank - 1, rank):
        raise ValueError(f"{name} needs a tensor of {rank} axes, not {x.ndim}")
    if x.ndim == rank - 1:
        return [x.ndim - 1 if last else 0]
    return [0, rank - 1 if last else 1]


def _last(data_format: str, known: tuple[str, str]) -> bool:
    if data_format not in known:
        raise ValueError(f"data_format must be {known[0]!r} or {known[1]!r}, not {data_format!r}")
    return data_format == known[1]
