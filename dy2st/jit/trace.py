"""One trace: a call of a user function that becomes a Program, with the guards under which that may run again."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dy2st.errors import Dy2stError, InvalidProgram, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.context import current, replaced
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import ScalarType, TensorType, is_differentiable
from dy2st.ir.verifier import verify
from dy2st.jit import code_log
from dy2st.jit.afterwards import Afterwards
from dy2st.jit.guards import ArgumentSlot, ContentGuard, Guard, KindGuard, LayerGuard, StateSlot
from dy2st.jit.helper import HELPER
from dy2st.jit.leaves import Leaves
from dy2st.jit.leaving import leaving
from dy2st.jit.outputs import output_template, written_template
from dy2st.jit.outside import mark, mark_items
from dy2st.jit.rebound import PLAIN, Rebound
from dy2st.jit.refusals import refuse_generator
from dy2st.jit.same_tensors import arguments_among
from dy2st.naming import is_plain_module
from dy2st.runtime import convert_if
from dy2st.runtime.contents import CONTAINERS, Spliced
from dy2st.runtime.convert_call import callable_for
from dy2st.runtime.convert_checks import Raised, emit_raise
from dy2st.runtime.convert_recursion import Active, Recursion
from dy2st.runtime.convert_try import functions_inside
from dy2st.runtime.faults import refuse_fault
from dy2st.runtime.log import MISSING, Key
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.structure import alternative, encode
from dy2st.runtime.templates import Template
from dy2st.runtime.tensor import Tensor
from dy2st.runtime.variant import SymbolicList, Variant
from dy2st.shapes import symbol
from dy2st.transformers import convert, is_converted_code


@dataclass
class Traced:
    """What tracing gives."""

    program: Program
    state: list[tuple[StateSlot | str, Tensor | None]]
    """For each argument after the inputs: where its value comes from ("seed" and "draw" are the generator's)."""
    output: Template
    outputs: int
    """How many results make up the output; the rest are writes."""
    seeded: tuple[int, ...]
    writes: list[tuple[Key, Any, Template]]
    guards: list[Any]
    notes: list[str] = field(default_factory=list[str])
    raised: list[Raised] = field(default_factory=list[Raised])
    """Exceptions that the Program raises under a label."""
    grad_free: tuple[int, ...] = ()
    """The arguments, by number, that the Program takes to have no gradient before the call."""
    failed: Raised | None = None
    """What the function raised on every path, after effects or writes of every call; the output has its values."""
    actions: Sequence[Callable[[], None]] = ()
    """What each call does at its end."""
    same: tuple[tuple[int, int], ...] = ()
    """Results, by number, that are the tensor which is an argument, by number: not a copy of it."""

    @property
    def written_leaves(self) -> set[int]:
        """The arguments, by number, whose elements a run writes."""
        writes = [w for group in (self.writes, *(r.writes for r in self.raised)) for w in group]
        owners = [owner for key, owner, _ in writes if key[0] == "data" and isinstance(owner, ArgumentSlot)]
        return {owner.index for owner in owners if owner.kind == "leaf"}


class Trace(Leaves, Afterwards):
    """Trace a function; converted functions that it calls become part of the Program."""

    of_function = True

    def __init__(self, open_state: frozenset[tuple[int, str]] = frozenset()) -> None:
        super().__init__(Builder())
        self.open_state = open_state
        """Python numbers outside, by owner and name, that are arguments of the Program."""
        self.opened: set[tuple[int, str]] = set()
        self.rebound = Rebound(self)
        self.slots: dict[int, tuple[StateSlot | str, Value, Tensor | None]] = {}
        self.sources: dict[int, StateSlot] = {}
        self.stand_ins: dict[int, Tensor] = {}
        self.viewed: dict[int, Tensor] = {}
        self.guards: dict[Any, Any] = {}
        self.external: dict[int, Any] = {}
        self.arguments: dict[int, ArgumentSlot] = {}
        self.notes: list[str] = []
        self.raised: list[Raised] = []
        self.numbers: dict[tuple[int, str], Scalar] = {}
        self.active: list[Active] = []
        self.recursions: list[Recursion] = []
        self.functions: dict[str, Block] = {}
        """Functions of the Program beside its entry."""
        self.filters = warnings.filters
        """What is in force outside of the function; `catch_warnings` inside puts another list in its place."""
        self.root.functions = self.functions

    # ---- what comes from outside -----------------------------------------------------------------------------------
    def state(self, t: Tensor) -> Value:
        if id(t) in self.slots:
            return self.slots[id(t)][1]
        if t._view is not None and t._view.base._payload is not t._payload:
            return self._view_value(t)
        slot = self.sources.get(id(t)) or StateSlot(t, None)
        shape: tuple[Any, ...] = tuple(t._payload.shape)
        fixed = t.fixed_shape or (slot.name == "_grad" and slot.owner.fixed_shape)
        if not fixed:
            shape = tuple(symbol(f"s{len(self.slots)}_{axis}") for axis in range(len(shape)))
        value = self.root.argument(TensorType(t.dtype, shape), t._name or slot.label)
        self.slots[id(t)] = (slot, value, t)
        self.log.keep(t)
        if not t.stop_gradient:
            self.needs.add(value)
        return value

    def _rng_argument(self, name: str) -> Value:
        value = super()._rng_argument(name)
        self.slots.setdefault(id(value), (name, value, None))
        return value

    def note_read(self, owner: Any, name: str) -> None:
        """Note that library code reads an attribute of a layer."""
        value = owner.__dict__.get("_parameters", {}).get(name)
        if value is None:
            value = owner.__dict__.get("_buffers", {}).get(name)
        if value is not None:
            self.note_attribute(owner, name, value)

    def note_layer(self, layer: Any) -> None:
        """Note that the trace depends on which sublayers and hooks a layer has."""
        if id(layer) not in self.made_objects:
            self.log.keep(layer)
            self.guards.setdefault((id(layer), "layer"), LayerGuard.of(layer))

    def read_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Return an attribute that library code reads, as the trace left it; `value` is the real one."""
        found = self.log.get(("attr", id(owner), name))
        return self.note_attribute(owner, name, value) if found is MISSING else found

    def write_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Write an attribute in the log, for library code."""
        self.log.set(("attr", id(owner), name), owner, value)

    def note_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Remember what was read of a real object, a source of state or a guard; return what the trace sees of it."""
        self.log.keep(owner)
        if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
            return value
        if isinstance(owner, types.ModuleType) and (is_plain_module(owner.__name__) or isinstance(value, PLAIN)):
            return value
        return self.note_outside(StateSlot(owner, name), Guard(owner, name, value), value)

    def note_outside(self, slot: StateSlot, guard: Guard, value: Any) -> Any:
        """Remember a value from outside; return what the trace sees of it."""
        if isinstance(value, Tensor):
            if not isinstance(value._payload, Value):
                value = self._stand_in(value)
                self.sources.setdefault(id(value), slot)
                self.log.keep(value)
            return value
        mark(self, value)
        key = (id(guard.owner), guard.name)
        if key in self.open_state and type(value) in (int, float):
            return self._number_argument(key, slot, type(value))
        self.guards.setdefault(key, guard)
        return value

    def _stand_in(self, t: Tensor) -> Tensor:
        """Return what the trace sees of a tensor outside: a view of something else is a state of its own.

        What it is a view of may be gone at the next call. Both of them in one trace are refused.
        """
        if id(t) in self.viewed:
            raise StructureError("a tensor is read of which the trace also reads a view, kept in an attribute")
        base = None if t._view is None else t._view.base
        if base is None or id(base) in self.sources or id(base) in self.slots or isinstance(base._payload, Value):
            return t
        if id(t) not in self.stand_ins:
            made = self.stand_ins[id(t)] = Tensor(t._payload, t.stop_gradient)
            self.viewed[id(base)] = base
            self.log.keep(t)
            self.log.keep(made)
        return self.stand_ins[id(t)]

    def _number_argument(self, key: tuple[int, str], slot: StateSlot, kind: type) -> Scalar:
        """Return a Python number from outside whose value is open."""
        self.opened.add(key)
        if key not in self.guards:
            value = self.root.argument(ScalarType(kind.__name__), slot.name)
            self.slots[id(value)] = (slot, value, None)
            self.guards[key] = KindGuard(slot.owner, key[1], kind, slot)
            self.numbers[key] = Scalar(value)
        return self.numbers[key]

    def mark_external(self, x: Any) -> None:
        """Say that something was there before the trace."""
        self.external[id(x)] = x
        self.log.keep(x)

    def note_arguments(self, leaves: Sequence[Any], containers: dict[int, Any]) -> None:
        """Note the tensors, lists, dicts and objects among the arguments of the call that is traced: what is written to
        them goes to those of each call.
        """
        for i, x in enumerate(leaves):
            if isinstance(x, Tensor):
                self.arguments[id(x)] = ArgumentSlot("leaf", i)
                self.log.keep(x)
        for i, x in containers.items():
            self.arguments[id(x)] = ArgumentSlot("container", i)
            self.log.keep(x)
            if not isinstance(x, CONTAINERS):
                self.stand_in_objects[id(x)] = x, dict(vars(x))

    def content(self, x: Any) -> Any:
        if isinstance(x, CONTAINERS) and id(x) in self.external:
            tail = self.log.get(("tail", id(x)))
            if self.log.get(("items", id(x))) is MISSING:
                self.guards.setdefault((id(x), "content"), ContentGuard(x, x.copy()))
                mark_items(self, x)
                if isinstance(tail, SymbolicList):
                    return self.spliced([*x, Spliced(tail)])
                if tail is not MISSING and tail:
                    return [*x, *tail]
        return super().content(x)

    # ---- calls -----------------------------------------------------------------------------------------------------
    def callable(self, f: Any) -> Callable[..., Any]:
        """Return what to call in place of `f`."""
        return callable_for(self, f)

    def if_exp(self, test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """Return a conditional expression's value."""
        return HELPER.if_exp(test, then, orelse)

    def item_of(self, x: Any, i: Any) -> Any:
        """Return `x[i]`."""
        return HELPER.item(x, i)

    def attribute_of(self, x: Any, name: str) -> Any:
        """Return `x.name`."""
        return HELPER.attr(x, name)

    def set_seed(self, seed: int) -> bool:
        """Seed the generator when the Program runs."""
        self.log.set(("seed",), None, Scalar(self.builder.scalar(seed)))
        self.log.set(("rng",), None, Scalar(self.builder.scalar(0)))
        return True

    def wants_gradients(self) -> bool:
        """Say whether gradients are being recorded."""
        return current().grad

    def raise_later(self, error: BaseException) -> None:
        """Record that `error` is raised where the Program comes to this point."""
        emit_raise(self, error)

    def keep_raised(self, raised: Raised) -> int:
        """Keep an exception that the Program raises; return its label."""
        self.raised.append(raised)
        return len(self.raised) - 1

    def has_written(self) -> bool:
        """Say whether a run that raises here would leave something written."""
        return not functions_inside(self) and (any(self.log.overlays) or self.rebound.is_rebound())

    def write_back(self, raised: Raised) -> list[Value]:
        """Note what has been written where an exception is raised; return the values of it."""
        if functions_inside(self):
            return []
        self.leaving()
        with self.log.fork({}):
            self.rebound.write()
            keys = dict.fromkeys(key for overlay in self.log.overlays for key in overlay)
            raised.writes, values = self.written({key: self.log.get(key) for key in keys})
            raised.actions = self.actions()
        return values

    def written(self, entries: dict[Key, Any]) -> tuple[list[tuple[Key, Any, Template]], list[Value]]:
        """Return what a run writes to real objects, and the values that it makes that of."""
        writes: list[tuple[Key, Any, Template]] = []
        values: list[Value] = []
        for key, value in entries.items():
            if key[0] == "items" and key[1] not in self.external and key[1] not in self.arguments:
                continue
            if key[1:] and key[1] in self.made_objects:
                continue
            owner = self.log.owner(key)
            if isinstance(owner, Variant) or key[0] == "done" or (key[0] == "data" and self._is_own(owner)):
                continue
            owner = self.arguments.get(id(owner), owner)
            if key[0] in ("data", "grad"):  # the tensor that stands there in each call
                owner = self.sources.get(id(owner), owner)
            if key[0] == "data" and _is_leaf(self.log.owner(key)):
                value = self.wrap(self.detached(self.value_of(value)))
            if key[0] == "grad" and key[1] in self.summed:
                key = ("grad_sum", key[1])
            whole = key[0] in ("attr", "tail", "cell", "global")
            if whole or isinstance(value, Variant):
                value = leaving(self, value)
            shape = output_template(self, value) if whole else written_template(self, value)
            writes.append((key, owner, shape))
            values += encode(self, value, shape)
        return writes, values

    def _is_own(self, t: Any) -> bool:
        """Say whether a tensor was made in this trace, so that nobody outside sees what is written to it."""
        own = isinstance(t, Tensor) and isinstance(t._payload, Value)
        return own and id(t) not in self.arguments and id(t) not in self.sources

    def convert(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the converted form of a function or method; itself where it is not the user's.

        A function that cannot be converted is never traced as it is: what it wrote would be written while tracing.
        """
        if isinstance(function, types.MethodType):
            return types.MethodType(self.convert(function.__func__), function.__self__)
        inner = getattr(function, "__dy2st_function__", None)
        if inner is not None:
            return self.convert(inner)
        if not isinstance(function, types.FunctionType) or is_converted_code(function.__code__):
            return function
        if getattr(function, "__dy2st_not_to_static__", False):
            return function
        if (function.__module__ or "").startswith("dy2st.") and not getattr(function, "__dy2st_convert__", False):
            return function
        made = convert(function)
        code_log.converted(made)
        return self.rebound.of_trace(function, made.make(HELPER))

    # ---- the end ---------------------------------------------------------------------------------------------------
    def finish(self, inputs: Sequence[Value], output: Any, error: Exception | None = None) -> Traced:
        """Close the Program over what the function returned (or raised) and what was written."""
        if self.refused is not None:
            raise self.refused
        output = leaving(self, self._settled(output))
        self._check_stand_ins()
        self.rebound.write()
        template = output_template(self, output)
        thrown = None if error is None else Raised.of(self, error)
        results = encode(self, output, template) if thrown is None else thrown[1]
        count = len(results)
        flows = [is_differentiable(v.type) and (v in self.needs or not isinstance(v.type, TensorType)) for v in results]
        writes, values = self.written(dict(self.log.overlays[0]))
        block = self.root.block
        order = [*inputs, *(v for _, v, _ in self.slots.values())]
        block.arguments[:] = order
        block.results = [self.root.use(v) for v in (*results, *values)]
        same = arguments_among(self, results, writes, values, order)
        program = Program({"main": block, **self.functions})
        self._check(program)
        return Traced(
            program,
            [(slot, t) for slot, _, t in self.slots.values()],
            template,
            count,
            tuple(i for i, f in enumerate(flows) if f),
            writes,
            list(self.guards.values()),
            self.notes,
            self.raised,
            tuple(sorted(self.grad_free)),
            None if thrown is None else thrown[0],
            self.actions(),
            same,
        )

    def _check(self, program: Program) -> None:
        """Refuse a Program with a `try` in which a value of the first trace of its body was kept somewhere."""
        if not any(o.name == "try" for function in program.functions.values() for o in function.walk()):
            return
        try:
            verify(program)
        except InvalidProgram as error:
            raise StructureError(f"a `try` keeps a value of a trace of its body that was given up: {error}") from error

    def _check_stand_ins(self) -> None:
        """Refuse a Program for which an object among the arguments was changed behind the back of the trace."""
        for x, before in self.stand_in_objects.values():
            now = vars(x)
            if now.keys() != before.keys() or any(now[k] is not v for k, v in before.items()):
                raise StructureError(f"an argument (a {type(x).__name__}) is changed by code that is not converted")

    def did_something(self) -> bool:
        """Say whether a call does more than to compute: an effect, or a write."""
        self.rebound.write()
        return bool(self.log.overlays[0]) or any(o.op.effect or o.name == "raise" for o in self.root.block.walk())

    def _settled(self, output: Any) -> Any:
        """Return an output that is certainly set without its "unset" alternative."""
        if isinstance(output, Variant) and len(output.alternatives) == 2:
            return alternative(self, output, 1)
        if isinstance(output, tuple) and type(output) is tuple:
            return tuple(self._settled(x) for x in output)
        return output


def _is_leaf(t: Any) -> bool:
    """Say whether a tensor from outside is a leaf that needs a gradient: writing it leaves it one."""
    return not isinstance(t._payload, Value) and t._node is None and not t.stop_gradient


def trace(
    function: Callable[..., Any], make_inputs: Callable[[Trace], tuple[Sequence[Value], Any, Any]], made: Trace
) -> Traced:
    """Trace one call; `make_inputs` adds the arguments and returns their values and what to call with."""
    refuse_generator(function)
    inputs, args, keywords = make_inputs(made)
    made.outermost = made.bottom = sys._getframe()
    with replaced(trace=made, grad=current().grad):
        try:
            output = callable_for(made, function)(*args, **keywords)
        except convert_if.Diverged:  # every path raises: the Program does
            return made.finish(inputs, None)
        except Dy2stError:
            raise
        except Exception as error:
            refuse_fault(error)
            if not made.did_something():
                raise
            return made.finish(inputs, None, error)
        finally:
            made.outermost = made.bottom = None
            made.callers = None, None, ()
        return made.finish(inputs, output)
