"""One trace: a call of a user function that becomes a Program, with the guards under which that may run again."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dy2st.errors import Dy2stError, InvalidProgram, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.context import current, replaced
from dy2st.ir.location import frame_at
from dy2st.ir.program import Program, Value
from dy2st.ir.verifier import verify
from dy2st.jit.guards.call_signature import defaults_of
from dy2st.jit.guards.guards import ArgumentSlot, StateSlot
from dy2st.jit.tracing import code_log
from dy2st.jit.tracing.conversion_cache import convert
from dy2st.jit.tracing.created_parameters import CreatedParameters
from dy2st.jit.tracing.deferred_effects import DeferredEffects
from dy2st.jit.tracing.escaping_values import leaving
from dy2st.jit.tracing.external_reads import ExternalReads
from dy2st.jit.tracing.needed_gradients import SETTLED, OpenNeeds, refusal_of_needed, settle_raised, tell_needs
from dy2st.jit.tracing.output_choices import ResultChoice, StructureChoice
from dy2st.jit.tracing.output_sharing import OutputSharing
from dy2st.jit.tracing.output_structure import output_aval, written_aval
from dy2st.jit.tracing.output_views import ResultView, views_among
from dy2st.jit.tracing.unsupported import refuse_generator
from dy2st.kinds import TUPLE, variables_of
from dy2st.records import field, record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.builtins.calls import callable_for
from dy2st.runtime.tracer.control_flow import conditional
from dy2st.runtime.tracer.control_flow.assert_raise import RaisedException, emit_raise, raised_parts
from dy2st.runtime.tracer.control_flow.internal_errors import refuse_fault
from dy2st.runtime.tracer.control_flow.try_except import functions_inside
from dy2st.runtime.tracer.converted_code_api import HELPER
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.loops.generators import forget_generators, refuse_left_generators
from dy2st.runtime.tracer.loops.loop_state_cache import LoopStateNotes
from dy2st.runtime.tracer.recording.gradient_history import GradientHistories
from dy2st.runtime.tracer.values.abstract import AbstractValue
from dy2st.runtime.tracer.values.flatten import alternative, flatten
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import Variant
from dy2st.transformers import is_converted_code


@record
class Traced:
    """What tracing gives."""

    program: Program
    state: list[tuple[StateSlot | str, Tensor | None]]
    """For each argument after the inputs: where its value comes from ("seed" and "draw" are the generator's)."""
    output: AbstractValue
    outputs: int
    """How many results make up the output; the rest are writes."""
    flows: tuple[int, ...]
    """Results of the output, by number, through which gradients flow."""
    seeded: tuple[int, ...]
    """Results that have a cotangent: those of `flows` that the call does not make views, and what such views show."""
    writes: list[tuple[Key, Any, AbstractValue]]
    guards: list[Any]
    notes: list[str] = field(default_factory=list[str])
    raised: list[RaisedException] = field(default_factory=list[RaisedException])
    """Exceptions that the Program raises under a label."""
    grad_free: tuple[int, ...] = ()
    """The arguments, by number, that the Program takes to have no gradient before the call."""
    unhooked: tuple[int, ...] = ()
    """The arguments and tensors of the state, by number, that must have no hooks."""
    failed: BaseException | None = None
    """What the function raised on every path, after effects or writes of every call; the output has its parts."""
    actions: Sequence[Callable[[], None]] = ()
    """What each call does at its end."""
    views: tuple[ResultView | ResultChoice | StructureChoice, ...] = ()
    """Results that are an input or a view of one: not a copy of it."""
    outside: dict[int, Any] = field(default_factory=dict[int, Any])
    """Containers and objects that were met outside, by id."""
    freed: tuple[int, ...] = ()
    """Results, by number, that cannot be differentiated any more: the Program itself does, and frees their history."""
    open_needs: OpenNeeds = SETTLED

    @property
    def _written(self) -> list[Any]:
        """The owners of the elements that a run writes."""
        writes = [w for group in (self.writes, *(r.writes for r in self.raised)) for w in group]
        return [owner for key, owner, _ in writes if key[0] == "data"]

    @property
    def _changed(self) -> list[Any]:
        """The containers and objects of which a run writes items or attributes."""
        writes = [w for group in (self.writes, *(r.writes for r in self.raised)) for w in group]
        return [owner for key, owner, _ in writes if key[0] in ("items", "attr", "tail")]

    @property
    def graded(self) -> tuple[list[int], frozenset[int]]:
        """The arguments, by number, and the tensors from outside, by id, whose gradient a run reads or writes."""
        owners = [owner for key, owner, _ in self.writes if key[0] in ("grad", "grad_sum")]
        leaves = {o.index for o in owners if isinstance(o, ArgumentSlot) and o.kind == "leaf"}
        found = [o.fetch() if isinstance(o, StateSlot) else o for o in owners]
        found += [g.owner for g in self.guards if getattr(g, "name", None) == "_grad"]
        return sorted({*leaves, *self.grad_free}), frozenset(id(o) for o in found if isinstance(o, Tensor))

    @property
    def changed_outside(self) -> frozenset[int]:
        """The containers and objects from outside, by id, that a run changes."""
        return frozenset(map(id, self._changed)) & self.outside.keys()

    @property
    def changed_containers(self) -> tuple[int, ...]:
        """The containers and objects among the arguments, by number, that a run changes."""
        changed = {o.index for o in self._changed if isinstance(o, ArgumentSlot) and o.kind == "container"}
        return tuple(sorted(changed))

    @property
    def written_leaves(self) -> set[int]:
        """The arguments, by number, whose elements a run writes."""
        return {o.index for o in self._written if isinstance(o, ArgumentSlot) and o.kind == "leaf"}

    @property
    def written_state(self) -> list[int]:
        """The tensors from outside, by their numbers in `state`, whose elements a run writes."""
        owners = {id(owner) for owner in self._written}
        found = enumerate(self.state)
        return [i for i, (slot, t) in found if t is not None and not owners.isdisjoint((id(slot), id(t)))]


class FunctionTrace(ExternalReads):
    """Trace a function; converted functions that it calls become part of the Program."""

    of_function = True

    def __init__(
        self, open_state: frozenset[tuple[int, str]] = frozenset(), notes: LoopStateNotes | None = None
    ) -> None:
        super().__init__(Builder(), open_state)
        self.loop_notes = notes or self.loop_notes
        self.deferred = DeferredEffects(self)
        """What each call does at its end."""
        self.parameters = CreatedParameters(self.log)
        self.notes: list[str] = []
        self.views: dict[Value, Tensor] = {}
        """Which view a value was taken of, most lately."""
        self.defaults: set[int] = set()
        """The defaults of the traced function's parameters, by id."""
        self.loaded_functions: dict[int, tuple[Program, str]] = {}
        """Programs of files that are called, by id, each with the name that its entry has here."""
        self.by_value = False
        """Whether what leaves is told by value alone: a file knows no objects of the caller's."""

    def value_of(self, t: Tensor) -> Value:
        """Return the value that a tensor has here."""
        value = super().value_of(t)
        if t.view_of is not None:
            self.views[value] = t
        return value

    def note_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Remember what was read of a real object, as it will be where each call changes it at its end only."""
        steps = () if isinstance(value, types.MethodType) else self.deferred.of(owner)
        if steps:
            owner = owner.after(steps)
            value = getattr(owner, name)
        return super().note_attribute(owner, name, value)

    # ---- calls -----------------------------------------------------------------------------------------------------
    def set_seed(self, seed: int) -> bool:
        """Seed the generator when the Program runs."""
        self.log.set(("seed",), None, Scalar(self.builder.scalar(seed)))
        self.log.set(("rng",), None, Scalar(self.builder.scalar(0)))
        return True

    def wants_gradients(self) -> bool:
        """Return whether gradients are being recorded."""
        return current().grad

    def raise_later(self, error: BaseException) -> None:
        """Record that `error` is raised where the Program comes to this point."""
        emit_raise(self, error)

    def keep_raised(self, error: BaseException) -> tuple[int, list[Value]]:
        """Keep an exception that the Program raises; return its label, and what its `raise` hands over."""
        self.leaving()
        attempt, sharing = self.attempts[-1] if self.attempts else None, OutputSharing(self)
        way = partial(output_aval, self, sharing=sharing) if attempt is None else partial(attempt.aval, None)
        parts, aval = raised_parts(self, error, way)
        raised = RaisedException(error, aval, flatten(self, parts, aval))
        self.raised.append(raised)
        label = len(self.raised) - 1
        if attempt is not None:
            return label, [*raised.operands, *attempt.hand_over(label, raised)]
        raised.refusal = refusal_of_needed(aval) if self.wants_gradients() and not self.by_value else None
        more = [] if functions_inside(self) else self._write_back(raised, sharing)
        raised.aval = sharing.finished(aval)
        return label, [*raised.operands, *more]

    def has_written(self) -> bool:
        """Return whether a run that raises here would leave something written."""
        return not functions_inside(self) and (any(self.log.overlays) or self.rebound.is_rebound())

    def _write_back(self, raised: RaisedException, sharing: OutputSharing) -> list[Value]:
        """Note what has been written where an exception is raised; return the values of it."""
        with self.log.fork({}):
            self.rebound.write()
            keys = dict.fromkeys(key for overlay in self.log.overlays for key in overlay)
            sharing.writes = True
            writes, values = self.written({key: self.log.get(key) for key in keys}, sharing)
            raised.writes = [(key, owner, sharing.finished(t)) for key, owner, t in writes]
            raised.actions = self.deferred.actions()
        return values

    def written(
        self, entries: dict[Key, Any], sharing: OutputSharing | None
    ) -> tuple[list[tuple[Key, Any, AbstractValue]], list[Value]]:
        """Return what a run writes to real objects, and the values that it makes that of."""
        writes: list[tuple[Key, Any, AbstractValue]] = []
        values: list[Value] = []
        for key, value in sorted(entries.items(), key=lambda entry: entry[0][0] == "tail"):  # after the items
            if key[0] == "items" and key[1] not in self.external and key[1] not in self.arguments:
                continue
            if key[1:] and key[1] in self.made.objects:
                continue
            owner = self.log.owner(key)
            if isinstance(owner, Variant) or key[0] == "done" or (key[0] == "data" and self.is_own(owner)):
                continue
            owner = self.arguments.get(id(owner), owner)
            if key[0] in ("data", "grad"):  # the tensor that stands there in each call
                owner = self.sources.get(id(owner), owner)
            if key[0] == "data" and _is_leaf(self.log.owner(key)):
                value = self.wrap(self.detached(self.value_of(value)))
            if key[0] == "grad" and key[1] in self.summed:
                key = ("grad_sum", key[1])
            whole = key[0] in ("attr", "tail", "cell", "global")
            if sharing is None and (whole or isinstance(value, Variant)):
                value = leaving(self, value)
            shape = output_aval(self, value, sharing) if whole else written_aval(self, value, sharing)
            writes.append((key, owner, shape))
            values += flatten(self, value, shape)
        return writes, values

    def is_own(self, t: Any) -> bool:
        """Return whether a tensor was made in this trace, so that nobody outside sees what is written to it."""
        own = isinstance(t, Tensor) and isinstance(t.payload, Value)
        return own and id(t) not in self.arguments and id(t) not in self.sources

    def convert(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the converted form of a function or method; itself where it is not the user's.

        A function that cannot be converted is never traced as it is: what it wrote would be written while tracing.
        """
        if isinstance(function, types.MethodType):
            return types.MethodType(self.convert(function.__func__), function.__self__)
        if (inner := getattr(function, "__dy2st_function__", None)) is not None:
            return self.convert(inner)
        if not isinstance(function, types.FunctionType):
            return function
        if is_converted_code(function.__code__):  # this trace made it, or an earlier one
            return self.rebound.of_trace(function, function) if self.rebound.is_from_outside(function) else function
        if getattr(function, "__dy2st_not_to_static__", False):
            return function
        if (function.__module__ or "").startswith("dy2st.") and not getattr(function, "__dy2st_convert__", False):
            return function
        made = convert(function)
        code_log.converted(made)
        self.note_function(function)
        return self.rebound.of_trace(function, made.make(HELPER))

    # ---- the end ---------------------------------------------------------------------------------------------------
    def finish(self, inputs: Sequence[Value], output: Any, error: Exception | None = None) -> Traced:
        """Close the Program over what the function returned (or raised) and what was written."""
        if self.refused is not None:
            raise self.refused
        sharing = None if self.by_value and error is None else OutputSharing(self)
        output = self._settled(output)
        output = leaving(self, output) if sharing is None else output
        self._check_stand_ins()
        self.parameters.refuse_passing(self.slots)
        self.rebound.write()
        way = partial(output_aval, self, sharing=sharing)
        output, aval = (output, way(output)) if error is None else raised_parts(self, error, way)
        results = flatten(self, output, aval)
        count = len(results)
        if sharing is not None:
            sharing.writes = True
        writes, values = self.written(dict(self.log.overlays[0]), sharing)
        block = self.root.block
        order = [*inputs, *(v for _, v, _ in self.slots.values())]
        block.arguments[:] = order
        views, operands = views_among(self, results, writes, values, order, self.views)
        open_needs = SETTLED if self.by_value else tell_needs(self, [*results, *values], views, operands)
        every = [*results, *values, *operands]
        block.results = list(map(self.root.use, every))
        shown = {view.result for view in views if isinstance(view, ResultView)}
        histories = GradientHistories(block, self.needs, self.freed)
        returned = [*range(count), *range(count + len(values), len(every))]
        flows = [i for i in returned if not histories.has_none(every[i])]
        seeded = tuple(i for i in flows if i not in shown)
        program = Program({"main": block, **self.functions})
        self._check(program)
        settle_raised(self.raised, program, self.by_value or self.made.is_pulling)
        if sharing is not None:
            aval = sharing.finished(aval)
            writes = [(key, owner, sharing.finished(t)) for key, owner, t in writes]
        return Traced(
            program,
            [(slot, t) for slot, _, t in self.slots.values()],
            aval,
            count,
            tuple(i for i in flows if i < count),
            seeded,
            writes,
            list(self.guards.values()),
            self.notes,
            self.raised,
            tuple(sorted(self.grad_free)),
            self._unhooked(len(inputs)),
            error,
            self.deferred.actions(),
            views,
            self._met_outside(),
            tuple(i for i in seeded if histories.is_freed(every[i])),
            open_needs,
        )

    def _unhooked(self, inputs: int) -> tuple[int, ...]:
        arguments = [slot.index for i, slot in self.arguments.items() if i in self.unhooked and slot.kind == "leaf"]
        return (*sorted(arguments), *(inputs + k for k, i in enumerate(self.slots) if i in self.unhooked))

    def _met_outside(self) -> dict[int, Any]:
        """Return the containers and objects that were met outside; a default of the function itself is an argument."""
        found = {i: x for i, x in self.external.items() if isinstance(x, CONTAINERS) or is_plain_object(x)}
        return {i: x for i, x in found.items() if i not in self.defaults}

    def _check(self, program: Program) -> None:
        """Refuse a Program with a `try` in which a value of the first trace of its body was kept somewhere."""
        if not any(o.op.is_try for function in program.functions.values() for o in function.walk()):
            return
        try:
            verify(program)
        except InvalidProgram as error:
            raise StructureError(f"a `try` keeps a value of a trace of its body that was given up: {error}") from error

    def _check_stand_ins(self) -> None:
        """Refuse a Program for which an object among the arguments was changed behind the back of the trace."""
        for x, before in self.stand_in_objects.values():
            now = variables_of(x)
            if now.keys() != before.keys() or any(now[k] is not v for k, v in before.items()):
                raise StructureError(f"an argument (a {type(x).__name__}) is changed by code that is not converted")

    def did_something(self) -> bool:
        """Return whether a call does more than to compute: an effect, or a write."""
        self.rebound.write()
        return bool(self.log.overlays[0]) or any(o.op.effect or o.op.is_raise for o in self.root.block.walk())

    def _settled(self, output: Any) -> Any:
        """Return an output that is certainly set without its "unset" alternative."""
        if isinstance(output, Variant) and len(output.alternatives) == 2:
            return alternative(self, output, 1)
        return tuple(map(self._settled, output)) if type(output) is TUPLE else output


def _is_leaf(t: Any) -> bool:
    """Return whether a tensor from outside is a leaf that needs a gradient: writing it leaves it one."""
    return not isinstance(t.payload, Value) and t.tape_node is None and not t.stop_gradient


def trace(
    function: Callable[..., Any],
    make_inputs: Callable[[FunctionTrace], tuple[Sequence[Value], Any, Any]],
    made: FunctionTrace,
) -> Traced:
    """Trace one call; `make_inputs` adds the arguments and returns their values and what to call with."""
    refuse_generator(function)
    given, named = defaults_of(getattr(function, "__func__", function))
    made.defaults = {*map(id, given), *map(id, named.values())}
    inputs, args, keywords = make_inputs(made)
    made.outermost = made.bottom = frame_at(0)
    with replaced(trace=made, grad=current().grad):
        try:
            output = callable_for(made, function)(*args, **keywords)
            refuse_left_generators(made)
        except conditional.Diverged:  # every path raises: the Program does
            return made.finish(inputs, None)
        except Dy2stError:
            raise
        except Exception as error:
            refuse_fault(error)
            if not made.did_something():
                raise
            return made.finish(inputs, None, error)
        finally:
            forget_generators(made)
            made.take_back()
            made.outermost = made.bottom = None
            made.callers = None, None, ()
        return made.finish(inputs, output)
