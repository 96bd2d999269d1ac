"""Arithmetic of 64-bit integers and of conditions, written into a function; numbers of Python may stand for operands.

>>> f = LLVMFunction("area", [("i64", "%x"), ("i64", "%y")], "i64")
>>> f.ret("i64", times(f, plus(f, "%x", 1), "%y"))
>>> print(f.text())
define i64 @area(i64 %x, i64 %y) {
entry:
  %v0 = add i64 %x, 1
  %v1 = mul i64 %v0, %y
  ret i64 %v1
}
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction

Integer = str | int


def plus(f: LLVMFunction, *numbers: Integer) -> str:
    """Write a sum."""
    return _joined(f, "add i64", numbers)


def minus(f: LLVMFunction, x: Integer, y: Integer) -> str:
    """Write x - y."""
    return f.value(f"sub i64 {x}, {y}")


def times(f: LLVMFunction, *numbers: Integer) -> str:
    """Write a product."""
    return _joined(f, "mul i64", numbers)


def least(f: LLVMFunction, x: Integer, y: Integer) -> str:
    """Write min(x, y)."""
    return f.value(f"select i1 {f.value(f'icmp slt i64 {x}, {y}')}, i64 {x}, i64 {y}")


def most(f: LLVMFunction, x: Integer, y: Integer) -> str:
    """Write max(x, y)."""
    return f.value(f"select i1 {f.value(f'icmp sgt i64 {x}, {y}')}, i64 {x}, i64 {y}")


def rounded_down(f: LLVMFunction, x: Integer, multiple: int) -> str:
    """Write the largest multiple of a power of two that is not above x."""
    return f.value(f"and i64 {x}, {-multiple}")


def rounded_up(f: LLVMFunction, x: Integer, multiple: int) -> str:
    """Write the smallest multiple of a power of two that is not below x."""
    return rounded_down(f, plus(f, x, multiple - 1), multiple)


def compare(f: LLVMFunction, predicate: str, x: Integer, y: Integer) -> str:
    """Write a comparison: `eq`, `slt`, ..."""
    return f.value(f"icmp {predicate} i64 {x}, {y}")


def all_of(f: LLVMFunction, *conditions: str) -> str:
    """Write the conjunction."""
    return _joined(f, "and i1", conditions)


def any_of(f: LLVMFunction, *conditions: str) -> str:
    """Write the disjunction."""
    return _joined(f, "or i1", conditions)


def negation(f: LLVMFunction, condition: str) -> str:
    """Write the opposite."""
    return f.value(f"xor i1 {condition}, true")


def _joined(f: LLVMFunction, instruction: str, operands: tuple[Integer, ...]) -> str:
    total = operands[0]
    for operand in operands[1:]:
        total = f.value(f"{instruction} {total}, {operand}")
    return str(total)
