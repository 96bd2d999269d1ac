"""The Program of a call: found by the call's key, by the extents that are fixed and by the guards, or traced.

A call whose trace is refused because Python needs an extent of an input is traced again with that extent fixed
(fixed_extents.py), and the next call with another extent is traced with the extents fixed that its kind of call needed.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.errors import ConversionError, DebuggerCall, Dy2stError, NotDerivable, TraceError
from dy2st.forks import Locked
from dy2st.ir.context import current
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.dispatch.dynamic_scalars import DynamicScalars
from dy2st.jit.dispatch.eager_arbiter import Undecided
from dy2st.jit.dispatch.explain import CallHistory, described, difference, rebuild_values, signature_text
from dy2st.jit.dispatch.fallback_warning import warn_of_fallback
from dy2st.jit.dispatch.inline_cache_run import modes_of
from dy2st.jit.dispatch.program_cache import ProgramCache
from dy2st.jit.dispatch.retrace_warning import MANY, warn_of_tracing
from dy2st.jit.dispatch.trace_call import trace_call
from dy2st.jit.guards.call_signature import FlatCall, FunctionDefaults, bind, check_specs, flatten, signature_of
from dy2st.jit.tracing.fixed_extents import fix
from dy2st.jit.tracing.input_spec_binding import flat_specs
from dy2st.jit.tracing.trace import FunctionTrace
from dy2st.runtime.backends.cpu.python_abi import prefault
from dy2st.runtime.signal_delivery import go_on
from dy2st.runtime.tracer.control_flow.internal_errors import placed
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.runtime.tracer.loops.loop_state_cache import LoopStateNotes
from dy2st.runtime.tracer.recording.loop_checkpointing import Policy, chosen_policy

MOST_FIXED = 4
"""So often the extents that an error names are fixed, then all that the function has read."""
MOST_UNROLLED = 256
"""Loops of more iterations are not recorded iteration by iteration where extents are fixed."""


class ProgramOfCall(Locked):
    """The part of a StaticFunction that has the Programs."""

    __dy2st_function__: Callable[..., Any]
    """The function as it was written."""
    _last: ConcreteProgram | None
    """The Program that ran last."""

    def __init__(
        self,
        function: Callable[..., Any],
        input_spec: Sequence[Any] | None,
        full_graph: bool,
        instance: Any,
        checkpoint: Policy | None,
        strict: bool,
        max_programs: int | None,
    ):
        super().__init__()
        self._function = function
        self._input_spec = input_spec
        self._full_graph = full_graph
        self._instance = instance
        self.checkpoint = checkpoint
        """What gradients keep of the iterations of loops; None: what is current when a call is traced."""
        self.strict = strict
        """Whether native code is strict: the same bits on every CPU."""
        self._signature = signature_of(function if instance is None else types.MethodType(function, instance))
        self._defaults = FunctionDefaults(function)
        self._cache = ProgramCache(max_programs)
        self._open = DynamicScalars()
        self._history = CallHistory()
        self._eager: set[Any] = set()
        """Kinds of call that run eagerly."""
        self._kinds: list[dict[str, str]] = []
        """The calls that were traced, in words."""
        self._memory: prefault.ExpectedMemory | None = None
        """What the first call is expected to take, until that is known."""

    @property
    def python_function(self) -> Callable[..., Any]:
        """The function as it was written, not bound to an object."""
        return self._function

    @property
    def instance(self) -> Any:
        """The object that the function is bound to."""
        return self._instance

    @property
    def signature(self) -> inspect.Signature:
        """The parameters that calls are bound to."""
        return self._signature

    @property
    def input_spec(self) -> Sequence[Any] | None:
        """What was declared of the inputs."""
        return self._input_spec

    def program_for(self, inputs: Sequence[Any], keywords: dict[str, Any]) -> tuple[ConcreteProgram | None, FlatCall]:
        """Return the Program for a call, None where it falls back, and the arguments as it takes them."""
        return self._program(flatten(bind(self._signature, inputs, keywords), self._open.arguments))

    def _specs(self) -> dict[str, InputSpec]:
        if self._input_spec is None:
            return {}
        return flat_specs(self._signature, self._input_spec)

    def _program(self, made: FlatCall) -> tuple[ConcreteProgram | None, FlatCall]:
        """Return the Program for a call, traced now if there is none, and the arguments as it takes them.

        The Program is None when the call falls back.
        """
        specs = self._specs()
        if specs:
            check_specs(specs, made)
        context = current()
        key = (made.key, context.grad, modes_of(context))
        program = self._cache.find(key, made.leaves)
        if program is not None and program.fits(made.leaves):
            self._last = program
            return self._unless_it_meets(key, program, made)
        with self._lock:
            program = self._cache.find(key, made.leaves, again=True)
            if program is None or not program.fits(made.leaves):
                if key in self._eager:
                    return None, made
                program, made = self._trace(key, made, specs)
            if program is not None:
                self._last = program
                return self._unless_it_meets(key, program, made)
            return program, made

    def _unless_it_meets(
        self, key: Any, program: ConcreteProgram, made: FlatCall
    ) -> tuple[ConcreteProgram | None, FlatCall]:
        """Return the Program, None for a call that falls back because of what it writes, and the arguments."""
        if program.underivable:
            return None, made
        if program.meets_objects(made.containers):
            if made.opened:
                self._open.close_arguments(made)
                return self._again(made)
            reason = "a list or dict that is an argument is also reached from outside by the function, which changes it"
            self._fall_back(key, TraceError(f"{reason}: a Program takes it for two. Use it as the argument alone"))
            return None, made
        if not program.meets(made.leaves):
            return program, made
        reason = "an argument shares memory with a tensor that the function also reads from outside, and one is written"
        self._fall_back(key, TraceError(f"{reason}, which a Program takes for two tensors: give it a clone"))
        return None, made

    def _refuse(self, program: ConcreteProgram, made: FlatCall, error: NotDerivable) -> None:
        """Let calls that a Program would serve run eagerly, because its derivative cannot be made."""
        context = current()
        program.underivable = True
        self._forget(program)
        reason = f"the derivative of its Program cannot be made: {error.reason}"
        key = made.key, context.grad, modes_of(context)
        self._fall_back(key, TraceError(reason, file=error.file, line=error.line, hint=error.hint))

    def _again(self, made: FlatCall) -> tuple[ConcreteProgram | None, FlatCall]:
        """Return the Program for a call of which other arguments are open now."""
        anew = flatten(rebuild_values(made), self._open.arguments)
        anew.fixed = None if made.fixed is None else set()
        return self._program(anew)

    def _trace(self, key: Any, made: FlatCall, specs: dict[str, InputSpec]) -> tuple[ConcreteProgram | None, FlatCall]:
        for program in self._cache.entries.get(key, ()):
            self._open.open_state(program.traced.guards)
        if self._open.open_arguments(self._cache.order, made):
            return self._again(made)
        why = self._why(key, made)
        refused = key
        if made.fixed is not None and (fixed := self._cache.fixed(key)):
            made.fixed = fixed
            refused = key, *((i, axis, made.leaves[i].payload.shape[axis]) for i, axis in sorted(fixed))
            if refused in self._eager:
                return None, made
        try:
            program = self.traced(made, specs)
        except (ConversionError, TraceError) as error:
            if made.numbers or made.opened:
                self._open.close_arguments(made)
                return self._again(made)
            if made.fixed is None:
                name = self._function.__qualname__
                raise TraceError(f"`{name}` cannot become a Program from what is declared: {error}") from error
            self._fall_back(refused, error)
            return None, made
        except Exception as error:
            if self._full_graph or made.fixed is None or isinstance(error, RecursionError):
                raise
            raise Undecided(refused, made, error) from None
        go_on()
        number = self._history.calls(self._cache.order) + 1
        if program.traced.failed is not None or made.iterators:
            self._history.once += 1
            what = "an iterator is used up" if made.iterators else "it raises on every path"
            self._history.events.append(f"call {number} was traced for itself alone: {what}")
            self._count(what)
            return program, made
        at = f" at call {number}" if self._cache.traced else ""
        self._history.traced.append(f"program {self._cache.traced} was traced for {signature_text(made)}{at}: {why}")
        self._kinds.append(described(made, current().grad))
        self._cache.add(key, program)
        self._drop()
        self._count(why)
        return program, made

    def _drop(self) -> None:
        """Drop a Program where there are too many."""
        found = self._cache.drop()
        if found is not None:
            at, dropped = found
            del self._kinds[at]
            self._history.drop(at, dropped)
            self._forget(dropped)

    def _forget(self, dropped: ConcreteProgram) -> None:
        """Forget what else leads to a Program that was dropped."""

    def _count(self, why: str) -> None:
        """Warn once where calls are traced again and again."""
        if self._cache.traced + self._history.once == MANY:
            warn_of_tracing(self._function, why, self._cache.most)

    def traced(
        self, made: FlatCall, specs: dict[str, InputSpec], notes: LoopStateNotes | None = None, *,
        by_value: bool = False,
        exactly: int = MOST_FIXED,
    ) -> ConcreteProgram:  # fmt: skip
        """Trace a call; `by_value` takes numbers that the function reads as they are."""
        made_trace = FunctionTrace(frozenset(self._open.state), notes)
        made_trace.by_value = by_value
        made_trace.fixed_state = frozenset(self._open.fixed_state)
        made_trace.most_unrolled = MOST_UNROLLED if made.fixed or made_trace.fixed_state else None
        self._memory = prefault.expected(self.__dy2st_function__, made.leaves)
        try:
            with chosen_policy(self.checkpoint):
                traced = trace_call(self.__dy2st_function__, self._signature, made, specs, made_trace)
        except Exception as error:
            placed(error, self.__dy2st_function__)
            fixing = functools.partial(fix, error, made_trace, made, self._open.fixed_state)
            if exactly and fixing(exactly=True):
                exactly -= 1
            elif isinstance(error, TraceError) and made_trace.opened:
                self._open.close_state(made_trace.opened)
            elif not made_trace.loop_notes.dropped() and not fixing(exactly=False):
                raise
            traced = None  # not traced again in here: what went wrong would be the context of what goes wrong next
        if traced is None:
            return self.traced(made, specs, made_trace.loop_notes, by_value=by_value, exactly=exactly)
        for note in traced.notes:
            self._history.fall_back(note)
        return ConcreteProgram(traced, made, strict=self.strict)

    def _why(self, key: Any, made: FlatCall) -> str:
        """Say why no Program serves a call."""
        if not self._cache.order:
            return "the first call"
        known = self._cache.entries.get(key)
        if known is None:
            return difference(described(made, current().grad), self._kinds)
        return known[-1].changed(made.leaves)

    def _fall_back(self, key: Any, error: Dy2stError) -> None:
        """Let calls of this kind run eagerly; the first one warns."""
        placed(error, self._function)
        if self._full_graph and not isinstance(error, DebuggerCall):
            raise error
        first = not self._eager
        self._eager.add(key)
        self._history.fall_back(str(error))
        parts = self._split_at(error)
        if first:
            warn_of_fallback(self._function, error, parts)

    def _split_at(self, error: Dy2stError) -> int | None:
        """Cut the function where it was refused; return how many parts are Programs, None where it is not cut."""
