"""Results that are one object: what the caller handed in, and what stands in the output more than once.

A template says what an object is made of. Which object it is says the trace: a list or dict that is an argument leaves
as the caller's own, and a container, object or tensor that the function gives at several places is made once a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dy2st.records import record
from dy2st.runtime.contents import CONTAINERS
from dy2st.runtime.log import MISSING
from dy2st.runtime.templates import Const, Items, NewObject, OneOf, Template, types_of
from dy2st.runtime.tensor import Tensor
from dy2st.runtime.variant import Variant


@record(frozen=True)
class Handed(Template):
    """A list or dict that is an argument of the call, by its number among the containers; `content` is its own."""

    index: int
    content: Template


@record(frozen=True)
class Repeated(Template):
    """An object that stands in the output several times; the first one is made, the others are that one."""

    number: int
    content: Template


class Known:
    """The containers of a call, and the objects of its output that were made so far, by number."""

    __slots__ = ("containers", "made")

    def __init__(self, containers: Sequence[Any]):
        self.containers = containers
        self.made: dict[int, Any] = {}

    def found(self, t: Handed | Repeated) -> Any:
        """Return an object that is there already, else MISSING."""
        return self.containers[t.index] if isinstance(t, Handed) else self.made.get(t.number, MISSING)

    def keep(self, t: Handed | Repeated, x: Any) -> Any:
        """Keep an object that was made, and return it."""
        if isinstance(t, Repeated):
            self.made[t.number] = x
        return x


def skip(values: Iterator[Any], t: Template) -> None:
    """Pass by the values of an object that is there already."""
    for _ in types_of(t):
        next(values)


def told_apart(trace: Any, output: Any, t: Template) -> Template:
    """Return the template of an output with what is known of the identity of the objects in it.

    `output` is what the function returned: lists and objects by their identity.
    """
    counts = Counter[int]()
    _count(trace, output, t, counts)
    numbers = {i: n for n, i in enumerate(i for i, count in counts.items() if count > 1)}
    return _told(trace, output, t, numbers, set())


def _count(trace: Any, x: Any, t: Template, counts: Counter[int]) -> None:
    if _has_identity(trace, x):
        counts[id(x)] += 1
        if counts[id(x)] > 1 or _number(trace, x) is not None:
            return
    for part, template in _parts(trace, x, t):
        _count(trace, part, template, counts)


def _told(trace: Any, x: Any, t: Template, numbers: dict[int, int], seen: set[int]) -> Template:
    index = _number(trace, x)
    if index is not None:
        return Handed(index, t)
    if isinstance(x, Variant) and isinstance(t, OneOf) and len(x.alternatives) == len(t.alternatives):
        return _told_variant(trace, x, t)
    number = numbers.get(id(x)) if _has_identity(trace, x) else None
    if number is not None and number in seen:
        return Repeated(number, t)
    parts = _parts(trace, x, t)
    if parts:
        items = tuple(_told(trace, part, template, numbers, seen) for part, template in parts)
        if any(new is not old for new, (_, old) in zip(items, parts, strict=True)):
            t = Items(t.kind, items, t.keys) if isinstance(t, Items) else NewObject(t.kind, t.names, items)  # type: ignore[attr-defined]
    if number is None:
        return t
    seen.add(number)
    return Repeated(number, t)


def _told_variant(trace: Any, x: Variant, t: OneOf) -> OneOf:
    """Return the template of one of several things, of which some are containers of the call."""
    numbers = [_number(trace, a.object) if isinstance(a, Const) else None for a in x.alternatives]
    pairs = zip(numbers, t.alternatives, strict=True)
    return OneOf(tuple(a if n is None else Handed(n, a) for n, a in pairs))


def made_of_values(t: OneOf) -> OneOf:
    """Return the template without what is known of containers of the call."""
    if not any(isinstance(a, Handed) for a in t.alternatives):
        return t
    return OneOf(tuple(a.content if isinstance(a, Handed) else a for a in t.alternatives))


def _number(trace: Any, x: Any) -> int | None:
    """Return the number of a list or dict among the containers of the call; None for anything else."""
    slot = trace.arguments.get(id(x)) if type(x) in CONTAINERS else None
    return slot.index if slot is not None and slot.kind == "container" else None


def _has_identity(trace: Any, x: Any) -> bool:
    """Say whether the function made an object, which the template makes anew."""
    made = isinstance(x, CONTAINERS) and id(x) not in trace.external
    return made or isinstance(x, Tensor) or id(x) in trace.made_objects


def _parts(trace: Any, x: Any, t: Template) -> Sequence[tuple[Any, Template]]:
    """Return the items or attributes of an object, each with its template; none where only the run tells them."""
    if isinstance(t, NewObject) and id(x) in trace.made_objects:
        found = trace.attributes_of(x)
        return [(found.get(name), item) for name, item in zip(t.names, t.items, strict=True)]
    if not isinstance(t, Items):
        return ()
    content = trace.content(x)
    if isinstance(content, dict):
        content = list(content.values())
    if not isinstance(content, (list, tuple)) or len(content) != len(t.items):
        return ()
    return list(zip(content, t.items, strict=True))
