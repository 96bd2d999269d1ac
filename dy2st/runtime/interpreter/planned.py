"""A Program compiled once into steps, so that an operation costs little more than its NumPy call.

>>> from dy2st.ir.builder import Builder
>>> from dy2st.ir.program import Program
>>> from dy2st.ir.types import INT
>>> import dy2st.ops
>>> b = Builder(); x = b.argument(INT)
>>> b.block.results = [b.scalar_add(x, 1)]
>>> compile_plan(Program({"main": b.block})).run([41])
[42]

What a plan does beyond the interpreter: constants are made once; broadcasts that NumPy does on its own and `detach`
cost nothing; a result is written over an operand that is owned and dies there (buffer_reuse.py); lists grow in place;
dead registers are forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Program
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.runtime.interpreter.error_locations import let_go
from dy2st.runtime.interpreter.output_ownership import keeps_memory, released
from dy2st.runtime.interpreter.plan_builder import Functions
from dy2st.runtime.memory_budget import Meter, here


class Plan:
    """A Program that is ready to run. It has no state of a run: any number of threads may run it at once."""

    def __init__(self, program: Program, xp: Any):
        functions = Functions(program, xp)
        self._entry = functions.entry()
        self._arity = len(program.block.arguments)
        self._names = [v.name for v in program.block.arguments]
        self._free = [_is_callers(v.type, own) for v, own in zip(program.block.results, self._entry.owned, strict=True)]
        self._constants = keeps_memory(functions.constants)
        self.xp = xp

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function.

        Errors are those of the ops, and end at the user's line. Inputs are never written into.
        """
        if len(inputs) != self._arity:
            raise ValueError(f"the Program takes {self._arity} inputs {self._names}, not {len(inputs)}")
        if self.xp is not np:
            inputs = _on_device(inputs, self.xp)
        outer, here.meter = here.meter, Meter(inputs)
        try:
            with np.errstate(all="ignore"):
                results = self._entry.run(inputs)
        except Exception as error:
            let_go(error)
            raise
        finally:
            here.meter = outer
        return [r if free else released(r, self._constants) for r, free in zip(results, self._free, strict=True)]


def _is_callers(t: Type, owned: bool) -> bool:
    """Return whether a result needs no look: a number, or an array that the run made; a list may hold constants."""
    return isinstance(t, ScalarType) or (owned and isinstance(t, TensorType))


def _on_device(inputs: Sequence[Any], xp: Any) -> list[Any]:
    """Return inputs with those numbers on the device that state has on the host, such as the rate of an optimizer."""
    return [xp.asarray(x) if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs]


def compile_plan(program: Program, xp: Any = np) -> Plan:
    """Compile a Program to run on `xp` (NumPy or CuPy)."""
    return Plan(program, xp)
