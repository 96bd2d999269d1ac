"""The abstract value that fits what either of two abstract values fits: a variant where nothing simpler does.

meet(a, b, trace)          that abstract value
place(a, variant)          the number of the alternative that fits `a`
"""

from __future__ import annotations

from functools import partial

from dy2st.errors import StructureError
from dy2st.ir.types import (
    Type,
    matches,
)
from dy2st.runtime.tracer.values.abstract import (
    MOST_ALTERNATIVES,
    MOST_CONSTANTS,
    AbstractValue,
    Const,
    Items,
    NewList,
    NewObject,
    OneOf,
    Unset,
)
from dy2st.runtime.tracer.values.trace import ValueTrace


def join_values(a: AbstractValue, b: AbstractValue, trace: ValueTrace) -> AbstractValue:
    """Return the abstract value that fits what either fits."""
    if a == b:
        return a
    inside = partial(join_values, trace=trace)
    found = a.joined(b, trace, inside)
    if found is None:
        found = b.joined(a, trace, inside)
    return _one_of(a, b, trace) if found is None else found


def _one_of(a: AbstractValue, b: AbstractValue, trace: ValueTrace) -> AbstractValue:
    found: list[AbstractValue] = [Unset("")]
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


def _add_alternative(found: list[AbstractValue], alternative: AbstractValue, trace: ValueTrace) -> None:
    if isinstance(alternative, Unset):
        return
    for i, known in enumerate(found):
        if known == alternative:
            return
        if i and known.is_like(alternative):
            found[i] = join_values(known, alternative, trace)
            return
    found.append(alternative)


def same_form(a: Type, b: Type) -> bool:
    """Return whether values of two types are made alike: they differ in extents at most."""
    return matches(a, b) or matches(b, a)


def place(a: AbstractValue, t: OneOf) -> int:
    """Return the number of the alternative of `t` that fits `a`."""
    if isinstance(a, Unset):
        return 0
    for i, alternative in enumerate(t.alternatives):
        if i and (alternative == a or alternative.is_like(a) or _fits_items(alternative, a)):
            return i
    raise StructureError("a value is none of the alternatives that it was seen as")


def _fits(wanted: AbstractValue, found: AbstractValue) -> bool:
    if isinstance(wanted, (NewList, NewObject)) and isinstance(found, Const):
        return type(found.object) is wanted.kind
    return wanted == found or wanted.is_like(found) or isinstance(wanted, OneOf) or _fits_items(wanted, found)


def _fits_items(alternative: AbstractValue, a: AbstractValue) -> bool:
    if not isinstance(alternative, Items) or not alternative.is_of_form(a):
        return False
    return all(map(_fits, alternative.items, a.children))
