"""Abstract values: what a Python object looks like to a Program.

Values cross the edges of blocks (branches, loop iterations, the Program itself) as `ir.Value`s; Python objects do not.
An abstract value says how an object is made of them, so that one mechanism serves branches, loops, arguments and
results. `join.py` finds the abstract value that fits what either of two fits; `flatten.py` takes objects apart and
makes them again.

Lists keep their identity: a list is a constant here and its content is an entry of the side-effect log with an abstract
value of its own (`Items`, or `ListOf` when the length differs).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from dy2st.errors import StructureError
from dy2st.formatting import Part
from dy2st.ir.location import error_here
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import (
    UNSET,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    VariantType,
)
from dy2st.kinds import is_deque, is_dict, is_list, is_mutable_set, is_tuple, type_of
from dy2st.ops.control.control_flow import join
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract_value import AbstractValue, Join, same_constant
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text
from dy2st.runtime.tracer.values.trace import ValueTrace
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

MOST_ALTERNATIVES = 9
"""Alternatives of one variant, "unset" included."""
MOST_CONSTANTS = 65
"""The same where all of them are constants, which take no room."""


class OfItems(AbstractValue):
    """Base of those that have items."""

    items: tuple[AbstractValue, ...]

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        return self.items

    @property
    def is_taken_apart(self) -> bool:
        return True


@record(frozen=True)
class Const(AbstractValue):
    """One Python object, the same every time."""

    object: Any

    @property
    def number_kind(self) -> str | None:
        return type(self.object).__name__ if type(self.object) in (bool, int, float) else None

    def is_like(self, other: AbstractValue) -> bool:
        return self.number_kind is not None and self.number_kind == other.number_kind

    def packed(self) -> Type:
        simple = self.object is None or type(self.object) in (bool, int, float, str)  # no member of an IntEnum
        return ConstType(self.object) if simple else ConstType(f"<{type(self.object).__name__}>")

    def general(self) -> AbstractValue:
        return self if self.number_kind is None else Number(self.number_kind)

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        if self.number_kind is not None and self.is_like(other):
            return Number(self.number_kind, _choices(self, other))
        lists = [t.object for t in (self, other) if isinstance(t, Const) and is_list(t.object)]
        if len(lists) < 2 or any(map(trace.is_from_outside, lists)):
            return None
        first, second = (content_value(trace, trace.content(x)) for x in lists)
        return NewList(join_inside(first, second))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and same_constant(self.object, other.object)

    def __hash__(self) -> int:
        return 0


@record(frozen=True)
class Unset(AbstractValue):
    """A variable that was not assigned."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unset)

    def __hash__(self) -> int:
        return 1


@record(frozen=True)
class TensorLike(AbstractValue):
    """A tensor of this type."""

    type: TensorType
    stop_gradient: bool

    def types(self) -> list[Type]:
        return [self.type]

    def is_like(self, other: AbstractValue) -> bool:
        if not isinstance(other, TensorLike):
            return False
        return self.type.dtype is other.type.dtype and self.type.rank == other.type.rank

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        if not isinstance(other, TensorLike) or not self.is_like(other):
            return None
        trace.mixed |= self.stop_gradient is not other.stop_gradient
        return TensorLike(join(self.type, other.type), self.stop_gradient and other.stop_gradient)  # type: ignore[arg-type]


@record(frozen=True)
class Number(AbstractValue):
    """A symbolic Python number; `choices` are the values that it can have, where they are known and few."""

    kind: str
    choices: tuple[Any, ...] | None = None

    @property
    def number_kind(self) -> str | None:
        return self.kind

    def types(self) -> list[Type]:
        return [ScalarType(self.kind)]

    def general(self) -> AbstractValue:
        return Number(self.kind)

    def is_like(self, other: AbstractValue) -> bool:
        return self.kind == other.number_kind

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        return Number(self.kind, _choices(self, other)) if self.is_like(other) else None


@record(frozen=True)
class Items(OfItems):
    """A tuple, or the content of a list or dict, item by item. `kind` is the Python type, `keys` those of a dict."""

    kind: type[Any]
    items: tuple[AbstractValue, ...]
    keys: tuple[Any, ...] | None = None

    @property
    def holds_objects(self) -> bool:
        return any(item.holds_objects for item in self.items)

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        return Items(self.kind, children, self.keys)

    def general(self) -> AbstractValue:
        return self.of(tuple(item.general() for item in self.items))

    def is_of_form(self, other: AbstractValue) -> bool:
        """Return whether another one is of the same kind and length, under the same keys."""
        if not isinstance(other, Items) or self.kind is not other.kind or self.keys != other.keys:
            return False
        return len(self.items) == len(other.items)

    def is_like(self, other: AbstractValue) -> bool:
        pairs = zip(self.items, other.children, strict=False)
        return self.is_of_form(other) and all(p == q or p.is_like(q) for p, q in pairs)

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        if self.is_of_form(other):
            return self.of(tuple(map(join_inside, self.items, other.children)))
        if isinstance(other, Items) and self.kind is other.kind is list and self.keys == other.keys:
            return ListOf.around([*self.items, *other.items], join_inside)
        return None


@record(frozen=True)
class NewList(AbstractValue):
    """A list (or dict) that is made anew, with content of this abstract value."""

    content: AbstractValue

    @property
    def kind(self) -> type:
        """List, dict, set or deque: what is made anew."""
        first = self.content.alternatives[1] if isinstance(self.content, OneOf) else self.content
        return first.kind if isinstance(first, Items) else list

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        return (self.content,)

    @property
    def is_taken_apart(self) -> bool:
        return isinstance(self.content, (Items, OneOf))  # no variant is itself an alternative of one

    @property
    def holds_objects(self) -> bool:
        return True

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        return NewList(children[0])

    def general(self) -> AbstractValue:
        return NewList(self.content.general())

    def is_like(self, other: AbstractValue) -> bool:
        return isinstance(other, NewList) and self.kind is other.kind

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        if isinstance(other, Const):
            old = other.object
            if type(old) is not self.kind or trace.is_from_outside(old):
                return None
            return NewList(join_inside(self.content, content_value(trace, trace.content(old))))
        return self.of((join_inside(self.content, other.children[0]),)) if self.is_like(other) else None


@record(frozen=True)
class NewObject(OfItems):
    """An instance of a user's class that is made anew: its attributes, by name."""

    kind: type[Any]
    names: tuple[str, ...]
    items: tuple[AbstractValue, ...]

    @property
    def holds_objects(self) -> bool:
        return True

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        return NewObject(self.kind, self.names, children)

    def is_like(self, other: AbstractValue) -> bool:
        return isinstance(other, NewObject) and self.kind is other.kind

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        if not isinstance(other, NewObject) or not self.is_like(other):
            return None
        mine, theirs = (dict(zip(t.names, t.items, strict=True)) for t in (self, other))
        names = tuple(dict.fromkeys([*mine, *theirs]))
        items = tuple(join_inside(mine.get(n, Unset(n)), theirs.get(n, Unset(n))) for n in names)
        return NewObject(self.kind, names, items)


@record(frozen=True)
class ListOf(AbstractValue):
    """The content of a list of unknown length."""

    element: AbstractValue

    @classmethod
    def around(cls, items: Sequence[AbstractValue], join_inside: Join) -> ListOf:
        """Return the abstract value of a list of which an element is any of these."""
        return cls(reduce(join_inside, items).general())

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        return (self.element,)

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        return ListOf(children[0])

    def types(self) -> list[Type]:
        element = self.element.packed()
        return [ListType(TupleType(()) if isinstance(element, ConstType) else element)]

    def is_like(self, other: AbstractValue) -> bool:
        return isinstance(other, ListOf)

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        if isinstance(other, Items) and other.kind is list:
            return self.around([self.element, *other.items], join_inside)
        return ListOf(join_inside(self.element, other.element)) if isinstance(other, ListOf) else None


@record(frozen=True)
class TextOf(OfItems):
    """A text with values of the run in it: its parts (see `formatting.Part`), and what the values are."""

    parts: tuple[Part, ...]
    items: tuple[AbstractValue, ...]

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        return TextOf(self.parts, children)

    def is_like(self, other: AbstractValue) -> bool:
        same = isinstance(other, TextOf) and self.parts == other.parts
        return same and all(p.is_like(q) for p, q in zip(self.items, other.children, strict=False))

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        return self.of(tuple(map(join_inside, self.items, other.children))) if self.is_like(other) else None


@record(frozen=True)
class OneOf(AbstractValue):
    """A variant; alternative 0 is `Unset`."""

    alternatives: tuple[AbstractValue, ...]

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        return self.alternatives

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        return OneOf(children)

    @property
    def holds_objects(self) -> bool:
        return any(a.holds_objects for a in self.alternatives)

    def types(self) -> list[Type]:
        return [VariantType((UNSET, *(a.packed() for a in self.alternatives[1:])))]


def abstract_value_of(trace: ValueTrace, x: Any) -> AbstractValue:
    """Return the abstract value that fits `x` exactly."""
    if isinstance(x, Tensor):
        return TensorLike(tensor_type(trace.value_of(x)), trace.stops(x))
    if isinstance(x, Scalar):
        return Number(x.kind, x.choices)
    if isinstance(x, Variant):
        return OneOf(x.alternatives)
    if isinstance(x, SymbolicList):
        return ListOf(x.element)
    if isinstance(x, UnboundLocal):
        return Unset(x.name)
    if is_tuple(x):
        refuse_attributes(trace, x)
        return Items(type(x), tuple(abstract_value_of(trace, i) for i in x))
    if isinstance(x, Text):
        return TextOf(x.template, tuple(map(_of_value, x.operands)))
    return Const(x)


def refuse_attributes(trace: ValueTrace, x: tuple[Any, ...]) -> None:
    """Refuse a tuple that has attributes beside its items: it would be made again without them."""
    if hasattr(x, "__dict__") and trace.attributes_of(x):
        what = f"a {type(x).__name__} has attributes beside its items, and is made again of these alone"
        raise error_here(StructureError, what, "keep them among its items")


def _of_value(value: Value) -> AbstractValue:
    """Return the abstract value of a value in a text: a tensor or a number."""
    if isinstance(value.type, TensorType):
        return TensorLike(value.type, True)
    if not isinstance(value.type, ScalarType):
        raise StructureError("a text names something that is one of several things, and is itself one of several texts")
    return Number(value.type.kind)


def content_value(trace: ValueTrace, content: Any) -> AbstractValue:
    """Return the abstract value of the content of a list or dict (an entry of the side-effect log)."""
    if is_list(content):
        return Items(list, tuple(abstract_value_of(trace, i) for i in content))
    if is_dict(content):
        return Items(dict, tuple(abstract_value_of(trace, i) for i in content.values()), tuple(content))
    if is_mutable_set(content) or is_deque(content):
        return Items(type_of(content), tuple(abstract_value_of(trace, i) for i in content))
    return abstract_value_of(trace, content)


def _choices(a: AbstractValue, b: AbstractValue) -> tuple[Any, ...] | None:
    """Return the values that a number which is one of two can have, None when they are too many or not known."""
    known: list[Any] = []
    for t in (a, b):
        found = (t.object,) if isinstance(t, Const) else t.choices if isinstance(t, Number) else None
        if found is None:
            return None
        known += [x for x in found if not any(same_constant(x, k) for k in known)]
    return tuple(known) if len(known) < MOST_ALTERNATIVES else None
