"""A variant seen as a variant of other alternatives, where the payloads have to be made anew.

`variant_cast` only changes the tag. Where an alternative is made of other values in the new variant (a constant that
became a number, a list that leaves the trace by content), each alternative is taken apart and put together under its
tag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.autodiff.cotangents import close_cond
from dy2st.ir.program import Value
from dy2st.kinds import TUPLE
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object, made_aval
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Const,
    Items,
    NewList,
    NewObject,
    OneOf,
)
from dy2st.runtime.tracer.values.flatten import alternative, flatten
from dy2st.runtime.tracer.values.union import Variant


def recast(trace: Trace, x: Variant, t: OneOf, kind: Any, places: Sequence[int]) -> Value:
    """Return `x` as a variant of type `kind`; its alternative k becomes `t.alternatives[places[k]]`."""
    return _way(trace, x, t, kind, places, 1)


def _way(trace: Trace, x: Variant, t: OneOf, kind: Any, places: Sequence[int], k: int) -> Value:
    b = trace.builder
    if k == len(x.alternatives):
        return b.emit("variant_new", [], {"type": kind, "tag": 0})
    tag = b.emit("variant_tag", [x.value])
    then, other = b.child(), b.child()
    with trace.inside(then, {}):
        aval = t.alternatives[places[k]]
        values = flatten(trace, alternative(trace, x, k), aval)
        if aval.is_taken_apart:
            values = [then.emit("tuple_new", values)]
        then.block.results = [then.emit("variant_new", values, {"type": kind, "tag": places[k]})]
    with trace.inside(other, {}):
        other.block.results = [other.use(_way(trace, x, t, kind, places, k + 1))]
    return close_cond(b, b.emit("scalar_eq", [tag, b.scalar(k)]), then, other)[0]


def by_value(trace: Trace, x: Any, old: set[int]) -> Any:
    """Return what leaves a block with every variant in it made of values, where it names what the block made."""

    def is_new(thing: Any) -> bool:
        return (isinstance(thing, CONTAINERS) or is_plain_object(thing)) and id(thing) not in old

    if isinstance(x, Variant) and any(names(a, is_new) for a in x.alternatives):
        return remade(trace, x, lambda y: made_aval(trace, by_value(trace, y, old), old))
    if type(x) is TUPLE:
        return tuple(by_value(trace, i, old) for i in x)
    return x


def names(t: AbstractValue, wanted: Callable[[Any], bool]) -> bool:
    """Return whether an abstract value names a constant object of the wanted kind."""
    if isinstance(t, Const):
        return wanted(t.object)
    inside = t.children if isinstance(t, (Items, NewObject, NewList, OneOf)) else ()
    return any(names(child, wanted) for child in inside)


def remade(trace: Trace, x: Variant, aval: Callable[[Any], AbstractValue]) -> Variant:
    """Return a variant of which each alternative has the abstract value that its object has now."""
    found: list[AbstractValue] = [x.alternatives[0]]
    for tag in range(1, len(x.alternatives)):
        with trace.inside(trace.builder.child(), {}):  # only to see what it is made of
            found.append(aval(alternative(trace, x, tag)))
    t = OneOf(tuple(found))
    value = trace.recast(x, t, trace.builder.named(t.types()[0]), range(len(found)))
    return Variant(value, t.alternatives)
