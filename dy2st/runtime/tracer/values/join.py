"""The template that fits what either of two templates fits: a variant where nothing simpler does.

meet(a, b, trace)          that template
place(a, variant)          the number of the alternative that fits `a`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.types import (
    TensorType,
    Type,
    matches,
)
from dy2st.ops.control.control_flow import join
from dy2st.runtime.tracer.values.abstract import (
    MOST_ALTERNATIVES,
    MOST_CONSTANTS,
    Const,
    Items,
    ListOf,
    NewList,
    NewObject,
    Number,
    OneOf,
    Template,
    TensorLike,
    TextOf,
    Unset,
    content_template,
    kind_of_content,
    number_kind,
    same_constant,
)
from dy2st.runtime.tracer.values.trace import ValueTrace


def meet(a: Template, b: Template, trace: ValueTrace) -> Template:
    """Return the template that fits what either fits."""
    if a == b:
        return a
    if isinstance(a, TensorLike) and isinstance(b, TensorLike) and _like(a.type, b.type):
        trace.mixed |= a.stop_gradient is not b.stop_gradient
        return TensorLike(join(a.type, b.type), a.stop_gradient and b.stop_gradient)  # type: ignore[arg-type]
    kind = number_kind(a)
    if kind is not None and kind == number_kind(b):
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
        if isinstance(one, NewList) and isinstance(other, Const) and _meets_by_value(one, other.object, trace):
            return NewList(meet(one.content, content_template(trace, trace.content(other.object)), trace))
    if isinstance(a, NewList) and isinstance(b, NewList) and kind_of_content(a) is kind_of_content(b):
        return NewList(meet(a.content, b.content, trace))
    if isinstance(a, NewObject) and isinstance(b, NewObject) and a.kind is b.kind:
        return _meet_objects(a, b, trace)
    if isinstance(a, TextOf) and isinstance(b, TextOf) and alike(a, b):
        return TextOf(a.parts, tuple(meet(p, q, trace) for p, q in zip(a.items, b.items, strict=True)))
    if isinstance(a, Const) and isinstance(b, Const) and _are_own_lists(trace, a.object, b.object):
        first, second = (content_template(trace, trace.content(c.object)) for c in (a, b))
        return NewList(meet(first, second, trace))
    return _one_of(a, b, trace)


def _meets_by_value(new: NewList, old: Any, trace: ValueTrace) -> bool:
    """Say whether a container that was there before is of the kind of one that is made anew, and the trace's own."""
    return type(old) is kind_of_content(new) and not trace.is_from_outside(old)


def _are_own_lists(trace: ValueTrace, *things: Any) -> bool:
    return all(isinstance(x, list) and not trace.is_from_outside(x) for x in things)


def _like(a: Type, b: Type) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    return a.dtype is b.dtype and a.rank == b.rank


def _choices(a: Template, b: Template) -> tuple[Any, ...] | None:
    """Return the values that a number which is one of two can have, None when they are too many or not known."""
    known: list[Any] = []
    for t in (a, b):
        found = (t.object,) if isinstance(t, Const) else t.choices if isinstance(t, Number) else None
        if found is None:
            return None
        known += [x for x in found if not any(same_constant(x, k) for k in known)]
    return tuple(known) if len(known) < MOST_ALTERNATIVES else None


def _list_of(items: Sequence[Template], trace: ValueTrace) -> Template:
    element = items[0]
    for item in items[1:]:
        element = meet(element, item, trace)
    return ListOf(general(element))


def general(t: Template) -> Template:
    """Return a template for elements of a list: constants that are numbers become numbers."""
    kind = number_kind(t)
    if kind is not None:
        return Number(kind)
    if isinstance(t, Items):
        return Items(t.kind, tuple(map(general, t.items)), t.keys)
    return NewList(general(t.content)) if isinstance(t, NewList) else t


def _meet_objects(a: NewObject, b: NewObject, trace: ValueTrace) -> Template:
    mine, theirs = dict(zip(a.names, a.items, strict=True)), dict(zip(b.names, b.items, strict=True))
    names = tuple(dict.fromkeys([*mine, *theirs]))
    items = tuple(meet(mine.get(n, Unset(n)), theirs.get(n, Unset(n)), trace) for n in names)
    return NewObject(a.kind, names, items)


def _one_of(a: Template, b: Template, trace: ValueTrace) -> Template:
    found: list[Template] = [Unset("")]
    for one in (a, b):
        for alternative in one.alternatives if isinstance(one, OneOf) else (one,):
            _add_alternative(found, alternative, trace)
    most = MOST_CONSTANTS if all(isinstance(t, (Unset, Const)) for t in found) else MOST_ALTERNATIVES
    if len(found) > most:
        raise StructureError(f"a value would be one of more than {most - 1} different things")
    unset = [t.alternatives[0] if isinstance(t, OneOf) else t for t in (a, b)]
    names = [t.name for t in unset if isinstance(t, Unset) and t.name]
    found[0] = Unset(names[0] if names else "")
    return OneOf(tuple(found))


def _add_alternative(found: list[Template], alternative: Template, trace: ValueTrace) -> None:
    if isinstance(alternative, Unset):
        return
    for i, known in enumerate(found):
        if known == alternative:
            return
        if i and alike(known, alternative):
            found[i] = meet(known, alternative, trace)
            return
    found.append(alternative)


def alike(a: Template, b: Template) -> bool:
    """Say whether two alternatives meet without a variant."""
    if isinstance(a, TensorLike) and isinstance(b, TensorLike):
        return a.type.dtype is b.type.dtype and a.type.rank == b.type.rank
    if number_kind(a) is not None:
        return number_kind(a) == number_kind(b)
    if isinstance(a, NewList) and isinstance(b, NewList):
        return kind_of_content(a) is kind_of_content(b)
    if isinstance(a, NewObject) and isinstance(b, NewObject):
        return a.kind is b.kind
    if isinstance(a, Items) and isinstance(b, Items):
        same = a.kind is b.kind and a.keys == b.keys and len(a.items) == len(b.items)
        return same and all(p == q or alike(p, q) for p, q in zip(a.items, b.items, strict=True))
    if isinstance(a, TextOf) and isinstance(b, TextOf):
        return a.parts == b.parts and all(map(alike, a.items, b.items))
    return isinstance(a, ListOf) and isinstance(b, ListOf)


def same_form(a: Type, b: Type) -> bool:
    """Say whether values of two types are made alike: they differ in extents at most."""
    return matches(a, b) or matches(b, a)


def place(a: Template, t: OneOf) -> int:
    """Return the number of the alternative of `t` that fits `a`."""
    if isinstance(a, Unset):
        return 0
    for i, alternative in enumerate(t.alternatives):
        if i and (alternative == a or alike(alternative, a) or _fits_items(alternative, a)):
            return i
    raise StructureError("a value is none of the alternatives that it was seen as")


def _fits(wanted: Template, found: Template) -> bool:
    if isinstance(wanted, NewList) and isinstance(found, Const):
        return type(found.object) is kind_of_content(wanted)
    return wanted == found or alike(wanted, found) or isinstance(wanted, OneOf) or _fits_items(wanted, found)


def _fits_items(alternative: Template, a: Template) -> bool:
    return (
        isinstance(alternative, Items)
        and isinstance(a, Items)
        and a.kind is alternative.kind
        and a.keys == alternative.keys
        and len(a.items) == len(alternative.items)
        and all(map(_fits, alternative.items, a.items))
    )
