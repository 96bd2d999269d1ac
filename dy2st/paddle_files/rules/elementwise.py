"""Arithmetic, comparisons and logic, element by element; products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.functions.linalg.einsum import einsum
from dy2st.functions.math.math import round_half_away
from dy2st.paddle_files.graph import Given
from dy2st.paddle_files.runner import Node, operator
from dy2st.runtime.eager.tensor import Tensor


def _unary(*functions: Callable[[Any], Any]) -> None:
    for function in functions:
        operator(function.__name__)(lambda node, x, function=function: function(x))


def _aligned(node: Node, x: Any, y: Any) -> Any:
    """Return y with its axes where the attribute `axis` of a ProgramDesc puts the first of them."""
    axis = node.get("axis", default=-1)
    if axis == -1 or y.ndim == 0 or axis + y.ndim >= x.ndim:
        return y
    return T.reshape(y, [*y.shape, *[1] * (x.ndim - axis - y.ndim)])


def _binary(name: str, function: Callable[[Any, Any], Any]) -> None:
    operator(name)(lambda node, x, y: function(x, _aligned(node, x, y)))


_unary(
    T.abs, T.acos, T.acosh, T.asin, T.asinh, T.atan, T.atanh, T.ceil, T.cos, T.cosh, T.digamma, T.erf, T.erfinv, T.exp,
    T.expm1, T.floor, T.lgamma, T.log, T.log10, T.log1p, T.log2, T.logical_not, T.reciprocal, T.rsqrt, T.sign, T.sin,
    T.sinh, T.sqrt, T.square, T.tan, T.tanh, T.trunc, T.bitwise_not, T.isnan, T.isinf, T.isfinite,
)  # fmt: skip
for _name, _function in (
    ("add", T.add), ("subtract", T.subtract), ("multiply", T.multiply), ("divide", T.divide), ("maximum", T.maximum),
    ("minimum", T.minimum), ("fmax", T.fmax), ("fmin", T.fmin), ("elementwise_pow", T.pow),
    ("floor_divide", T.floor_divide), ("remainder", T.remainder), ("equal", T.equal), ("not_equal", T.not_equal),
    ("less_than", T.less_than), ("less_equal", T.less_equal), ("greater_than", T.greater_than),
    ("greater_equal", T.greater_equal), ("logical_and", T.logical_and), ("logical_or", T.logical_or),
    ("logical_xor", T.logical_xor), ("bitwise_and", T.bitwise_and), ("bitwise_or", T.bitwise_or),
    ("bitwise_xor", T.bitwise_xor), ("atan2", T.atan2), ("kron", T.kron), ("dot", T.dot), ("bmm", T.bmm), ("mv", T.mv),
    ("equal_all", T.equal_all),
):  # fmt: skip
    _binary(_name, _function)


def number(raw: Any, x: Any) -> Any:
    """Return an operand as a Python number where it is known, else as the tensor that it is."""
    if isinstance(raw, Given):
        return raw.value
    return raw.reshape(-1)[0].item() if isinstance(raw, np.ndarray) and raw.size == 1 else x


@operator("round")
def _round(node: Node, x: Any) -> Any:
    """Round; of two whole numbers a ProgramDesc's takes the one farther from zero, PIR's the even one."""
    if node.operation.said == "round":
        return round_half_away(x)
    return T.round(x, node.get("decimals", default=0))


@operator("scale")
def _scale(node: Node, x: Any, by: Any) -> Any:
    """Multiply and add in the dtype of x: numbers that are whole stay so for integers."""
    by, bias = number(node.raw[1], by), node.get("bias", default=0.0)
    if x.dtype.is_integer and not isinstance(by, Tensor) and float(by).is_integer() and float(bias).is_integer():
        by, bias = int(by), int(bias)
    if not isinstance(by, Tensor) and by == 1:
        return T.cast(x + bias, x.dtype) if bias else T.assign(x)
    return T.scale(x, by, bias, node.get("bias_after_scale", default=True))


@operator("pow")
def _pow(node: Node, x: Any, factor: Any = None) -> Any:
    return T.pow(x, node.get("y", default=2.0) if factor is None else number(node.raw[1], factor))


@operator("clip")
def _clip(node: Node, x: Any, low: Any, high: Any) -> Any:
    return T.clip(x, number(node.raw[1], low), number(node.raw[2], high))


@operator("stanh")
def _stanh(node: Node, x: Any) -> Any:
    return T.stanh(x, node.get("scale_a", default=0.67), node.get("scale_b", default=1.7159))


@operator("logit")
def _logit(node: Node, x: Any) -> Any:
    return T.logit(x, node.get("eps", default=0.0) or None)


@operator("lerp")
def _lerp(node: Node, x: Any, y: Any, weight: Any) -> Any:
    return T.lerp(x, y, weight)


@operator("cross")
def _cross(node: Node, x: Any, y: Any) -> Any:
    return T.cross(x, y, node.get("axis", default=9))


@operator("cast")
def _cast(node: Node, x: Any) -> Any:
    return T.cast(x, node.dtype("dtype", "out_dtype"))


@operator("assign", "share_data")
def _assign(node: Node, x: Any) -> Any:
    return x


@operator("increment")
def _increment(node: Node, x: Any) -> Any:
    step = node.get("value", "step", default=1.0)
    return x + (int(step) if x.dtype.is_integer else step)


@operator("where")
def _where(node: Node, test: Any, x: Any, y: Any) -> Any:
    return T.where(test, x, y)


@operator("matmul")
def _matmul(node: Node, x: Any, y: Any) -> Any:
    return T.matmul(x, y, bool(node.get("transpose_x")), bool(node.get("transpose_y")))


@operator("old_matmul")
def _old_matmul(node: Node, x: Any, y: Any) -> Any:
    """Multiply as `matmul` of Paddle 1 did, by a factor."""
    made = T.matmul(x, y, bool(node.get("transpose_X")), bool(node.get("transpose_Y")))
    return made * node.get("alpha", default=1.0)


@operator("old_mul")
def _old_mul(node: Node, x: Any, y: Any) -> Any:
    """Multiply as matrices, axes before and after a place taken together."""
    left, right = node.get("x_num_col_dims", default=1), node.get("y_num_col_dims", default=1)
    rows, columns = list(x.shape[:left]), list(y.shape[right:])
    flat = T.flatten(x, left, x.ndim - 1) if x.ndim - left > 1 else x
    if left > 1:
        flat = T.reshape(flat, [-1, flat.shape[-1]])
    other = T.reshape(y, [_product(y.shape[:right]), -1])
    return T.reshape(T.matmul(flat, other), [*rows, *columns])


def _product(extents: Any) -> Any:
    total: Any = 1
    for extent in extents:
        total = total * extent
    return total


@operator("addmm")
def _addmm(node: Node, x: Any, left: Any, right: Any) -> Any:
    return T.addmm(x, left, right, node.get("beta", default=1.0), node.get("alpha", default=1.0))


@operator("einsum")
def _einsum(node: Node, xs: Any) -> Any:
    return einsum(node.get("equation").replace(" ", ""), *xs)


@operator("add_n")
def _add_n(node: Node, xs: Any) -> Any:
    return T.add_n(xs)
