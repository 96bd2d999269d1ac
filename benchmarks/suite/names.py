"""The operations that feed-forward models are written in, by package: one model then serves jax, ONNX and NumPy."""

import importlib
from typing import Any

import numpy as np

from benchmarks.suite.onnx_model import Graph


class Jax:
    """Operations of jax, channels first as in the other packages."""

    def __init__(self, jax: Any):
        self.jax, self.np = jax, jax.numpy
        self.relu, self.sigmoid, self.tanh = jax.nn.relu, jax.nn.sigmoid, jax.numpy.tanh
        self.softmax = jax.nn.softmax
        self.matmul, self.transpose = jax.numpy.matmul, jax.numpy.transpose

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    def scale(self, x: Any, factor: float) -> Any:
        return x * factor

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=False)

    def layer_norm(self, x: Any, w: Any, b: Any) -> Any:
        off = x - x.mean(-1, keepdims=True)
        return off * self.jax.lax.rsqrt((off * off).mean(-1, keepdims=True) + 1e-5) * w + b

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        pads = [(padding, padding)] * 2
        return self.jax.lax.conv_general_dilated(x, w, (stride, stride), pads)

    def channel_bias(self, x: Any, b: Any) -> Any:
        return x + b[:, None, None]

    def batch_norm(self, x: Any, w: Any, b: Any, mean: Any, variance: Any) -> Any:
        factor = w * self.jax.lax.rsqrt(variance + 1e-5)
        return x * factor[:, None, None] + (b - mean * factor)[:, None, None]

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        return self.jax.lax.reduce_window(
            x, -self.np.inf, self.jax.lax.max, (1, 1, size, size), (1, 1, stride, stride), pads
        )

    def mean_of_pixels(self, x: Any) -> Any:
        return x.mean((2, 3))

    def rows(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)


class Numpy(Jax):
    """The same by NumPy, in double precision inside, as the reference."""

    def __init__(self):
        self.np = np
        self.matmul, self.transpose, self.tanh = np.matmul, np.transpose, np.tanh

    def relu(self, x: Any) -> Any:
        return np.maximum(x, 0)

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def softmax(self, x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def gelu(self, x: Any) -> Any:
        erf = np.vectorize(importlib.import_module("math").erf)
        return 0.5 * x * (1 + erf(x / np.sqrt(2.0)))

    def layer_norm(self, x: Any, w: Any, b: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        return np.einsum("nchwij,fcij->nfhw", self._windows(x, w.shape[2], stride, padding, 0.0), w, optimize=True)

    def batch_norm(self, x: Any, w: Any, b: Any, mean: Any, variance: Any) -> Any:
        factor = w / np.sqrt(variance + 1e-5)
        return x * factor[:, None, None] + (b - mean * factor)[:, None, None]

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        return self._windows(x, size, stride, padding, -np.inf).max((4, 5))

    def _windows(self, x: Any, size: int, stride: int, padding: int, fill: float) -> Any:
        pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        wide = np.pad(x, pads, constant_values=fill)
        return np.lib.stride_tricks.sliding_window_view(wide, (size, size), (2, 3))[:, :, ::stride, ::stride]


class Onnx:
    """Nodes of a graph; weights may be arrays, which become constants."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def __getattr__(self, name: str) -> Any:
        """Return an operation of one operand that ONNX calls by the same name."""
        op = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}[name]
        return lambda x: self.graph.add(op, x)

    def value(self, x: Any) -> str:
        return x if isinstance(x, str) else self.graph.constant(x)

    def matmul(self, x: Any, y: Any) -> str:
        return self.graph.add("MatMul", self.value(x), self.value(y))

    def add(self, x: Any, y: Any) -> str:
        return self.graph.add("Add", self.value(x), self.value(y))

    def scale(self, x: Any, factor: float) -> str:
        return self.graph.add("Mul", x, self.graph.constant(np.float32(factor)))

    def linear(self, x: Any, w: Any, b: Any) -> str:
        return self.add(self.matmul(x, w), b)

    def softmax(self, x: Any) -> str:
        return self.graph.add("Softmax", x, axis=-1)

    def gelu(self, x: Any) -> str:
        return self.graph.add("Gelu", x)

    def layer_norm(self, x: Any, w: Any, b: Any) -> str:
        return self.graph.add("LayerNormalization", x, self.value(w), self.value(b), axis=-1, epsilon=1e-5)

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> str:
        return self.graph.add("Conv", x, self.value(w), strides=[stride] * 2, pads=[padding] * 4)

    def channel_bias(self, x: Any, b: Any) -> str:
        return self.add(x, b[:, None, None])

    def batch_norm(self, x: Any, w: Any, b: Any, mean: Any, variance: Any) -> str:
        return self.graph.add("BatchNormalization", x, *map(self.value, (w, b, mean, variance)), epsilon=1e-5)

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> str:
        return self.graph.add("MaxPool", x, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[padding] * 4)

    def mean_of_pixels(self, x: Any) -> str:
        return self.graph.add("Flatten", self.graph.add("GlobalAveragePool", x))

    def rows(self, x: Any) -> str:
        return self.graph.add("Flatten", x)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> str:
        return self.graph.add("Reshape", x, self.graph.constant(np.array(shape, "int64")))

    def transpose(self, x: Any, axes: tuple[int, ...]) -> str:
        return self.graph.add("Transpose", x, perm=axes)
