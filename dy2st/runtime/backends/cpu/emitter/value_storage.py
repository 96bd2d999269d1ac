"""The values of a function while it is written: in registers, in memory, in rows and on the stack; who holds them.

Blocks of memory count their holders: a value is held by the block that made it until its last use, which may take it
over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dy2st.ir.program import Value
from dy2st.ir.types import TensorType, Type
from dy2st.runtime.backends.cpu.allocator.list_functions import list_function
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import ELSEWHERE, HEAD, OK
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    MOST_REGISTERS,
    Components,
    TensorInRegisters,
    as_part,
    element_kind,
    is_small,
    kinds,
    owners,
    told,
)
from dy2st.runtime.backends.cpu.vector_ops.load_store import elements_of, store_element


class ValueStorage:
    """Moves values, counts their holders, and says where control goes where something fails."""

    def __init__(self, f: LLVMFunction, kernels: LLVMModule):
        self.f, self._kernels = f, kernels
        self.failed = f.label("failed")
        """Where control goes when an operation has raised; the status stands in `status`."""
        self.status = f.slot("i32")
        self._elsewhere: dict[str, str] = {}
        """Where control goes when the interpreter is to take over, for each place where failures go."""
        self._dying: set[Value] = set()
        self._twice: Collection[Value] = ()
        """What the current operation reads as more than one of its operands."""
        self._used: Collection[Value] = ()

    def finish(self) -> None:
        """Write the ends that failures share."""
        self.f.start(self.failed)
        self.f.ret("i32", self.f.load("i32", self.status))
        for failed, elsewhere in self._elsewhere.items():
            self.f.start(elsewhere)
            self.f.store("i32", str(ELSEWHERE), self.status)
            self.f.jump(failed)

    # ---- who holds what ----------------------------------------------------------------------------------------------
    def is_used(self, value: Value) -> bool:
        """Return whether anything in the block reads a result; the address of what nobody reads may be null."""
        return value in self._used

    def takes(self, value: Value) -> bool:
        """Take over what the current operation is the last to use; False where others still need it."""
        if value in self._dying:
            self._dying.discard(value)
            return True
        return False

    def takes_to_write(self, value: Value) -> bool:
        """Take over an operand whose memory is to be written while others are read; False where one of these is it.

        A view of it among the others holds its block: that tells, where the code runs, whether it may be written to.
        """
        return value not in self._twice and self.takes(value)

    @property
    def dying(self) -> frozenset[Value]:
        """What the current operation is the last to use, and may still take over."""
        return frozenset(self._dying)

    def hold(self, values: Collection[Value]) -> None:
        """Say that these values are held, and used for the last time by what is written next."""
        self._dying = set(values)

    def owned(self, value: Value, components: Components) -> Components:
        """Return components of an operand that the result may hold: taken over, or held once more."""
        if not self.takes(value):
            self.retain(value.type, components)
        return components

    def retain(self, t: Type, components: Components) -> None:
        """Write that a value is held once more."""
        for owner in owners(t):
            if components[owner.at] != "null":
                self.f.call("void", "@dy2st.retain", f"ptr {components[owner.at]}")

    def release(self, t: Type, components: Components) -> None:
        """Write that a value is held once less."""
        for owner in owners(t):
            block = components[owner.at]
            if block == "null":
                continue
            name = "@dy2st.release" if owner.list is None else list_function(self._kernels, "release", owner.list)
            self.f.call("void", name, "ptr %context", f"ptr {block}")

    # ---- small tensors -----------------------------------------------------------------------------------------------
    def fitted(self, t: Type, components: Components, own: bool = True) -> Components:
        """Return components as a value of type `t` has them: a small tensor in registers, any other in memory.

        The result is held where it is memory; where `own` says so, it takes over what held the components.
        """
        if isinstance(components, TensorInRegisters):
            return components if is_small(t) else self._stored(components)
        if not isinstance(t, TensorType) or not is_small(t):
            return components
        made = TensorInRegisters.of(t, elements_of(self.f, t, components))
        if own:
            self.release(as_part(t), components)
        return made

    def _stored(self, components: TensorInRegisters) -> Components:
        """Write a small tensor to a block of its own."""
        f = self.f
        size = len(components) * components.dtype.itemsize
        block = f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {size}")
        self.demand(f.value(f"icmp ne ptr {block}, null"))
        return self._written(components, block, f.offset(block, HEAD))

    def on_stack(self, components: Components) -> Components:
        """Write a small tensor to the stack, for what reads it at once; other components stay as they are."""
        if not isinstance(components, TensorInRegisters):
            return components
        return self._written(components, *self.stack_room(components)[:2])

    def stack_room(self, t: TensorType | TensorInRegisters) -> Components:
        """Return room on the stack for a small tensor."""
        kind = "i8" if t.dtype.is_bool else element_kind(t.dtype)
        return ("null", self.f.slot(kind, MOST_REGISTERS), *map(str, t.shape))

    def _written(self, components: TensorInRegisters, block: str, data: str) -> Components:
        for i, register in enumerate(components):
            store_element(self.f, components.dtype, register, self.f.offset(data, i * components.dtype.itemsize))
        return (block, data, *map(str, components.shape))

    # ---- rows --------------------------------------------------------------------------------------------------------
    def read(self, row: str, t: Type, at: int = 0) -> Components:
        """Write loads of the components of a type from a row."""
        return told(t, [self.f.load(kind, self.f.offset(row, 8 * (at + i))) for i, kind in enumerate(kinds(t))])

    def write(self, row: str, types: Sequence[Type], values: Sequence[Components]) -> None:
        """Write stores of values into a row."""
        at = 0
        for t, components in zip(types, values, strict=True):
            for kind, component in zip(kinds(t), self.fitted(t, components), strict=True):
                self.f.store(kind, component, self.f.offset(row, 8 * at))
                at += 1

    def kinds(self, t: Type) -> tuple[str, ...]:
        """Return the LLVM types of the components of a type."""
        return kinds(t)

    def slots(self, t: Type) -> list[str]:
        """Return places on the stack for the components of a type."""
        return [self.f.slot(kind) for kind in kinds(t)]

    def put(self, slots: Sequence[str], t: Type, components: Components) -> None:
        """Write components to places on the stack."""
        for kind, slot, component in zip(kinds(t), slots, self.fitted(t, components), strict=True):
            self.f.store(kind, component, slot)

    def get(self, slots: Sequence[str], t: Type) -> Components:
        """Read components from places on the stack."""
        return told(t, [self.f.load(kind, slot) for kind, slot in zip(kinds(t), slots, strict=True)])

    # ---- failures ----------------------------------------------------------------------------------------------------
    def check(self, status: str) -> None:
        """Write that a status other than OK ends the function, or goes to the `try` around."""
        goes_on = self.f.label("on")
        self.f.store("i32", status, self.status)
        self.f.branch(self.f.value(f"icmp eq i32 {status}, {OK}"), goes_on, self.failed)
        self.f.start(goes_on)

    def demand(self, condition: str) -> None:
        """Write that the interpreter takes over where a condition does not hold."""
        goes_on = self.f.label("on")
        elsewhere = self._elsewhere.setdefault(self.failed, f"elsewhere.{self.failed}")
        self.f.branch(condition, goes_on, elsewhere)
        self.f.start(goes_on)
