"""Powers and rounding of Python's numbers."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import float64
from dy2st.ir.program import Operation
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, any_of, compare
from dy2st.runtime.backends.cpu.llvm_ir.literals import double
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components
from dy2st.runtime.backends.cpu.ops.containers.scalars import as_float, as_int, is_small, kind_of
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


@rule("scalar_pow")
def power(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write **; `eval` does what Python refuses, and what is infinite or complex."""
    kinds = [kind_of(operation, i) for i in (0, 1)]
    if "float" in kinds:
        return _float_power(w, operation, operands, kinds)
    base, exponent = (as_int(w, k, c[0]) for k, c in zip(kinds, operands, strict=True))
    return w.guarded(operation, operands, compare(w.f, "sge", exponent, 0), lambda: [(_int_power(w, base, exponent),)])


def _int_power(w: FunctionEmitter, base: str, exponent: str) -> str:
    """Write a power by squares; the interpreter does one of more than 64 bits."""
    f = w.f
    square, left, result, fits = f.slot("i64"), f.slot("i64"), f.slot("i64"), f.slot("i1")
    for number, slot in ((base, square), (exponent, left), ("1", result)):
        f.store("i64", number, slot)
    f.store("i1", "true", fits)

    def multiply(a: str, b: str, into: str) -> None:
        pair = f.call("{i64, i1}", "@llvm.smul.with.overflow.i64", f"i64 {a}", f"i64 {b}")
        over = f.value(f"extractvalue {{i64, i1}} {pair}, 1")
        f.store("i1", all_of(f, f.load("i1", fits), f.value(f"xor i1 {over}, true")), fits)
        f.store("i64", f.value(f"extractvalue {{i64, i1}} {pair}, 0"), into)

    with f.loop("64", hint="bit"):
        power = f.load("i64", left)
        with f.when(f.value(f"trunc i64 {power} to i1"), "odd"):
            multiply(f.load("i64", result), f.load("i64", square), result)
        rest = f.value(f"lshr i64 {power}, 1")
        f.store("i64", rest, left)
        with f.when(compare(f, "ne", rest, 0), "more"):
            number = f.load("i64", square)
            multiply(number, number, square)
    w.demand(f.load("i1", fits))
    return f.load("i64", result)


def _float_power(w: FunctionEmitter, operation: Operation, operands: list[Components], kinds: list[str]) -> Made:
    """Write a power of floats where it is a finite real number: a square rounded once, others to 2 ULP."""
    f, v = w.f, VectorType(w.f, w.module, 1)
    numbers = [as_int(w, k, c[0]) if k != "float" else c[0] for k, c in zip(kinds, operands, strict=True)]
    small = [is_small(w, n) for k, n in zip(kinds, numbers, strict=True) if k != "float"]
    a, b = (as_float(w, "float" if k == "float" else "int", n) for k, n in zip(kinds, numbers, strict=True))
    exponent = operation.operands[1].operation
    squares = exponent is not None and exponent.op.is_constant and exponent.attributes["value"] == 2
    result = f.value(f"fmul double {a}, {a}") if squares else v.math("pow", float64, a, b)
    positive = f.value(f"fcmp ogt double {a}, 0.0")
    whole = f.value(f"fcmp oeq double {v.math('rounding.trunc', float64, b)}, {b}")
    real = any_of(f, positive, all_of(f, whole, f.value(f"fcmp one double {a}, 0.0")))
    sizes = [f.call("double", "@llvm.fabs.f64", f"double {n}") for n in (a, b, result)]
    finite = [f.value(f"fcmp olt double {n}, {double(float('inf'))}") for n in sizes]
    return w.guarded(operation, operands, all_of(f, real, *small, *finite), lambda: [(result,)])


@rule("scalar_round")
def rounded(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write round to the nearest int, of two the even one; `eval` rounds to decimal digits."""
    ((a,),), kind, digits = operands, kind_of(operation, 0), operation.attributes["digits"]
    if kind != "float" and (digits is None or digits >= 0):
        return [(as_int(w, kind, a),)]
    if digits is not None:
        return host_rule(w, operation, operands)
    f = w.f
    fine = f.value(f"fcmp olt double {f.call('double', '@llvm.fabs.f64', f'double {a}')}, {double(2.0**62)}")
    whole = VectorType(f, w.module, 1).math("rounding.rint", float64, a)
    return w.guarded(operation, operands, fine, lambda: [(f.value(f"fptosi double {whole} to i64"),)])
