"""What a Program reads from outside: slots, whose value is an argument, and guards, which must find what was traced."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from dy2st.dtypes import DType
from dy2st.jit.guards.static_values import key_of
from dy2st.kinds import is_dict, is_set, is_tuple
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.absent_attributes import real_attribute
from dy2st.runtime.tracer.values.container_classes import item_past_methods, plain_content
from dy2st.runtime.tracer.values.object_attributes import attributes
from dy2st.runtime.tracer.values.sentinels import MISSING

SIMPLE = (bool, int, float, str, bytes, type(None), DType)
NUMBERS = (int, float)


def same(now: Any, before: Any) -> bool:
    """Return whether a value is what it was: the same object, an equal value of a simple type, or the same function."""
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if type(before) is FunctionType:  # the same `def`, run again
        return key_of(now) == key_of(before)
    if is_tuple(before):
        return len(now) == len(before) and all(map(same, now, before))
    return isinstance(before, SIMPLE) and bool(now == before)


def _fits(now: Any, before: Any) -> bool:
    """Return whether an item may stand where `before` was: a tensor is read anew at each call."""
    return now is before or (isinstance(now, Tensor) and type(now) is type(before)) or same(now, before)


@record(frozen=True)
class StateSlot:
    """An argument of the Program that is read from a real object: an attribute, or a tensor itself."""

    owner: Any
    name: Any

    @property
    def label(self) -> str | None:
        """The name of the argument, where the tensor has none."""
        return self.name

    def fetch(self) -> Any:
        """Return the tensor or number as it is now."""
        return self.owner if self.name is None else getattr(self.owner, self.name)

    def now(self) -> Any:
        """Return what stands there now, MISSING where that is nothing any more."""
        try:
            return self.fetch()
        except (AttributeError, LookupError, ValueError):
            return MISSING


@record(frozen=True)
class GlobalSlot(StateSlot):
    """An argument that is read from a global variable; the owner is the module's dict."""

    def fetch(self) -> Any:
        """Return the tensor or number as it is now."""
        return self.owner.get(self.name)


@record(frozen=True)
class ItemSlot(StateSlot):
    """An argument that is read from a list or dict; the name is the place in it."""

    @property
    def label(self) -> str:
        """The name of the argument, where the tensor has none."""
        return f"item_{self.name}"

    def fetch(self) -> Any:
        """Return the tensor as it is now."""
        return item_past_methods(self.owner, self.name)


@record(frozen=True)
class ArgumentSlot:
    """The owner of a write that is an argument of the call: a tensor ("leaf"), or a list or dict ("container")."""

    kind: str
    index: int

    def of(self, leaves: Sequence[Any], containers: Sequence[Any]) -> Any:
        """Return the object itself in a call."""
        return leaves[self.index] if self.kind == "leaf" else containers[self.index]


@record(frozen=True)
class Guard:
    """Something that was read while tracing and must be the same for the Program to be right."""

    owner: Any
    name: str
    value: Any

    def now(self) -> Any:
        """Return what stands there now."""
        try:
            return real_attribute(self.owner, self.name)
        except ValueError:  # a cell that has nothing any more
            return MISSING

    def passes(self) -> bool:
        """Return whether it still is."""
        now = self.now()
        return now is self.value or same(now, self.value)

    def change(self) -> str:
        """Say what it was, and is now."""
        before, now = self.value, self.now()
        if isinstance(before, SIMPLE) and isinstance(now, SIMPLE):
            return f"{self} has changed: it was {before!r:.60} and is {now!r:.60}"
        return f"{self} has changed"

    def changed_number(self) -> bool:
        """Return whether a Python number stands there that differs from the one that was read only in its value."""
        return type(self.value) in NUMBERS and type(self.now()) is type(self.value) and not self.passes()

    def __str__(self) -> str:
        if self.name == "cell_contents":
            return "a closure variable"
        if isinstance(self.owner, (type, FunctionType)):
            return f"{self.owner.__qualname__}.{self.name}"
        return f".{self.name} of a {type(self.owner).__name__}"


@record(frozen=True)
class InstanceAttributeGuard(Guard):
    """An attribute that an object has itself, whatever its class has under that name."""

    def now(self) -> Any:
        """Return what stands there now."""
        return attributes(self.owner).get(self.name, MISSING)


@record(frozen=True)
class GlobalGuard(Guard):
    """A global variable that was read; the owner is the module's dict."""

    def now(self) -> Any:
        """Return what stands there now."""
        return self.owner.get(self.name, MISSING)

    def __str__(self) -> str:
        return f"the global '{self.name}'"


@record(frozen=True)
class TypeGuard(Guard):
    """A Python number that is an argument: its type must stay; the value is that type."""

    slot: StateSlot

    def passes(self) -> bool:
        """Return whether it still has this type."""
        return type(self.slot.now()) is self.value

    def changed_number(self) -> bool:
        """Say no: its value is open already."""
        return False


@record(frozen=True)
class ContainerGuard:
    """The content of a container that was read while tracing."""

    owner: Any
    content: Any

    def passes(self) -> bool:
        """Return whether it still is what it was, item by item."""
        now = plain_content(self.owner)
        if len(now) != len(self.content):
            return False
        if is_dict(self.content):
            pairs = zip(now.items(), self.content.items(), strict=True)
            return all((a is b or a == b) and _fits(v, w) for (a, v), (b, w) in pairs)
        if is_set(now):
            return bool(now == self.content)
        return all(_fits(a, b) for a, b in zip(now, self.content, strict=True))

    def changed_number(self) -> bool:
        """Say no: containers are read whole."""
        return False

    def __str__(self) -> str:
        return f"the content of a {type(self.owner).__name__}"


@record(frozen=True)
class ViewGuard:
    """A tensor that was read as a view of another one, which the Program reads as well."""

    slot: StateSlot
    base: Tensor

    @property
    def owner(self) -> Any:
        """What the tensor is read from."""
        return self.slot.owner

    def passes(self) -> bool:
        """Return whether it still is one."""
        now = self.slot.now()
        return isinstance(now, Tensor) and now.view_of is not None and now.view_of.base is self.base

    def changed_number(self) -> bool:
        """Say no: it is a tensor."""
        return False

    def __str__(self) -> str:
        return "what a tensor is a view of"


@record(frozen=True)
class AliasGuard:
    """Two places at which the same tensor was read: the Program has it once."""

    slot: StateSlot
    first: StateSlot

    @property
    def owner(self) -> Any:
        """What the tensor is read from."""
        return self.slot.owner

    def passes(self) -> bool:
        """Return whether it still is the same."""
        return self.slot.now() is self.first.now()

    def changed_number(self) -> bool:
        """Say no: it is a tensor."""
        return False

    def __str__(self) -> str:
        return f"which tensor {self.slot.label} is"


@record(frozen=True)
class ArrayGuard:
    """The elements of a NumPy array that the Program has as a constant."""

    owner: Any
    content: Any

    def passes(self) -> bool:
        """Return whether they still are the same."""
        now, before = self.owner, self.content
        if now.shape != before.shape or now.dtype != before.dtype:
            return False
        return now.tobytes() == before.tobytes()

    def changed_number(self) -> bool:
        """Say no: an array is read whole."""
        return False

    def __str__(self) -> str:
        return "an array from outside"


@record(frozen=True)
class LayerGuard:
    """The sublayers, hooks and names of parameters and buffers that a layer had while tracing."""

    owner: Any
    content: tuple[Any, ...]

    @staticmethod
    def of(layer: Any) -> LayerGuard:
        """Return the guard of a layer as it is now."""
        return LayerGuard(layer, tuple(copy.copy(x) for x in LayerGuard._parts(layer)))

    @staticmethod
    def _parts(layer: Any) -> tuple[Any, ...]:
        state = layer.__dict__
        return (state["_sub_layers"], state["_forward_pre_hooks"], state["_forward_post_hooks"],
                tuple(state["_parameters"]), tuple(state["_buffers"]))  # fmt: skip

    def passes(self) -> bool:
        """Return whether it still has the same."""
        return bool(LayerGuard._parts(self.owner) == self.content)

    def changed_number(self) -> bool:
        """Say no: these are no numbers."""
        return False

    def __str__(self) -> str:
        return f"the sublayers or hooks of a {type(self.owner).__name__}"
