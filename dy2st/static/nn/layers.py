"""Layers as functions: each call adds parameters to the Program, with names such as `fc_0.w_0`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn import functional as F
from dy2st.nn.create_parameter import make_parameter
from dy2st.nn.initializer import Constant, Normal
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.gradients import recorder_now


class _Owner:
    """Creates the parameters of one call."""

    def __init__(self, kind: str, name: str | None, dtype: DType):
        self.recorder = recorder_now(f"paddle.static.nn.{kind}")
        self.name, self.dtype = name or unique_name.generate(kind), dtype

    def parameter(self, shape: Sequence[int], attr: Any, is_bias: bool = False, default: Any = None) -> Any:
        return make_parameter(list(shape), attr, self.dtype, is_bias, default, owner=self.name)

    def statistic(self, name: str | None, kind: str, shape: Sequence[int], fill: float) -> Tensor:
        known = self.recorder.states.get(name) if name is not None else None
        if known is not None:
            return known.tensor
        return self.recorder.create_state(name or f"{self.name}.{kind}", shape, self.dtype, fill)


def fc(
    x: Any, size: int, num_flatten_dims: int = 1, weight_attr: Any = None, bias_attr: Any = None,
    activation: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return x @ weight + bias; the axes of x from `num_flatten_dims` on are one axis of inputs.

    A list of variables gives the sum, with a weight for each.
    """
    inputs = list(x) if isinstance(x, (list, tuple)) else [x]
    owner = _Owner("fc", name, _floating(inputs[0], "fc"))
    total: Any = None
    for one in inputs:
        _floating(one, "fc")
        axes = num_flatten_dims if num_flatten_dims >= 0 else one.ndim + num_flatten_dims
        if not 0 < axes < one.ndim:
            raise ValueError(f"fc: num_flatten_dims {num_flatten_dims} does not fit an input of {one.ndim} axes")
        width = math.prod(_known(one.shape[axes:], "fc", "the last axes of x"))
        weight = owner.parameter([width, size], weight_attr)
        flat = one if axes == one.ndim - 1 else reshape(one, [*one.shape[:axes], width])
        total = F.linear(flat, weight) if total is None else total + F.linear(flat, weight)
    bias = owner.parameter([size], bias_attr, is_bias=True)
    return _activated(total if bias is None else total + bias, activation)


def conv2d(
    input: Tensor, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int | None = None, param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True,
    act: str | None = None, name: str | None = None, data_format: str = "NCHW",
) -> Tensor:  # fmt: skip
    """Return the convolution of images with `num_filters` filters, plus a bias."""
    how = (stride, padding, dilation)
    return _convolution(2, input, num_filters, filter_size, how, groups, param_attr, bias_attr, act, name, data_format)


def conv3d(
    input: Tensor, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int | None = None, param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True,
    act: str | None = None, name: str | None = None, data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
    """Return the convolution of volumes with `num_filters` filters, plus a bias."""
    how = (stride, padding, dilation)
    return _convolution(3, input, num_filters, filter_size, how, groups, param_attr, bias_attr, act, name, data_format)


def _convolution(
    rank: int, input: Tensor, num_filters: int, filter_size: Any, how: tuple[Any, ...], groups: int | None,
    param_attr: Any, bias_attr: Any, act: str | None, name: str | None, data_format: str,
) -> Tensor:  # fmt: skip
    what = f"conv{rank}d"
    owner = _Owner(what, name, _floating(input, what))
    channels = _channels(input, data_format, what)
    groups = groups or 1
    if channels % groups or num_filters % groups:
        raise ValueError(f"{what}: groups={groups} does not divide {channels} channels and {num_filters} filters")
    size = _each(filter_size, rank)
    std = math.sqrt(2.0 / (math.prod(size) * channels))
    weight = owner.parameter([num_filters, channels // groups, *size], param_attr, default=Normal(0.0, std))
    bias = owner.parameter([num_filters], bias_attr, is_bias=True)
    return _activated(getattr(F, what)(input, weight, bias, *how, groups, data_format), act)


def conv2d_transpose(
    input: Tensor, num_filters: int, output_size: Any = None, filter_size: Any = None, padding: Any = 0,
    stride: Any = 1, dilation: Any = 1, groups: int | None = None, param_attr: Any = None, bias_attr: Any = None,
    use_cudnn: bool = True, act: str | None = None, name: str | None = None, data_format: str = "NCHW",
) -> Tensor:  # fmt: skip
    """Return the transposed convolution of images with `num_filters` filters, plus a bias."""
    how = {"stride": stride, "padding": padding, "dilation": dilation, "output_size": output_size}
    return _transposed(2, input, num_filters, filter_size, how, groups, param_attr, bias_attr, act, name, data_format)


def conv3d_transpose(
    input: Tensor, num_filters: int, output_size: Any = None, filter_size: Any = None, padding: Any = 0,
    stride: Any = 1, dilation: Any = 1, groups: int | None = None, param_attr: Any = None, bias_attr: Any = None,
    use_cudnn: bool = True, act: str | None = None, name: str | None = None, data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
    """Return the transposed convolution of volumes with `num_filters` filters, plus a bias."""
    how = {"stride": stride, "padding": padding, "dilation": dilation, "output_size": output_size}
    return _transposed(3, input, num_filters, filter_size, how, groups, param_attr, bias_attr, act, name, data_format)


def _transposed(
    rank: int, input: Tensor, num_filters: int, filter_size: Any, how: dict[str, Any], groups: int | None,
    param_attr: Any, bias_attr: Any, act: str | None, name: str | None, data_format: str,
) -> Tensor:  # fmt: skip
    what = f"conv{rank}d_transpose"
    if filter_size is None:
        raise ValueError(f"{what}: give filter_size")
    owner = _Owner(what, name, _floating(input, what))
    channels = _channels(input, data_format, what)
    groups = groups or 1
    weight = owner.parameter([channels, num_filters // groups, *_each(filter_size, rank)], param_attr)
    bias = owner.parameter([num_filters], bias_attr, is_bias=True)
    return _activated(getattr(F, what)(input, weight, bias, groups=groups, data_format=data_format, **how), act)


def embedding(
    input: Tensor, size: Sequence[int], is_sparse: bool = False, is_distributed: bool = False,
    padding_idx: int | None = None, param_attr: Any = None, dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """Return rows of a table of `size` (rows, width) for integers."""
    owner = _Owner("embedding", None, dtypes.dtype(dtype))
    weight = owner.parameter(size, param_attr)
    return F.embedding(input, weight, padding_idx)


def batch_norm(
    input: Tensor, act: str | None = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-5,
    param_attr: Any = None, bias_attr: Any = None, data_layout: str = "NCHW", in_place: bool = False,
    name: str | None = None, moving_mean_name: str | None = None, moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True, use_global_stats: bool = False,
) -> Tensor:  # fmt: skip
    """Return the input normalised for each channel, by the batch's statistics in training, else by the running ones."""
    owner = _Owner("batch_norm", name, _floating(input, "batch_norm"))
    width = [_channels(input, data_layout, "batch_norm")]
    weight = owner.parameter(width, param_attr, default=Constant(1.0))
    bias = owner.parameter(width, bias_attr, is_bias=True)
    mean = owner.statistic(moving_mean_name, "w_1", width, 0.0)
    variance = owner.statistic(moving_variance_name, "w_2", width, 1.0)
    out = F.batch_norm(
        input, mean, variance, weight, bias, training=not is_test, momentum=momentum, epsilon=epsilon,
        data_format=data_layout, use_global_stats=use_global_stats or None,
    )  # fmt: skip
    return _activated(out, act)


def layer_norm(
    input: Tensor, scale: bool = True, shift: bool = True, begin_norm_axis: int = 1, epsilon: float = 1e-5,
    param_attr: Any = None, bias_attr: Any = None, act: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the input normalised over the axes from `begin_norm_axis` on."""
    owner = _Owner("layer_norm", name, _floating(input, "layer_norm"))
    shape = _known(input.shape[begin_norm_axis:], "layer_norm", "the axes that are normalised")
    weight = owner.parameter(shape, param_attr, default=Constant(1.0)) if scale else None
    bias = owner.parameter(shape, bias_attr, is_bias=True) if shift else None
    return _activated(F.layer_norm(input, shape, weight, bias, epsilon), act)


def group_norm(
    input: Tensor, groups: int, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None,
    act: str | None = None, data_layout: str = "NCHW", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the input normalised over each of `groups` groups of channels."""
    owner = _Owner("group_norm", name, _floating(input, "group_norm"))
    width = [_channels(input, data_layout, "group_norm")]
    weight = owner.parameter(width, param_attr, default=Constant(1.0))
    bias = owner.parameter(width, bias_attr, is_bias=True)
    return _activated(F.group_norm(input, groups, epsilon, weight, bias, data_layout), act)


def instance_norm(
    input: Tensor, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None, name: str | None = None
) -> Tensor:
    """Return the input normalised over each channel of each sample."""
    owner = _Owner("instance_norm", name, _floating(input, "instance_norm"))
    width = [_channels(input, "NCHW", "instance_norm")]
    weight = owner.parameter(width, param_attr, default=Constant(1.0))
    bias = owner.parameter(width, bias_attr, is_bias=True)
    return F.instance_norm(input, weight=weight, bias=bias, eps=epsilon)


def bilinear_tensor_product(
    x: Tensor, y: Tensor, size: int, act: str | None = None, name: str | None = None, param_attr: Any = None,
    bias_attr: Any = None,
) -> Tensor:  # fmt: skip
    """Return x W y + bias for [batch, m] and [batch, n], with a matrix W for each of `size` results."""
    owner = _Owner("bilinear_tensor_product", name, _floating(x, "bilinear_tensor_product"))
    widths = _known([x.shape[1], y.shape[1]], "bilinear_tensor_product", "the last axes")
    weight = owner.parameter([size, *widths], param_attr)
    bias = owner.parameter([1, size], bias_attr, is_bias=True)
    return _activated(F.bilinear(x, y, weight, bias), act)


def prelu(
    x: Tensor, mode: str, param_attr: Any = None, data_format: str = "NCHW", name: str | None = None
) -> Tensor:  # fmt: skip
    """Return x where it is positive, else weight * x; one weight ("all") or one a channel ("channel")."""
    if mode not in ("all", "channel"):
        raise ValueError(f"prelu: mode must be 'all' or 'channel', not {mode!r}")
    owner = _Owner("prelu", name, _floating(x, "prelu"))
    count = 1 if mode == "all" else _channels(x, data_format, "prelu")
    return F.prelu(x, owner.parameter([count], param_attr, default=Constant(0.25)), data_format=data_format)


def _activated(x: Tensor, act: str | None) -> Tensor:
    if act is None:
        return x
    found: Any = getattr(F, act, None) if isinstance(act, str) and not act.startswith("_") else None
    if not callable(found):
        raise ValueError(f"there is no activation {act!r}")
    return cast(Any, found)(x)


def _floating(x: Any, what: str) -> DType:
    if not isinstance(x, Tensor):
        raise TypeError(f"{what}: the input must be a variable, not {type(x).__name__}")
    if not x.dtype.is_floating:
        raise TypeError(f"{what}: the input must have a float dtype, not {x.dtype.name}")
    return x.dtype


def _known(extents: Sequence[Any], what: str, which: str) -> list[int]:
    if not all(isinstance(e, int) for e in extents):
        raise ValueError(f"{what}: {which} must have known extents, because parameters depend on them")
    return list(extents)


def _channels(x: Tensor, data_format: str, what: str) -> int:
    axis = 1 if data_format.startswith("NC") and x.ndim > 1 else -1
    return _known([x.shape[axis]], what, "the channels")[0]


def _each(size: Any, rank: int) -> list[int]:
    return list(size) if isinstance(size, (list, tuple)) else [int(size)] * rank
