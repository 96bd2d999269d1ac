"""Operations element by element.

onnxruntime has no kernels of many operators for small integers, bools and float64. Integers compute as int32 there;
what float64 lacks is written by functions that it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dy2st.dtypes import DType, bool_, float64, int32, int64, uint8
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.onnx.writing.writer import Writer, rule
from dy2st.ops.shape.shape import Broadcast


def operands(g: Writer, operation: Operation) -> list[str]:
    """Return the operands; ONNX repeats them itself where one has the shape of the result already."""
    shape = tensor_type(operation.results[0]).shape
    if not any(_source(v) is v and tensor_type(v).shape == shape for v in operation.operands):
        return g.inputs(operation)
    return [g.one(_source(v)) for v in operation.operands]


def _source(value: Value) -> Value:
    made = value.operation
    return made.operands[0] if made is not None and isinstance(made.op, Broadcast) else value


def dtype_of(operation: Operation) -> DType:
    """Return the dtype of the last operand."""
    return tensor_type(operation.operands[-1]).dtype


def computed(g: Writer, op: str, xs: Sequence[str], t: DType, lacks: str, back: bool = True) -> str:
    """Write an operator, in int32 where its kernels lack the dtype."""
    if t.name not in lacks.split():
        return g.emit(op, *xs)
    made = g.emit(op, *(g.cast(x, int32) for x in xs))
    return g.cast(made, t) if back else made


def plain(name: str, op: str, lacks: str = "", back: bool = True) -> None:
    """Let an op be an operator."""
    rule(name)(lambda g, o: computed(g, op, operands(g, o), dtype_of(o), lacks, back))


plain("add", "Add", "bool")
plain("sub", "Sub")
plain("mul", "Mul", "bool")
plain("div", "Div")
plain("neg", "Neg", "uint8 bool")
plain("abs", "Abs", "bool")
plain("sign", "Sign", "bool")
plain("reciprocal", "Reciprocal")
plain("exp", "Exp")
plain("log", "Log")
plain("sqrt", "Sqrt")
plain("sin", "Sin")
plain("cos", "Cos")
plain("tanh", "Tanh")
plain("sigmoid", "Sigmoid")
plain("asin", "Asin")
plain("acos", "Acos")
plain("atan", "Atan")
plain("erf", "Erf")
plain("maximum", "Max", "bool int16")
plain("minimum", "Min", "bool int16")
plain("eq", "Equal", back=False)
plain("lt", "Less", "bool", back=False)
plain("le", "LessOrEqual", "bool", back=False)
plain("gt", "Greater", "bool", back=False)
plain("ge", "GreaterOrEqual", "bool", back=False)


def number(g: Writer, value: float, operation: Operation) -> str:
    """Return a number in the dtype of the operands."""
    return g.constant(value, dtype_of(operation))


@rule("ne")
def _ne(g: Writer, o: Operation) -> str:
    return g.emit("Not", g.emit("Equal", *operands(g, o)))


@rule("floor", "ceil")
def _whole(g: Writer, o: Operation) -> str:
    return g.emit(o.op.name.title(), g.one(o.operands[0])) if dtype_of(o).is_floating else g.one(o.operands[0])


@rule("trunc")
def _trunc(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    if not dtype_of(o).is_floating:
        return x
    return g.emit("Where", g.emit("Less", x, number(g, 0, o)), g.emit("Ceil", x), g.emit("Floor", x))


@rule("rint")
def _rint(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    return g.emit("Round", x) if dtype_of(o).is_floating else x


@rule("round")
def _round(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    if not dtype_of(o).is_floating:
        return x
    size = g.emit("Abs", x)
    below = g.emit("Floor", size)
    up = g.emit("GreaterOrEqual", g.emit("Sub", size, below), number(g, 0.5, o))
    return g.emit("Mul", g.emit("Sign", x), g.emit("Where", up, g.emit("Add", below, number(g, 1, o)), below))


@rule("tan")
def _tan(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    return g.emit("Tan", x) if dtype_of(o) is not float64 else g.emit("Div", g.emit("Sin", x), g.emit("Cos", x))


def _hyperbolic(name: str, op: str, joined_by: str) -> None:
    """Let an op be an operator, or half of e ** x and e ** -x together."""

    def write(g: Writer, o: Operation) -> str:
        x = g.one(o.operands[0])
        if dtype_of(o) is not float64:
            return g.emit(op, x)
        both = g.emit(joined_by, g.emit("Exp", x), g.emit("Exp", g.emit("Neg", x)))
        return g.emit("Mul", both, number(g, 0.5, o))

    rule(name)(write)


_hyperbolic("sinh", "Sinh", "Sub")
_hyperbolic("cosh", "Cosh", "Add")


@rule("asinh", "acosh", "atanh")
def _inverse_hyperbolic(g: Writer, o: Operation) -> str:
    x, one = g.one(o.operands[0]), number(g, 1, o)
    if dtype_of(o) is not float64:
        return g.emit(o.op.name.title(), x)
    if o.op.name[1] == "t":
        odds = g.emit("Div", g.emit("Add", one, x), g.emit("Sub", one, x))
        return g.emit("Mul", number(g, 0.5, o), g.emit("Log", odds))
    sign, size = g.emit("Sign", x), g.emit("Abs", x)
    square = g.emit("Mul", x, x)
    if o.op.name[1] == "s":
        root = g.emit("Sqrt", g.emit("Add", square, one))
        return g.emit("Mul", sign, g.emit("Log", g.emit("Add", size, root)))
    return g.emit("Log", g.emit("Add", x, g.emit("Sqrt", g.emit("Sub", square, one))))


@rule("expm1")
def _expm1(g: Writer, o: Operation) -> str:
    """Write 2 t / (1 - t) with t = tanh(x / 2) near 0, where e ** x - 1 has lost its digits."""
    x, one, two = g.one(o.operands[0]), number(g, 1, o), number(g, 2, o)
    t = g.emit("Tanh", g.emit("Div", x, two))
    near = g.emit("Div", g.emit("Mul", two, t), g.emit("Sub", one, t))
    return g.emit("Where", g.emit("Less", g.emit("Abs", x), one), near, g.emit("Sub", g.emit("Exp", x), one))


def log1p(g: Writer, x: str, t: DType) -> str:
    """Write log(1 + x), near 0 as log(u) x / (u - 1) with u = 1 + x rounded."""
    one = g.constant(1, t)
    u = g.emit("Add", one, x)
    off, log = g.emit("Sub", u, one), g.emit("Log", u)
    none = g.emit("Equal", off, g.constant(0, t))
    near = g.emit("Div", g.emit("Mul", log, x), g.emit("Where", none, one, off))
    small = g.emit("Less", g.emit("Abs", x), g.constant(0.5, t))
    return g.emit("Where", none, x, g.emit("Where", small, near, log))


@rule("log1p")
def _log1p(g: Writer, o: Operation) -> str:
    return log1p(g, g.one(o.operands[0]), dtype_of(o))


@rule("exp2")
def _exp2(g: Writer, o: Operation) -> str:
    return g.emit("Pow", number(g, 2, o), g.one(o.operands[0]))


@rule("log2", "log10")
def _log_to_base(g: Writer, o: Operation) -> str:
    return g.emit("Div", g.emit("Log", g.one(o.operands[0])), number(g, math.log(int(o.op.name[3:])), o))


@rule("rsqrt")
def _rsqrt(g: Writer, o: Operation) -> str:
    return g.emit("Reciprocal", g.emit("Sqrt", g.one(o.operands[0])))


@rule("square")
def _square(g: Writer, o: Operation) -> str:
    return g.emit("Mul", *g.inputs(o) * 2)


@rule("hypot")
def _hypot(g: Writer, o: Operation) -> str:
    return g.emit("Sqrt", g.emit("Add", *(g.emit("Mul", x, x) for x in operands(g, o))))


@rule("pow")
def _pow(g: Writer, o: Operation) -> str:
    return computed(g, "Pow", operands(g, o), dtype_of(o), "bool uint8 int8 int16")


@rule("safe_mul")
def _safe_mul(g: Writer, o: Operation) -> str:
    x, y = operands(g, o)
    zero = number(g, 0, o)
    none = g.emit("Or", g.emit("Equal", x, zero), g.emit("Equal", y, zero))
    return g.emit("Where", none, zero, g.emit("Mul", x, y))


@rule("mod")
def _mod(g: Writer, o: Operation) -> str:
    x, y = operands(g, o)
    if not dtype_of(o).is_floating:
        return _floor_divided(g, o, x, y)[1]
    zero, rest = number(g, 0, o), g.emit("Mod", x, y, fmod=1)
    other = g.emit("Xor", g.emit("Less", rest, zero), g.emit("Less", y, zero))
    wrong = g.emit("And", g.emit("Not", g.emit("Equal", rest, zero)), other)
    return g.emit("Where", wrong, g.emit("Add", rest, y), rest)


@rule("fmod")
def _fmod(g: Writer, o: Operation) -> str:
    x, y = operands(g, o)
    if dtype_of(o).is_floating:
        return g.emit("Mod", x, y, fmod=1)
    rest = _floor_divided(g, o, g.emit("Abs", x), g.emit("Abs", y))[1]
    return g.emit("Mul", g.emit("Sign", x), rest)


@rule("floordiv")
def _floordiv(g: Writer, o: Operation) -> str:
    x, y = operands(g, o)
    if dtype_of(o).is_floating:
        return g.emit("Floor", g.emit("Div", x, y))
    return _floor_divided(g, o, x, y)[0]


def _floor_divided(g: Writer, o: Operation, x: str, y: str) -> tuple[str, str]:
    """Write the quotient of integers, rounded down, and what is left; both are 0 where the divisor is."""
    t = dtype_of(o)
    if t.name in ("bool", "uint8", "int8", "int16"):
        quotient, rest = _quotient(g, g.cast(x, int32), g.cast(y, int32), int32)
        return g.cast(quotient, t), g.cast(rest, t)
    return _quotient(g, x, y, t)


def _quotient(g: Writer, x: str, y: str, t: DType) -> tuple[str, str]:
    by = g.divisor(y, t)
    rest = g.emit("Mod", x, by)
    quotient = g.emit("Div", g.emit("Sub", x, rest), by)
    if by == y:
        return quotient, rest
    zero = g.constant(0, t)
    return g.emit("Where", g.emit("Equal", y, zero), zero, quotient), rest


@rule("fmax", "fmin")
def _without_nan(g: Writer, o: Operation) -> str:
    x, y = operands(g, o)
    op = o.op.name[1:].title()
    if not dtype_of(o).is_floating:
        return computed(g, op, [x, y], dtype_of(o), "bool int16")
    other = g.emit("Where", g.emit("IsNaN", y), x, g.emit(op, x, y))
    return g.emit("Where", g.emit("IsNaN", x), y, other)


@rule("relu")
def _relu(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    if dtype_of(o).is_floating:
        return g.emit("Relu", x)
    return computed(g, "Max", [x, number(g, 0, o)], dtype_of(o), "bool int16")


@rule("silu")
def _silu(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    return g.emit("Mul", x, g.emit("Sigmoid", x))


def _softplus(g: Writer, x: str, t: DType) -> str:
    """Write max(x, 0) + log(1 + e ** -|x|)."""
    beyond = log1p(g, g.emit("Exp", g.emit("Neg", g.emit("Abs", x))), t)
    return g.emit("Add", g.emit("Relu", x), beyond)


@rule("log_sigmoid")
def _log_sigmoid(g: Writer, o: Operation) -> str:
    return g.emit("Neg", _softplus(g, g.emit("Neg", g.one(o.operands[0])), dtype_of(o)))


@rule("softplus")
def _softplus_of(g: Writer, o: Operation) -> str:
    x, beta = g.one(o.operands[0]), number(g, o.attributes["beta"], o)
    scaled = g.emit("Mul", x, beta)
    made = g.emit("Div", _softplus(g, scaled, dtype_of(o)), beta)
    return g.emit("Where", g.emit("Greater", scaled, number(g, o.attributes["threshold"], o)), x, made)


@rule("gelu")
def _gelu(g: Writer, o: Operation) -> str:
    return g.emit("Gelu", g.one(o.operands[0]), approximate="tanh" if o.attributes["approximate"] else "none")


@rule("atan2")
def _atan2(g: Writer, o: Operation) -> str:
    y, x = operands(g, o)
    zero, pi = number(g, 0, o), number(g, math.pi, o)
    flat = g.emit("Equal", x, zero)
    angle = g.emit("Atan", g.emit("Div", y, g.emit("Where", flat, number(g, 1, o), x)))
    half = g.emit("Mul", g.emit("Sign", y), number(g, math.pi / 2, o))
    turned = g.emit("Where", g.emit("Less", y, zero), g.emit("Sub", angle, pi), g.emit("Add", angle, pi))
    return g.emit("Where", flat, half, g.emit("Where", g.emit("Less", x, zero), turned, angle))


@rule("isnan", "isinf", "isfinite")
def _is_special(g: Writer, o: Operation) -> str:
    x = g.one(o.operands[0])
    finite = o.op.name.endswith("finite")
    if not dtype_of(o).is_floating:
        same = g.emit("Equal", x, x)
        return same if finite else g.emit("Not", same)
    if finite:
        return g.emit("Not", g.emit("Or", g.emit("IsNaN", x), g.emit("IsInf", x)))
    return g.emit("IsNaN" if o.op.name.endswith("nan") else "IsInf", x)


@rule("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(g: Writer, o: Operation) -> str:
    xs = [x if dtype_of(o).is_bool else g.cast(x, bool_) for x in operands(g, o)]
    return g.emit(o.op.name.removeprefix("logical_").title(), *xs)


@rule("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def _bitwise(g: Writer, o: Operation) -> str:
    op = o.op.name.removeprefix("bitwise_").title()
    return g.emit(op if dtype_of(o).is_bool else f"Bitwise{op}", *operands(g, o))


@rule("shift_left", "shift_right")
def _shift(g: Writer, o: Operation) -> str:
    x, y = operands(g, o)
    t = dtype_of(o)
    factor = g.emit("Pow", g.constant(2, np.int64), g.cast(y, int64))
    if o.op.name.endswith("left"):
        return g.emit("Mul", x, g.cast(factor, t))
    return g.cast(_quotient(g, g.cast(x, int64), factor, int64)[0], t)


@rule("where")
def _where(g: Writer, o: Operation) -> str:
    t = dtype_of(o)
    chosen, x, y = operands(g, o)
    narrow = {"bool": uint8, "int16": int32}.get(t.name)
    if narrow is None:
        return g.emit("Where", chosen, x, y)
    return g.cast(g.emit("Where", chosen, g.cast(x, narrow), g.cast(y, narrow)), t)


@rule("cast")
def _cast(g: Writer, o: Operation) -> str:
    return g.cast(g.one(o.operands[0]), o.attributes["dtype"])


@rule("detach", "renew")
def _same(g: Writer, o: Operation) -> str:
    return g.one(o.operands[0])
