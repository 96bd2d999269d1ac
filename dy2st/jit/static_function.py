"""StaticFunction: a function whose calls run as Programs, traced once per kind of call."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.errors import Dy2stError, NotDerivable, TraceError
from dy2st.ir.context import Context, Process, current
from dy2st.ir.program import Program
from dy2st.jit.dispatch.bound_methods import bound_function
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.dispatch.eager_arbiter import Outcome, Undecided, decide
from dy2st.jit.dispatch.eager_replay import EagerReplay, leave_as_eager
from dy2st.jit.dispatch.explain import Explanation, rebuild_values
from dy2st.jit.dispatch.fallback_warning import FallbackWarning as FallbackWarning
from dy2st.jit.dispatch.first_calls import verified
from dy2st.jit.dispatch.inline_cache import InlineCache, build_inline_cache
from dy2st.jit.dispatch.inline_cache_run import UNSEEN, kind_of_call, modes_of, note_like
from dy2st.jit.dispatch.profiler_names import named_after, named_call
from dy2st.jit.dispatch.program_cache import ProgramCache
from dy2st.jit.dispatch.program_of_call import ProgramOfCall
from dy2st.jit.guards.call_signature import FlatCall, bind, call_arguments, flatten, signature_of
from dy2st.jit.splitting.explained import explained
from dy2st.jit.splitting.splitting import Splitting, hands_over, pays_as_part
from dy2st.jit.tracing.conversion_cache import convert
from dy2st.jit.tracing.input_spec_binding import bind_specs, sample_of
from dy2st.runtime.gc_pause import rarely
from dy2st.runtime.interpreter.error_locations import user_traceback
from dy2st.runtime.signal_delivery import delivered
from dy2st.runtime.tracer.control_flow.internal_errors import placed
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.runtime.tracer.recording.loop_checkpointing import Policy

MOST_KINDS = 4
"""So many ways to pass the arguments of a Program are recognised at once."""
MOST_TRACED = 8
"""A part is traced so often before it has to show that calls find their Programs."""
MOST_REFUSED = 16
"""After so many kinds of call that cannot become Programs, a function is not traced any more."""

_Seen = tuple[tuple[ConcreteProgram, InlineCache], ...]
_NOTHING: tuple[None, Process, int, _Seen] = (None, Process(), -1, ())


class StaticFunction(ProgramOfCall):
    """A function under `to_static`. Call it as the function itself; `explain()` tells what happened."""

    __slots__ = ("_last", "_like")
    __name__: str
    _like: tuple[Any, ...] | None
    """What the last call was recognised by, for machine code (trampolines/static_function.py)."""

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
        super().__init__(function, input_spec, full_graph, instance, checkpoint, strict, max_programs)
        self._slotted: weakref.WeakKeyDictionary[Any, StaticFunction] = weakref.WeakKeyDictionary()
        self._seen: dict[Any, _Seen] = {}
        """What recognises calls, by the number of arguments, the gradient mode and the names of keywords."""
        self._latest: tuple[Context | None, Process, int, _Seen] = _NOTHING
        """The context of the last call without keywords, its number of arguments, and what recognises such calls."""
        self._last = self._like = None
        self._splitting: Splitting | None = None
        self._named = named_call(function)
        functools.update_wrapper(self, function)
        self.__dy2st_function__ = function if instance is None else types.MethodType(function, instance)
        self.__wrapped__ = self.__dy2st_function__  # a method, so that inspect.signature leaves out `self`

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
                    error.__traceback__ = user_traceback(error.__traceback__)
                    raise  # a bare `raise` adds no frame of this file
                if found is not UNSEEN:
                    self._last = program
                    if not keywords:
                        note_like(self, context, len(args), call, program)
                    return found
        if not context.process.to_static_enabled:
            return self.dygraph_function(*args, **keywords)
        if len(self._eager) >= MOST_REFUSED:
            return self._in_python()(*args, **keywords)
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
            result = self._in_python()(*args, **keywords)
            if undecided is not None:
                decide(undecided, self._lock, self._open, self._fall_back, self._function)
            return result
        except Exception as error:
            again = leave_as_eager(self.dygraph_function, error, args, keywords)
            error.__traceback__ = user_traceback(error.__traceback__)
            if again is None:
                raise
        again.__traceback__ = user_traceback(again.__traceback__)
        raise again  # behind the block, so that no error is its context

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
            try:
                result = self._named(program.run, made.leaves, made.containers)
            except NotDerivable as error:  # nothing has run
                self._refuse(program, made, error)
                return None, made, None
            if (memory := self._memory) is not None and memory.is_settled():
                self._memory = None
            return result, None, None

    def _in_python(self) -> Callable[..., Any]:
        """Return the function as Python: with Programs for its parts where it is split."""
        split = self._splitting.function() if self._splitting is not None else None
        return self.dygraph_function if split is None else split

    def _split_at(self, error: Dy2stError) -> int | None:
        if not isinstance(self._function, types.FunctionType):
            return None
        splitting = self._splitting or Splitting(self._function, self._instance, self._part)
        if not splitting.note(error):
            return None
        self._splitting = splitting
        return len(splitting.parts)

    def _part(self, function: types.FunctionType, instance: Any, whole: Splitting | None) -> PartFunction:
        return PartFunction(
            function, instance, whole, checkpoint=self.checkpoint, strict=self.strict, max_programs=self._cache.most
        )

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

    def _remember(self, key: Any, program: ConcreteProgram, args: Any, keywords: Any, made: FlatCall) -> None:
        """Let the next call like this one be recognised."""
        known = self._seen.get(key, ())
        if program.kinds_of_call >= MOST_KINDS or any(p is program for p, _ in known):
            return
        program.kinds_of_call += 1
        failed = EagerReplay(self, program)
        recognise = build_inline_cache(self._signature, args, keywords, made, program, self._specs(), failed)
        if recognise is not None:
            self._seen[key] = (*known, (program, named_after(self._function, recognise)))

    def note_run(self, program: ConcreteProgram) -> None:
        """Note which Program ran last."""
        self._last = program

    @property
    def dygraph_function(self) -> Callable[..., Any]:
        """The function as it was written."""
        return self.__dy2st_function__

    def _forget(self, dropped: ConcreteProgram) -> None:
        self._latest, self._like = _NOTHING, None
        self._last = None if self._last is dropped else self._last
        kept = {key: tuple(pair for pair in seen if pair[0] is not dropped) for key, seen in self._seen.copy().items()}
        self._seen = {key: seen for key, seen in kept.items() if seen}

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
        return convert(function).source

    def explain(self) -> Explanation:
        """Tell which Programs there are, why each was traced, which calls it served, and what ran eagerly and why."""
        found = Explanation(self._function.__qualname__, self._history, self._cache.concrete_programs())
        if self._splitting is not None:
            found.split = explained(self._splitting, self._function)
        return found

    def concrete_program_specify_input_spec(self, input_spec: Sequence[Any] | None = None) -> ConcreteProgram:
        """Trace from declared inputs, without a call; return the Program."""
        declared = self._input_spec if input_spec is None else input_spec
        if declared is None:
            return self._cache.last()
        values = bind_specs(self._signature, declared)
        made = flatten({n: sample_of(x) for n, x in values.items()}, self._open.arguments)
        made.fixed = None
        with self._lock:
            return self._traced_for(made, {n: x for n, x in values.items() if isinstance(x, InputSpec)})

    def _traced_for(self, made: FlatCall, specs: dict[str, InputSpec]) -> ConcreteProgram:
        context = current()
        key = (made.key, context.grad, modes_of(context))
        program = self._cache.find(key, made.leaves) or self._trace(key, made, {**self._specs(), **specs})[0]
        assert program is not None  # what cannot be one was refused
        self._last = program
        return program

    def get_concrete_program(self, *args: Any, **keywords: Any) -> tuple[ConcreteProgram, ConcreteProgram]:
        """Return the Program of a call with these arguments, traced where there was none; it is also what runs it."""
        values = bind(self._signature, args, keywords)
        made = flatten({n: sample_of(x) for n, x in values.items()}, self._open.arguments)
        specs = {n: x for n, x in values.items() if isinstance(x, InputSpec)}
        with self._lock:
            program = self._traced_for(made, specs)
        return program, program

    def train(self) -> None:
        """Say that a function trains; RuntimeError for a method of a layer that does not."""
        self._refuse_mode(True, "train")

    def eval(self) -> None:
        """Say that a function does not train; RuntimeError for a method of a layer that does."""
        self._refuse_mode(False, "eval")

    def _refuse_mode(self, training: bool, name: str) -> None:
        owner = self._instance
        if getattr(owner, "training", training) is not training:
            raise RuntimeError(f"{self._function.__qualname__} is a method of a layer: call {name}() of the layer")

    def rollback(self) -> Callable[..., Any]:
        """Return the function as it was written (and put it back where it was an attribute of its layer)."""
        owner = self._instance
        if owner is not None and owner.__dict__.get(self._function.__name__) is self:
            del owner.__dict__[self._function.__name__]
        return self.dygraph_function

    def __repr__(self) -> str:
        return f"<StaticFunction {self._function.__qualname__}, {len(self._cache)} programs>"


class LibraryFunction(StaticFunction):
    """A function of the library's own that eager mode runs as a Program (runtime/eager/composite.py)."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function, full_graph=True)

    def _trace(self, key: Any, made: FlatCall, specs: dict[str, InputSpec]) -> tuple[ConcreteProgram | None, FlatCall]:
        """Refuse to trace a kind of call again: something was replaced, or Python needs its extents."""
        known = self._cache.entries.get(key, ())
        if len(known) >= MOST_KINDS or any(program.has_extents_of(made.leaves) for program in known):
            raise TraceError(self._why(key, made))
        return super()._trace(key, made, specs)


class PartFunction(StaticFunction):
    """A part of a function that is split (`whole`), or a function that Python between such parts calls."""

    key: Any = None
    """Where the part stands."""

    def __init__(self, function: types.FunctionType, instance: Any, whole: Splitting | None, **options: Any):
        super().__init__(function, instance=instance, **options)
        self.function, self._whole = function, whole
        self._left = False

    def _program(self, made: FlatCall) -> tuple[ConcreteProgram | None, FlatCall]:
        """Run what takes arrays as Python: a Program takes them for tensors."""
        if made.arrays and self._whole is not None:
            named = {made.names[i] for i in made.arrays}
            self._whole.note_arrays(self, {x for x in made.tree if any(n == x or n.startswith(x + "_") for n in named)})
        return (None, made) if made.arrays or self._left else super()._program(made)

    def _trace(self, key: Any, made: FlatCall, specs: dict[str, InputSpec]) -> tuple[ConcreteProgram | None, FlatCall]:
        """Trace a call; give up what is traced again and again, and what is too little to pay."""
        program, made = super()._trace(key, made, specs)
        traced = self._cache.traced + self._history.once
        calls = self._history.calls(self._cache.concrete_programs())
        if traced > MOST_TRACED and 2 * traced > calls:
            self._left = True
        if program is not None and (program.traced.open_needs.inside or not hands_over(program.traced, made)):
            self._left, program = True, None
        if self._whole is not None and (self._left or not (program is None or pays_as_part(program.main_program))):
            self._whole.leave(self)
        return program, made

    def _fall_back(self, key: Any, error: Dy2stError) -> None:
        """Let calls of this kind run as Python; the function that is split has warned."""
        placed(error, self._function)
        self._eager.add(key)
        self._history.fall_back(str(error))
        if self._whole is not None:
            self._whole.note_refused(self, error)
        else:
            self._split_at(error)

    def _count(self, why: str) -> None:
        """Give up what is traced again and again, without a warning."""
