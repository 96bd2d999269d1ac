"""A Program made ready to run: optimised, compiled to a plan on first use, with its derivatives cached beside it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dy2st.autodiff.forward import Given
from dy2st.autodiff.programs import fresh_names, jet, vjp
from dy2st.autodiff.try_to_cond import has_attempts, unwound
from dy2st.batching.programs import stacked_vmap
from dy2st.errors import NotDerivable, TraceError
from dy2st.forks import Locked
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType, Type
from dy2st.passes import optimise
from dy2st.passes.remove_prints import silenced
from dy2st.records import field, record
from dy2st.runtime.aot_cache.program_artifacts import Derived, answered, derivation, derived
from dy2st.runtime.backends.interface import Reporting, Runnable
from dy2st.runtime.executor.report import Report
from dy2st.runtime.executor.select import ready
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.signal_delivery import delivered
from dy2st.shapes import Dim, Extent

if TYPE_CHECKING:
    from dy2st.runtime.backends.cuda.program import Report as CudaReport


class Compiled(Locked):
    """Hold a Program, its plans (one an array module) and its VJPs; safe to use from several threads."""

    def __init__(
        self, program: Program, optimised: Program | None = None, *, whole: bool = False, strict: bool = False
    ):
        self.program = program
        self._strict = strict
        """Whether its native code is strict (select.py)."""
        self._whole = whole
        """Whether this is a Program of the user's, which may become native code, not one operation of eager mode."""
        super().__init__()
        self._plans: dict[Any, Runnable] = {}
        self._pullbacks: dict[Any, CompiledPullback] = {}
        self._jets: dict[tuple[Given, int], tuple[Compiled, Given]] = {}
        self._over_lanes: dict[tuple[bool, ...], Compiled] = {}
        self._optimised = optimised
        self._unwound: Program | None = None
        self._silent: Compiled | None = None

    @property
    def optimised(self) -> Program:
        """The Program after all passes: what runs."""
        with self._lock:
            if self._optimised is None:
                make = partial(optimise, self.program)
                self._optimised = derived(self.program, "optimised", make) if self._whole else make()
            return self._optimised

    @property
    def differentiable(self) -> Program:
        """The same Program, as derivatives are made of it: without `try`."""
        program = self.optimised
        if not answered(program, "attempts", partial(has_attempts, program)):
            return program
        with self._lock:
            if self._unwound is None:
                self._unwound = optimise(unwound(program, fresh_names(program)))
            return self._unwound

    @functools.cached_property
    def native(self) -> Compiled:
        """What runs on large arrays: this, or where it is one operation of eager mode, what may become native code."""
        return self if self._whole else Compiled(self.program, whole=True)

    @functools.cached_property
    def result_types(self) -> list[Type]:
        """The types of the results."""
        return [v.type for v in self.program.block.results]

    def run(self, inputs: Sequence[Any], xp: Any) -> list[Any]:
        """Run on arrays, numbers, lists and variants."""
        return self.runner(xp).run(inputs)

    def runner(self, xp: Any) -> Runnable:
        """Return what runs the Program on arrays of `xp`."""
        plan = self._plans.get(xp)
        if plan is None:
            with self._lock:
                plan = self._plans.setdefault(xp, delivered(self._ready, xp))
        return plan

    def reports(self) -> Iterator[tuple[str, Report | CudaReport]]:
        """Yield how this Program, and those of its derivatives that ran, run; each with what it is for."""
        for plan in list(self._plans.values()):
            if isinstance(plan, Reporting):
                yield "", plan.report()
        for pullback in list(self._pullbacks.values()):
            for role, compiled in (("with residuals", pullback.forward), ("the gradient", pullback.backward)):
                yield from ((role if not inner else f"{role}, {inner}", r) for inner, r in compiled.reports())

    def _ready(self, xp: Any) -> Runnable:
        return ready(self.optimised, xp, strict=self._strict) if self._whole else compile_plan(self.optimised, xp)

    def _like(self, program: Program, optimised: Program | None = None) -> Compiled:
        """Return a Program that was made of this one, run in the same way."""
        return Compiled(program, optimised, whole=self._whole, strict=self._strict)

    def pullback(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> CompiledPullback:
        """Return the derivative of results `seeded` with respect to `wrt`; NotDerivable where none can be made."""
        found = self._pullbacks.get((wrt, seeded))
        if found is None:
            with self._lock:
                if (wrt, seeded) not in self._pullbacks:
                    try:
                        self._pullbacks[wrt, seeded] = delivered(self._derive, wrt, seeded)
                    except TraceError as error:
                        raise NotDerivable(error.reason, file=error.file, line=error.line, hint=error.hint) from error
                found = self._pullbacks[wrt, seeded]
        return found

    @property
    def silent(self) -> Compiled:
        """The same without prints, for running a second time on the same arguments."""
        with self._lock:
            if self._silent is None:
                quiet = silenced(self.optimised)
                self._silent = self if quiet is self.optimised else self._like(quiet, quiet)
            return self._silent

    def jet(self, given: Given, order: int) -> tuple[Compiled, Given]:
        """Return what takes arguments and Taylor coefficients and gives coefficients up to `order`; and of what."""
        with self._lock:
            if (given, order) not in self._jets:
                made, found = jet(self.silent.differentiable, given, order)
                made.block.results = made.block.results[len(self.optimised.block.results) :]
                self._jets[given, order] = self._like(made), found
            return self._jets[given, order]

    def over_lanes(self, batched: tuple[bool, ...]) -> Compiled:
        """Return the same for many lanes at once, with the number of lanes as one argument more, the first.

        Results and `batched` arguments are stacked: the lanes are the first axis.
        """
        with self._lock:
            if batched not in self._over_lanes:
                self._over_lanes[batched] = self._like(stacked_vmap(self.optimised, batched))
            return self._over_lanes[batched]

    def _derive(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> CompiledPullback:
        source = self.differentiable
        if not self._whole:
            made = vjp(source, wrt, [(i, False) for i in seeded])
            return CompiledPullback(self._like(made.forward), self._like(made.backward), seeded, made.found)
        make = partial(_forward_and_backward, source, wrt, seeded)
        (forward, backward), found = derivation(source, f"reverse {wrt} {seeded}", make)
        return CompiledPullback(self._like(forward, forward), self._like(backward), seeded, tuple(found))


def _forward_and_backward(source: Program, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> Derived:
    """Return the forward Program, optimised because it runs at once, the backward one, and the arguments with one."""
    made = vjp(source, wrt, [(i, False) for i in seeded])
    forward = optimise(made.forward)
    forward.kept = len(source.block.results)
    return (forward, made.backward), made.found


@record(frozen=True)
class CompiledPullback:
    """The forward Program with residuals behind its results, and the backward Program that takes them."""

    forward: Compiled
    backward: Compiled
    seeded: tuple[int, ...]
    found: tuple[int, ...]
    number: int = field(default_factory=itertools.count().__next__, repr=False, compare=False)
    """What no other one of this process has."""

    @functools.cached_property
    def shared(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The arguments, and the results, that are residuals as well."""
        block = self.forward.program.block
        count = len(block.results) - len(self.backward.program.block.arguments) + len(self.seeded)
        residuals = set(block.results[count:])
        arguments, results = enumerate(block.arguments), enumerate(block.results[:count])
        return tuple(i for i, v in arguments if v in residuals), tuple(i for i, v in results if v in residuals)

    @functools.cached_property
    def count(self) -> int:
        """How many operations the backward Program has, before it is optimised."""
        return self.backward.program.count

    @functools.cached_property
    def extents(self) -> tuple[tuple[bool, int, int], ...]:
        """Where the extents stand that tell all shapes of a run: of an argument or a result, which, and the axis."""
        found: dict[Extent, tuple[bool, int, int]] = {}
        program = self.forward.program
        for of_argument, types in ((True, program.argument_types), (False, program.result_types)):
            for i, t in enumerate(types):
                for axis, extent in enumerate(t.shape if isinstance(t, TensorType) else ()):
                    if isinstance(extent, Dim):
                        found.setdefault(extent, (of_argument, i, axis))
        return tuple(found.values())
