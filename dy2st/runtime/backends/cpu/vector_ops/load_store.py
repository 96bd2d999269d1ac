"""Elements between registers and memory: one or a vector, side by side or apart, all or under a mask.

Booleans are `i1` in registers and bytes in memory.
"""

from __future__ import annotations

import math

import numpy as np

from dy2st.dtypes import DType, int64
from dy2st.ir.types import TensorType
from dy2st.records import record
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    NARROW,
    Components,
    StridedTensor,
    element_kind,
    known_extents,
    memory_kind,
)
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


def load_element(f: LLVMFunction, dtype: DType, address: str) -> str:
    """Write a load of one element into a register; one of 16 bits is converted, as `ElementAccess` does."""
    assert dtype.name not in NARROW
    if dtype.is_bool:
        return f.value(f"icmp ne i8 {f.load('i8', address)}, 0")
    return f.load(element_kind(dtype), address)


def store_element(f: LLVMFunction, dtype: DType, register: str, address: str) -> None:
    """Write a store of one element from a register; one of 16 bits is converted, as `ElementAccess` does."""
    assert dtype.name not in NARROW
    if dtype.is_bool:
        f.store("i8", f.value(f"zext i1 {register} to i8"), address)
    else:
        f.store(element_kind(dtype), register, address)


def elements_of(f: LLVMFunction, t: TensorType, components: Components) -> list[str]:
    """Write loads of all elements of a tensor in memory whose extents are known, in row-major order."""
    shape = known_extents(t)
    size = t.dtype.itemsize
    if not isinstance(components, StridedTensor):
        return [load_element(f, t.dtype, f.offset(components[1], i * size)) for i in range(math.prod(shape))]
    steps = [f.value(f"mul i64 {s}, {size}") for s in components.strides]
    made: list[str] = []
    for places in np.ndindex(*shape):
        address = components[1]
        for place, step in zip(places, steps, strict=True):
            if place:
                address = f.offset(address, step if place == 1 else f.value(f"mul i64 {step}, {place}"))
        made.append(load_element(f, t.dtype, address))
    return made


@record(frozen=True)
class RowPosition:
    """Elements from number `first` on, `stride` elements apart, of a row that begins at `base`."""

    base: str
    first: str
    dtype: DType
    stride: str = "1"

    @property
    def kind(self) -> str:
        """The LLVM type of an element in memory."""
        return memory_kind(self.dtype)

    @property
    def step(self) -> str:
        """An LLVM type as large as an element."""
        return f"[{self.dtype.itemsize} x i8]"


class ElementAccess:
    """Reads and writes `count` elements at a time; only those of the mask's lanes where there is one."""

    def __init__(self, f: LLVMFunction, module: LLVMModule, count: int, vector_bytes: int = 0):
        self.f, self.module, self.count, self.vector_bytes = f, module, count, vector_bytes
        self.mask: str | None = None

    def cut(self, left: str) -> None:
        """Set the mask to the first `left` lanes."""
        f, n = self.f, self.count
        first = f.value(f"insertelement <{n} x i32> poison, i32 {f.value(f'trunc i64 {left} to i32')}, i64 0")
        limit = f.value(f"shufflevector <{n} x i32> {first}, <{n} x i32> poison, <{n} x i32> zeroinitializer")
        self.mask = f.value(f"icmp ult <{n} x i32> <{', '.join(f'i32 {k}' for k in range(n))}>, {limit}")

    def load(self, at: RowPosition) -> str:
        """Write a load into a register."""
        return self._from_memory(at, self._beside(at) if at.stride == "1" else self._apart(at))

    def _from_memory(self, at: RowPosition, loaded: str) -> str:
        """Write elements as they stand in registers."""
        if at.dtype.name in NARROW:
            return VectorType(self.f, self.module, self.count).widened(at.dtype, loaded)
        if not at.dtype.is_bool:
            return loaded
        return self.f.value(f"icmp ne {self._many(at.kind)} {loaded}, {'0' if self.count == 1 else 'zeroinitializer'}")

    def store(self, at: RowPosition, register: str, past: str | None = None) -> None:
        """Write a store from a register; where the condition `past` holds, past the caches, to whole vectors."""
        if at.dtype.is_bool:
            register = self.f.value(f"zext {self._many('i1')} {register} to {self._many('i8')}")
        if at.dtype.name in NARROW:
            register = VectorType(self.f, self.module, self.count).narrowed(at.dtype, register)
        value, align = f"{self._many(at.kind)} {register}", at.dtype.itemsize
        if at.stride == "1" or self.count == 1:
            if self.mask is None:
                self._store_all(value, self._address(at), align, past)
                return
            self._call("void", "store", "p0", [value, f"ptr {self._address(at)}", f"i32 {align}", self._masked()], at)
            return
        places = f"<{self.count} x ptr> {self._addresses(at)}"
        self._call("void", "scatter", f"v{self.count}p0", [value, places, f"i32 {align}", self._masked()], at)

    def _store_all(self, value: str, address: str, align: int, past: str | None) -> None:
        if past is None:
            self.f.do(f"store {value}, ptr {address}, align {align}")
            return
        with self.f.when(past, "past"):
            # volatile, else LLVM takes it for the same store as the other one
            self.f.do(f"store volatile {value}, ptr {address}, align {self.vector_bytes}, !nontemporal !{{i32 1}}")
        with self.f.when(self.f.value(f"xor i1 {past}, true"), "cached"):
            self.f.do(f"store {value}, ptr {address}, align {align}")

    # ---- the kinds of access -----------------------------------------------------------------------------------------
    def _beside(self, at: RowPosition) -> str:
        kind, align = self._many(at.kind), at.dtype.itemsize
        if self.mask is None:
            return self.f.value(f"load {kind}, ptr {self._address(at)}, align {align}")
        arguments = [f"ptr {self._address(at)}", f"i32 {align}", self._masked(), f"{kind} zeroinitializer"]
        return self._call(kind, "load", "p0", arguments, at)

    def _apart(self, at: RowPosition) -> str:
        kind = self._many(at.kind)
        if self.count == 1:
            return self.f.load(kind, self._address(at))
        return self._gathered(at, self._addresses(at))

    def gather(self, at: RowPosition, numbers: str) -> str:
        """Write a load of the elements of these numbers (of i64), counted from the row's first."""
        if self.count == 1:
            return self.load(RowPosition(at.base, numbers, at.dtype))
        places = self.f.value(f"getelementptr {at.step}, ptr {at.base}, <{self.count} x i64> {numbers}")
        return self._from_memory(at, self._gathered(at, places))

    def _gathered(self, at: RowPosition, addresses: str) -> str:
        kind = self._many(at.kind)
        places = f"<{self.count} x ptr> {addresses}"
        arguments = [places, f"i32 {at.dtype.itemsize}", self._masked(), f"{kind} zeroinitializer"]
        return self._call(kind, "gather", f"v{self.count}p0", arguments, at)

    def _call(self, result: str, what: str, suffix: str, arguments: list[str], at: RowPosition) -> str:
        short = {"float": "f32", "double": "f64"}.get(at.kind, at.kind)
        name = f"llvm.masked.{what}.v{self.count}{short}.{suffix}"
        kinds = ", ".join(argument.rpartition("> ")[0] + ">" if argument[0] == "<" else argument.partition(" ")[0]
                          for argument in arguments)  # fmt: skip
        self.module.add(name, f"declare {result} @{name}({kinds})")
        return self.f.call(result, f"@{name}", *arguments)

    def _many(self, kind: str) -> str:
        return kind if self.count == 1 else f"<{self.count} x {kind}>"

    def _masked(self) -> str:
        return f"<{self.count} x i1> {self.mask or 'splat (i1 true)'}"

    def _address(self, at: RowPosition) -> str:
        number = at.first if at.stride == "1" else self.f.value(f"mul nsw i64 {at.first}, {at.stride}")
        return self.f.offset(at.base, number, at.step)

    def _addresses(self, at: RowPosition) -> str:
        f, n = self.f, self.count
        step = VectorType(f, self.module, n).spread(f.value(f"mul nsw i64 {at.stride}, {at.dtype.itemsize}"), int64)
        numbers = ", ".join(f"i64 {j}" for j in range(n))
        places = f.value(f"mul nsw <{n} x i64> {step}, <{numbers}>")
        return f.value(f"getelementptr i8, ptr {self._address(at)}, <{n} x i64> {places}")
