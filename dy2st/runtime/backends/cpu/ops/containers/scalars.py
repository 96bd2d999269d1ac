"""Python numbers: ints of 64 bits whose overflow ends the native run, floats, bools."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import float64
from dy2st.ir.program import Operation
from dy2st.ir.types import ScalarType
from dy2st.ops.control.scalar import ScalarMin, ScalarMod
from dy2st.ops.control.scalar_unary import ScalarBool, ScalarNeg
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of
from dy2st.runtime.backends.cpu.llvm_ir.literals import double
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

_EXACT = 2**53
"""Ints up to here are floats without rounding."""
Made = Sequence[Components]


def kind_of(operation: Operation, i: int) -> str:
    """Return the kind of number that operand i is."""
    t = operation.operands[i].type
    if not isinstance(t, ScalarType):
        raise TypeError(f"{operation.name} takes numbers, not {t}")
    return t.kind


def as_int(w: FunctionEmitter, kind: str, number: str) -> str:
    """Return an int or a bool as an int."""
    if kind != "bool":
        return number
    return {"true": "1", "false": "0"}.get(number) or w.f.value(f"zext i1 {number} to i64")


def as_float(w: FunctionEmitter, kind: str, number: str) -> str:
    """Return a number as a float."""
    if kind == "float":
        return number
    return w.f.value(f"sitofp i64 {as_int(w, kind, number)} to double")


def is_small(w: FunctionEmitter, number: str) -> str:
    """Return whether an int is a float without rounding."""
    shifted = w.f.value(f"add i64 {number}, {_EXACT}")
    return w.f.value(f"icmp ule i64 {shifted}, {2 * _EXACT}")


@rule("scalar_constant")
def constant(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a literal."""
    value = operation.attributes["value"]
    if isinstance(value, bool):
        return [("true" if value else "false",)]
    if isinstance(value, float):
        return [(double(value),)]
    if not -(2**63) <= value < 2**63:
        return host_rule(w, operation, operands)
    return [(str(value),)]


@rule("scalar_add", "scalar_sub", "scalar_mul")
def arithmetic(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write +, - and *."""
    (a,), (b,) = operands
    left, right = kind_of(operation, 0), kind_of(operation, 1)
    if "float" in (left, right):
        text = f"f{operation.op.tensor_op} double {as_float(w, left, a)}, {as_float(w, right, b)}"
        return [(w.f.value(text),)]
    x, y = as_int(w, left, a), as_int(w, right, b)
    pair = w.f.call("{i64, i1}", f"@llvm.s{operation.op.tensor_op}.with.overflow.i64", f"i64 {x}", f"i64 {y}")
    over = w.f.value(f"extractvalue {{i64, i1}} {pair}, 1")
    w.demand(w.f.value(f"xor i1 {over}, true"))
    return [(w.f.value(f"extractvalue {{i64, i1}} {pair}, 0"),)]


@rule("scalar_truediv")
def quotient(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write /; `eval` does what is not a division of floats: by zero, of large ints."""
    (a,), (b,) = operands
    kinds = [kind_of(operation, i) for i in (0, 1)]
    numbers = [as_int(w, k, n) if k != "float" else n for k, n in zip(kinds, (a, b), strict=True)]
    divisor = as_float(w, "float" if kinds[1] == "float" else "int", numbers[1])
    fine = w.f.value(f"fcmp une double {divisor}, 0.0")
    for kind, number in zip(kinds, numbers, strict=True):
        if kind != "float":
            fine = w.f.value(f"and i1 {fine}, {is_small(w, number)}")

    def fast() -> Made:
        dividend = as_float(w, "float" if kinds[0] == "float" else "int", numbers[0])
        return [(w.f.value(f"fdiv double {dividend}, {divisor}"),)]

    return w.guarded(operation, operands, fine, fast)


@rule("scalar_floordiv", "scalar_mod")
def floor_division(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write // and %, rounded down; `eval` refuses a divisor of 0, and does those of large ints with floats."""
    kinds = [kind_of(operation, i) for i in (0, 1)]
    if "float" in kinds:
        return _float_division(w, operation, operands, kinds)
    f = w.f
    a, b = (as_int(w, k, c[0]) for k, c in zip(kinds, operands, strict=True))
    fine = f.value(f"icmp ugt i64 {f.value(f'add i64 {b}, 1')}, 1")  # neither 0 nor -1

    def fast() -> Made:
        rest = f.value(f"srem i64 {a}, {b}")
        apart = f.value(f"icmp slt i64 {f.value(f'xor i64 {rest}, {b}')}, 0")
        down = f.value(f"and i1 {apart}, {f.value(f'icmp ne i64 {rest}, 0')}")
        if isinstance(operation.op, ScalarMod):
            return [(f.value(f"select i1 {down}, i64 {f.value(f'add i64 {rest}, {b}')}, i64 {rest}"),)]
        whole = f.value(f"sdiv i64 {a}, {b}")
        return [(f.value(f"select i1 {down}, i64 {f.value(f'sub i64 {whole}, 1')}, i64 {whole}"),)]

    return w.guarded(operation, operands, fine, fast)


def _float_division(w: FunctionEmitter, operation: Operation, operands: list[Components], kinds: list[str]) -> Made:
    f, name = w.f, operation.name.removeprefix("scalar_")
    numbers = [as_int(w, k, c[0]) if k != "float" else c[0] for k, c in zip(kinds, operands, strict=True)]
    small = [is_small(w, n) for k, n in zip(kinds, numbers, strict=True) if k != "float"]
    a, b = (as_float(w, "float" if k == "float" else "int", n) for k, n in zip(kinds, numbers, strict=True))
    fine = all_of(f, f.value(f"fcmp une double {b}, 0.0"), *small)
    return w.guarded(operation, operands, fine, lambda: [(VectorType(f, w.module, 1).math(name, float64, a, b),)])


@rule("scalar_lt", "scalar_le", "scalar_eq", "scalar_ne", "scalar_gt", "scalar_ge")
def comparison(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a comparison; `eval` does those of large ints with floats."""
    how = operation.op.compares
    ordered, signed = "une" if how == "ne" else f"o{how}", how if how in ("eq", "ne") else f"s{how}"
    kinds = [kind_of(operation, i) for i in (0, 1)]
    (a,), (b,) = operands
    if kinds == ["float", "float"]:
        return [(w.f.value(f"fcmp {ordered} double {a}, {b}"),)]
    if "float" not in kinds:
        return [(w.f.value(f"icmp {signed} i64 {as_int(w, kinds[0], a)}, {as_int(w, kinds[1], b)}"),)]
    at = kinds.index("float") ^ 1
    whole = as_int(w, kinds[at], operands[at][0])

    def fast() -> Made:
        x, y = (as_float(w, k, c[0]) for k, c in zip(kinds, operands, strict=True))
        return [(w.f.value(f"fcmp {ordered} double {x}, {y}"),)]

    return w.guarded(operation, operands, is_small(w, whole), fast)


@rule("scalar_min", "scalar_max")
def chosen(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write min and max: the second operand where it is less (greater), else the first."""
    kinds = [kind_of(operation, i) for i in (0, 1)]
    (a,), (b,) = operands
    least = isinstance(operation.op, ScalarMin)
    if kinds == ["bool", "bool"]:
        return [(w.f.value(f"{'and' if least else 'or'} i1 {a}, {b}"),)]
    if "float" not in kinds:
        x, y = as_int(w, kinds[0], a), as_int(w, kinds[1], b)
        return [(w.f.call("i64", f"@llvm.{'smin' if least else 'smax'}.i64", f"i64 {x}", f"i64 {y}"),)]
    small = [is_small(w, as_int(w, k, c[0])) for k, c in zip(kinds, operands, strict=True) if k != "float"]

    def fast() -> Made:
        x, y = (as_float(w, k, c[0]) for k, c in zip(kinds, operands, strict=True))
        second = w.f.value(f"fcmp {'olt' if least else 'ogt'} double {y}, {x}")
        return [(w.f.value(f"select i1 {second}, double {y}, double {x}"),)]

    return w.guarded(operation, operands, all_of(w.f, *small), fast) if small else fast()


@rule("scalar_and", "scalar_or", "scalar_xor")
def bits(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write &, | and ^."""
    kinds = [kind_of(operation, i) for i in (0, 1)]
    (a,), (b,) = operands
    word = operation.op.tensor_op.removeprefix("bitwise_")
    if kinds == ["bool", "bool"]:
        return [(w.f.value(f"{word} i1 {a}, {b}"),)]
    x, y = as_int(w, kinds[0], a), as_int(w, kinds[1], b)
    return [(w.f.value(f"{word} i64 {x}, {y}"),)]


@rule("scalar_neg", "scalar_abs")
def signs(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write unary - and abs."""
    ((a,),), kind = operands, kind_of(operation, 0)
    negative = isinstance(operation.op, ScalarNeg)
    if kind == "float":
        return [(w.f.value(f"fneg double {a}") if negative else w.f.call("double", "@llvm.fabs.f64", f"double {a}"),)]
    x = as_int(w, kind, a)
    w.demand(w.f.value(f"icmp ne i64 {x}, {-(2**63)}"))
    minus = w.f.value(f"sub i64 0, {x}")
    return [(minus if negative else w.f.call("i64", "@llvm.smax.i64", f"i64 {x}", f"i64 {minus}"),)]


def truth(w: FunctionEmitter, kind: str, number: str) -> str:
    """Return whether a number is not zero."""
    if kind == "bool":
        return number
    return w.f.value(f"fcmp une double {number}, 0.0" if kind == "float" else f"icmp ne i64 {number}, 0")


@rule("scalar_bool", "scalar_not")
def boolean(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write bool and not."""
    true = truth(w, kind_of(operation, 0), operands[0][0])
    return [(true if isinstance(operation.op, ScalarBool) else w.f.value(f"xor i1 {true}, true"),)]


@rule("scalar_int")
def integer(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write int; `eval` does what is not finite or too large."""
    ((a,),), kind = operands, kind_of(operation, 0)
    if kind != "float":
        return [(as_int(w, kind, a),)]
    size = w.f.call("double", "@llvm.fabs.f64", f"double {a}")
    fine = w.f.value(f"fcmp olt double {size}, {double(2.0**62)}")
    return w.guarded(operation, operands, fine, lambda: [(w.f.value(f"fptosi double {a} to i64"),)])


@rule("scalar_float")
def floating(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write float."""
    return [(as_float(w, kind_of(operation, 0), operands[0][0]),)]


@rule("scalar_to_tensor")
def tensor(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a number as a tensor of rank 0; `eval` does what does not fit."""
    ((a,),), kind, dtype = operands, kind_of(operation, 0), operation.attributes["dtype"]
    if dtype.name not in ("bool", "int32", "int64", "float32", "float64"):
        return host_rule(w, operation, operands)
    f, into = w.f, element_kind(dtype)
    if dtype.is_bool:
        return [(truth(w, kind, a),)]
    if dtype.is_floating:
        number, source = (a, "double") if kind == "float" else (as_int(w, kind, a), "i64")
        if source == into:
            return [(number,)]
        return [(f.value(f"{'fptrunc' if kind == 'float' else 'sitofp'} {source} {number} to {into}"),)]
    if kind == "float":
        return host_rule(w, operation, operands)
    number = as_int(w, kind, a)
    if into == "i64":
        return [(number,)]
    fine = f.value(f"icmp ult i64 {f.value(f'add i64 {number}, {2**31}')}, {2**32}")
    return w.guarded(operation, operands, fine, lambda: [(f.value(f"trunc i64 {number} to {into}"),)])


@rule("broadcast_extent")
def broadcast_extent(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the extent to which two broadcast; `eval` says that they do not."""
    (a,), (b,) = operands
    f = w.f
    one = f.value(f"icmp eq i64 {a}, 1")
    fine = f.value(f"or i1 {one}, {f.value(f'icmp eq i64 {b}, 1')}")
    fine = f.value(f"or i1 {fine}, {f.value(f'icmp eq i64 {a}, {b}')}")
    return w.guarded(operation, operands, fine, lambda: [(f.value(f"select i1 {one}, i64 {b}, i64 {a}"),)])
