"""Activations, softmax, dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.paddle_files.rules.elementwise import number
from dy2st.paddle_files.runner import Node, operator


def _plain(name: str, function: Callable[[Any], Any]) -> None:
    operator(name)(lambda node, x: function(x))


for _name, _function in (
    ("relu", F.relu), ("relu6", F.relu6), ("sigmoid", F.sigmoid), ("silu", F.silu), ("mish", F.mish),
    ("softsign", F.softsign), ("tanh_shrink", F.tanhshrink), ("logsigmoid", F.log_sigmoid),
):  # fmt: skip
    _plain(_name, _function)


def _with(name: str, function: Callable[..., Any], **attributes: float) -> None:
    """Enter a function with numbers: attributes of the operation by the function's own names, with their defaults."""

    def rule(node: Node, x: Any) -> Any:
        return function(x, *(node.get(said, default=value) for said, value in attributes.items()))

    operator(name)(rule)


_with("elu", F.elu, alpha=1.0)
_with("celu", F.celu, alpha=1.0)
_with("selu", F.selu, scale=1.0507009873554805, alpha=1.6732632423543772)
_with("hardshrink", F.hardshrink, threshold=0.5)
_with("softshrink", F.softshrink, threshold=0.5)
_with("hardtanh", F.hardtanh, t_min=-1.0, t_max=1.0)
_with("softplus", F.softplus, beta=1.0, threshold=20.0)
_with("thresholded_relu", F.thresholded_relu, threshold=1.0)
_with("leaky_relu", F.leaky_relu, negative_slope=0.02)
_with("maxout", F.maxout, groups=1, axis=1)
_with("softmax", F.softmax, axis=-1)
_with("log_softmax", F.log_softmax, axis=-1)
_with("hardsigmoid", F.hardsigmoid, slope=0.2, offset=0.5)


@operator("gelu")
def _gelu(node: Node, x: Any) -> Any:
    return F.gelu(x, approximate=bool(node.get("approximate")))


@operator("swish")
def _swish(node: Node, x: Any) -> Any:
    beta = node.get("beta", default=1.0)
    return F.swish(x) if beta == 1.0 else x * F.sigmoid(x * beta)


@operator("hardswish")
def _hardswish(node: Node, x: Any) -> Any:
    threshold, scale, offset = (
        node.get(n, default=d) for n, d in (("threshold", 6.0), ("scale", 6.0), ("offset", 3.0))
    )
    if (threshold, scale, offset) == (6.0, 6.0, 3.0):
        return F.hardswish(x)
    return x * T.clip(x + offset, 0.0, threshold) / scale


@operator("prelu")
def _prelu(node: Node, x: Any, alpha: Any) -> Any:
    mode = node.get("mode", default="all")
    if mode == "element":
        return T.where(x > 0, x, x * T.reshape(alpha, [1, *x.shape[1:]]))
    return F.prelu(x, T.reshape(alpha, [-1]), node.get("data_format", default="NCHW"))


@operator("dropout")
def _dropout(node: Node, x: Any, seed: Any = None, p: Any = None) -> Any:
    rate = node.get("dropout_prob", default=0.5) if p is None else number(node.raw[2], p)
    mode = node.get("mode", "dropout_implementation", default="downgrade_in_infer")
    mode = "downscale_in_infer" if mode == "downgrade_in_infer" else mode  # the operation's word for it
    training = not node.get("is_test", default=False)
    return F.dropout(x, float(rate), training=training, mode=mode)
