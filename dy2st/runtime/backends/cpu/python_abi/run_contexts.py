"""Contexts of native runs: the memory that a run allocates from. One run at a time has a context."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable

from dy2st.runtime import memory_budget
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import (
    ALLOCATE,
    BLOCKS,
    CONSTANTS,
    CONTEXT_BYTES,
    ERROR,
    HOST,
    LIBRARY,
    LIMIT,
    MOST_PARTS,
    PARTS,
    PEAK,
    RUN,
    TURN,
)
from dy2st.runtime.backends.cpu.python_abi import helpers
from dy2st.runtime.backends.cpu.python_abi import stack_limit as stack_limit  # native code finds what it provides
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import CallbackRun, HostCallbacks
from dy2st.runtime.backends.cpu.python_abi.interrupts import Kept

_WORD = 8


class RunContext:
    """The memory of one run at a time, and what became of that run."""

    def __init__(self, calls: HostCallbacks, constants: int, library: int):
        self._memory = (ctypes.c_uint64 * (CONTEXT_BYTES // _WORD))()
        self._free = helpers.freer()
        self.address = ctypes.addressof(self._memory)
        turns = ctypes.c_uint64.from_buffer(self._memory, TURN)
        self.run = CallbackRun(calls, functools.partial(helpers.allocate, self.address), turns)
        self._call = self.run.call  # native code has its address
        fields = {
            HOST: id(self._call),
            RUN: self.run.number,
            ALLOCATE: helpers.allocator(),
            CONSTANTS: constants,
            LIBRARY: library,
            LIMIT: memory_budget.address(),
        }
        for field, value in fields.items():
            self._memory[field // _WORD] = value
        weakref.finalize(self, _give_back, self._memory, self._free).atexit = False  # the process gives all back then

    def interruption(self) -> Kept:
        """Return the error that came from outside into the run, as Python keeps errors: kind, error, traceback."""
        kind, value, trace = self._memory[ERROR // _WORD : ERROR // _WORD + 3]
        return kind, value, trace

    @property
    def peak(self) -> int:
        """The most bytes that the last run held at a time, beside its inputs."""
        return int(self._memory[PEAK // _WORD])

    def clear(self) -> None:
        """Give all memory back and forget the run: after an error, some of it may still count holders."""
        _give_back(self._memory, self._free)
        kept = {field: self._memory[field // _WORD] for field in (HOST, RUN, ALLOCATE, CONSTANTS, LIBRARY, LIMIT)}
        ctypes.memset(self.address, 0, CONTEXT_BYTES)
        for field, value in kept.items():
            self._memory[field // _WORD] = value
        self.run.clear()


def _give_back(memory: ctypes.Array[ctypes.c_uint64], free: Callable[[ctypes.c_void_p], object]) -> None:
    """Free the blocks of a context, and of those of the parts of loops, which stand in one of them."""
    parts = memory[PARTS // _WORD]
    for part in range(parts, parts + MOST_PARTS * CONTEXT_BYTES, CONTEXT_BYTES) if parts else ():
        _free_all(ctypes.c_uint64.from_address(part + BLOCKS).value, free)
    _free_all(memory[BLOCKS // _WORD], free)


def _free_all(block: int, free: Callable[[ctypes.c_void_p], object]) -> None:
    """Free a block and those that were made before."""
    while block:
        older = ctypes.c_uint64.from_address(block + 24).value
        free(ctypes.c_void_p(block))
        block = older
