"""StaticFunction: a function whose calls run as Programs, traced once per kind of call."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.errors import ConversionError, DebuggerCall, Dy2stError, TraceError
from dy2st.forks import Locked
from dy2st.ir.context import Context, Process, current
from dy2st.ir.program import Program
from dy2st.jit.arbiter import Outcome, Undecided, decide
from dy2st.jit.as_eager import Failed, leave_as_eager
from dy2st.jit.bound_functions import bound_function
from dy2st.jit.concrete_program import ConcreteProgram
from dy2st.jit.declared import bind_specs, flat_specs, sample_of
from dy2st.jit.explaining import Explanation, History, described, difference, rebuild_values, signature_text
from dy2st.jit.fallback import FallbackWarning as FallbackWarning
from dy2st.jit.fallback import warn_of_fallback
from dy2st.jit.fast_call import UNSEEN, Recogniser, recogniser
from dy2st.jit.first_calls import verified
from dy2st.jit.kept_conversions import convert
from dy2st.jit.known_run import kind_of_call, modes_of, note_like
from dy2st.jit.named_calls import named_after, named_call
from dy2st.jit.openness import Openness
from dy2st.jit.program_cache import ProgramCache
from dy2st.jit.retracing import MANY, warn_of_tracing
from dy2st.jit.signature import Defaults, Flattened, bind, call_arguments, check_specs, flatten, signature_of
from dy2st.jit.trace import Trace
from dy2st.jit.traced_call import trace_call
from dy2st.runtime.checkpointing import Policy, chosen_policy
from dy2st.runtime.collecting import rarely
from dy2st.runtime.cpu.calls import memory_ahead
from dy2st.runtime.errors import user_traceback
from dy2st.runtime.faults import placed
from dy2st.runtime.input_spec import InputSpec
from dy2st.runtime.interruptions import delivered, go_on
from dy2st.runtime.settled_loops import Notes

MOST_KINDS = 4
"""So many ways to pass the arguments of a Program are recognised at once."""
MOST_REFUSED = 16
"""After so many kinds of call that cannot become Programs, a function is not traced any more."""

_Seen = tuple[tuple[ConcreteProgram, Recogniser], ...]
_NOTHING: tuple[None, Process, int, _Seen] = (None, Process(), -1, ())


class StaticFunction(Locked):
    """A function under `to_static`. Call it as the function itself; `explain()` tells what happened."""

    __slots__ = ("_last", "_like")
    __name__: str
    _last: ConcreteProgram | None
    """The Program that ran last."""
    _like: tuple[Any, ...] | None
    """What the last call was recognised by, for machine code (runtime/cpu/fast_calls/static_calls.py)."""

    def __init__(
        self,
        function: Callable[..., Any],
        input_spec: Sequence[Any] | None = None,
        full_graph: bool = False,
        instance: Any = None,
        checkpoint: Policy | None = None,
        strict: bool = False,
        max_programs: int | None = None,
    ):
        self._function = function
        self._input_spec = input_spec
        self._full_graph = full_graph
        self._instance = None if instance is None else instance
        self.checkpoint = checkpoint
        """What gradients keep of the turns of loops; None: what is current when a call is traced."""
        self.strict = strict
        """Whether native code is strict: the same bits on every CPU."""
        self._signature = signature_of(function if instance is None else types.MethodType(function, instance))
        self._defaults = Defaults(function)
        self._cache = ProgramCache(max_programs)
        Locked.__init__(self)
        self._open = Openness()
        self._slotted: weakref.WeakKeyDictionary[Any, StaticFunction] = weakref.WeakKeyDictionary()
        self._seen: dict[Any, _Seen] = {}
        """What recognises calls, by the number of arguments, the gradient mode and the names of keywords."""
        self._latest: tuple[Context | None, Process, int, _Seen] = _NOTHING
        """The context of the last call without keywords, its number of arguments, and what recognises such calls."""
        self._history = History()
        self._eager: set[Any] = set()
        """Kinds of call that run eagerly."""
        self._kinds: list[dict[str, str]] = []
        """The calls that were traced, in words."""
        self._last = self._like = None
        self._memory: memory_ahead.Expected | None = None
        """What the first call is expected to take, until that is known."""
        self._named = named_call(function)
        functools.update_wrapper(self, function)
        self.__dy2st_function__ = function if instance is None else types.MethodType(function, instance)

    # ---- as a method -----------------------------------------------------------------------------------------------
    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        if instance is None:
            return self
        return bound_function(self, instance, self._slotted, self._bound_to)

    def _bound_to(self, instance: Any) -> StaticFunction:
        return StaticFunction(
            self._function, self._input_spec, self._full_graph, instance, self.checkpoint, self.strict, self._cache.most
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """A copy of an object has Programs of its own."""
        if self._instance is None:
            return self
        return self._bound_to(memo.get(id(self._instance), self._instance))

    # ---- calls -----------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        context = current()
        known, process, count, seen = self._latest
        if context is not known or len(args) != count or keywords:
            if context.trace is not None:
                return context.trace.callable(self)(*args, **keywords)
            process, seen = context.process, self._alike(context, args, keywords)
        if process.to_static_enabled:
            for program, call in seen:
                try:
                    found = call(args, keywords) if keywords else call(*args)
                except Exception as error:
                    self._last = program
                    leave_as_eager(self.dygraph_function, error, args, keywords)
                    error.__traceback__ = user_traceback(error.__traceback__)
                    raise  # a bare `raise` adds no frame of this file
                if found is not UNSEEN:
                    self._last = program
                    if not keywords:
                        note_like(self, context, len(args), call, program)
                    return found
        if not context.process.to_static_enabled or len(self._eager) >= MOST_REFUSED:
            return self.dygraph_function(*args, **keywords)
        self._latest, self._like = _NOTHING, None
        try:
            values = self._bound(args, keywords)
            if values is None:  # Python words it: the call raises before the function begins
                return self.dygraph_function(*args, **keywords)
            result, made, undecided = delivered(self._by_program, context, values, args, keywords)
            if made is None:
                return result
            self._history.eager += 1
            if made.iterators:  # some items may have been pulled
                args, keywords = call_arguments(self._signature, rebuild_values(made))  # type: ignore[assignment]
            result = self.dygraph_function(*args, **keywords)
            if undecided is not None:
                decide(undecided, self._lock, self._open, self._fall_back, self._function)
            return result
        except Exception as error:
            leave_as_eager(self.dygraph_function, error, args, keywords)
            error.__traceback__ = user_traceback(error.__traceback__)
            raise

    def _by_program(self, context: Context, values: dict[str, Any], args: Any, keywords: Any) -> Outcome:
        """Return what a call gives; or else its arguments, for a run of the function, and what that decides."""
        with rarely():
            made = flatten(values, self._open.arguments)
            try:
                program, made = self._program(made)
            except Undecided as found:
                return None, found.made, found
            if program is None:
                return None, made, None
            if not verified(self.dygraph_function, program.calls, args, keywords) and program.pays():
                self._remember(kind_of_call(context, args, keywords), program, args, keywords, made)
            program.calls += 1
            result = self._named(program.run, made.leaves, made.containers)
            if (memory := self._memory) is not None and memory.is_settled():
                self._memory = None
            return result, None, None

    def _alike(self, context: Context, args: Any, keywords: Any) -> _Seen:
        """Return what may recognise a call: the kinds with as many arguments that were seen in the same modes."""
        key = kind_of_call(context, args, keywords)
        seen = self._seen.get(key, ())
        if seen and not keywords and context.layer is None and context.saved is None:
            self._latest = context, context.process, len(args), seen
        return seen

    def _bound(self, args: Any, keywords: Any) -> dict[str, Any] | None:
        """Return the arguments of a call by name; None where they do not fit."""
        if self._defaults.changed():
            self._signature = signature_of(self.__dy2st_function__)
        try:
            return bind(self._signature, args, keywords)
        except TypeError:
            return None

    def _remember(self, key: Any, program: ConcreteProgram, args: Any, keywords: Any, made: Flattened) -> None:
        """Let the next call like this one be recognised."""
        known = self._seen.get(key, ())
        if program.kinds_of_call >= MOST_KINDS or any(p is program for p, _ in known):
            return
        program.kinds_of_call += 1
        failed = Failed(self, program)
        recognise = recogniser(self._signature, args, keywords, made, program, self._specs(), failed)
        if recognise is not None:
            self._seen[key] = (*known, (program, named_after(self._function, recognise)))

    def note_run(self, program: ConcreteProgram) -> None:
        """Note which Program ran last."""
        self._last = program

    @property
    def dygraph_function(self) -> Callable[..., Any]:
        """The function as it was written."""
        return self.__dy2st_function__

    def _program(self, made: Flattened) -> tuple[ConcreteProgram | None, Flattened]:
        """Return the Program for a call, traced now if there is none, and the arguments as it takes them.

        The Program is None when the call falls back.
        """
        specs = self._specs()
        if specs:
            check_specs(specs, made)
        context = current()
        key = (made.key, context.grad, modes_of(context))
        program = self._cache.find(key)
        if program is not None and program.fits(made.leaves):
            self._last = program
            return self._unless_it_meets(key, program, made)
        with self._lock:
            program = self._cache.find(key, again=True)
            if program is None or not program.fits(made.leaves):
                if key in self._eager:
                    return None, made
                program, made = self._trace(key, made, specs)
            if program is not None:
                self._last = program
                return self._unless_it_meets(key, program, made)
            return program, made

    def _unless_it_meets(
        self, key: Any, program: ConcreteProgram, made: Flattened
    ) -> tuple[ConcreteProgram | None, Flattened]:
        """Return the Program, None for a call that falls back because of what it writes, and the arguments."""
        if program.meets_objects(made.containers):
            if made.opened:
                self._open.close_arguments(made)
                return self._program(flatten(rebuild_values(made), self._open.arguments))
            reason = "a list or dict that is an argument is also reached from outside by the function, which changes it"
            self._fall_back(key, TraceError(f"{reason}: a Program takes it for two. Use it as the argument alone"))
            return None, made
        if not program.meets(made.leaves):
            return program, made
        reason = "an argument shares memory with a tensor that the function also reads from outside, and one is written"
        self._fall_back(key, TraceError(f"{reason}, which a Program takes for two tensors: give it a clone"))
        return None, made

    def _trace(
        self, key: Any, made: Flattened, specs: dict[str, InputSpec]
    ) -> tuple[ConcreteProgram | None, Flattened]:
        for program in self._cache.entries.get(key, ()):
            self._open.open_state(program.traced.guards)
        if self._open.open_arguments(self._cache.order, made):
            values = rebuild_values(made)
            return self._program(flatten(values, self._open.arguments))
        why = self._why(key, made)
        try:
            program = self._traced(made, specs)
        except (ConversionError, TraceError) as error:
            if made.numbers or made.opened:
                self._open.close_arguments(made)
                return self._program(flatten(rebuild_values(made), self._open.arguments))
            self._fall_back(key, error)
            return None, made
        except Exception as error:
            if self._full_graph or isinstance(error, RecursionError):
                raise
            raise Undecided(key, made, error) from None
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
        """Forget a Program where there are too many."""
        found = self._cache.drop()
        if found is None:
            return
        at, dropped = found
        del self._kinds[at]
        self._history.drop(at, dropped)
        self._latest, self._like = _NOTHING, None
        self._last = None if self._last is dropped else self._last
        kept = {key: tuple(pair for pair in seen if pair[0] is not dropped) for key, seen in self._seen.items()}
        self._seen = {key: seen for key, seen in kept.items() if seen}

    def _count(self, why: str) -> None:
        """Warn once where calls are traced again and again."""
        if self._cache.traced + self._history.once == MANY:
            warn_of_tracing(self._function, why, self._cache.most)

    def _traced(
        self, made: Flattened, specs: dict[str, InputSpec], notes: Notes | None = None, *, by_value: bool = False
    ) -> ConcreteProgram:
        made_trace = Trace(frozenset(self._open.state), notes)
        made_trace.by_value = by_value
        self._memory = memory_ahead.expected(self.__dy2st_function__, made.leaves)
        try:
            with chosen_policy(self.checkpoint):
                traced = trace_call(self.__dy2st_function__, self._signature, made, specs, made_trace)
        except Exception as error:
            placed(error, self.__dy2st_function__)
            if isinstance(error, TraceError) and made_trace.opened:
                self._open.close_state(made_trace.opened)
            elif not made_trace.loop_notes.dropped():
                raise
            return self._traced(made, specs, made_trace.loop_notes, by_value=by_value)
        for note in traced.notes:
            self._history.fall_back(note)
        return ConcreteProgram(traced, made, strict=self.strict)

    def _why(self, key: Any, made: Flattened) -> str:
        """Say why no Program serves a call."""
        if not self._cache.order:
            return "the first call"
        known = self._cache.entries.get(key)
        if known is None:
            return difference(described(made, current().grad), self._kinds)
        return known[-1].changed()

    # ---- fallback --------------------------------------------------------------------------------------------------
    def _fall_back(self, key: Any, error: Dy2stError) -> None:
        """Let calls of this kind run eagerly; the first one warns."""
        placed(error, self._function)
        if self._full_graph and not isinstance(error, DebuggerCall):
            raise error
        first = not self._eager
        self._eager.add(key)
        self._history.fall_back(str(error))
        if first:
            warn_of_fallback(self._function, error)

    # ---- what a user can look at -----------------------------------------------------------------------------------
    @property
    def program_cache(self) -> ProgramCache:
        """The Programs that were traced; `len()` counts them."""
        return self._cache

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The Program that was used last; traced from the input_spec when there was no call yet."""
        if self._last is None and self._input_spec is not None:
            self.concrete_program_specify_input_spec()
        return self._last if self._last is not None else self._cache.last()

    @property
    def main_program(self) -> Program:
        """The Program that was used last."""
        return self.concrete_program.main_program

    @property
    def code(self) -> str:
        """The converted source."""
        function = self._function
        return convert(function).source  # type: ignore[arg-type]

    def explain(self) -> Explanation:
        """Tell which Programs there are, why each was traced, which calls it served, and what ran eagerly and why."""
        return Explanation(self._function.__qualname__, self._history, self._cache.concrete_programs())

    def concrete_program_specify_input_spec(self, input_spec: Sequence[Any] | None = None) -> ConcreteProgram:
        """Trace from declared inputs, without a call; return the Program."""
        declared = self._input_spec if input_spec is None else input_spec
        if declared is None:
            return self._cache.last()
        values = bind_specs(self._signature, declared)
        made = flatten({n: sample_of(x) for n, x in values.items()}, self._open.arguments)
        program = self._program_from(made, values)
        if program is None:
            raise TraceError(f"`{self._function.__qualname__}` cannot become a Program: {self._history.fallbacks[-1]}")
        return program

    def _program_from(self, made: Flattened, values: dict[str, Any]) -> ConcreteProgram | None:
        specs = {n: x for n, x in values.items() if isinstance(x, InputSpec)}
        context = current()
        key = (made.key, context.grad, modes_of(context))
        with self._lock:
            program = self._cache.find(key) or self._trace(key, made, {**self._specs(), **specs})[0]
            self._last = program
            return program

    def _specs(self) -> dict[str, InputSpec]:
        if self._input_spec is None:
            return {}
        return flat_specs(self._signature, self._input_spec)

    def rollback(self) -> Callable[..., Any]:
        """Return the function as it was written (and put it back where it was an attribute of its layer)."""
        owner = self._instance
        if owner is not None and owner.__dict__.get(self._function.__name__) is self:
            del owner.__dict__[self._function.__name__]
        return self.dygraph_function

    def __repr__(self) -> str:
        return f"<StaticFunction {self._function.__qualname__}, {len(self._cache)} programs>"
