"""Python numbers: int64, double and bool without axes."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ScalarType
from dy2st.onnx.writing.leaves import Refused
from dy2st.onnx.writing.writer import Writer, rule

_DTYPES = {"int": int64, "float": float64, "bool": bool_}


def kind_of(value: Value) -> str:
    """Return which kind of number a value is."""
    assert isinstance(value.type, ScalarType)
    return value.type.kind


def as_kind(g: Writer, value: Value, kind: str) -> str:
    """Write a number as one of another kind."""
    return g.one(value) if kind_of(value) == kind else g.cast(g.one(value), _DTYPES[kind])


def _common(values: Sequence[Value]) -> str:
    kinds = {kind_of(v) for v in values}
    return "float" if "float" in kinds else "int"


def _in_result(name: str, op: str) -> None:
    """Let an op on numbers of the result's kind be an operator."""
    rule(name)(lambda g, o: g.emit(op, *(as_kind(g, v, kind_of(o.results[0])) for v in o.operands)))


def _compared(name: str, op: str) -> None:
    rule(name)(lambda g, o: g.emit(op, *(as_kind(g, v, _common(o.operands)) for v in o.operands)))


_in_result("scalar_add", "Add")
_in_result("scalar_sub", "Sub")
_in_result("scalar_mul", "Mul")
_in_result("scalar_truediv", "Div")
_in_result("scalar_pow", "Pow")
_in_result("scalar_neg", "Neg")
_in_result("scalar_abs", "Abs")
_compared("scalar_lt", "Less")
_compared("scalar_le", "LessOrEqual")
_compared("scalar_eq", "Equal")
_compared("scalar_gt", "Greater")
_compared("scalar_ge", "GreaterOrEqual")


@rule("scalar_constant")
def _scalar_constant(g: Writer, o: Operation) -> str:
    return g.constant(o.attributes["value"], _DTYPES[kind_of(o.results[0])])


@rule("scalar_ne")
def _scalar_ne(g: Writer, o: Operation) -> str:
    return g.emit("Not", g.emit("Equal", *(as_kind(g, v, _common(o.operands)) for v in o.operands)))


@rule("scalar_min", "scalar_max")
def _scalar_chosen(g: Writer, o: Operation) -> str:
    kind = kind_of(o.results[0])
    wanted = "int" if kind == "bool" else kind
    made = g.emit(o.op.name[-3:].title(), *(as_kind(g, v, wanted) for v in o.operands))
    return g.cast(made, bool_) if kind == "bool" else made


def _floor_divided(g: Writer, o: Operation) -> tuple[str, str, str]:
    """Return both numbers, and what is left of the first one with the sign of the second."""
    kind = kind_of(o.results[0])
    x, y = (as_kind(g, v, kind) for v in o.operands)
    if kind == "int":
        y = g.divisor(y, int64)
        return x, y, g.emit("Mod", x, y)
    zero, rest = g.constant(0, float64), g.emit("Mod", x, y, fmod=1)
    other = g.emit("Xor", g.emit("Less", rest, zero), g.emit("Less", y, zero))
    wrong = g.emit("And", g.emit("Not", g.emit("Equal", rest, zero)), other)
    return x, y, g.emit("Where", wrong, g.emit("Add", rest, y), rest)


@rule("scalar_mod")
def _scalar_mod(g: Writer, o: Operation) -> str:
    return _floor_divided(g, o)[2]


@rule("scalar_floordiv")
def _scalar_floordiv(g: Writer, o: Operation) -> str:
    x, y, rest = _floor_divided(g, o)
    made = g.emit("Div", g.emit("Sub", x, rest), y)
    return made if kind_of(o.results[0]) == "int" else g.emit("Round", made)


@rule("scalar_and", "scalar_or", "scalar_xor")
def _scalar_bitwise(g: Writer, o: Operation) -> str:
    kind, op = kind_of(o.results[0]), o.op.name.removeprefix("scalar_").title()
    return g.emit(op if kind == "bool" else f"Bitwise{op}", *(as_kind(g, v, kind) for v in o.operands))


@rule("scalar_not")
def _scalar_not(g: Writer, o: Operation) -> str:
    return g.emit("Not", as_kind(g, o.operands[0], "bool"))


@rule("scalar_bool", "scalar_int", "scalar_float")
def _scalar_as(g: Writer, o: Operation) -> str:
    return as_kind(g, o.operands[0], o.op.name.removeprefix("scalar_"))


@rule("scalar_round")
def _scalar_round(g: Writer, o: Operation) -> str:
    if o.attributes["digits"] is not None:
        raise Refused("ONNX rounds to whole numbers")
    if kind_of(o.operands[0]) != "float":
        return as_kind(g, o.operands[0], "int")
    return g.cast(g.emit("Round", g.one(o.operands[0])), int64)


def scalar_dtype(kind: str) -> DType:
    """Return the dtype of a kind of numbers."""
    return _DTYPES[kind]
