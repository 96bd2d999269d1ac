"""The formulas evaluated in two parts: an emitter whose float64 numbers are sums head + tail of twice the precision.

A formula that is right to a few units in the last place in float64 is so here but for its polynomial's own error and
its constants', and the last rounding. Bits and whole numbers are those of the head; what overflows has no tail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.runtime.backends.cpu.libm.core.double_double import DoubleDouble, exact_product, exact_sum
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, Operand, VectorValue
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition


class DoubleDoubleValue(VectorValue):
    """A float64 number of which `text` is the head."""

    __slots__ = ("tail",)

    def __init__(self, emitter: FormulaEmitter, text: str, tail: str | None = None):
        super().__init__(emitter, "f64", text)
        self.tail = tail
        """None where it is 0."""


class DoubleDoubleEmitter(FormulaEmitter):
    """Writes formulas with float64 numbers in two parts."""

    in_two_parts = True

    def __init__(self, lanes: int):
        self.plain = FormulaEmitter(lanes)
        super().__init__(lanes)
        self.lines, self.needs = self.plain.lines, self.plain.needs

    def line(self, kind: str, text: str) -> VectorValue:
        """Write `%name = text` and return the name."""
        made = self.plain.line(kind, text)
        return DoubleDoubleValue(self, made.text) if kind == "f64" else VectorValue(self, kind, made.text)

    def constant(self, kind: str, number: float) -> VectorValue:
        """Return a number in all lanes."""
        made = self.plain.constant(kind, number)
        return DoubleDoubleValue(self, made.text) if kind == "f64" else VectorValue(self, kind, made.text)

    def rounded(self, x: VectorValue) -> VectorValue:
        """Write the sum of both parts."""
        head, tail = self._parts(x)
        return x if tail is None else self._joined(_both(self.plain, head, tail).head, None)

    def each_part(self, function: Callable[[VectorValue], VectorValue], x: VectorValue) -> VectorValue:
        """Write a linear function of both parts."""
        head, tail = self._parts(x)
        first, _ = self._parts(function(head))
        if tail is None:
            return self._joined(first, None)
        return self._joined(*_both(self.plain, first, self._parts(function(tail))[0]))

    def _parts(self, x: VectorValue) -> tuple[VectorValue, VectorValue | None]:
        """Return head and tail as numbers of one part."""
        tail = x.tail if isinstance(x, DoubleDoubleValue) else None
        return VectorValue(self.plain, "f64", x.text), None if tail is None else VectorValue(self.plain, "f64", tail)

    def _joined(self, head: VectorValue, tail: VectorValue | None) -> VectorValue:
        return DoubleDoubleValue(self, head.text, None if tail is None else tail.text)

    # ---- arithmetic --------------------------------------------------------------------------------------------------
    def binary(self, name: str, left: Operand, right: Operand) -> VectorValue:
        """Write one operation; on float64 numbers, in two parts."""
        kind = left.kind if isinstance(left, VectorValue) else right.kind  # type: ignore[union-attr]
        if kind != "f64":
            return super().binary(name, left, right)
        a, b = self._parts(self.lift(left, kind)), self._parts(self.lift(right, kind))
        if name == "sub":
            a, b, name = a, (-b[0], None if b[1] is None else -b[1]), "add"
        made = {"add": self._sum, "mul": self._product, "div": self._quotient}[name](a, b)
        return self._joined(*made)

    def _sum(
        self, a: tuple[VectorValue, VectorValue | None], b: tuple[VectorValue, VectorValue | None]
    ) -> DoubleDouble:
        exact = exact_sum(a[0], b[0])
        if a[1] is None and b[1] is None:
            return _finite(self.plain, exact)
        tails = a[1] if b[1] is None else b[1] if a[1] is None else a[1] + b[1]
        return _both(self.plain, exact.head, _finite(self.plain, exact).tail + tails)  # type: ignore[operator]

    def _product(
        self, a: tuple[VectorValue, VectorValue | None], b: tuple[VectorValue, VectorValue | None]
    ) -> DoubleDouble:
        exact = _finite(self.plain, exact_product(self.plain, a[0], b[0]))
        tail = exact.tail
        for one, other in ((a, b), (b, a)):
            if other[1] is not None:
                tail = tail + one[0] * other[1]
        return _both(self.plain, exact.head, tail)

    def _quotient(
        self, a: tuple[VectorValue, VectorValue | None], b: tuple[VectorValue, VectorValue | None]
    ) -> DoubleDouble:
        head = a[0] / b[0]
        back = exact_product(self.plain, head, b[0])
        rest = (a[0] - back.head) - back.tail
        if a[1] is not None:
            rest = rest + a[1]
        if b[1] is not None:
            rest = rest - head * b[1]
        return _both(self.plain, head, rest / b[0])

    def fma(self, x: VectorValue, y: Operand, z: Operand) -> VectorValue:
        """Write x * y + z."""
        return x * y + z if x.kind == "f64" else super().fma(x, y, z)

    def sqrt(self, x: VectorValue) -> VectorValue:
        """Write the square root."""
        if x.kind != "f64":
            return super().sqrt(x)
        e, (head, tail) = self.plain, self._parts(x)
        scale = e.select(head < 2.0**-900, 2.0**200, e.constant("f64", 1.0))  # so that no product vanishes
        back_scale = e.select(head < 2.0**-900, 2.0**-100, e.constant("f64", 1.0))
        head, tail = head * scale, None if tail is None else tail * scale
        root = e.sqrt(head)
        back = exact_product(e, root, root)
        rest = (head - back.head) - back.tail
        rest = rest if tail is None else rest + tail
        made = _both(e, root, rest / (root + root))
        return self._joined(made.head * back_scale, made.tail * back_scale)

    # ---- signs and choices -------------------------------------------------------------------------------------------
    def negated(self, x: VectorValue) -> VectorValue:
        """Write -x."""
        if x.kind != "f64":
            return super().negated(x)
        head, tail = self._parts(x)
        return self._joined(-head, None if tail is None else -tail)

    def abs(self, x: VectorValue) -> VectorValue:
        """Write |x|."""
        return self.copysign(x, self.constant(x.kind, 1.0)) if x.kind == "f64" else super().abs(x)

    def copysign(self, magnitude: Operand, sign: VectorValue) -> VectorValue:
        """Write |magnitude| with the sign of `sign`."""
        if sign.kind != "f64":
            return super().copysign(magnitude, sign)
        head, tail = self._parts(self.lift(magnitude, "f64"))
        other, _ = self._parts(sign)
        made = self.plain.copysign(head, other)
        if tail is None:
            return self._joined(made, None)
        turns = (self.plain.bits(head) ^ self.plain.bits(other)) < 0
        return self._joined(made, self.plain.select(turns, -tail, tail))

    def select(self, mask: VectorValue, yes: Operand, no: Operand) -> VectorValue:
        """Write `yes` where the mask is set, else `no`."""
        kind = yes.kind if isinstance(yes, VectorValue) else no.kind  # type: ignore[union-attr]
        if kind != "f64":
            return super().select(mask, yes, no)
        chosen = VectorValue(self.plain, "i1", mask.text)
        a, b = self._parts(self.lift(yes, kind)), self._parts(self.lift(no, kind))
        head = self.plain.select(chosen, a[0], b[0])
        if a[1] is None and b[1] is None:
            return self._joined(head, None)
        zero = self.plain.constant("f64", 0.0)
        return self._joined(head, self.plain.select(chosen, a[1] or zero, b[1] or zero))

    def where_rare(
        self,
        mask: VectorValue,
        fast: Sequence[VectorValue],
        slow: Callable[[Sequence[VectorValue]], Sequence[VectorValue]],
    ) -> list[VectorValue]:
        """Write `fast`, or `slow(fast)` (all lanes of it) if the mask is set in any lane."""
        found = super().where_rare(mask, self._flat(fast), lambda _: self._flat(slow(fast)))
        made: list[VectorValue] = []
        for x in fast:
            first = found.pop(0)
            made.append(self._joined(first, found.pop(0)) if x.kind == "f64" else first)
        return made

    def _flat(self, values: Sequence[VectorValue]) -> list[VectorValue]:
        """Return all parts as lanes of their own."""
        made: list[VectorValue] = []
        for x in values:
            made.append(x)
            if x.kind == "f64":
                made.append(self._parts(x)[1] or self.constant("f64", 0.0))
        return made

    def call(self, function: Definition, kind: str, *operands: VectorValue) -> VectorValue:
        """Write a call of another definition, on heads."""
        self.needs[function.name] = function
        listed = ", ".join(f"{self.type(x.kind)} {x.text}" for x in operands)
        return self.line(kind, f"call {self.type(kind)} @{function.name}({listed})")


def _finite(e: FormulaEmitter, x: DoubleDouble) -> DoubleDouble:
    """Write the same with a tail of 0 where the head is infinite or no number."""
    return DoubleDouble(x.head, e.select((x.tail - x.tail).equals(0.0), x.tail, 0.0))


def _both(e: FormulaEmitter, head: VectorValue, tail: VectorValue) -> DoubleDouble:
    """Write head + tail in two parts, where the head is infinite or no number: the head."""
    safe = e.select((tail - tail).equals(0.0), tail, 0.0)
    total = e.select(safe.equals(0.0), head, head + safe)  # -0.0 stays
    return _finite(e, DoubleDouble(total, (head - total) + safe))
