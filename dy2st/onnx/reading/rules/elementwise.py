"""Operators element by element, casts and constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.dtypes import ALL
from dy2st.nn import functional as F
from dy2st.onnx.package import onnx_package
from dy2st.onnx.reading.runner import Node, operator

Function = Callable[..., Any]


def like(made: Any, x: Any) -> Any:
    """Return what was computed in the dtype of an input, as ONNX has it."""
    return made if made.dtype == x.dtype else T.cast(made, x.dtype)


def _unary(name: str, function: Function) -> None:
    operator(name)(lambda node, x: like(function(x), x))


def _binary(name: str, function: Function) -> None:
    operator(name)(lambda node, x, y: like(function(*_aligned(node, x, y)), x))


def _compared(name: str, function: Function) -> None:
    operator(name)(lambda node, x, y: function(*_aligned(node, x, y)))


def _aligned(node: Node, x: Any, y: Any) -> tuple[Any, Any]:
    """Return operands; before opset 7 the second one stood at an axis of the first."""
    return x, y


for _same in (
    T.abs, T.exp, T.log, T.sqrt, T.reciprocal, T.sin, T.cos, T.tan, T.asin, T.acos, T.atan, T.sinh, T.cosh, T.tanh,
    T.asinh, T.acosh, T.atanh, T.erf, T.sign, T.floor, T.ceil,
):  # fmt: skip
    _unary(_same.__name__.title(), _same)
_unary("Neg", T.neg)
_unary("Relu", F.relu)
_unary("Sigmoid", F.sigmoid)
_unary("Softplus", lambda x: T.maximum(x, T.zeros_like(x)) + T.log1p(T.exp(-T.abs(x))))
_unary("Softsign", lambda x: x / (1 + T.abs(x)))
_unary("Mish", F.mish)
_unary("HardSwish", lambda x: x * T.clip(x / 6 + 0.5, 0.0, 1.0))
_binary("Add", T.add)
_binary("Sub", T.subtract)
_binary("Mul", T.multiply)
_binary("PRelu", lambda x, slope: T.where(x < 0, x * slope, x))
_compared("Equal", T.equal)
_compared("Less", T.less_than)
_compared("LessOrEqual", T.less_equal)
_compared("Greater", T.greater_than)
_compared("GreaterOrEqual", T.greater_equal)
_compared("And", T.logical_and)
_compared("Or", T.logical_or)
_compared("Xor", T.logical_xor)
_binary("BitwiseAnd", T.bitwise_and)
_binary("BitwiseOr", T.bitwise_or)
_binary("BitwiseXor", T.bitwise_xor)
_unary("BitwiseNot", T.bitwise_not)
operator("Not")(lambda node, x: T.logical_not(x))
operator("IsNaN")(lambda node, x: T.isnan(x))


@operator("Identity")
def _identity(node: Node, x: Any) -> Any:
    return x


@operator("IsInf")
def _isinf(node: Node, x: Any) -> Any:
    found = T.isinf(x)
    if not node.get("detect_negative", 1):
        found = T.logical_and(found, x > 0)
    return found if node.get("detect_positive", 1) else T.logical_and(found, x < 0)


@operator("Round")
def _round(node: Node, x: Any) -> Any:
    return T.round(x)


@operator("Div")
def _div(node: Node, x: Any, y: Any) -> Any:
    """Divide; a quotient of integers is cut off."""
    if x.dtype.is_floating:
        return T.divide(x, y)
    down = T.floor_divide(x, y)
    rest = x - down * y
    return like(T.where(T.logical_and(rest != 0, T.logical_xor(x < 0, y < 0)), down + 1, down), x)


@operator("Mod")
def _mod(node: Node, x: Any, y: Any) -> Any:
    if not node.get("fmod", 0):
        return like(T.remainder(x, y), x)
    rest = T.remainder(T.abs(x), T.abs(y))
    return like(T.where(x < 0, -rest, rest), x)


@operator("Pow")
def _pow(node: Node, x: Any, y: Any) -> Any:
    if x.dtype.is_floating:
        return like(T.pow(x, T.cast(y, x.dtype)), x)
    if y.dtype.is_floating:
        return like(T.pow(T.cast(x, "float64"), T.cast(y, "float64")), x)
    return like(T.pow(x, T.cast(y, x.dtype)), x)


@operator("BitShift")
def _bit_shift(node: Node, x: Any, y: Any) -> Any:
    shift = T.bitwise_left_shift if node.get("direction") == "LEFT" else T.bitwise_right_shift
    return like(shift(x, y), x)


@operator("Max")
def _max(node: Node, *xs: Any) -> Any:
    return like(reduce(T.maximum, xs), xs[0])


@operator("Min")
def _min(node: Node, *xs: Any) -> Any:
    return like(reduce(T.minimum, xs), xs[0])


@operator("Sum")
def _sum(node: Node, *xs: Any) -> Any:
    return reduce(T.add, xs)


@operator("Mean")
def _mean(node: Node, *xs: Any) -> Any:
    return reduce(T.add, xs) / len(xs)


@operator("Where")
def _where(node: Node, test: Any, x: Any, y: Any) -> Any:
    return T.where(test, x, y)


@operator("Clip")
def _clip(node: Node, x: Any, low: Any = None, high: Any = None) -> Any:
    for bound, given, name in ((T.maximum, low, "min"), (T.minimum, high, "max")):
        given = node.get(name) if given is None else given
        if given is not None:
            x = bound(x, given if not isinstance(given, float) else T.full([], given, x.dtype))
    return x


@operator("Elu")
def _elu(node: Node, x: Any) -> Any:
    return T.where(x < 0, T.expm1(x) * node.get("alpha", 1.0), x)


@operator("Selu")
def _selu(node: Node, x: Any) -> Any:
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    return T.where(x > 0, x, T.expm1(x) * alpha) * gamma


@operator("Celu")
def _celu(node: Node, x: Any) -> Any:
    alpha = node.get("alpha", 1.0)
    return T.maximum(x, T.zeros_like(x)) + T.minimum(T.expm1(x / alpha) * alpha, T.zeros_like(x))


@operator("LeakyRelu")
def _leaky_relu(node: Node, x: Any) -> Any:
    return T.where(x < 0, x * node.get("alpha", 0.01), x)


@operator("ThresholdedRelu")
def _thresholded_relu(node: Node, x: Any) -> Any:
    return T.where(x > node.get("alpha", 1.0), x, T.zeros_like(x))


@operator("HardSigmoid")
def _hard_sigmoid(node: Node, x: Any) -> Any:
    return T.clip(x * node.get("alpha", 0.2) + node.get("beta", 0.5), 0.0, 1.0)


@operator("Shrink")
def _shrink(node: Node, x: Any) -> Any:
    lambd, bias = node.get("lambd", 0.5), node.get("bias", 0.0)
    low, high = like(x + bias, x), like(x - bias, x)
    return T.where(x < -lambd, low, T.where(x > lambd, high, T.zeros_like(x)))


@operator("Gelu")
def _gelu(node: Node, x: Any) -> Any:
    return F.gelu(x, approximate=node.get("approximate", "none") == "tanh")


@operator("Swish")
def _swish(node: Node, x: Any) -> Any:
    return x * F.sigmoid(x * node.get("alpha", 1.0))


_DTYPES = frozenset(one.name for one in ALL)


def dtype_name(node: Node, number: int) -> str:
    """Return our name of ONNX's number of a dtype."""
    try:
        name = np.dtype(onnx_package().helper.tensor_dtype_to_np_dtype(number)).name
    except KeyError:
        name = str(number)
    if name not in _DTYPES:
        raise node.fail(f"there are no tensors of {name} here")
    return name


@operator("Cast")
def _cast(node: Node, x: Any) -> Any:
    return T.cast(x, dtype_name(node, node.get("to")))


@operator("CastLike")
def _cast_like(node: Node, x: Any, y: Any) -> Any:
    return T.cast(x, y.dtype)


@operator("Constant")
def _constant(node: Node) -> Any:
    for name in ("value_float", "value_floats"):
        if name in node.attributes:
            return T.to_tensor(np.asarray(node.get(name), np.float32))
    for name in ("value_int", "value_ints"):
        if name in node.attributes:
            return T.to_tensor(np.asarray(node.get(name), np.int64))
    if "value" not in node.attributes:
        raise node.fail("its value is neither a tensor nor a number")
    return T.to_tensor(node.array("value"))


@operator("ConstantOfShape")
def _constant_of_shape(node: Node, shape: Any) -> Any:
    value = node.array("value") if "value" in node.attributes else np.zeros(1, np.float32)
    return T.full(node.ints(0), value.reshape(-1)[0].item(), value.dtype.name)


@operator("Range")
def _range(node: Node, start: Any, limit: Any, delta: Any) -> Any:
    numbers = [x.item() for x in (start, limit, delta)]
    return T.arange(*numbers, dtype=start.dtype)


@operator("EyeLike")
def _eye_like(node: Node, x: Any) -> Any:
    t = dtype_name(node, node.get("dtype")) if node.get("dtype") else x.dtype
    rows, columns = x.shape
    on = T.unsqueeze(T.arange(rows), 1) + node.get("k", 0) == T.arange(columns)
    return T.cast(on, t)


@operator("Dropout")
def _dropout(node: Node, x: Any, ratio: Any = None, training: Any = None) -> Any:
    on = training is not None and bool(training) and (ratio is None or float(ratio) > 0)
    if on:
        raise node.fail("its random numbers are not ours")
    return (x, T.ones_like(T.cast(x, "bool")))[: max(node.outputs, 1)] if node.outputs > 1 else x


@operator("BlackmanWindow", "HannWindow", "HammingWindow")
def _window(node: Node, size: Any) -> Any:
    n = int(size)
    parts = max(n if node.get("periodic", 1) else n - 1, 1)
    turn = T.arange(n, dtype="float64") * (2 * math.pi / parts)
    name = node.proto.op_type
    if name == "BlackmanWindow":
        made = 0.42 - 0.5 * T.cos(turn) + 0.08 * T.cos(turn * 2)
    else:
        a = 0.5 if name == "HannWindow" else 25 / 46
        made = a - (1 - a) * T.cos(turn)
    return T.cast(made, dtype_name(node, node.get("output_datatype", 1)))
