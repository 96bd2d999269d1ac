"""What runs Programs: the interpreter's plans, or native code where it is chosen.

`DY2ST_BACKEND` chooses: `interpreter` (the default) or `native` (CPU only, through LLVM).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dy2st.ir.program import Program
from dy2st.runtime.plan import compile_plan

BACKENDS = ("interpreter", "native")


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
    if xp is np and backend() == "native":
        from dy2st.runtime.cpu.native import NativePlan

        return NativePlan(program)
    return compile_plan(program, xp)
