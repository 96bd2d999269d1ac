"""Activations: the functions, and the layers made of them."""

import numpy as np
import scipy.special as special

from tests.values.operands import A, C, floats
from tests.values.row import everywhere, layer, row

X = floats(2, 4, 3, low=-4, high=4)


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 50))) / beta)


def _elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


_SELU = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_GELU = lambda x: x * special.ndtr(x)
_TANH_GELU = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
_MISH = lambda x: x * np.tanh(_softplus(x))
_FUNCTIONS = (
    # function, layer, keywords, reference
    ("relu", "ReLU", {}, lambda x: np.maximum(x, 0)),
    ("relu6", "ReLU6", {}, lambda x: np.clip(x, 0, 6)),
    ("sigmoid", "Sigmoid", {}, special.expit),
    ("tanh", "Tanh", {}, np.tanh),
    ("silu", "Silu", {}, lambda x: x * special.expit(x)),
    ("swish", "Swish", {}, lambda x: x * special.expit(x)),
    ("softsign", "Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("tanhshrink", "Tanhshrink", {}, lambda x: x - np.tanh(x)),
    ("log_sigmoid", "LogSigmoid", {}, special.log_expit),
    ("mish", "Mish", {}, _MISH),
    ("gelu", "GELU", {}, _GELU),
    ("gelu", "GELU", {"approximate": True}, _TANH_GELU),
    ("elu", "ELU", {}, _elu),
    ("elu", "ELU", {"alpha": 0.5}, lambda x: _elu(x, 0.5)),
    ("celu", "CELU", {}, _elu),
    ("celu", "CELU", {"alpha": 0.5}, lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0) / 0.5))),
    ("selu", "SELU", {}, lambda x: _SELU[0] * _elu(x, _SELU[1])),
    ("selu", "SELU", {"scale": 1.5, "alpha": 2.0}, lambda x: 1.5 * _elu(x, 2.0)),
    ("leaky_relu", "LeakyReLU", {}, lambda x: np.where(x > 0, x, 0.01 * x)),
    ("leaky_relu", "LeakyReLU", {"negative_slope": 0.5}, lambda x: np.where(x > 0, x, 0.5 * x)),
    ("hardshrink", "Hardshrink", {}, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    ("hardshrink", "Hardshrink", {"threshold": 1.0}, lambda x: np.where(np.abs(x) > 1, x, 0)),
    ("softshrink", "Softshrink", {}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    ("softshrink", "Softshrink", {"threshold": 1.0}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 1, 0)),
    ("hardtanh", "Hardtanh", {}, lambda x: np.clip(x, -1, 1)),
    ("hardtanh", "Hardtanh", {"min": -2.0, "max": 0.5}, lambda x: np.clip(x, -2, 0.5)),
    ("hardsigmoid", "Hardsigmoid", {}, lambda x: np.clip(x * 0.1666667 + 0.5, 0, 1)),
    ("hardswish", "Hardswish", {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("softplus", "Softplus", {}, _softplus),
    ("softplus", "Softplus", {"beta": 2.0, "threshold": 3.0}, lambda x: _softplus(x, 2.0, 3.0)),
    ("thresholded_relu", "ThresholdedReLU", {}, lambda x: np.where(x > 1, x, 0)),
    ("thresholded_relu", "ThresholdedReLU", {"threshold": 0.5, "value": -1.0}, lambda x: np.where(x > 0.5, x, -1)),
    ("softmax", "Softmax", {}, lambda x: special.softmax(x, -1)),
    ("softmax", "Softmax", {"axis": 1}, lambda x: special.softmax(x, 1)),
    ("log_softmax", "LogSoftmax", {}, lambda x: special.log_softmax(x, -1)),
    ("log_softmax", "LogSoftmax", {"axis": 0}, lambda x: special.log_softmax(x, 0)),
    ("maxout", "Maxout", {"groups": 2}, lambda x: x.reshape(2, 2, 2, 3).max(2)),
    ("maxout", "Maxout", {"groups": 3, "axis": -1}, lambda x: x.reshape(2, 4, 1, 3).max(-1)),
    ("glu", "GLU", {"axis": 1}, lambda x: x[:, :2] * special.expit(x[:, 2:])),
)  # fmt: skip
_EDGES = ("relu", "sigmoid", "tanh", "leaky_relu", "elu", "softsign", "relu6", "hardtanh", "gelu")

ROWS = [
    *(row(f"nn.functional.{f}", (X,), want, **keywords).but(known_extents=f in ("maxout", "glu"),
        tolerance=(1e-7, 1e-5))
      for f, _, keywords, want in _FUNCTIONS),
    *(layer(f"nn.{made}", (), (X,), want, **keywords).but(variants=("float64",), tolerance=(1e-7, 1e-5))
      for _, made, keywords, want in _FUNCTIONS),
    *(r for f, _, keywords, want in _FUNCTIONS if f in _EDGES and not keywords
      for r in list(everywhere(f"nn.functional.{f}", want, C))[1:]),
    row("nn.functional.glu", (A[:, :2],), A[:, :1] * special.expit(A[:, 1:2])).but(known_extents=True),
    row("nn.functional.softmax", (C,), special.softmax(C, -1), dtype="float64").only("float64"),
    row("nn.functional.softmax", (np.array([[1000.0, 1000.0], [-np.inf, 0.0]]),), np.array([[0.5, 0.5], [0.0, 1.0]])),
    row("nn.functional.log_softmax", (C,), special.log_softmax(C, -1), dtype="float64").only("float64"),
    row("softmax", (C,), special.softmax(C, 0)),
    row("softmax", (C,), special.softmax(C, 1), dim=1),
    row("nn.functional.prelu", (X, np.array([0.25])), np.where(X > 0, X, 0.25 * X)),
    row("nn.functional.prelu", (X, np.array([0.25, 0.5, 1.0, 2.0])),
        np.where(X > 0, X, np.array([0.25, 0.5, 1.0, 2.0])[:, None] * X)).but(known_extents=True),
    row("nn.functional.prelu", (X, np.array([0.25, 0.5, 1.0])), np.where(X > 0, X, np.array([0.25, 0.5, 1.0]) * X),
        data_format="NLC").but(known_extents=True),
    row("nn.functional.swiglu", (X, X + 1), X * special.expit(X) * (X + 1)),
    row("nn.functional.swiglu", (C,), C[..., :2] * special.expit(C[..., :2]) * C[..., 2:]).but(known_extents=True),
    row("nn.functional.rrelu", (X,), np.where(X > 0, X, X * 0.25), lower=0.2, upper=0.3, training=False),
    layer("nn.PReLU", (), (X,), np.where(X > 0, X, 0.25 * X)).but(variants=("float64", "float32")),
    layer("nn.PReLU", (4,), (X,), np.where(X > 0, X, 0.5 * X), init=0.5).but(variants=("float64",)),
    layer("nn.RReLU", (), (X,), np.where(X > 0, X, X * 0.25), lower=0.2, upper=0.3).but(variants=("float64",)),
    layer("nn.Softmax2D", (), (X,), special.softmax(X, 0)).but(variants=("float64",)),
    layer("nn.Softmax2D", (), (X[None],), special.softmax(X[None], 1)).but(variants=("float64",)),
    layer("nn.Identity", (1, 2), (X,), X).but(variants=("float64",)),
]  # fmt: skip
