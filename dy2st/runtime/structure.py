"""Templates: what a Python object looks like to a Program.

Values cross the edges of blocks (branches, loop turns, the Program itself) as `ir.Value`s; Python objects do not. A
template says how an object is made of them, so that one mechanism serves branches, loops, arguments and results:

    template_of(trace, x)      the template that fits `x` exactly; what is no tensor or symbolic number is a constant
    meet(a, b)                 the template that fits what either fits: a variant where nothing simpler does
    encode(trace, x, t)        the values of `x` seen as `t`, emitted where the builder stands
    decode(trace, values, t)   the object again

Lists keep their identity: a list is a constant here and its content is an entry of the write log with a template of
its own (`Items`, or `ListOf` when the length differs).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.program import Value
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
from dy2st.ops.control import join
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.tensor import Tensor
from dy2st.runtime.undefined import Undefined
from dy2st.runtime.variant import SymbolicList, Variant

MOST_ALTERNATIVES = 9
"""Alternatives of one variant, "unset" included."""


class Template:
    """Base of the templates; they are immutable and compared by value."""


@dataclass(frozen=True)
class Const(Template):
    """One Python object, the same every time."""

    object: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and same_constant(self.object, other.object)

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True)
class Unset(Template):
    """A variable that was not assigned."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unset)

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class TensorLike(Template):
    """A tensor of this type."""

    type: TensorType
    stop_gradient: bool


@dataclass(frozen=True)
class Number(Template):
    """A symbolic Python number; `choices` are the values that it can have, where they are known and few."""

    kind: str
    choices: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Items(Template):
    """A tuple, or the content of a list or dict, item by item. `kind` is the Python type, `keys` those of a dict."""

    kind: type
    items: tuple[Template, ...]
    keys: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class NewList(Template):
    """A list (or dict) that is made anew, with content of this template."""

    content: Template


@dataclass(frozen=True)
class NewObject(Template):
    """An instance of a user's class that is made anew: its attributes, by name."""

    kind: type[Any]
    names: tuple[str, ...]
    items: tuple[Template, ...]


@dataclass(frozen=True)
class ListOf(Template):
    """The content of a list of unknown length."""

    element: Template


@dataclass(frozen=True)
class OneOf(Template):
    """A variant; alternative 0 is `Unset`."""

    alternatives: tuple[Template, ...]


def same_constant(a: Any, b: Any) -> bool:
    """Say whether two Python objects are the same constant: identical, or equal immutables of one type."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b and str(a) == str(b)
    if isinstance(a, (bool, int, str, bytes, complex, range, frozenset)):
        return a == b
    return type(a).__module__.startswith("dy2st.dtypes") and a is b


# ---- template of an object -------------------------------------------------------------------------------------------


def template_of(trace: Any, x: Any) -> Template:
    """Return the template that fits `x` exactly."""
    if isinstance(x, Tensor):
        value = trace.value_of(x)
        return TensorLike(value.type, trace.stops(x))
    if isinstance(x, Scalar):
        return Number(x.kind, x.choices)
    if isinstance(x, Variant):
        return OneOf(x.alternatives)
    if isinstance(x, SymbolicList):
        return ListOf(x.element)
    if isinstance(x, Undefined):
        return Unset(x.name)
    if isinstance(x, tuple):
        return Items(type(x), tuple(template_of(trace, i) for i in x))
    return Const(x)


def content_template(trace: Any, content: Any) -> Template:
    """Return the template of the content of a list or dict (an entry of the write log)."""
    if isinstance(content, list):
        return Items(list, tuple(template_of(trace, i) for i in content))
    if isinstance(content, dict):
        return Items(dict, tuple(template_of(trace, i) for i in content.values()), tuple(content))
    if isinstance(content, (set, deque)):
        return Items(type(content), tuple(template_of(trace, i) for i in content))
    return template_of(trace, content)


# ---- meeting ---------------------------------------------------------------------------------------------------------


def meet(a: Template, b: Template, trace: Any) -> Template:
    """Return the template that fits what either fits."""
    if a == b:
        return a
    if isinstance(a, TensorLike) and isinstance(b, TensorLike) and _like(a.type, b.type):
        return TensorLike(join(a.type, b.type), a.stop_gradient and b.stop_gradient)  # type: ignore[arg-type]
    kind = _number_kind(a)
    if kind is not None and kind == _number_kind(b):
        return Number(kind, _choices(a, b))
    if isinstance(a, Items) and isinstance(b, Items) and a.kind is b.kind and a.keys == b.keys:
        if len(a.items) == len(b.items):
            return Items(a.kind, tuple(meet(p, q, trace) for p, q in zip(a.items, b.items, strict=True)), a.keys)
        if a.kind is list:
            return _list_of([*a.items, *b.items], trace)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, ListOf) and isinstance(other, Items) and other.kind is list:
            return _list_of([one.element, *other.items], trace)
        if isinstance(one, ListOf) and isinstance(other, ListOf):
            return ListOf(meet(one.element, other.element, trace))
        if isinstance(one, NewList) and isinstance(other, Const) and type(other.object) is _kind_of_content(one):
            return NewList(meet(one.content, content_template(trace, trace.content(other.object)), trace))
    if isinstance(a, NewList) and isinstance(b, NewList) and _kind_of_content(a) is _kind_of_content(b):
        return NewList(meet(a.content, b.content, trace))
    if isinstance(a, NewObject) and isinstance(b, NewObject) and a.kind is b.kind:
        return _meet_objects(a, b, trace)
    if isinstance(a, Const) and isinstance(b, Const) and isinstance(a.object, list) and isinstance(b.object, list):
        first, second = (content_template(trace, trace.content(c.object)) for c in (a, b))
        return NewList(meet(first, second, trace))
    return _one_of(a, b, trace)


def _like(a: Type, b: Type) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    return a.dtype is b.dtype and a.rank == b.rank


def _number_kind(t: Template) -> str | None:
    if isinstance(t, Number):
        return t.kind
    if isinstance(t, Const) and type(t.object) in (bool, int, float):
        return type(t.object).__name__
    return None


def _choices(a: Template, b: Template) -> tuple[Any, ...] | None:
    """Return the values that a number which is one of two can have, None when they are too many or not known."""
    known: list[Any] = []
    for t in (a, b):
        found = (t.object,) if isinstance(t, Const) else t.choices if isinstance(t, Number) else None
        if found is None:
            return None
        known += [x for x in found if not any(same_constant(x, k) for k in known)]
    return tuple(known) if len(known) < MOST_ALTERNATIVES else None


def _list_of(items: Sequence[Template], trace: Any) -> Template:
    element = items[0]
    for item in items[1:]:
        element = meet(element, item, trace)
    return ListOf(general(element))


def general(t: Template) -> Template:
    """Return a template for elements of a list: constants that are numbers become numbers."""
    kind = _number_kind(t)
    if kind is not None:
        return Number(kind)
    if isinstance(t, Items):
        return Items(t.kind, tuple(map(general, t.items)), t.keys)
    return NewList(general(t.content)) if isinstance(t, NewList) else t


def _meet_objects(a: NewObject, b: NewObject, trace: Any) -> Template:
    mine, theirs = dict(zip(a.names, a.items, strict=True)), dict(zip(b.names, b.items, strict=True))
    names = tuple(dict.fromkeys([*mine, *theirs]))
    items = tuple(meet(mine.get(n, Unset(n)), theirs.get(n, Unset(n)), trace) for n in names)
    return NewObject(a.kind, names, items)


def _kind_of_content(t: NewList) -> type:
    first = t.content.alternatives[1] if isinstance(t.content, OneOf) else t.content
    return first.kind if isinstance(first, Items) else list


def _one_of(a: Template, b: Template, trace: Any) -> Template:
    found: list[Template] = [Unset("")]
    for one in (a, b):
        for alternative in one.alternatives if isinstance(one, OneOf) else (one,):
            _add_alternative(found, alternative, trace)
    if len(found) > MOST_ALTERNATIVES:
        raise StructureError(f"a value would be one of more than {MOST_ALTERNATIVES - 1} different things")
    names = [t.name for t in (a, b) if isinstance(t, Unset)]
    found[0] = Unset(names[0] if names else "")
    return OneOf(tuple(found))


def _add_alternative(found: list[Template], alternative: Template, trace: Any) -> None:
    if isinstance(alternative, Unset):
        return
    for i, known in enumerate(found):
        if known == alternative:
            return
        if i and _alike(known, alternative):
            found[i] = meet(known, alternative, trace)
            return
    found.append(alternative)


def _alike(a: Template, b: Template) -> bool:
    """Say whether two alternatives meet without a variant."""
    if isinstance(a, TensorLike) and isinstance(b, TensorLike):
        return a.type.dtype is b.type.dtype and a.type.rank == b.type.rank
    if _number_kind(a) is not None:
        return _number_kind(a) == _number_kind(b)
    if isinstance(a, NewList) and isinstance(b, NewList):
        return _kind_of_content(a) is _kind_of_content(b)
    if isinstance(a, NewObject) and isinstance(b, NewObject):
        return a.kind is b.kind
    return isinstance(a, ListOf) and isinstance(b, ListOf)


# ---- types, values, objects ------------------------------------------------------------------------------------------


def types_of(t: Template) -> list[Type]:
    """Return the types of the values that an object of this template is made of."""
    if isinstance(t, (Const, Unset)):
        return []
    if isinstance(t, TensorLike):
        return [t.type]
    if isinstance(t, Number):
        return [ScalarType(t.kind)]
    if isinstance(t, (Items, NewObject)):
        return [x for i in t.items for x in types_of(i)]
    if isinstance(t, NewList):
        return types_of(t.content)
    if isinstance(t, ListOf):
        return [ListType(_packed(t.element))]
    assert isinstance(t, OneOf)
    return [VariantType((UNSET, *(_packed(a) for a in t.alternatives[1:])))]


def _packed(t: Template) -> Type:
    """Return the one type of an alternative or a list element."""
    if isinstance(t, Const):
        simple = t.object is None or isinstance(t.object, (bool, int, float, str))
        return ConstType(t.object) if simple else ConstType(f"<{type(t.object).__name__}>")
    types = types_of(t)
    return types[0] if len(types) == 1 and not _is_taken_apart(t) else TupleType(tuple(types))


def _is_taken_apart(t: Template) -> bool:
    """Say whether an object of this template is a tuple value inside of a variant or list, even if it has one part."""
    if isinstance(t, NewList):
        return isinstance(t.content, Items)
    return isinstance(t, (Items, NewObject))


def encode(trace: Any, x: Any, t: Template) -> list[Value]:
    """Return the values of `x` seen as `t`, emitted where the builder stands."""
    b = trace.builder
    if isinstance(t, (Const, Unset)):
        return []
    if isinstance(t, TensorLike):
        return [b.use(trace.value_of(x))]
    if isinstance(t, Number):
        return [b.use(trace.scalar(x))]
    if isinstance(t, Items):
        x = trace.content(x)
        parts = [x.get(k, Undefined("")) for k in t.keys] if t.keys is not None else list(x)
        return [v for part, item in zip(parts, t.items, strict=True) for v in encode(trace, part, item)]
    if isinstance(t, NewList):
        return encode(trace, trace.content(x), t.content)
    if isinstance(t, NewObject):
        found = trace.attributes_of(x)
        parts = [found.get(n, Undefined(n)) for n in t.names]
        return [v for part, item in zip(parts, t.items, strict=True) for v in encode(trace, part, item)]
    if isinstance(t, ListOf):
        return [_encode_list(trace, trace.content(x), t)]
    assert isinstance(t, OneOf)
    return [_encode_variant(trace, x, t)]


def _encode_list(trace: Any, x: Any, t: ListOf) -> Value:
    kind = trace.builder.named(types_of(t)[0])
    if isinstance(x, SymbolicList):
        if x.element == t.element:
            return trace.builder.use(x.value)
        raise StructureError("the elements of a list change their type inside of a loop or branch")
    items = [pack(trace, item, t.element) for item in x]
    return trace.builder.emit("list_new", items, {"type": kind})


def pack(trace: Any, x: Any, t: Template) -> Value:
    """Return one value for an element of a list."""
    values = encode(trace, x, t)
    if len(values) == 1 and not _is_taken_apart(t):
        return values[0]
    return trace.builder.emit("tuple_new", values)


def _encode_variant(trace: Any, x: Any, t: OneOf) -> Value:
    b, kind = trace.builder, trace.builder.named(types_of(t)[0])
    x = x if isinstance(x, Variant) or not isinstance(trace.content(x), Variant) else trace.content(x)
    if isinstance(x, Variant):
        if x.alternatives == t.alternatives:
            return b.use(x.value)
        tags = tuple(place(a, t) for a in x.alternatives)
        return b.emit("variant_cast", [x.value], {"type": kind, "tags": tags})
    tag = _place_of(trace, x, t)
    values = encode(trace, x, t.alternatives[tag])
    if _is_taken_apart(t.alternatives[tag]):
        values = [b.emit("tuple_new", values)]
    return b.emit("variant_new", values, {"type": kind, "tag": tag})


def _place_of(trace: Any, x: Any, t: OneOf) -> int:
    """Return the number of the alternative of `t` that fits an object."""
    for i, one in enumerate(t.alternatives):  # what a branch made is known by its type alone
        if isinstance(one, NewObject) and type(x) is one.kind:
            return i
        if isinstance(one, NewList) and type(x) is _kind_of_content(one):
            exact = [k for k, c in enumerate(t.alternatives) if isinstance(c, Const) and c.object is x]
            return exact[0] if exact else i
    kinds = [a.kind for a in t.alternatives if isinstance(a, Items)]
    is_content = not isinstance(x, tuple) and any(isinstance(x, kind) for kind in kinds)
    return place(content_template(trace, x) if is_content else template_of(trace, x), t)


def place(a: Template, t: OneOf) -> int:
    """Return the number of the alternative of `t` that fits `a`."""
    if isinstance(a, Unset):
        return 0
    for i, alternative in enumerate(t.alternatives):
        if i and (alternative == a or _alike(alternative, a) or _fits_items(alternative, a)):
            return i
    raise StructureError("a value is none of the alternatives that it was seen as")


def _fits(wanted: Template, found: Template) -> bool:
    if isinstance(wanted, NewList) and isinstance(found, Const):
        return type(found.object) is _kind_of_content(wanted)
    return wanted == found or _alike(wanted, found) or isinstance(wanted, OneOf)


def _fits_items(alternative: Template, a: Template) -> bool:
    return (
        isinstance(alternative, Items)
        and isinstance(a, Items)
        and a.kind is alternative.kind
        and a.keys == alternative.keys
        and len(a.items) == len(alternative.items)
        and all(map(_fits, alternative.items, a.items))
    )


def decode(trace: Any, values: Iterator[Value], t: Template) -> Any:
    """Return the object that `values` make up; takes from `values` what it needs."""
    if isinstance(t, Const):
        return t.object
    if isinstance(t, Unset):
        return Undefined(t.name)
    if isinstance(t, TensorLike):
        return trace.wrap(next(values), t.stop_gradient)
    if isinstance(t, Number):
        return Scalar(next(values), t.choices)
    if isinstance(t, Items):
        return _rebuild(t, [decode(trace, values, i) for i in t.items])
    if isinstance(t, NewList):
        content = decode(trace, values, t.content)
        fresh: Any = _kind_of_content(t)()
        trace.store(fresh, content)
        return fresh
    if isinstance(t, NewObject):
        return trace.new_object(t.kind, dict(zip(t.names, [decode(trace, values, i) for i in t.items], strict=True)))
    if isinstance(t, ListOf):
        return SymbolicList(next(values), t.element)
    assert isinstance(t, OneOf)
    return Variant(next(values), t.alternatives)


def _rebuild(t: Items, items: list[Any]) -> Any:
    if t.keys is not None:
        return {k: v for k, v in zip(t.keys, items, strict=True) if not isinstance(v, Undefined)}
    if t.kind is tuple or t.kind is list:
        return t.kind(items)
    return t.kind(*items) if hasattr(t.kind, "_fields") else t.kind(items)


def unpack(trace: Any, value: Value, t: Template) -> Any:
    """Return the object of a list element or of a variant's payload."""
    if isinstance(value.type, TupleType):
        parts = trace.builder.operation("tuple_get", [value]).results
        return decode(trace, iter(parts), t)
    return decode(trace, iter([value]), t)
