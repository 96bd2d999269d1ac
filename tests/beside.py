"""Every run of a Program, made a second time by the other tier: native code where the interpreter ran, and the reverse.

`Beside` looks on while a test runs Programs, and remembers where the two tiers gave different results. `agreement.py`
says how much they may differ. A Program that calls Python functions is left out, because somebody would see that they
are called twice; so is one that runs on another array module than NumPy.

`--native-beside 1` looks at every run of every Program; a run without the option at a share of the Programs, and at few
runs of each.
"""

import threading
import types
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program
from dy2st.ops.core.bundle import Bundle
from dy2st.passes.remove_prints import runs_twice_unseen, silenced
from dy2st.runtime.backends.cpu import shape_specialization
from dy2st.runtime.backends.cpu.python_abi.kept_values import opened
from dy2st.runtime.backends.interface import Runnable
from dy2st.runtime.backends.llvm_availability import has_llvm
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.interpreter.planned import Plan
from tests.agreement import difference, is_exact

FEW = 2
"""So many runs of a Program are looked at where only a share of the Programs is."""
_busy = threading.local()
_made: dict[str, Runnable] = {}
"""Native code by what it computes: tests make many Programs that are the same."""


class Beside:
    """What was seen of the runs of one test."""

    def __init__(self, share: int, test: str, counts: Counter[str]):
        self._share, self.is_share = share, share > 1
        self._turn = zlib.crc32(test.encode()[::-1])
        self._counts = counts
        self._plans: dict[int, tuple[Any, Program | None]] = {}
        self._runs: Counter[int] = Counter()
        self.faults: list[str] = []

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """See every run of a plan, and of a Program that may become native, until `patch` is undone."""
        patch.setattr(Plan, "__init__", _remembered(self, Plan.__init__))
        patch.setattr(Plan, "run", _like(Plan.run, _seen(self, Plan.run)))
        patch.setattr(TieredProgram, "run", _like(TieredProgram.run, _automatic(self, TieredProgram.run)))
        patch.setattr(TieredProgram, "again", TieredProgram.run)  # what is called directly would not be seen

    def remember(self, plan: Any, program: Program) -> None:
        """Note the Program of a plan if it is its turn."""
        self._turn += 1
        on_cpu = getattr(plan, "xp", np) is np
        taken = on_cpu and self._turn % self._share == 0 and can_run_twice(program)
        self._plans[id(plan)] = plan, silenced(program) if taken else None

    def program_of(self, runner: Any) -> Program | None:
        """Return the Program to run a second time; None where this run is not looked at."""
        if getattr(_busy, "now", False):
            return None
        if id(runner) not in self._plans and isinstance(runner, TieredProgram):
            self.remember(runner, runner.program)
        program = self._plans.get(id(runner), (None, None))[1]
        if program is not None and self._share > 1:
            self._runs[id(runner)] += 1
            return program if self._runs[id(runner)] <= FEW else None
        return program

    def compare(
        self, run: Callable[[], Any], other: Callable[[], Runnable | None], program: Program, inputs: Sequence[Any]
    ) -> list[Any] | Exception:
        """Run; run by the other tier, if any, on what the inputs were; return what the first gave or raised."""
        before = [_copy(value) for value in opened(program.argument_types, inputs)]
        found = _outcome(run)
        runner = other()
        if runner is None:
            return found
        self._counts["runs"] += 1
        _busy.now = True
        try:
            wanted = _outcome(partial(runner.run, before))
        finally:
            _busy.now = False
        shown = [one if isinstance(one, Exception) else opened(program.result_types, one) for one in (found, wanted)]
        fault = difference(*shown, before, exact=is_exact(program))
        if fault:
            self.faults.append(f"native code and the interpreter differ: {fault}\n{to_text(program)}")
        return found


def can_run_twice(program: Program) -> bool:
    """Say whether nobody sees that a Program runs a second time; a warning may be an error."""
    if any(operation.op.name in ("warn", "log_record") for operation in program.walk()):
        return False
    return has_llvm() and all(runs_twice_unseen(block, program.functions) for block in program.functions.values())


class _Made:
    """The native code of a Program, made by the first run."""

    def __init__(self, program: Program, quick: bool):
        self._program, self._quick = program, quick

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        key = fingerprint(self._program)
        native = _made.get(key or "")
        if native is None:
            native = shape_specialization.native_code(self._program, inputs, quick=self._quick)
            if key is not None:
                _made[key] = native
        return native.run(inputs)


def _outcome(run: Callable[[], list[Any]]) -> list[Any] | Exception:
    try:
        return run()
    except Exception as error:
        traceback = error.__traceback__
        return error.with_traceback(traceback and traceback.tb_next)  # nobody is to see a frame of this file


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (list, tuple)):
        return type(value)(_copy(item) for item in value)
    return Bundle([_copy(item) for item in value.items]) if isinstance(value, Bundle) else value


def _remembered(beside: Beside, init: Any) -> Any:
    def init_and_remember(self: Plan, program: Program, xp: Any) -> None:
        init(self, program, xp)
        if xp is np:
            beside.remember(self, program)

    return init_and_remember


def _seen(beside: Beside, run: Any) -> Any:
    def run_twice(self: Plan, inputs: Sequence[Any]) -> list[Any]:
        program = beside.program_of(self)
        if program is None:
            return run(self, inputs)
        other = partial(_Made, program, beside.is_share)
        return _given(beside.compare(partial(run, self, inputs), other, program, inputs))

    return run_twice


def _automatic(beside: Beside, run: Any) -> Any:
    def run_twice(self: TieredProgram, inputs: Sequence[Any]) -> list[Any]:
        def other() -> Plan | None:
            return (
                Plan(silenced(self.program), np) if self.native is not None else None
            )  # the interpreter's plan is seen itself

        program = beside.program_of(self)
        try:
            if program is None:
                return run(self, inputs)
            outcome = beside.compare(partial(run, self, inputs), other, program, inputs)
        finally:
            self.__dict__.pop("run", None)  # where the choice is made, a run would go past this one
        return _given(outcome)

    return run_twice


def _like(method: Any, replacement: Any) -> Any:
    """Return a function whose frame counts as one of the package, as that of the method does, in what users see."""
    names = {**replacement.__globals__, "__name__": method.__module__}
    code = replacement.__code__.replace(co_filename=method.__code__.co_filename)
    return types.FunctionType(code, names, method.__name__, None, replacement.__closure__)


def _raised_or_given(outcome: list[Any] | Exception) -> list[Any]:
    if not isinstance(outcome, Exception):
        return outcome
    context = outcome.__context__
    try:
        raise outcome
    finally:
        outcome.__context__ = context  # `raise` has put there what the caller is handling


_given = _like(Plan.run, _raised_or_given)
