"""Sums and the like of a row, in vectors and then across their lanes."""

from __future__ import annotations

from collections.abc import Callable

from dy2st.dtypes import DType, int32, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.traits import Monoid
from dy2st.ops.reduce.reduction import Mean
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import element_kind
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

_INFINITE = float("inf")


def identity(monoid: Monoid, dtype: DType) -> float | int | bool:
    """Return what changes nothing under a reduction by a monoid (`Traits.monoid`)."""
    if monoid in ("add", "or"):
        return 0
    if monoid in ("mul", "and"):
        return 1
    if dtype.is_bool:
        return monoid == "min"
    if dtype.is_floating:
        return _INFINITE if monoid == "min" else -_INFINITE
    low, high = (0, 2**dtype.bits - 1) if dtype.kind == "u" else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)
    return high if monoid == "min" else low


_STRIP = 128
"""How many vectors are added up before their sum is added to that of the others."""


class Accumulator:
    """The running result of a reduction: one vector on the stack, which LLVM keeps in a register."""

    def __init__(self, f: LLVMFunction, module: LLVMModule, count: int, operation: Operation):
        self.f, self.module = f, module
        self.monoid: Monoid = operation.op.monoid
        self.source, self.dtype = tensor_type(operation.operands[0]).dtype, tensor_type(operation.results[0]).dtype
        self.rounds = self.dtype.is_floating and self.monoid == "add"
        """Whether sums lose digits as they grow: then elements are added up by the strip, and strips apart."""
        self.orders = self.dtype.is_floating and self.monoid in ("max", "min")
        """Whether NaN is to be told from numbers: by the largest pattern of bits, beside the largest number."""
        self.bits = int64 if self.dtype.bits == 64 else int32
        self._begin(VectorType(f, module, count))

    def _begin(self, lanes: VectorType) -> None:
        """Make room for what so many lanes have so far: nothing."""
        f, self.lanes, self.kind = self.f, lanes, lanes.of(self.dtype)
        self.start = lanes.constant(identity(self.monoid, self.dtype), self.dtype)
        self.slot = f.slot(self.kind)
        f.store(self.kind, self.start, self.slot)
        if self.rounds:
            self.strips = f.slot(self.kind)
            f.store(self.kind, self.start, self.strips)
        if self.orders:
            self.sizes = f.slot(lanes.of(self.bits))
            f.store(lanes.of(self.bits), lanes.constant(0, self.bits), self.sizes)

    def end_strip(self, i: str) -> None:
        """Write that at every so many vectors the sum so far goes to the sum of strips."""
        if not self.rounds:
            return
        f = self.f
        place = f.value(f"and i64 {i}, {_STRIP * self.lanes.count - 1}")
        with f.when(f.value(f"icmp eq i64 {place}, 0"), "strip"):
            self._flush()

    def _flush(self) -> None:
        f = self.f
        total = f.value(f"fadd {self.kind} {f.load(self.kind, self.strips)}, {f.load(self.kind, self.slot)}")
        f.store(self.kind, total, self.strips)
        f.store(self.kind, self.start, self.slot)

    def add(self, register: str, mask: str | None) -> None:
        """Write that elements are taken in; under a mask, only those of its lanes."""
        f, lanes = self.f, self.lanes
        wide = converted(lanes, register, self.source, self.dtype)
        if mask is not None:
            wide = lanes.select(mask, wide, self.start, self.dtype)
        so_far = f.load(self.kind, self.slot)
        if self.orders:
            bits = f.value(f"bitcast {self.kind} {wide} to {lanes.of(self.bits)}")
            size = f.value(
                f"and {lanes.of(self.bits)} {bits}, {lanes.constant(2 ** (self.dtype.bits - 1) - 1, self.bits)}"
            )
            largest = lanes.intrinsic("umax", self.bits, f.load(lanes.of(self.bits), self.sizes), size)
            f.store(lanes.of(self.bits), largest, self.sizes)
            f.store(self.kind, _ordered(lanes, self.monoid, self.dtype, wide, so_far), self.slot)
        else:
            f.store(self.kind, combined(lanes, self.monoid, self.dtype, so_far, wide), self.slot)

    def narrow(self, count: int) -> None:
        """Write that from here on `count` elements are taken in at a time."""
        if count == self.lanes.count:
            return
        f, wide = self.f, self.lanes
        if self.rounds:
            self._flush()
        so_far = self._across(
            f.load(self.kind, self.strips if self.rounds else self.slot), self.dtype, self._both, count
        )
        sizes = (
            self._across(f.load(wide.of(self.bits), self.sizes), self.bits, self._larger, count) if self.orders else ""
        )
        self._begin(VectorType(f, self.module, count))
        f.store(self.kind, so_far, self.slot)
        if self.orders:
            f.store(self.lanes.of(self.bits), sizes, self.sizes)

    def _both(self, v: VectorType, a: str, b: str) -> str:
        if self.orders:
            return _ordered(v, self.monoid, self.dtype, a, b)
        return combined(v, self.monoid, self.dtype, a, b)

    def _larger(self, v: VectorType, a: str, b: str) -> str:
        return v.intrinsic("umax", self.bits, a, b)

    def partial(self) -> str:
        """Write what all lanes have so far, as one."""
        f = self.f
        if self.rounds:
            self._flush()
        register = f.load(self.kind, self.strips if self.rounds else self.slot)
        if self.orders:
            return self._ordered_total(register)
        return self._across(register, self.dtype, self._both)

    def _ordered_total(self, register: str) -> str:
        """Write the largest (or smallest) number of all lanes, or NaN where one was met."""
        f, bits, one = self.f, self.bits, VectorType(self.f, self.module, 1)
        register = self._across(register, self.dtype, self._both)
        size = self._across(f.load(self.lanes.of(bits), self.sizes), bits, self._larger)
        infinity = {32: 0x7F800000, 64: 0x7FF0000000000000}[self.dtype.bits]
        missing = f.value(f"icmp ugt {element_kind(bits)} {size}, {infinity}")
        return one.select(missing, one.constant(float("nan"), self.dtype), register, self.dtype)

    def _across(
        self, register: str, dtype: DType, combine: Callable[[VectorType, str, str], str], left: int = 1
    ) -> str:
        """Write what the lanes of a register are together, by halves, until so many are left."""
        f, count, element = self.f, self.lanes.count, element_kind(dtype)
        while count > left:
            half = count // 2
            kind = f"<{count} x {element}>"
            parts = [
                f.value(f"shufflevector {kind} {register}, {kind} poison, <{half} x i32> <{numbers}>")
                for numbers in (
                    ", ".join(f"i32 {k}" for k in range(half)),
                    ", ".join(f"i32 {k}" for k in range(half, count)),
                )
            ]
            if half == 1:
                parts = [f.value(f"extractelement <1 x {element}> {p}, i64 0") for p in parts]
            register = combine(VectorType(f, self.module, half), *parts)
            count = half
        return register


def _ordered(lanes: VectorType, monoid: Monoid, dtype: DType, a: str, b: str) -> str:
    """Write the larger (or smaller) of two, `b` where `a` is NaN; one instruction on most targets."""
    word, kind = ("olt" if monoid == "min" else "ogt"), lanes.of(dtype)
    return lanes.select(lanes.f.value(f"fcmp {word} {kind} {a}, {b}"), a, b, dtype)


def finished(f: LLVMFunction, operation: Operation, register: str, length: str) -> str:
    """Write the result of a reduction of so many elements, whose total is there."""
    if not isinstance(operation.op, Mean):
        return register
    kind = element_kind(tensor_type(operation.results[0]).dtype)
    return f.value(f"fdiv {kind} {register}, {f.value(f'sitofp i64 {length} to {kind}')}")


def combined(lanes: VectorType, monoid: Monoid, dtype: DType, a: str, b: str) -> str:
    """Write the combination of two partial results."""
    f, kind = lanes.f, lanes.of(dtype)
    if monoid == "add":
        return f.value(f"{'fadd' if dtype.is_floating else 'add'} {kind} {a}, {b}")
    if monoid == "mul":
        return f.value(f"{'fmul' if dtype.is_floating else 'mul'} {kind} {a}, {b}")
    if monoid in ("and", "or"):
        return f.value(f"{monoid} {kind} {a}, {b}")
    if not dtype.is_floating:
        sign = "u" if dtype.kind in "bu" else "s"
        first = f.value(f"icmp {sign}{'lt' if monoid == 'min' else 'gt'} {kind} {a}, {b}")
    else:
        ordered = f.value(f"fcmp {'olt' if monoid == 'min' else 'ogt'} {kind} {a}, {b}")
        missing = f.value(f"fcmp uno {kind} {a}, {a}")
        first = f.value(f"or {lanes.kind('i1')} {ordered}, {missing}")
    return lanes.select(first, a, b, dtype)
