"""Registers of one element or of a vector of them, and what every operation on them needs."""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import DType, float16, int64
from dy2st.records import record
from dy2st.runtime.backends.cpu import libm as math
from dy2st.runtime.backends.cpu.libm.core import half
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, called
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.literals import element
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import NARROW, element_kind


@record
class VectorType:
    """Where registers of `count` elements are computed."""

    f: LLVMFunction
    module: LLVMModule
    count: int

    def kind(self, element: str) -> str:
        """Return the LLVM type of a register of elements."""
        return element if self.count == 1 else f"<{self.count} x {element}>"

    def of(self, dtype: DType) -> str:
        """Return the LLVM type of a register of elements of a dtype."""
        return self.kind(element_kind(dtype))

    def constant(self, value: Any, dtype: DType) -> str:
        """Return a register operand that has the same literal everywhere."""
        literal = element(value, dtype)
        return literal if self.count == 1 else f"splat ({element_kind(dtype)} {literal})"

    def spread(self, register: str, dtype: DType) -> str:
        """Return a register with one element everywhere."""
        if self.count == 1:
            return register
        kind, one = self.of(dtype), element_kind(dtype)
        first = self.f.value(f"insertelement {kind} poison, {one} {register}, i64 0")
        return self.f.value(f"shufflevector {kind} {first}, {kind} poison, <{self.count} x i32> zeroinitializer")

    def line(self, first: str) -> str:
        """Write the numbers first, first + 1, ... as i64."""
        made = self.spread(first, int64)
        if self.count == 1:
            return made
        numbers = ", ".join(f"i64 {i}" for i in range(self.count))
        return self.f.value(f"add {self.of(int64)} {made}, <{numbers}>")

    def intrinsic(self, name: str, dtype: DType, *registers: str) -> str:
        """Write a call of an LLVM intrinsic on registers of one dtype."""
        kind = self.of(dtype)
        bits = {"float": "f32", "double": "f64"}.get(element_kind(dtype), element_kind(dtype))
        full = f"llvm.{name}.{bits}" if self.count == 1 else f"llvm.{name}.v{self.count}{bits}"
        self.module.add(full, f"declare {kind} @{full}({', '.join([kind] * len(registers))})")
        return self.f.call(kind, f"@{full}", *(f"{kind} {r}" for r in registers))

    def math(self, name: str, dtype: DType, *registers: str) -> str:
        """Write a call of a function of the math library."""
        make = math.strict_function if self.module.strict else math.function
        definition = make(name, "f32" if dtype.bits <= 32 else "f64", self.count)
        kind = self.of(dtype)
        return self.call(kind, definition, *(f"{kind} {r}" for r in registers))

    def is_better(self, name: str, dtype: DType) -> bool:
        """Return whether `math` has something better for this target than what could be written here."""
        definition = math.function(name, "f32" if dtype.bits <= 32 else "f64", self.count)
        return self.module.strict or self.module.better(definition.name) is not None

    def call(self, kind: str, definition: Definition, *registers: str) -> str:
        """Write a call of a definition, whose text stands here then where there is room for it."""
        best = self.module.better(definition.name) or definition
        function = definition if self.f.has_room(best.letters) else called(definition)
        define(self.module, function)
        return self.f.call(kind, f"@{function.name}", *registers)

    def widened(self, dtype: DType, bits: str) -> str:
        """Write numbers of a dtype of 16 bits, given as i16, as they stand in registers."""
        word = self.f.value(f"zext {self.kind('i16')} {bits} to {self.kind('i32')}")
        return self._converted(half.from_half if dtype is float16 else half.from_bfloat, word, "i32", "float")

    def narrowed(self, dtype: DType, register: str) -> str:
        """Write the numbers of a dtype of 16 bits that are nearest to float32 numbers, as i16."""
        word = self._converted(half.to_half if dtype is float16 else half.to_bfloat, register, "float", "i32")
        return self.f.value(f"trunc {self.kind('i32')} {word} to {self.kind('i16')}")

    def rounded(self, dtype: DType, register: str) -> str:
        """Write float32 numbers, to a dtype of 16 bits the nearest ones that are of it, as they stand in registers."""
        if dtype.name not in NARROW:
            return register
        formula = half.rounded_to_half if dtype is float16 else half.rounded_to_bfloat
        return self._converted(formula, register, "float", "float")

    def _converted(self, formula: half.Conversion, register: str, source: str, into: str) -> str:
        definition = half.conversion(formula, self.count)
        made = self.kind(into)
        return self.call(made, definition, f"{self.kind(source)} {register}")

    def select(self, condition: str, a: str, b: str, dtype: DType) -> str:
        """Write a choice by element."""
        kind = self.of(dtype)
        return self.f.value(f"select {self.kind('i1')} {condition}, {kind} {a}, {kind} {b}")


def define(module: LLVMModule, definition: Definition) -> None:
    """Add a definition and all that it needs to a module."""
    if definition.name in module:
        return
    definition = module.better(definition.name) or definition
    module.add(definition.name, definition.text)
    for need in definition.needs:
        define(module, need)
