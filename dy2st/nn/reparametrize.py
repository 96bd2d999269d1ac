"""Weights made anew before each call of a layer: `weight_norm` and `spectral_norm`.

A hook takes the place of the parameter: what trains are `weight_g` and `weight_v`, or `weight_orig`, and `weight` is a
plain attribute that each call computes. T. Salimans and D. Kingma, "Weight normalization" (2016); T. Miyato et al.,
"Spectral normalization for generative adversarial networks" (2018).
"""

from __future__ import annotations

from typing import Any

from dy2st.functions.linalg import linalg
from dy2st.functions.math import math, reduction
from dy2st.functions.math.random import standard_normal
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.ir.context import replaced
from dy2st.nn.functional.norm import normalize
from dy2st.nn.layer import Layer
from dy2st.nn.layer_attributes import set_anew
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Give a layer's parameter as g * v / |v|, with a norm g for each index along `dim` (one for all where None).

    The layer gets the parameters `{name}_g` and `{name}_v` in place of `{name}`; it is returned. Raises RuntimeError
    where the parameter has a norm already.

    >>> import dy2st as paddle
    >>> layer = paddle.nn.utils.weight_norm(paddle.nn.Linear(3, 2), dim=1)
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', [2]), ('weight_g', [2]), ('weight_v', [3, 2])]
    """
    weight = _taken(layer, name)
    axis = None if dim in (None, -1) else _axis(weight, dim)
    with replaced(grad=False):
        layer.add_parameter(f"{name}_g", Parameter(_norms(weight, axis)))
        layer.add_parameter(f"{name}_v", Parameter(weight))
    return _hooked(layer, _WeightNorm(name, axis))


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make the product of `weight_norm` a parameter again; ValueError where there is none."""
    for number, hook in list(layer._forward_pre_hooks.items()):
        if isinstance(hook, _WeightNorm) and hook.name == name:
            with replaced(grad=False):
                weight = Parameter(hook.weight(layer))
            del layer._forward_pre_hooks[number], layer._parameters[f"{name}_g"], layer._parameters[f"{name}_v"]
            delattr(layer, name)
            layer.add_parameter(name, weight)
            return layer
    raise ValueError(f"remove_weight_norm: {name!r} of {type(layer).__name__} has no weight norm")


def spectral_norm(
    layer: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Divide a layer's parameter by its largest singular value, of which each call in training improves an estimate.

    The parameter is read as a matrix with a row for each index along `dim` (by default 1 for Linear and transposed
    convolutions, else 0). The layer gets the parameter `{name}_orig` and the buffers `{name}_u`, `{name}_v`; it is
    returned.

    >>> import dy2st as paddle
    >>> layer = paddle.nn.utils.spectral_norm(paddle.nn.Linear(3, 3), n_power_iterations=30)
    >>> _ = layer(paddle.ones([1, 3]))
    >>> round(paddle.linalg.svdvals(layer.weight)[0].item(), 3)
    1.0
    """
    if n_power_iterations < 1:
        raise ValueError(f"spectral_norm: n_power_iterations must be positive, not {n_power_iterations}")
    weight = _taken(layer, name)
    by_columns = type(layer).__name__ in ("Linear", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
    axis = _axis(weight, dim if dim is not None else int(by_columns))
    rows, columns = _matrix(weight, axis).shape
    layer.add_parameter(f"{name}_orig", weight)
    for end, extent in (("u", rows), ("v", columns)):
        layer.register_buffer(f"{name}_{end}", normalize(standard_normal([extent], weight.dtype), axis=0, epsilon=eps))
    return _hooked(layer, _SpectralNorm(name, axis, n_power_iterations, eps))


class SpectralNorm(Layer):
    """Return a weight divided by an estimate of its largest singular value, better with each iteration of a call.

    Shapes: the weight has `weight_shape`, and so has the result.
    """

    def __init__(
        self, weight_shape: Any, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, dtype: Any = "float32"
    ):
        super().__init__(dtype=dtype)
        shape = list(weight_shape)
        if not all(shape):
            raise ValueError(f"SpectralNorm: no extent of the weight may be 0, not {shape}")
        total = 1
        for extent in shape:
            total *= extent
        self._axis, self._iterations, self._eps = dim % len(shape), power_iters, eps
        for end, extent in (("u", shape[dim]), ("v", total // shape[dim])):
            self.register_buffer(f"weight_{end}", standard_normal([extent], dtype))

    def forward(self, x: Tensor) -> Tensor:
        matrix = _matrix(x, self._axis)
        u, v = _improved(matrix, self.weight_u, self.weight_v, self._iterations, self._eps)
        return x / linalg.dot(u, linalg.mv(matrix, v))


class _WeightNorm:
    """The hook of `weight_norm`."""

    def __init__(self, name: str, axis: int | None):
        self.name, self.axis = name, axis

    def weight(self, layer: Layer) -> Tensor:
        g, v = getattr(layer, f"{self.name}_g"), getattr(layer, f"{self.name}_v")
        shape = [1] * v.ndim if self.axis is None else [-1 if i == self.axis else 1 for i in range(v.ndim)]
        return v * reshape(g / math.maximum(_norms(v, self.axis), 1e-12), shape)

    def __call__(self, layer: Layer, inputs: Any) -> None:
        set_anew(layer, self.name, self.weight(layer))


class _SpectralNorm:
    """The hook of `spectral_norm`."""

    def __init__(self, name: str, axis: int, iterations: int, eps: float):
        self.name, self.axis, self.iterations, self.eps = name, axis, iterations, eps

    def weight(self, layer: Layer) -> Tensor:
        weight = getattr(layer, f"{self.name}_orig")
        matrix = _matrix(weight, self.axis)
        u, v = getattr(layer, f"{self.name}_u"), getattr(layer, f"{self.name}_v")
        if layer.training:
            new_u, new_v = _improved(matrix, u, v, self.iterations, self.eps)
            u.set_value(new_u)
            v.set_value(new_v)
            u, v = new_u, new_v
        return weight / linalg.dot(u, linalg.mv(matrix, v))

    def __call__(self, layer: Layer, inputs: Any) -> None:
        set_anew(layer, self.name, self.weight(layer))


def _improved(matrix: Tensor, u: Tensor, v: Tensor, iterations: int, eps: float) -> tuple[Tensor, Tensor]:
    """Return the singular vectors after some power iterations; no gradient flows through them."""
    with replaced(grad=False):
        for _ in range(iterations):
            v = normalize(linalg.matmul(matrix, u, transpose_x=True), axis=0, epsilon=eps)
            u = normalize(linalg.mv(matrix, v), axis=0, epsilon=eps)
    return u, v


def _matrix(weight: Tensor, axis: int) -> Tensor:
    front = weight if axis == 0 else transpose(weight, [axis, *(i for i in range(weight.ndim) if i != axis)])
    return reshape(front, [front.shape[0], -1])


def _norms(weight: Tensor, axis: int | None) -> Tensor:
    axes = [i for i in range(weight.ndim) if i != axis]
    found = math.sqrt(reduction.sum(math.square(weight), axes)) if axes else math.abs(weight)
    return found if axis is not None else reshape(found, [1])


def _axis(weight: Tensor, dim: int) -> int:
    if not -weight.ndim <= dim < weight.ndim:
        raise ValueError(f"dim is {dim}, the parameter has shape {weight.shape}")
    return dim % weight.ndim


def _taken(layer: Layer, name: str) -> Parameter:
    """Take a parameter out of a layer."""
    if any(getattr(hook, "name", None) == name for hook in layer._forward_pre_hooks.values()):
        raise RuntimeError(f"{name!r} of {type(layer).__name__} has a norm already")
    weight = layer._parameters.get(name)
    if weight is None:
        raise ValueError(f"{type(layer).__name__} has no parameter {name!r}")
    del layer._parameters[name]
    return weight


def _hooked(layer: Layer, hook: Any) -> Layer:
    setattr(layer, hook.name, hook.weight(layer))
    layer.register_forward_pre_hook(hook)
    return layer
