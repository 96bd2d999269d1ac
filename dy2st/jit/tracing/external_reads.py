"""What a trace reads from outside of its function: each value becomes an argument of the Program, or a guard of it.

Tensors, and numbers whose value is left open, are arguments: their values are read anew at each call. Other Python
values are constants of the Program, and the guards say for which values it holds. `mark` (in `external_objects.py`)
says which objects were there before, so that a write to one of them is told from a write to one of the function's own.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.jit.guards.behavior_guards import BehaviourGuard
from dy2st.jit.guards.guards import (
    AliasGuard,
    ArgumentSlot,
    ContainerGuard,
    Guard,
    InstanceAttributeGuard,
    LayerGuard,
    StateSlot,
    TypeGuard,
    ViewGuard,
)
from dy2st.jit.guards.settings_guard import SettingsGuard, wrote
from dy2st.jit.tracing.external_objects import mark, mark_items, with_stand_ins
from dy2st.jit.tracing.fixed_extents import InputExtents, Place
from dy2st.jit.tracing.grad_leaves import GradLeaves
from dy2st.jit.tracing.rebound_variables import PLAIN, ReboundVariables
from dy2st.kinds import is_partial, type_of, variables_of
from dy2st.naming import is_plain_module
from dy2st.nn.layer_attributes import is_read_here
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, Spliced, is_spliced
from dy2st.runtime.tracer.values.container_classes import copied
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


class ExternalReads(GradLeaves):
    """The part of a trace that knows what came from outside."""

    def __init__(self, builder: Builder, open_state: frozenset[tuple[int, str]]) -> None:
        super().__init__(builder)
        self.extents = InputExtents(self)
        self.rebound = ReboundVariables(self)
        self.open_state = open_state
        """Python numbers outside, by owner and name, that are arguments of the Program."""
        self.fixed_state: frozenset[Place] = frozenset()
        """Tensors outside whose extents are fixed."""
        self.opened: set[tuple[int, str]] = set()
        self.numbers: dict[tuple[int, str], Scalar] = {}
        self.slots: dict[int, tuple[StateSlot | str, Value, Tensor | None]] = {}
        self.sources: dict[int, StateSlot] = {}
        self.stand_ins: dict[int, Tensor] = {}
        self.viewed: dict[int, Tensor] = {}
        self.guards: dict[Any, Any] = {}
        self.arguments: dict[int, ArgumentSlot] = {}
        self.lent: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        """Attributes that real objects have while this is traced, and what they had before."""

    def state(self, t: Tensor) -> Value:
        if id(t) in self.slots:
            return self.slots[id(t)][1]
        if t.view_of is not None and t.view_of.base.payload is not t.payload:
            return self._view_value(t, self.value_of(t.view_of.base))
        slot = self.sources.get(id(t)) or StateSlot(t, None)
        shape: tuple[Any, ...] = tuple(t.payload.shape)
        place = id(slot.owner), slot.name
        fixed = t.fixed_shape or (slot.name == "_grad" and slot.owner.fixed_shape) or place in self.fixed_state
        if not fixed:
            shape = tuple(self.extents.symbols(f"s{len(self.slots)}", len(shape), place))
        value = self.root.argument(TensorType(t.dtype, shape), t.given_name or slot.label)
        self.slots[id(t)] = (slot, value, t)
        self.log.keep(t)
        if not t.stop_gradient:
            self.needs.add(value)
        return value

    def value_so_far(self, t: Tensor) -> Value | None:
        found = super().value_so_far(t)
        return self.slots[id(t)][1] if found is None and id(t) in self.slots else found

    def shape_of(self, t: Tensor) -> list[Any]:
        found = super().shape_of(t)
        self.extents.note_read(found)
        return found

    def extents_behind(self, needed: Sequence[Any]) -> frozenset[str] | None:
        return self.extents.behind(needed)

    def shape_outside(self, t: Tensor) -> list[Any]:
        return list(t.payload.shape) if t.fixed_shape else self.shape_of(t)

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
        if id(layer) not in self.made.objects:
            self.log.keep(layer)
            self.guards.setdefault((id(layer), "layer"), LayerGuard.of(layer))
            self.note_method(layer, "forward")

    def note_settings(self, x: Any, lent: frozenset[str] = frozenset()) -> None:
        """Note that the package's code reads the settings of an object, but those in `lent`.

        Refuse those that the function itself set.
        """
        guard = self.guards.get((0, "settings")) or SettingsGuard()
        for owner, name, value in guard.note(x, lent):
            if wrote(self, owner, name, value):
                raise refusal(
                    f".{name} of a {type(owner).__name__} is set in a function in which code that is not converted "
                    "reads it",
                    "set it outside of the function",
                )
        if guard.objects:
            self.guards[0, "settings"] = guard

    def refuses_changes(self, x: Any) -> bool:
        """Return whether the package's code may not set attributes of an object: only this call would do it."""
        guard = self.guards.get((0, "settings"))
        return guard is not None and id(x) in guard.objects

    def read_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Return an attribute that library code reads, as the trace left it; `value` is the real one."""
        found = self.log.get(("attr", id(owner), name))
        return self.note_attribute(owner, name, value) if found is MISSING else found

    def write_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Write an attribute in the log, for library code."""
        self.log.set(("attr", id(owner), name), owner, value)

    def lend_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Write an attribute in the log, and let library code read it from the real object while this is traced."""
        self.write_attribute(owner, name, value)
        self.lent.setdefault((id(owner), name), (owner, name, variables_of(owner).get(name, MISSING)))
        vars(owner)[name] = value

    @contextmanager
    def lent_tensors(self, layer: Any) -> Generator[None]:
        """Let a layer's own code read the tensors that the function has set in it, for the length of a `with`.

        A hook may have computed its `weight`. Other settings that the function has set are refused.
        """
        tensors = {
            name: value
            for name, value in self.log.attributes(layer).items()
            if isinstance(value, Tensor) and is_read_here(layer, name)
        }
        before = {name: variables_of(layer).get(name, MISSING) for name in tensors}
        self.note_settings(layer, frozenset(tensors))
        for name, t in tensors.items():
            vars(layer)[name] = t
        try:
            yield
        finally:
            for name, value in before.items():
                _put_back(layer, name, value)

    def take_back(self) -> None:
        """Give objects back what they had in the place of what they were borrowed."""
        for owner, name, before in self.lent.values():
            _put_back(owner, name, before)
        self.lent.clear()

    def behaviour(self) -> BehaviourGuard:
        """Return the guard of what the objects and functions that the trace meets do."""
        return self.guards.setdefault((0, "behaviour"), BehaviourGuard())

    def note_behaviour(self, x: Any) -> None:
        """Note what calls, operators and methods of an object, of a class's instances or of a partial do."""
        if isinstance(x, type):
            if id(x) not in self.made.classes:
                self.behaviour().note_class(x)
        elif id(x) in self.made.objects or id(x) in self.stand_in_objects:
            self.note_behaviour(type(x))
        elif is_partial(x):
            self.behaviour().note_partial(x)
        else:
            self.behaviour().note_object(x)

    def note_library(self, owner: types.ModuleType | type, name: str) -> None:
        """Note what was read of a library's module, or of the class of tensors."""
        self.behaviour().note_library(owner, name)

    def note_method(self, owner: Any, name: str) -> None:
        """Note that a method of an object is used: of its class, or one of its own."""
        self.note_behaviour(owner)
        if not isinstance(owner, type) and id(owner) not in self.made.objects:
            self.behaviour().note_name(owner, name)

    def note_function(self, f: types.FunctionType) -> None:
        """Note the code and the defaults of a function from outside that is converted."""
        self.behaviour().note_function(f)
        for default in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            mark(self, default)

    def note_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Remember what was read of a real object, a source of state or a guard; return what the trace sees of it."""
        self.log.keep(owner)
        if isinstance(value, (types.MethodType, types.BuiltinMethodType)) or id(owner) in self.made.classes:
            self.note_method(owner, name)
            return value
        if type(value) in (types.FunctionType, functools.partial) and _is_made_anew(owner, name):
            return value
        if isinstance(owner, types.ModuleType) and (is_plain_module(owner.__name__) or isinstance(value, PLAIN)):
            if not is_plain_module(owner.__name__):
                self.note_plain_global(Guard(owner, name, value))
            return value
        return self.note_outside(StateSlot(owner, name), Guard(owner, name, value), value)

    def note_outside(self, slot: StateSlot, guard: Guard, value: Any) -> Any:
        """Remember a value from outside; return what the trace sees of it."""
        if isinstance(value, Tensor):
            if not isinstance(value.payload, Value):
                value = self.stand_in(value, slot)
                self.note_source(value, slot)
            return value
        mark(self, value)
        key = (id(guard.owner), guard.name)
        if key in self.open_state and type(value) in (int, float):
            return self._number_argument(key, slot, type_of(value))
        self.guards.setdefault(key, guard)
        return value

    def note_plain_global(self, guard: Guard) -> None:
        """Note a global that is a class, a module or a built-in function: it may be another one at the next call."""
        self.note_behaviour(guard.value)
        self.guards.setdefault((id(guard.owner), guard.name), guard)

    def note_absent(self, owner: Any, name: str) -> None:
        self.log.keep(owner)
        self.guards.setdefault((id(owner), name, "own"), InstanceAttributeGuard(owner, name, MISSING))

    def note_source(self, t: Tensor, slot: StateSlot) -> None:
        """Note where a tensor is read; one that is read at two places must be the same at both in each call."""
        first: Any = self.slots[id(t)][0] if id(t) in self.slots else self.sources.setdefault(id(t), slot)
        if first.owner is not slot.owner or first.name != slot.name:
            self.guards.setdefault((id(slot.owner), slot.name, "same"), AliasGuard(slot, first))
        self.log.keep(t)

    def stand_in(self, t: Tensor, slot: StateSlot) -> Tensor:
        """Return what the trace sees of a tensor outside: a view of something else is a state of its own.

        What it is a view of may be gone at the next call. Where the trace has read that before, the tensor is seen as a
        view of it, and must be one at each call; it is refused when it is read afterwards.
        """
        if id(t) in self.viewed:
            raise StructureError("a tensor is read of which the trace also reads a view, kept in an attribute")
        base = None if t.view_of is None else t.view_of.base
        if base is None or isinstance(base.payload, Value):
            return t
        if id(base) in self.sources or id(base) in self.slots:
            self.guards.setdefault((id(slot.owner), slot.name, "view"), ViewGuard(slot, base))
            return t
        if id(t) not in self.stand_ins:
            made = self.stand_ins[id(t)] = Tensor(t.payload, t.stop_gradient)
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
            self.guards[key] = TypeGuard(slot.owner, key[1], kind, slot)
            self.numbers[key] = Scalar(value)
        return self.numbers[key]

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
                self.stand_in_objects[id(x)] = x, dict(variables_of(x))
                self.note_behaviour(x)

    def content(self, x: Any) -> Any:
        if not isinstance(x, CONTAINERS) or id(x) not in self.external:
            return super().content(x)
        if self.log.get(("items", id(x))) is MISSING:
            self.guards.setdefault((id(x), "content"), ContainerGuard(x, copied(x)))
            mark_items(self, x)
            content = with_stand_ins(self, x)
        else:
            content = super().content(x)
        tail = self.log.get(("tail", id(x)))
        if tail is MISSING or tail == []:
            return content
        items = [Spliced(content)] if isinstance(content, (SymbolicList, Variant)) else content
        tail = [Spliced(tail)] if isinstance(tail, (SymbolicList, Variant)) else tail
        made = [*items, *tail]
        return self.spliced(made) if is_spliced(made) else made

    def store(self, x: Any, content: Any) -> None:
        if id(x) in self.external and self.log.get(("tail", id(x))) is not MISSING:
            self.log.set(("tail", id(x)), x, [])  # what was appended is among the content now
        super().store(x, content)


def _is_made_anew(owner: Any, name: str) -> bool:
    """Return whether an attribute is another object at each read."""
    return isinstance(inspect.getattr_static(owner, name, None), functools.partialmethod)


def _put_back(owner: Any, name: str, before: Any) -> None:
    if before is not MISSING:
        vars(owner)[name] = before
    elif name in vars(owner):
        del vars(owner)[name]
