"""Programs on the emulated device, and values between it and the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Program
from dy2st.ops.core.bundle import Bundle
from dy2st.runtime.backends.cuda.emulation import namespace as xp
from dy2st.runtime.backends.cuda.program import CudaProgram
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference, is_exact


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with its arrays changed."""
    if isinstance(value, Bundle):
        return Bundle([each(v, change) for v in value.items])
    if isinstance(value, (list, tuple)):
        return type(value)(each(v, change) for v in value)
    return change(value)


def on_device(value: Any) -> Any:
    """Return a value with its arrays on the device."""
    return each(value, lambda v: xp.asarray(v) if isinstance(v, (np.ndarray, np.generic)) else v)


def on_host(value: Any) -> Any:
    """Return a value with its arrays on the host; an array that never left is an error."""

    def read(v: Any) -> Any:
        assert not isinstance(v, np.ndarray), "an array of the host came out of the device"
        return v.get() if isinstance(v, xp.ndarray) else v

    return each(value, read)


def outcome(run: Callable[[], Any]) -> Any:
    """Return results or the error."""
    try:
        return run()
    except Exception as error:
        return error


def same(program: Program, inputs: Sequence[Any]) -> CudaProgram:
    """Check that a Program gives on the device what the interpreter gives on the CPU; return it as it ran."""
    made = CudaProgram(program, xp)
    wanted = outcome(lambda: compile_plan(program).run(list(inputs)))
    found = outcome(lambda: on_host(made.run(on_device(list(inputs)))))
    assert not difference(found, wanted, inputs, exact=is_exact(program))
    return made
