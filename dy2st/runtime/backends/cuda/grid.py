"""Threads and blocks of a kernel: as a GPU has them, and as loops of a CPU.

A kernel is written in phases. What stands outside of phases is the same for all threads of a block; what a thread
computes in a phase and needs in a later one it keeps in a place of its own (`PerThread`). So a CPU can run a block
phase by phase, all threads one after the other. Threads give each other values in shared memory, with a barrier between
the phase that writes and what reads, or from lane to lane of a warp, between phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from dy2st.records import record
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, plus, times

WARP = 32
ENTRY = "dy2st_kernel"
Parameters = list[tuple[str, str]]


@record(frozen=True)
class PerThread:
    """A place that each thread of a block has for itself."""

    grid: Grid
    kind: str
    room: str

    def load(self, thread: str) -> str:
        """Write a load of what a thread has there."""
        return self.grid.f.load(self.kind, self.grid.place_of(self, thread))

    def store(self, thread: str, register: str) -> None:
        """Write a store to a thread's own place."""
        self.grid.f.store(self.kind, register, self.grid.place_of(self, thread))


class Grid:
    """What both have: `block` is the number of the block, `blocks` how many there are, `count` the threads of each."""

    linkage: ClassVar[str] = ""
    more: ClassVar[Parameters] = []
    """Parameters behind those of the kernel."""

    def __init__(self, module: LLVMModule, parameters: Parameters, count: int):
        self.module, self.count, self.rooms = module, count, 0
        self.f = LLVMFunction(ENTRY, [*parameters, *self.more], linkage=self.linkage, also="nounwind")
        self.block, self.blocks = "", ""

    @contextmanager
    def body(self) -> Iterator[None]:
        """Write what a block does, and the end of the kernel."""
        raise NotImplementedError

    @contextmanager
    def threads(self) -> Iterator[str]:
        """Write a phase; gives the number of the thread in its block."""
        raise NotImplementedError

    @contextmanager
    def one(self) -> Iterator[None]:
        """Write what one thread of the block does."""
        raise NotImplementedError

    def barrier(self) -> None:
        """Write that all threads of the block have done what stands before."""
        raise NotImplementedError

    def shared(self, kind: str, count: int) -> str:
        """Return the address of room that the threads of a block share."""
        raise NotImplementedError

    def own(self, kind: str) -> PerThread:
        """Return room for one value a thread."""
        raise NotImplementedError

    def place_of(self, room: PerThread, thread: str) -> str:
        """Write the address of a thread's place."""
        raise NotImplementedError

    def swapped(self, room: PerThread, distance: int) -> PerThread:
        """Write an exchange between lanes of a warp whose numbers differ in one bit; returns what each gets."""
        raise NotImplementedError


class DeviceGrid(Grid):
    """Threads of a GPU."""

    linkage = "ptx_kernel"

    def _number(self, what: str) -> str:
        name = f"llvm.nvvm.read.ptx.sreg.{what}"
        self.module.add(name, f"declare i32 @{name}()")
        return self.f.value(f"zext i32 {self.f.call('i32', f'@{name}')} to i64")

    @contextmanager
    def body(self) -> Iterator[None]:
        self.block, self.blocks = self._number("ctaid.x"), self._number("nctaid.x")
        self._thread = self._number("tid.x")
        yield
        self.f.ret()

    @contextmanager
    def threads(self) -> Iterator[str]:
        yield self._thread

    @contextmanager
    def one(self) -> Iterator[None]:
        with self.f.when(compare(self.f, "eq", self._thread, 0), "one"):
            yield

    def barrier(self) -> None:
        self.module.add("llvm.nvvm.barrier0", "declare void @llvm.nvvm.barrier0() convergent")
        self.f.do("call void @llvm.nvvm.barrier0()")

    def shared(self, kind: str, count: int) -> str:
        self.rooms += 1
        name = f"shared{self.rooms}"
        self.module.add(name, f"@{name} = internal addrspace(3) global [{count} x {kind}] undef, align 16")
        return self.f.value(f"addrspacecast ptr addrspace(3) @{name} to ptr")

    def own(self, kind: str) -> PerThread:
        return PerThread(self, kind, self.f.slot(kind))

    def place_of(self, room: PerThread, thread: str) -> str:
        return room.room

    def swapped(self, room: PerThread, distance: int) -> PerThread:
        made = self.own(room.kind)
        made.store(self._thread, self._swapped(room.kind, room.load(self._thread), distance))
        return made

    def _swapped(self, kind: str, register: str, distance: int) -> str:
        f = self.f
        if kind in ("float", "double"):
            bits = "i32" if kind == "float" else "i64"
            got = self._swapped(bits, f.value(f"bitcast {kind} {register} to {bits}"), distance)
            return f.value(f"bitcast {bits} {got} to {kind}")
        if kind == "i64":
            halves = [f.value(f"trunc i64 {part} to i32") for part in (register, f.value(f"lshr i64 {register}, 32"))]
            low, high = (f.value(f"zext i32 {self._from_lane(half, distance)} to i64") for half in halves)
            return f.value(f"or i64 {low}, {f.value(f'shl i64 {high}, 32')}")
        if kind == "i32":
            return self._from_lane(register, distance)
        got = self._from_lane(f.value(f"zext {kind} {register} to i32"), distance)
        return f.value(f"trunc i32 {got} to {kind}")

    def _from_lane(self, word: str, distance: int) -> str:
        name = "llvm.nvvm.shfl.sync.bfly.i32"
        self.module.add(name, f"declare i32 @{name}(i32, i32, i32, i32) convergent")
        return self.f.call("i32", f"@{name}", "i32 -1", f"i32 {word}", f"i32 {distance}", "i32 31")


class EmulatedGrid(Grid):
    """Threads as iterations of a loop: a phase runs all of a block, one after the other."""

    more = [("i64", "%blocks")]

    @contextmanager
    def body(self) -> Iterator[None]:
        self.blocks = "%blocks"
        with self.f.loop("%blocks", hint="block") as block:
            self.block = block
            yield
        self.f.ret()

    @contextmanager
    def threads(self) -> Iterator[str]:
        with self.f.loop(str(self.count), hint="thread") as thread:
            yield thread

    @contextmanager
    def one(self) -> Iterator[None]:
        yield

    def barrier(self) -> None:
        pass

    def shared(self, kind: str, count: int) -> str:
        return self.f.slot(kind, count + 1)

    def own(self, kind: str) -> PerThread:
        return PerThread(self, kind, self.f.slot(kind, self.count))

    def place_of(self, room: PerThread, thread: str) -> str:
        return self.f.offset(room.room, thread, room.kind)

    def swapped(self, room: PerThread, distance: int) -> PerThread:
        made = self.own(room.kind)
        with self.threads() as thread:
            made.store(thread, room.load(self.f.value(f"xor i64 {thread}, {distance}")))
        return made


def first_of_all(grid: Grid, thread: str) -> tuple[str, str]:
    """Write the number of a thread among those of all blocks, and how many there are."""
    return plus(grid.f, times(grid.f, grid.block, grid.count), thread), times(grid.f, grid.blocks, grid.count)
