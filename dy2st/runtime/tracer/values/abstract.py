"""Templates: what a Python object looks like to a Program.

Values cross the edges of blocks (branches, loop turns, the Program itself) as `ir.Value`s; Python objects do not. A
template says how an object is made of them, so that one mechanism serves branches, loops, arguments and results.
`join.py` finds the template that fits what either of two fits; `flatten.py` takes objects apart and makes them
again.

Lists keep their identity: a list is a constant here and its content is an entry of the write log with a template of
its own (`Items`, or `ListOf` when the length differs).
"""

from __future__ import annotations

import operator
from collections import deque
from types import FunctionType
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
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text
from dy2st.runtime.tracer.values.trace import ValueTrace
from dy2st.runtime.tracer.values.unbound import Undefined
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

MOST_ALTERNATIVES = 9
"""Alternatives of one variant, "unset" included."""
MOST_CONSTANTS = 65
"""The same where all of them are constants, which take no room."""


class Template:
    """Base of the templates; they are immutable and compared by value."""


@record(frozen=True)
class Made(Template):
    """What leaves a Program and is met again there: the object with this number."""

    number: int
    content: Template


@record(frozen=True)
class Again(Template):
    """The object of this type that was made under this number."""

    number: int
    kind: str


@record(frozen=True)
class Given(Template):
    """The list, dict or object of this type that is this container among the arguments of a call."""

    index: int
    kind: str


@record(frozen=True)
class After(Template):
    """Something that may be one of these objects, which are made before it."""

    objects: tuple[Any, ...]
    items: tuple[Template, ...]
    then: Template


@record(frozen=True)
class Const(Template):
    """One Python object, the same every time."""

    object: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and same_constant(self.object, other.object)

    def __hash__(self) -> int:
        return 0


@record(frozen=True)
class Unset(Template):
    """A variable that was not assigned."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unset)

    def __hash__(self) -> int:
        return 1


@record(frozen=True)
class TensorLike(Template):
    """A tensor of this type."""

    type: TensorType
    stop_gradient: bool


@record(frozen=True)
class Number(Template):
    """A symbolic Python number; `choices` are the values that it can have, where they are known and few."""

    kind: str
    choices: tuple[Any, ...] | None = None


@record(frozen=True)
class Items(Template):
    """A tuple, or the content of a list or dict, item by item. `kind` is the Python type, `keys` those of a dict."""

    kind: type
    items: tuple[Template, ...]
    keys: tuple[Any, ...] | None = None


@record(frozen=True)
class NewList(Template):
    """A list (or dict) that is made anew, with content of this template."""

    content: Template


@record(frozen=True)
class NewObject(Template):
    """An instance of a user's class that is made anew: its attributes, by name."""

    kind: type[Any]
    names: tuple[str, ...]
    items: tuple[Template, ...]


@record(frozen=True)
class ListOf(Template):
    """The content of a list of unknown length."""

    element: Template


@record(frozen=True)
class TextOf(Template):
    """A text with values of the run in it: its parts (see `formatting.Part`), and what the values are."""

    parts: tuple[Part, ...]
    items: tuple[Template, ...]


@record(frozen=True)
class OneOf(Template):
    """A variant; alternative 0 is `Unset`."""

    alternatives: tuple[Template, ...]


def same_constant(a: Any, b: Any) -> bool:
    """Say whether two Python objects are the same constant: identical, or equal immutables of one type."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, FunctionType):
        return _same_function(a, b)
    if isinstance(a, float):
        return a == b and str(a) == str(b)
    if isinstance(a, (bool, int, str, bytes, complex, range, frozenset)):
        return a == b
    return type(a).__module__.startswith("dy2st.dtypes") and a is b


def _same_function(a: FunctionType, b: FunctionType) -> bool:
    """Say whether a `def` that was run twice made two functions: one code, the same variables, no attributes."""
    mine, theirs = (
        (f.__code__, f.__globals__, *(f.__closure__ or ()), *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())
        for f in (a, b)
    )
    same = len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))
    return same and not (a.__dict__ or b.__dict__)


def template_of(trace: ValueTrace, x: Any) -> Template:
    """Return the template that fits `x` exactly."""
    if isinstance(x, Tensor):
        return TensorLike(tensor_type(trace.value_of(x)), trace.stops(x))
    if isinstance(x, Scalar):
        return Number(x.kind, x.choices)
    if isinstance(x, Variant):
        return OneOf(x.alternatives)
    if isinstance(x, SymbolicList):
        return ListOf(x.element)
    if isinstance(x, Undefined):
        return Unset(x.name)
    if isinstance(x, tuple):
        refuse_attributes(trace, x)
        return Items(type(x), tuple(template_of(trace, i) for i in x))
    if isinstance(x, Text):
        return TextOf(x.template, tuple(map(_of_value, x.operands)))
    return Const(x)


def refuse_attributes(trace: ValueTrace, x: tuple[Any, ...]) -> None:
    """Refuse a tuple that has attributes beside its items: it would be made again without them."""
    if hasattr(x, "__dict__") and trace.attributes_of(x):
        what = f"a {type(x).__name__} has attributes beside its items, and is made again of these alone"
        raise error_here(StructureError, what, "keep them among its items")


def _of_value(value: Value) -> Template:
    """Return the template of a value in a text: a tensor or a number."""
    if isinstance(value.type, TensorType):
        return TensorLike(value.type, True)
    if not isinstance(value.type, ScalarType):
        raise StructureError("a text names something that is one of several things, and is itself one of several texts")
    return Number(value.type.kind)


def content_template(trace: ValueTrace, content: Any) -> Template:
    """Return the template of the content of a list or dict (an entry of the write log)."""
    if isinstance(content, list):
        return Items(list, tuple(template_of(trace, i) for i in content))
    if isinstance(content, dict):
        return Items(dict, tuple(template_of(trace, i) for i in content.values()), tuple(content))
    if isinstance(content, (set, deque)):
        return Items(type(content), tuple(template_of(trace, i) for i in content))
    return template_of(trace, content)


def types_of(t: Template) -> list[Type]:
    """Return the types of the values that an object of this template is made of."""
    if isinstance(t, (Const, Unset, Again, Given)):
        return []
    if isinstance(t, Made):
        return types_of(t.content)
    if isinstance(t, After):
        return [x for i in (*t.items, t.then) for x in types_of(i)]
    if isinstance(t, TensorLike):
        return [t.type]
    if isinstance(t, Number):
        return [ScalarType(t.kind)]
    if isinstance(t, (Items, NewObject, TextOf)):
        return [x for i in t.items for x in types_of(i)]
    if isinstance(t, NewList):
        return types_of(t.content)
    if isinstance(t, ListOf):
        return [ListType(TupleType(()) if isinstance(t.element, (Const, Again, Given)) else packed(t.element))]
    assert isinstance(t, OneOf)
    return [VariantType((UNSET, *(packed(a) for a in t.alternatives[1:])))]


def packed(t: Template) -> Type:
    """Return the one type of an alternative or a list element."""
    if isinstance(t, (Again, Given)):
        return ConstType(f"<{t.kind}>")
    if isinstance(t, Const):
        simple = t.object is None or isinstance(t.object, (bool, int, float, str))
        return ConstType(t.object) if simple else ConstType(f"<{type(t.object).__name__}>")
    types = types_of(t)
    return types[0] if len(types) == 1 and not is_taken_apart(t) else TupleType(tuple(types))


def is_taken_apart(t: Template) -> bool:
    """Say whether an object of this template is a tuple value inside of a variant or list, even if it has one part."""
    if isinstance(t, NewList):
        return isinstance(t.content, (Items, OneOf))  # no variant is itself an alternative of one
    return isinstance(t, (Items, NewObject, TextOf))


def holds_objects(t: Template) -> bool:
    """Say whether an object of this template is, or holds, a container or object that is made anew."""
    if isinstance(t, (NewList, NewObject)):
        return True
    return isinstance(t, (Items, OneOf)) and any(
        map(holds_objects, t.items if isinstance(t, Items) else t.alternatives)
    )


def kind_of_content(t: NewList) -> type:
    """Return list, dict, set or deque: what is made anew."""
    first = t.content.alternatives[1] if isinstance(t.content, OneOf) else t.content
    return first.kind if isinstance(first, Items) else list


def number_kind(t: Template) -> str | None:
    """Return "bool", "int" or "float" where every object of this template is such a number, else None."""
    if isinstance(t, Number):
        return t.kind
    if isinstance(t, Const) and type(t.object) in (bool, int, float):
        return type(t.object).__name__
    return None
