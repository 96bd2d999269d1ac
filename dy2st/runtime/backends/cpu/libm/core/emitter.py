"""Formulas as LLVM IR: `VectorValue` overloads Python's operators, so that maths reads as maths and comes out as vector
code.

A kind is a vector of one element type: "f32", "f64", "i32", "i64", "i1". Every operation is elementwise and rounds by
itself, so results have the same bits for every number of lanes; only `fma` is fused or not, as the target has it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

ELEMENTS = {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64", "i1": "i1"}
BITS = {"f32": 32, "f64": 64, "i32": 32, "i64": 64, "i1": 1}
Operand: TypeAlias = "VectorValue | float"


def literal(kind: str, number: float) -> str:
    """Return a float as LLVM reads it: the bits of the float64 that it is.

    >>> literal("f32", 0.1), literal("f64", 0.1)
    ('0x3FB99999A0000000', '0x3FB999999999999A')
    """
    rounded = struct.unpack("f", struct.pack("f", number))[0] if kind == "f32" else number
    return "0x" + struct.pack(">d", rounded).hex().upper()


class VectorValue:
    """A value while IR is written: one SSA name (or constant) of a kind."""

    __slots__ = ("emitter", "kind", "text")

    def __init__(self, emitter: FormulaEmitter, kind: str, text: str):
        self.emitter, self.kind, self.text = emitter, kind, text

    def __add__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("add", self, other)

    def __radd__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("add", other, self)

    def __sub__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("sub", self, other)

    def __rsub__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("sub", other, self)

    def __mul__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("mul", self, other)

    def __rmul__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("mul", other, self)

    def __truediv__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("div", other, self)

    def __neg__(self) -> VectorValue:
        return self.emitter.negated(self)

    def __and__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("and", self, other)

    def __or__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("or", self, other)

    def __xor__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("xor", self, other)

    def __lshift__(self, other: Operand) -> VectorValue:
        return self.emitter.binary("shl", self, other)

    def __rshift__(self, other: Operand) -> VectorValue:
        """Shift right with the sign."""
        return self.emitter.binary("ashr", self, other)

    def __lt__(self, other: Operand) -> VectorValue:
        return self.emitter.compare("lt", self, other)

    def __le__(self, other: Operand) -> VectorValue:
        return self.emitter.compare("le", self, other)

    def __gt__(self, other: Operand) -> VectorValue:
        return self.emitter.compare("gt", self, other)

    def __ge__(self, other: Operand) -> VectorValue:
        return self.emitter.compare("ge", self, other)

    def equals(self, other: Operand) -> VectorValue:
        """Compare for equality; false where either is NaN."""
        return self.emitter.compare("eq", self, other)

    @property
    def is_nan(self) -> VectorValue:
        """Tell where this is NaN."""
        return self.emitter.compare("uno", self, self)


class FormulaEmitter:
    """Writes the lines of one function of `lanes` lanes."""

    in_two_parts = False
    """Whether float64 numbers are sums of two (double_double_emitter.py)."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.lines: list[str] = []
        self.needs: dict[str, Definition] = {}
        self._count = 0
        self._block = "entry"

    def type(self, kind: str) -> str:
        """Return the LLVM type of a kind."""
        return ELEMENTS[kind] if self.lanes == 1 else f"<{self.lanes} x {ELEMENTS[kind]}>"

    def constant(self, kind: str, number: float) -> VectorValue:
        """Return a number in all lanes."""
        if kind[0] == "f":
            text = literal(kind, number)
        else:
            half = 1 << (BITS[kind] - 1)
            text = str((int(number) + half) % (2 * half) - half) if kind != "i1" else str(bool(number)).lower()
        return VectorValue(self, kind, text if self.lanes == 1 else f"splat ({ELEMENTS[kind]} {text})")

    def lift(self, value: Operand, kind: str) -> VectorValue:
        """Return `value`, a number made a constant of `kind`; TypeError for lanes of another kind."""
        if not isinstance(value, VectorValue):
            return self.constant(kind, value)
        if value.kind != kind:
            raise TypeError(f"lanes of {value.kind} where {kind} is needed")
        return value

    def line(self, kind: str, text: str) -> VectorValue:
        """Write `%name = text` and return the name."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return VectorValue(self, kind, name)

    def binary(self, name: str, left: Operand, right: Operand) -> VectorValue:
        """Write one arithmetic or bitwise instruction."""
        kind = left.kind if isinstance(left, VectorValue) else right.kind  # type: ignore[union-attr]
        a, b = self.lift(left, kind), self.lift(right, kind)
        prefix = "f" if kind[0] == "f" else ""
        return self.line(kind, f"{prefix}{name} {self.type(kind)} {a.text}, {b.text}")

    def negated(self, x: VectorValue) -> VectorValue:
        """Write -x."""
        if x.kind[0] == "f":
            return self.line(x.kind, f"fneg {self.type(x.kind)} {x.text}")
        return self.binary("sub", 0, x)

    def invert(self, mask: VectorValue) -> VectorValue:
        """Write the complement of a mask."""
        return mask ^ 1

    def logical_shift(self, x: VectorValue, places: Operand) -> VectorValue:
        """Write a shift right that brings zeros in."""
        return self.binary("lshr", x, places)

    def compare(self, name: str, left: Operand, right: Operand) -> VectorValue:
        """Write a comparison; ordered (false with NaN) on floats, signed on integers."""
        kind = left.kind if isinstance(left, VectorValue) else right.kind  # type: ignore[union-attr]
        a, b = self.lift(left, kind), self.lift(right, kind)
        if kind[0] == "f":
            what = f"fcmp {name if name == 'uno' else 'o' + name}"
        else:
            what = f"icmp {name if name in ('eq', 'ne') else 's' + name}"
        return self.line("i1", f"{what} {self.type(kind)} {a.text}, {b.text}")

    def select(self, mask: VectorValue, yes: Operand, no: Operand) -> VectorValue:
        """Write `yes` where the mask is set, else `no`."""
        kind = yes.kind if isinstance(yes, VectorValue) else no.kind  # type: ignore[union-attr]
        a, b, t = self.lift(yes, kind), self.lift(no, kind), self.type(kind)
        return self.line(kind, f"select {self.type('i1')} {mask.text}, {t} {a.text}, {t} {b.text}")

    def largest(self, x: VectorValue, floor: Operand) -> VectorValue:
        """Write max(x, floor); NaN where x is NaN."""
        floor = self.lift(floor, x.kind)
        return self.select(floor > x, floor, x)

    def smallest(self, x: VectorValue, ceiling: Operand) -> VectorValue:
        """Write min(x, ceiling); NaN where x is NaN."""
        ceiling = self.lift(ceiling, x.kind)
        return self.select(ceiling < x, ceiling, x)

    def fma(self, x: VectorValue, y: Operand, z: Operand) -> VectorValue:
        """Write x * y + z, with one rounding on targets that have such an instruction and two elsewhere."""
        return self._intrinsic("fmuladd", x.kind, x, y, z)

    def rounded(self, x: VectorValue) -> VectorValue:
        """Return x as one number of its kind, which it is, but in double_double_emitter.py."""
        return x

    def each_part(self, function: Callable[[VectorValue], VectorValue], x: VectorValue) -> VectorValue:
        """Write a linear function of the parts of x, which has one, but in double_double_emitter.py."""
        return function(x)

    def sqrt(self, x: VectorValue) -> VectorValue:
        """Write the square root."""
        return self._intrinsic("sqrt", x.kind, x)

    def abs(self, x: VectorValue) -> VectorValue:
        """Write |x|."""
        return self._intrinsic("fabs", x.kind, x)

    def copysign(self, magnitude: Operand, sign: VectorValue) -> VectorValue:
        """Write |magnitude| with the sign of `sign`."""
        return self._intrinsic("copysign", sign.kind, magnitude, sign)

    def bits(self, x: VectorValue) -> VectorValue:
        """Write the bits of floats as integers."""
        kind = "i" + x.kind[1:]
        return self.line(kind, f"bitcast {self.type(x.kind)} {x.text} to {self.type(kind)}")

    def floats(self, x: VectorValue) -> VectorValue:
        """Write the floats that have the bits of integers."""
        kind = "f" + x.kind[1:]
        return self.line(kind, f"bitcast {self.type(x.kind)} {x.text} to {self.type(kind)}")

    def convert(self, x: VectorValue, kind: str) -> VectorValue:
        """Write a conversion between numbers; whoever converts floats to integers keeps them in range."""
        name = {
            ("f32", "f64"): "fpext", ("f64", "f32"): "fptrunc", ("i32", "i64"): "sext", ("i64", "i32"): "trunc",
            ("i32", "f32"): "sitofp", ("i64", "f64"): "sitofp", ("i32", "f64"): "sitofp", ("i64", "f32"): "sitofp",
            ("i1", "i32"): "zext", ("i1", "i64"): "zext",
        }[x.kind, kind]  # fmt: skip
        return self.line(kind, f"{name} {self.type(x.kind)} {x.text} to {self.type(kind)}")

    def polynomial(self, x: VectorValue, coefficients: Sequence[float]) -> VectorValue:
        """Write a polynomial by Horner's rule; coefficients from the lowest power up."""
        total: VectorValue = self.constant(x.kind, coefficients[-1])
        for c in coefficients[-2::-1]:
            total = self.fma(total, x, c)
        return total

    def where_rare(
        self,
        mask: VectorValue,
        fast: Sequence[VectorValue],
        slow: Callable[[Sequence[VectorValue]], Sequence[VectorValue]],
    ) -> list[VectorValue]:
        """Write `fast`, or `slow(fast)` (all lanes of it) if the mask is set in any lane."""
        some = mask
        if self.lanes > 1:
            whole = self.line("i1", f"bitcast {self.type('i1')} {mask.text} to i{self.lanes}")
            some = self.line("i1", f"icmp ne i{self.lanes} {whole.text}, 0")
        self._count += 1
        before, rare, after = self._block, f"rare{self._count}", f"after{self._count}"
        self.lines += [f"  br i1 {some.text}, label %{rare}, label %{after}", f"{rare}:"]
        self._block = rare
        others = slow(fast)
        self.lines += [f"  br label %{after}", f"{after}:"]
        came, self._block = self._block, after
        return [
            self.line(x.kind, f"phi {self.type(x.kind)} [ {x.text}, %{before} ], [ {y.text}, %{came} ]")
            for x, y in zip(fast, others, strict=True)
        ]

    def call(self, function: Definition, kind: str, *operands: VectorValue) -> VectorValue:
        """Write a call of another definition."""
        self.needs[function.name] = function
        listed = ", ".join(f"{self.type(x.kind)} {x.text}" for x in operands)
        return self.line(kind, f"call {self.type(kind)} @{function.name}({listed})")

    def _intrinsic(self, name: str, kind: str, *operands: Operand) -> VectorValue:
        suffix = kind if self.lanes == 1 else f"v{self.lanes}{kind}"
        t = self.type(kind)
        symbol = f"llvm.{name}.{suffix}"
        listed = ", ".join([t] * len(operands))
        declared = Definition(symbol, f"declare {t} @{symbol}({listed})")
        return self.call(declared, kind, *(self.lift(x, kind) for x in operands))
