"""Native code in versions, each for inputs whose extents meet in one way.

The first call says which version is made: where `x * w` repeats `w`, code that repeats `w` (shape_assumptions.py).
Another call runs it too when its extents meet in the same way; the argument types of the version's Program say that,
and its code looks. Where they do not, another version is made, and after a few of them one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dy2st.forks import Locked
from dy2st.ir.binary import LazyProgram
from dy2st.ir.program import Program
from dy2st.passes.core.base import run_pipeline
from dy2st.passes.pipelines import SPECIALIZE
from dy2st.passes.specialize_shapes import narrowed
from dy2st.runtime.aot_cache.artifacts import is_first
from dy2st.runtime.aot_cache.program_artifacts import answered, derived, may_be_cached
from dy2st.runtime.backends.cpu.fusion.shape_assumptions import assumptions, is_asked_for
from dy2st.runtime.backends.cpu.native_executable import NativePlan, NotCached, refuse_another_count
from dy2st.runtime.backends.cpu.opt_level import haste_of_library
from dy2st.runtime.backends.cpu.precompile import where_nothing_is_cached
from dy2st.runtime.interpreter.cost_model import bindings
from dy2st.runtime.signal_delivery import delivered
from dy2st.shapes import Dim, Extent, Terms

_MOST = 4
"""How many versions a Program has at most, the one for all apart."""
_NOTED = 1000
_Key = tuple[tuple[str, Extent], ...]


def native_code(
    program: Program, inputs: Sequence[Any], *, strict: bool = False, quick: bool = False, only_cached: bool = False
) -> NativePlan | ShapeSpecializations:
    """Return native code for a Program, ready for these inputs; strict code is one for all.

    Code that is to be `quick` is there soon and runs longer, until `improve` has made it as good as it gets. NotCached
    where there is none and it is to come from an earlier process only.
    """
    return native_code_for(program, _bound(program, inputs), strict=strict, quick=quick, only_cached=only_cached)


def native_code_for(
    program: Program,
    bound: dict[str, int] | None,
    *,
    strict: bool = False,
    quick: bool = False,
    only_cached: bool = False,
) -> NativePlan | ShapeSpecializations:
    """Return `native_code` for inputs in which symbols are `bound`; None where they are not what the types say."""
    known = None if strict else _first_known(program, bound)
    if known is None:
        haste = partial(haste_of_library, program, bound or {})
        return NativePlan(program, strict=strict, quick=quick, haste=haste, only_cached=only_cached)
    made = ShapeSpecializations(program, quick=quick)
    made.version_for(bound, known, only_cached=only_cached)
    return made


def _bound(program: Program, inputs: Sequence[Any]) -> dict[str, int] | None:
    refuse_another_count(program, inputs)
    return bindings(program, inputs)


def _first_known(program: Program, bound: dict[str, int] | None) -> dict[str, Extent] | None:
    """Return the `assumptions` of the first call; None where code does not depend on extents of inputs."""

    def ask() -> dict[str, int | Terms] | None:
        if not is_asked_for(program):
            return None
        known = {} if bound is None else assumptions(program, bound)
        return {name: extent.terms if isinstance(extent, Dim) else extent for name, extent in known.items()}

    said = answered(program, f"extents {None if bound is None else sorted(bound.items())}", ask)
    return None if said is None else {name: Dim(e) if isinstance(e, tuple) else e for name, e in said.items()}


def cached_code(program: Program, inputs: Sequence[Any]) -> NativePlan | ShapeSpecializations | None:
    """Return native code for a Program that an earlier process kept, ready for these inputs; None where there is none.

    Versions for inputs to come are made where none is cached, `quick` at first.
    """
    try:
        return native_code(program, inputs, quick=True, only_cached=True)
    except NotCached:
        return None


class ShapeSpecializations(Locked):
    """The versions of one Program. Any number of threads may run them at once."""

    def __init__(self, program: Program, *, quick: bool = False):
        self.program, self._quick = program, quick
        super().__init__()
        self._made: dict[_Key, NativePlan] = {}
        self._chosen: dict[tuple[tuple[str, int], ...], NativePlan] = {}
        """Which version runs inputs with these extents; as many are noted as it takes to look once a shape."""
        self._first: dict[str, int] | None = None
        """The extents of the first call: who comes with other small tensors than those comes with many."""
        self._tried: tuple[NativePlan, ...] = ()
        self.latest: NativePlan | None = None
        """The version that ran last."""

    @property
    def plans(self) -> tuple[NativePlan, ...]:
        """The versions that there are."""
        return tuple(self._made.values())

    @property
    def is_quick(self) -> bool:
        """Whether some version is to be improved."""
        return any(plan.is_quick for plan in self.plans)

    def improve(self) -> None:
        """Make the versions that there are anew, as good as they get; others are made so at once."""
        self._quick = False
        for plan in self.plans:
            plan.improve()

    @property
    def is_worth_it(self) -> bool:
        """Whether native code is likely to be faster than a plan, as far as the versions there are tell."""
        return all(plan.is_worth_it for plan in self._made.values())

    @property
    def assumed(self) -> list[dict[str, Extent]]:
        """What the versions that there are take for granted; nothing for the one that runs whatever comes."""
        return list(map(dict, self._made))

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        for plan in self._tried:
            made = plan.attempt(inputs)
            if made is not None:
                self.latest = plan
                return made
        self.latest = self.version(inputs)
        return self.latest.run(inputs)

    def version(self, inputs: Sequence[Any], *, only_cached: bool = False) -> NativePlan:
        """Return the version for these inputs, made where there is none; NotCached where it is to have been kept."""
        return self.version_for(_bound(self.program, inputs), only_cached=only_cached)

    def version_for(
        self, bound: dict[str, int] | None, known: dict[str, Extent] | None = None, *, only_cached: bool = False
    ) -> NativePlan:
        """Return the version for inputs in which symbols are `bound`, of which this is `known`."""
        extents = tuple((bound or {}).items())
        with self._lock:
            if extents not in self._chosen:
                if len(self._chosen) > _NOTED:
                    self._chosen.clear()
                if known is None:
                    known = {} if bound is None else assumptions(self.program, bound, self._first)
                self._first = bound if self._first is None else self._first
                self._chosen[extents] = delivered(self._choose, known, bound or {}, only_cached)
            return self._chosen[extents]

    def _choose(self, known: dict[str, Extent], bound: dict[str, int], only_cached: bool) -> NativePlan:
        key = tuple(sorted(known.items()))
        if key in self._made:
            return self._made[key]
        if only_cached or not self._quick or not is_first():
            return self._version(key, bound, only_cached)
        with where_nothing_is_cached(self.program, haste_of_library(self.program, bound)):
            return self._version(key, bound, only_cached)

    def _version(self, key: _Key, bound: dict[str, int], only_cached: bool) -> NativePlan:
        full = len(self._made.keys() - {()}) >= _MOST
        program = self.program if full else self._narrowed(dict(key), only_cached)
        if program is self.program:
            key = ()
        if key not in self._made:
            haste = partial(haste_of_library, program, bound)
            self._made[key] = NativePlan(program, quick=self._quick, haste=haste, only_cached=only_cached)
            general = [self._made[()]] if () in self._made else []  # last, because it runs all
            self._tried = (*(plan for k, plan in self._made.items() if k), *general)
        return self._made[key]

    def _narrowed(self, known: dict[str, Extent], only_cached: bool) -> Program:
        """Return the Program for inputs of which this is known, or as it is where no operation takes such inputs.

        NotCached where its code is to have been kept, and not even the Program was.
        """
        if not known:
            return self.program
        how = f"for {sorted(known.items())}"
        if only_cached and not isinstance(self.program, LazyProgram) and not may_be_cached(self.program, how):
            raise NotCached
        try:
            return derived(self.program, how, lambda: _narrowed(self.program, known))
        except (TypeError, ValueError):  # running it says what is wrong
            return self.program


def _narrowed(program: Program, known: dict[str, Extent]) -> Program:
    made = narrowed(program, known)
    run_pipeline(made, SPECIALIZE)
    return made
