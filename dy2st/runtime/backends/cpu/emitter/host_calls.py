"""What stands for an operation that native code leaves to Python, and what there is of it where no Python is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Operation
from dy2st.ops.core.rounded import meaning
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import HostCallback
from dy2st.runtime.interpreter.reference import single


class NoFormWithoutPython(Exception):
    """An operation that is a call into Python, in code that is to run without one."""

    def __init__(self, call: HostCallback):
        self.call = call
        super().__init__(call.name)


def beyond(step: Step) -> HostCallback:
    """Return what stands, in code without Python, for a step that the interpreter would do in its place."""
    operation = step if isinstance(step, Operation) else step.results[0].operation
    location, name = (operation.location, operation.name) if operation else (None, "")
    return HostCallback(lambda: (), (), (), location, name)


def host_call(operation: Operation) -> HostCallback:
    """Return the host callback that runs an operation's `eval`."""
    op, compute, count = operation.op, meaning(operation, np), len(operation.results)

    def run(*operands: Any) -> Sequence[Any]:
        with np.errstate(all="ignore"):
            made = compute(*operands)
        return (single(made),) if count == 1 else made

    types = tuple(v.type for v in operation.operands)
    results = tuple(v.type for v in operation.results)
    return HostCallback(run, types, results, operation.location, op.name, effect=op.effect, operation=operation)
