"""What runs Programs: the interpreter's plans, or native code.

`DY2ST_BACKEND` chooses:

    auto          native code on the CPU where it is likely to be faster: at once for a Program with loops, from
                  the second run on for others, so that what runs once is not compiled (the default)
    native        native code on the CPU, always
    interpreter   operation by operation

A Program whose loops would call back into Python stays with the interpreter. On a machine without llvmlite all do,
with one warning.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dy2st.ir.program import Program
from dy2st.runtime import cpu
from dy2st.runtime.plan import Plan, compile_plan

BACKENDS = ("auto", "native", "interpreter")
_LOOPS = ("while_loop", "counted_while", "call")


def has_loops(program: Program) -> bool:
    """Say whether a call runs some operations more than once."""
    return any(operation.op.name in _LOOPS for operation in program.walk())


class Runnable(Protocol):
    """A Program that is ready to run."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        ...


def backend() -> str:
    """Return the name that `DY2ST_BACKEND` gives; ValueError for an unknown one."""
    chosen = os.environ.get("DY2ST_BACKEND", BACKENDS[0])
    if chosen not in BACKENDS:
        raise ValueError(f"DY2ST_BACKEND is one of {', '.join(BACKENDS)}, not {chosen!r}")
    return chosen


def ready(program: Program, xp: Any) -> Runnable:
    """Make a Program ready to run on `xp` (NumPy or CuPy)."""
    chosen = backend()
    if xp is not np or chosen == "interpreter" or not _has_llvm():
        return compile_plan(program, xp)
    return Automatic(program, always=chosen == "native")


class Automatic:
    """A Program that becomes native code when that is likely to pay, or `always`, on the first run."""

    def __init__(self, program: Program, *, always: bool = False):
        self.program, self._always = program, always
        self._lock = threading.Lock()
        self._runs_before = 0 if always or has_loops(program) else 1
        self._plan: Plan | None = None
        self._chosen: Runnable | None = None

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        chosen = self._chosen
        if chosen is None:
            with self._lock:
                chosen = self._next(inputs)
            if self._chosen is not None:
                self.run = chosen.run  # from now on there is nothing to choose
        return chosen.run(inputs)

    def _next(self, inputs: Sequence[Any]) -> Runnable:
        """Return what makes this run: the interpreter the first time, where that is all there may be."""
        if self._chosen is None and self._runs_before <= 0:
            native = cpu.native_code(self.program, inputs)
            self._chosen = native if self._always or native.is_worth_it else self._interpreted()
        self._runs_before -= 1
        return self._chosen or self._interpreted()

    def _interpreted(self) -> Plan:
        if self._plan is None:
            self._plan = compile_plan(self.program)
        return self._plan


def _has_llvm() -> bool:
    """Say whether llvmlite is installed; warn once where it is not. It is loaded where code has to be made only."""
    global _found
    if _found is None:
        _found = cpu.llvm_folder() is not None
        if not _found:
            warnings.warn(
                "llvmlite is not installed: Programs run operation by operation; pip install llvmlite",
                RuntimeWarning,
                stacklevel=2,
            )
    return _found


_found: bool | None = None
