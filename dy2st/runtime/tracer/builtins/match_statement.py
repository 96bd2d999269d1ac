"""What a `match` finds out about its subject: Python matches it, with all inside of it as it stands in the trace.

A subject that is one of several things is asked about once for each. The attributes that class patterns read are put
into the objects for as long as Python looks at them; those of objects from outside become guards. Where a pattern asks
how long something is, a list of which only the run tells that is asked about once for each length that makes a
difference. For that long it shows its first and last items, with one that stands for all between them:

    case [a, *rest, z]:    no item, one, two, or [first, those between, last]
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dy2st.kinds import TUPLE, is_container, is_dict, is_list, type_of
from dy2st.records import field, record
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.access.attributes import attr
from dy2st.runtime.tracer.access.items import item
from dy2st.runtime.tracer.access.symbolic_keys import may_be, with_key
from dy2st.runtime.tracer.builtins.builtins import len_
from dy2st.runtime.tracer.control_flow.conditional import if_exp, switch
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.object_attributes import attributes, drop_attribute, put_attribute
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

DEEPEST = 8
"""Objects inside of each other that patterns are expected to look into."""

Ask = Callable[[Any], Any]
Ends = tuple[int, int]
"""The most items that a pattern takes from the front of a list, and from its back behind a star."""


def match(trace: Trace, ask: Ask, subject: Any, ends: Ends | None) -> Any:
    """Return what `ask` finds out about the subject of a `match`, for each thing that it may be.

    `ends` is None for a pattern that does not ask how long something is.
    """
    if isinstance(subject, Variant):
        return switch(trace, subject, lambda x: match(trace, ask, x, ends))
    if type(subject) is TUPLE:
        for i, part in enumerate(subject):
            if isinstance(part, Variant):
                return switch(trace, part, lambda x: match(trace, ask, (*subject[:i], x, *subject[i + 1 :]), ends))  # noqa: B023 (called at once)
    if not isinstance(subject, CONTAINERS):
        return _asked(trace, ask, subject, ends, _Known())
    content = trace.content(subject)
    if isinstance(content, Variant):
        return trace.on_content(subject, switch, lambda: match(trace, ask, subject, ends))
    known = content if isinstance(content, type_of(subject)) else subject
    return _asked(trace, ask, known, ends, _Known())


Attributes = dict[int, tuple[Any, dict[str, Any]]]
"""Objects by their id, with what their attributes are."""


@record(frozen=True)
class _Known:
    """What was decided about a subject: attributes that are one of several things, and what open lists show."""

    chosen: Attributes = field(default_factory=dict)
    shown: dict[int, tuple[list[Any], list[Any]]] = field(default_factory=dict)


def _asked(trace: Trace, ask: Ask, subject: Any, ends: Ends | None, known: _Known) -> Any:
    """Return what `ask` finds out; what is open in the subject is decided first, one thing after the other."""
    found: Attributes = dict(known.chosen)
    lists: list[list[Any]] = []
    _collect(trace, subject, found, lists, known, ())
    for key, (x, now) in found.items():
        for name, value in now.items():
            if isinstance(value, Variant) or (isinstance(value, Scalar) and may_be(value) is not None):
                return with_key(trace, value, (), lambda v: _asked(
                    trace, ask, subject, ends, _Known({**known.chosen, key: (x, {**now, name: v})}, known.shown)), None)  # noqa: B023  # fmt: skip
    if ends is not None and lists:
        x = lists[0]
        return _by_length(trace, x, ends, lambda items: _asked(
            trace, ask, subject, ends, _Known(known.chosen, {**known.shown, id(x): (x, items)})))  # fmt: skip
    with _holding(found), _showing(known):
        return ask(subject)


def _collect(
    trace: Trace, x: Any, found: Attributes, lists: list[list[Any]], known: _Known, around: tuple[Any, ...]
) -> None:
    """Add the objects inside of `x`, each with its attributes as they stand in the trace, and the open lists."""
    if len(around) > DEEPEST or any(x is one for one in around):
        return
    inside: Any = ()
    if is_list(x) and id(x) in known.shown:
        inside = known.shown[id(x)][1]
    elif is_list(x) and isinstance(trace.content(x), SymbolicList):
        lists.append(x)
    elif is_container(x):
        inside = x.values() if is_dict(x) else x
    elif is_plain_object(x):
        if id(x) not in found:
            found[id(x)] = x, {name: attr(trace, x, name) for name in trace.attributes_of(x)}
        inside = found[id(x)][1].values()
    for part in inside:
        _collect(trace, part, found, lists, known, (*around, x))


def _by_length(trace: Trace, x: list[Any], ends: Ends, use: Callable[[list[Any]], Any], count: int = 0) -> Any:
    """Return what `use` gives for the items of an open list that has `count` of them or more."""
    if id(x) in trace.external:
        raise needs_value("only the run will tell how long this list is, so Python cannot match it")
    front, back = ends
    if count <= front + back:
        return if_exp(
            trace,
            len_(trace, x) == count,
            lambda: use([item(trace, x, i) for i in range(count)]),
            partial(_by_length, trace, x, ends, use, count + 1),
        )
    first, last = ([item(trace, x, i) for i in places] for places in (range(front), range(-back, 0)))
    return use([*first, *item(trace, x, slice(front, -back or None)), *last])


@contextmanager
def _showing(known: _Known) -> Generator[None]:
    """Let open lists hold the items that were chosen for the length of a `with`."""
    before = [(x, list(x)) for x, _ in known.shown.values()]
    try:
        for x, items in known.shown.values():
            x[:] = items
        yield
    finally:
        for x, shown in before:
            x[:] = shown


@contextmanager
def _holding(found: Attributes) -> Generator[None]:
    """Let objects have the given attributes for the length of a `with`."""
    before = [(x, attributes(x)) for x, _ in found.values()]
    try:
        for x, now in found.values():
            _let_have(x, {**attributes(x), **now})
        yield
    finally:
        for x, real in before:
            _let_have(x, real)


def _let_have(x: Any, wanted: dict[str, Any]) -> None:
    """Let an object have these attributes and no other ones."""
    for name in attributes(x).keys() - wanted.keys():
        drop_attribute(x, name)
    for name, value in wanted.items():
        put_attribute(x, name, value)
