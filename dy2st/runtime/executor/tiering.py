"""A Program that the interpreter may run once, and native code from then on.

1. A Program whose run takes longer on the interpreter than making code would, as far as its text, the extents of its
   inputs and the iterations of its loops tell (trip_count.py), is made native code before it runs: a loop of which
   nothing tells how many iterations it may run could keep the interpreter busy for ever.
2. Any other runs on the interpreter the first time, because many run only once, and is native code from its second run
   on; where an earlier process has cached that code, from its first. So what runs it does not depend on time. Where the
   first run took the interpreter a while, the code is made beside as soon as that has ended, and the second waits.
3. That code is made by the baseline compiler (level 0), unless an earlier process kept better. When it runs again, the
   code is made anew on a thread beside, as good as it gets. It gives the same bits, so nobody sees when it is taken.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dy2st.forks import Locked
from dy2st.ir.binary import LazyProgram
from dy2st.ir.program import Program
from dy2st.runtime.aot_cache.artifacts import is_empty
from dy2st.runtime.backends.cpu import shape_specialization
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus
from dy2st.runtime.backends.cpu.compile_link.parallel_map import Once
from dy2st.runtime.backends.cpu.python_abi.kept_values import is_keepable, opened
from dy2st.runtime.backends.interface import Backend, DirectCall, NativeCode, Runnable
from dy2st.runtime.backends.llvm_availability import NoLlvm, do_without
from dy2st.runtime.executor.background_job import BackgroundJob, apart
from dy2st.runtime.executor.report import Report
from dy2st.runtime.gc_pause import rarely
from dy2st.runtime.interpreter.blas_threads import one_blas_thread
from dy2st.runtime.interpreter.cost_model import bindings, seconds
from dy2st.runtime.interpreter.memory_model import peak
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.signal_delivery import delivered, go_on

_MAKING_ANY, _MAKING_ONE = 0.04, 0.5e-3
"""Seconds that it takes to make native code: of any Program, and more for each operation."""


_WORTH_IT = 0.002
"""Seconds of the interpreter from which on native code is made beside its first run: the next waits for it."""
_LONG_TO_MAKE = 1.0
"""Code that takes longer to make is made for the second run: it would hold up what Python does meanwhile, for nothing
where no second one comes, as of a train step that finds no gradients the first time and those of zeros from then on."""


_NOT_MADE = """\
a Program runs operation by operation, because no native code could be made of it: {}: {}
This is an error of dy2st; the results are right. DY2ST_BACKEND=native raises it."""


_BACKEND: Backend = shape_specialization


class _NotYet:
    """Stands in for native code until some has run."""

    def call(self, *_: Any) -> bool:
        return False

    def ended(self, made: int, inputs: Sequence[Any]) -> list[Any]:
        raise AssertionError(f"nothing ran on {len(inputs)} inputs that could end with {made}")


class _OnObjects:
    """A plan that may be handed what native code has kept for it."""

    def __init__(self, program: Program):
        self._types, self._plan = program.argument_types, compile_plan(program)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        return self._plan.run(opened(self._types, inputs))


def _quietly(making: Once) -> None:
    """Make native code; who asks for it tries again where that fails, and gets the error."""
    with contextlib.suppress(Exception), rarely():
        making()


class TieredProgram(Locked):
    """A Program that becomes native code when that is likely to pay, or `always`, on the first run."""

    def __init__(self, program: Program, *, always: bool = False, strict: bool = False):
        self.program, self._always, self._strict = program, always, strict
        super().__init__()
        self._runs = 0
        self._job: BackgroundJob | None = None
        self._making: Once | None = None
        """Makes native code, or has made it."""
        self._plan: Runnable | None = None
        self._expected = 0.0
        """About how long the interpreter takes, in seconds."""
        self._to_make = 0.0
        """About how long it takes to make native code, in seconds."""
        self._extents: dict[str, int] = {}
        """What the symbols were in the run that the interpreter made."""
        self._chosen: Runnable | None = None
        self.native: NativeCode | None = None
        """The native code that runs the Program; None while, or where, the interpreter does."""
        self.direct: DirectCall = _NotYet()
        """What may be called with inputs one by one, before `again`."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        chosen = self._chosen
        if chosen is None:
            with self._lock:
                chosen = delivered(self._next, inputs)
            if self._chosen is not None:
                self.run = chosen.run  # from now on there is nothing to choose
        if self._chosen is None and chosen is self._plan:
            with one_blas_thread():
                results = chosen.run(inputs)
        else:
            results = chosen.run(inputs)
        if self._making is not None and self._job is None:
            self._make_beside(self._making)  # 2.
        return results

    def again(self, inputs: Sequence[Any]) -> list[Any]:
        """Run, where `direct` did not take the inputs; next time it is what has run these."""
        results = self.run(inputs)
        native = self.native
        if native is not None and native.latest is not None:
            self.direct = native.latest
        return results

    def count_run(self) -> None:
        """Count a run that somebody else made."""
        self._runs += 1

    def report(self) -> Report:
        """Return how the Program runs."""
        plans = () if self.native is None else self.native.plans
        return Report(
            versions=len(plans),
            cached=sum(plan.was_cached for plan in plans),
            seconds=sum(plan.seconds for plan in plans),
            host_calls=sum((Counter(call.name for call in plan.host_calls) for plan in plans), Counter[str]()),
            elsewhere=sum(plan.elsewhere for plan in plans),
            peak=max(plan.peak for plan in plans) if plans else peak(self.program, self._extents),
            is_being_made=self._job is not None and self._job.runs,
        )

    def finish_compiling(self, seconds: float = 60.0) -> None:
        """Wait for native code that is being made, but not longer than that."""
        if self._job is not None:
            self._job.wait(seconds)

    def _next(self, inputs: Sequence[Any]) -> Runnable:
        """Return what makes this run."""
        if self._chosen is not None:
            return self._chosen
        self._runs += 1
        if self.native is not None:
            self._chosen = self.native
            self._improve(self.native)  # 3.
            return self._chosen
        try:
            made = self._made(inputs)
        except NoLlvm as error:
            do_without(error)
            self._chosen = self._interpreted(inputs)
            return self._chosen
        except Exception as error:
            if self._always:
                raise
            warnings.warn(_NOT_MADE.format(type(error).__name__, error), RuntimeWarning, stacklevel=2)
            self._chosen = self._interpreted(inputs)
            return self._chosen
        if made is None:
            return self._interpreted(inputs)
        if not self._always and not made.is_worth_it:
            self._chosen = self._interpreted(inputs)
            return self._chosen
        self.native = made
        self._chosen = None if made.is_quick else made
        return made

    def _made(self, inputs: Sequence[Any]) -> NativeCode | None:
        """Return native code; None where the interpreter is to make this run."""
        if self._runs == 1 and not self._always:
            expected = isinstance(self.program, LazyProgram)  # an earlier process has cached it, so likely its code too
            if expected or not self._takes_long(inputs):
                cached = None if is_empty() else _BACKEND.cached_code(self.program, inputs)  # 2.
                if cached is not None or not expected or not self._takes_long(inputs):
                    if cached is None and self._expected > _WORTH_IT and self._to_make < _LONG_TO_MAKE:
                        self._making = self._maker(inputs)
                    return cached
        with apart(), rarely():
            made = (self._making or self._maker(inputs))()
        go_on()
        return made

    def _takes_long(self, inputs: Sequence[Any]) -> bool:  # 1.
        """Return whether the interpreter is likely to run longer than it takes to make native code."""
        count = sum(1 for _ in self.program.walk())
        self._expected = seconds(self.program, inputs)
        self._to_make = _MAKING_ANY + _MAKING_ONE * count
        return self._expected > self._to_make

    def _maker(self, inputs: Sequence[Any]) -> Once:
        """Return what makes native code for inputs; it keeps none of them."""
        make, bound = _BACKEND.native_code_for, bindings(self.program, inputs)
        return Once(partial(make, self.program, bound, strict=self._strict, quick=not self._always))

    def _make_beside(self, making: Once) -> None:
        """Begin to make native code for the next run, where there is a CPU for it; who runs again meanwhile waits."""
        if usable_cpus() > 1:
            self._begin(partial(_quietly, making))

    def _improve(self, native: NativeCode) -> None:
        """Let better code be made beside."""
        self._begin(native.improve)

    def _begin(self, function: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the process ends, or may have no more threads
            self._job = delivered(BackgroundJob, function)

    def _interpreted(self, inputs: Sequence[Any]) -> Runnable:
        if self._plan is None:
            self._extents = bindings(self.program, inputs) or {}
            keepable = any(map(is_keepable, self.program.argument_types))
            self._plan = _OnObjects(self.program) if keepable else compile_plan(self.program)
        return self._plan
