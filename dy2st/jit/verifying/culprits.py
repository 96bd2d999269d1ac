"""Runs of one call that note what every operation gave, to find the line at which the two ways part."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dy2st.autodiff.programs import vjp
from dy2st.ir.context import current, replaced
from dy2st.ir.program import Program
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.guards.call_signature import FlatCall
from dy2st.jit.static_function import StaticFunction
from dy2st.jit.verifying import lines
from dy2st.jit.verifying.events import EagerEvents, Event, copied, watched
from dy2st.jit.verifying.outcome import inner_tensors, pulled_back
from dy2st.jit.verifying.report import Culprit, Difference
from dy2st.jit.verifying.snapshot import Snapshot
from dy2st.nn.layer import Layer
from dy2st.records import record, replace
from dy2st.runtime.autograd_engine.backward import Place
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled, CompiledPullback
from dy2st.runtime.interpreter.reference import evaluate


@record
class RepeatableCall:
    """A call that can be repeated: the function both ways, its arguments, and the state before."""

    plain: Callable[..., Any]
    program: StaticFunction
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]
    before: Snapshot

    @property
    def inner(self) -> list[Place]:
        """Where the tensors come from that were made before the call."""
        return list(inner_tensors({"plain": self.plain, "inputs": self.inputs, "keywords": self.keywords}).values())

    def eager(self) -> Any:
        """Run as Python and NumPy, with everything under `to_static` inside of it as Python too."""
        process = replace(
            current().process, to_static_enabled=False, native_from=math.inf, ops=None, walks_of_tape=math.inf
        )
        with replaced(process=process):
            return self.plain(*self.inputs, **self.keywords)

    def static(self) -> Any:
        """Run as a Program."""
        return self.program(*self.inputs, **self.keywords)

    def found(self) -> tuple[ConcreteProgram | None, FlatCall]:
        """Return the Program that serves the call, and its arguments as that takes them."""
        return self.program.program_for(self.inputs, self.keywords)


def find(call: RepeatableCall, differences: Sequence[Difference], same: lines.Close) -> Culprit | None:
    """Find the first line that differs; None where every operation gave the same."""
    program, made = call.found()
    if program is None:
        return None
    eager = _Eager(call)
    traced: list[Event] = []
    interpreted = _Watched(program.main_program, traced, evaluate)
    _run(call, program, made, interpreted)
    found = lines.of_trace(eager.events, traced, same)
    if found is not None:
        return found
    ran: list[Event] = []
    optimised = _Watched(program.compiled.optimised, ran)
    _run(call, program, made, optimised)
    if not lines.all_same(interpreted.results, optimised.results, same):
        found = lines.of_optimised([*eager.events, *traced], ran, same)
    if found is None and any(d.kind == "gradients" for d in differences):
        backwards: list[Event] = []
        _run(call, program, made, _Differentiated(program.main_program, backwards), gradients=True)
        found = lines.of_gradients(eager.cotangents(), backwards, same)
    if found is None and eager.returned_at is not None and differences[0].is_of_another_kind():
        found = Culprit(eager.returned_at, f"this returned {differences[0].eager} and {differences[0].static}")
    return found


class _Eager:
    """The eager run: its events, the cotangents of what it made, and the line where it returned."""

    def __init__(self, call: RepeatableCall):
        run = call.plain.forward if isinstance(call.plain, Layer) else call.plain
        seen = EagerEvents(getattr(run, "__code__", None))
        result: Any = None
        with contextlib.suppress(Exception):  # what it raises was compared already
            with seen:
                result = call.eager()
        self.events, self.returned_at, self._consumers = seen.events, seen.returned_at, seen.consumers
        self._made = seen.made
        self._found: dict[int, np.ndarray] = {}
        for i, t in enumerate(self._made):
            if t is not None and not t.stop_gradient:
                t.register_hook(partial(self._keep, i))
        with contextlib.suppress(Exception):
            pulled_back(result, call.inner)
        call.before.restore()

    def _keep(self, number: int, ct: Tensor) -> None:
        self._found[number] = copied(ct.payload)

    def cotangents(self) -> list[tuple[list[Event], np.ndarray]]:
        """Return what used a tensor, and its cotangent, in the order of the run."""
        users = [[self.events[j] for j in self._consumers.get(id(t), ())] for t in self._made]
        return [(users[i], ct) for i, ct in sorted(self._found.items())]


def _run(
    call: RepeatableCall, program: ConcreteProgram, made: FlatCall, compiled: Any, gradients: bool = False
) -> None:
    """Run a call's Program by other means."""
    shell = copy.copy(program)
    shell.compiled = compiled
    with contextlib.suppress(Exception), contextlib.redirect_stdout(None):
        with replaced(grad=gradients):
            result = shell.run(made.leaves, made.containers)
        if gradients:
            pulled_back(result, call.inner)
    call.before.restore()


class _Watched(Compiled):
    """A Program that is run as it stands, and whose results are kept."""

    def __init__(self, program: Program, events: list[Event], run: Callable[..., list[Any]] | None = None):
        made = watched(program, events)
        super().__init__(made, made)
        self._run, self.results = run, list[Any]()

    def run(self, inputs: Sequence[Any], xp: Any) -> list[Any]:
        self.results = super().run(inputs, xp) if self._run is None else self._run(self.program, inputs, xp)
        return self.results


class _Differentiated(Compiled):
    """A Program whose derivative is watched, and is run as it was derived."""

    def __init__(self, program: Program, events: list[Event]):
        super().__init__(program, program)
        self._events = events

    def _derive(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> CompiledPullback:
        made = vjp(self.differentiable, wrt, [(i, False) for i in seeded])
        backwards = watched(made.backward, self._events)
        return CompiledPullback(
            Compiled(made.forward, made.forward), Compiled(backwards, backwards), seeded, made.found
        )
