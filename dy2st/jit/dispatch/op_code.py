"""Native code for calls of one eager op, and the machine code that calls it: tensors in, tensors out.

`runtime/eager/frequent_ops.py` says for which calls; this is handed down to it by `Process.op_code`, because what makes
tensors in machine code stands above what they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Program
from dy2st.passes import optimise
from dy2st.runtime.backends.cpu.trampolines.call import known_call
from dy2st.runtime.backends.llvm_availability import NoLlvm
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.background_job import BackgroundJob
from dy2st.runtime.executor.select import may_be_native
from dy2st.runtime.executor.tiering import TieredProgram


class OpCode:
    """Code of a Program of one op, which a thread beside makes."""

    def __init__(self, program: Program, operands: Sequence[Tensor]):
        self._program = program
        self._classes = [t.__class__ for t in operands]
        self._arrays = [np.array(t.payload) for t in operands]
        self._plan: Any = None
        self._job: BackgroundJob | None = None
        if may_be_native():
            with contextlib.suppress(RuntimeError):  # the process ends, or may have no more threads
                self._job = BackgroundJob(self._make)

    def made(self) -> tuple[Any, Any, Any] | None:
        """Wait for the code; return what calls it, the code, and the plan that it is of. None where there is none."""
        if self._job is not None:
            self._job.wait(60.0)
        plan = self._plan
        if plan is None or plan.call(*self._arrays).__class__ is not list:
            return None
        count = len(self._program.block.results)
        inputs = [(kind, None) for kind in self._classes]
        try:
            call = known_call(inputs, None, results=None if count == 1 else range(count))
        except NoLlvm:
            return None
        return None if call is None else (call, plan.call, plan)

    def _make(self) -> None:
        program = optimise(self._program)
        block = program.block
        if not set(block.results).isdisjoint(block.arguments):
            return
        runner = TieredProgram(program, always=True)
        runner.run(self._arrays)
        native = runner.native
        if native is not None and native.is_worth_it and not any(plan.host_calls for plan in native.plans):
            self._plan = native.latest
