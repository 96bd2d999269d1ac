"""What runs Programs: the interpreter's plans, or native code.

`DY2ST_BACKEND` chooses:

    auto          native code on the CPU where it is likely to be faster; the first run of a Program that is soon done
                  is the interpreter's, unless its code is on disk (tiering.py; the default)
    native        native code on the CPU, always and from the first run on
    interpreter   operation by operation

`DY2ST_STRICT=1`, or `to_static(..., strict=True)`, asks for native code with the same bits on every CPU and for every
number of threads, from the first run on, and functions that are right to one unit in the last place
(docs/native-math.md).

The interpreter and native code may differ in the last digits of a float. With `auto` the Program, the extents of its
inputs, the number of the run and what is cached on disk decide which of them runs, never time: a process that does the
same with the same folder gets the same bits. A
Program whose loops would call back into Python stays with the interpreter. On a machine without llvmlite all do, with
one warning.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from dy2st import config
from dy2st.forks import Gate, started
from dy2st.ir.program import Program
from dy2st.runtime.aot_cache.artifacts import is_first
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus
from dy2st.runtime.backends.cpu.precompile import begin
from dy2st.runtime.backends.interface import Runnable
from dy2st.runtime.backends.llvm_availability import has_llvm
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.interpreter.planned import compile_plan

_beginning = Gate(level=0)
"""A fork waits for what is imported and compiled behind it."""


@functools.cache
def expect_loops() -> None:
    """Say that a Program with loops is being traced: it will be native code, so what all of that calls is made beside.

    It takes effect once in a process, where no earlier one has cached what is made.
    """
    if config.backend() == "interpreter" or not is_first():
        return
    if usable_cpus() > 1 and has_llvm():
        started(threading.Thread(target=_begin, name="dy2st compile"))


def _begin() -> None:
    with _beginning:
        begin()


def ready(program: Program, xp: Any, *, strict: bool = False) -> Runnable:
    """Make a Program ready to run on `xp` (NumPy or CuPy); strict code is native from the first run on."""
    strict = strict or config.is_strict()
    if not may_be_native():
        return compile_plan(program, xp)
    if xp is not np:
        from dy2st.runtime.backends.cuda.program import CudaProgram  # it loads all that makes code

        return CudaProgram(program, xp)
    return TieredProgram(program, always=strict or config.backend() == "native", strict=strict)


def may_be_native() -> bool:
    """Return whether Programs become native code here."""
    return config.backend() != "interpreter" and has_llvm()


config.backend()  # an unknown name is told at import
