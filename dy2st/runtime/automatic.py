"""A Program that runs on the interpreter until there is native code for it, where that gives results sooner.

1. Code that an earlier process kept is taken at once.
2. A Program whose run takes longer on the interpreter than making code would, as far as its text tells, is made native
   code before it runs: a loop could keep the interpreter busy for ever.
3. Any other runs on the interpreter the first time, because many run only once. From its second run on code is made on
   a thread beside, and taken when it is there.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dy2st.ir.program import Block, Program
from dy2st.runtime import cpu
from dy2st.runtime.background import Job, apart
from dy2st.runtime.llvm import do_without
from dy2st.runtime.plan import Plan, compile_plan
from dy2st.runtime.report import Report

_MAKING = 150
"""How many operations the interpreter runs in the time that it takes to make native code of one."""


class Runnable(Protocol):
    """A Program that is ready to run."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        ...


class NativeVersion(Protocol):
    """One version of native code, as far as reports tell of it."""

    was_kept: bool
    seconds: float
    elsewhere: int

    @property
    def host_calls(self) -> Sequence[Any]:
        """The operations that every run leaves to Python, each with its `name`."""
        ...

    @property
    def peak(self) -> int:
        """The most bytes that the last run held at a time."""
        ...


class Direct(Protocol):
    """One version of native code, as a caller runs it that has the inputs one by one."""

    call: Callable[..., Any]
    """Gives the list of results; False, before anything is done, for inputs that it does not take as they are; or a
    number for `ended`."""

    def ended(self, made: int, inputs: Sequence[Any]) -> list[Any]:
        """Return the results after all, or raise the error of the run."""
        ...


class _NotYet:
    """Stands in for native code until some has run."""

    def call(self, *_: Any) -> bool:
        return False

    def ended(self, made: int, inputs: Sequence[Any]) -> list[Any]:
        raise AssertionError(f"nothing ran on {len(inputs)} inputs that could end with {made}")


class Native(Runnable, Protocol):
    """Native code of a Program."""

    @property
    def latest(self) -> Direct | None:
        """The version that ran last."""
        ...

    @property
    def plans(self) -> Sequence[NativeVersion]:
        """Its versions."""
        ...

    @property
    def is_worth_it(self) -> bool:
        """Whether it is likely to be faster than a plan."""
        ...


class Automatic:
    """A Program that becomes native code when that is likely to pay, or `always`, on the first run."""

    def __init__(self, program: Program, *, always: bool = False, strict: bool = False):
        self.program, self._always, self._strict = program, always, strict
        self._lock = threading.Lock()
        self._runs = 0
        self._job: Job[Native] | None = None
        self._plan: Plan | None = None
        self._chosen: Runnable | None = None
        self.native: Native | None = None
        """The native code that runs the Program; None while, or where, the interpreter does."""
        self.direct: Direct = _NotYet()
        """What may be called with inputs one by one, before `again`."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        chosen = self._chosen
        if chosen is None:
            with self._lock:
                chosen = self._next(inputs)
            if self._chosen is not None:
                self.run = chosen.run  # from now on there is nothing to choose
        return chosen.run(inputs)

    def again(self, inputs: Sequence[Any]) -> list[Any]:
        """Run, where `direct` did not take the inputs; next time it is what has run these."""
        results = self.run(inputs)
        native = self.native
        if native is not None and native.latest is not None:
            self.direct = native.latest
        return results

    def report(self) -> Report:
        """Return how the Program runs."""
        plans = () if self.native is None else self.native.plans
        return Report(
            versions=len(plans),
            kept=sum(plan.was_kept for plan in plans),
            seconds=sum(plan.seconds for plan in plans),
            host_calls=sum((Counter(call.name for call in plan.host_calls) for plan in plans), Counter[str]()),
            elsewhere=sum(plan.elsewhere for plan in plans),
            peak=max([plan.peak for plan in plans], default=0),
            is_being_made=self._job is not None and self._chosen is None,
        )

    def settle(self, seconds: float = 60.0) -> None:
        """Wait for native code that is being made, but not longer than that."""
        if self._job is not None:
            self._job.wait(seconds)

    def _next(self, inputs: Sequence[Any]) -> Runnable:
        """Return what makes this run."""
        self._runs += 1
        if self._chosen is None:
            try:
                native = self._native(inputs)
            except ImportError as error:
                do_without(error)
                self._chosen = self._interpreted()
                return self._chosen
            if native is not None:
                self.native = native if self._always or native.is_worth_it else None
                self._chosen = self.native or self._interpreted()
        return self._chosen or self._interpreted()

    def _native(self, inputs: Sequence[Any]) -> Native | None:
        """Return native code where it is there, or has to be there before the Program runs."""
        if self._always:
            with apart():
                return cpu.native_code(self.program, inputs, strict=self._strict)
        if self._runs == 1:
            with apart():
                kept: Native | None = cpu.kept_code(self.program, inputs)  # 1.
                if kept is None and steps(self.program) > _MAKING * sum(1 for _ in self.program.walk()):  # 2.
                    return cpu.native_code(self.program, inputs)
                return kept
        if self._job is None:  # 3.
            try:
                self._job = Job(lambda: cpu.native_code(self.program, inputs))
            except RuntimeError:  # the process ends, or may have no more threads
                return None
        return self._job.result()

    def _interpreted(self) -> Plan:
        if self._plan is None:
            self._plan = compile_plan(self.program)
        return self._plan


def steps(program: Program) -> float:
    """Return about how many operations a run takes; infinite where only the run tells."""
    return _steps(program.block)


def _steps(block: Block) -> float:
    total = 0.0
    for operation in block.operations:
        turns = 1.0
        if operation.op.name == "counted_while":
            count = operation.operands[0].operation
            known = count is not None and count.op.name == "scalar_constant"
            turns = float(count.attributes["value"]) if known and count is not None else math.inf
        elif operation.op.name in ("while_loop", "call"):
            turns = math.inf
        inner = sum(map(_steps, operation.blocks)) if operation.blocks else 0.0
        total += 1 + (turns * max(inner, 1.0) if operation.blocks or turns > 1 else 0.0)
    return total
