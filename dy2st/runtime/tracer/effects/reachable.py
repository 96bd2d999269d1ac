"""What an object of a trace is made of, as far as a change of it would be seen by others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dy2st.kinds import is_dict, is_tuple
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.container_classes import is_of_users_class, plain_content
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.union import Variant


def parts_of(trace: Trace, x: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Give the containers and objects made in the trace, and the variants of such, that `x` is or holds, each once."""
    seen = set() if seen is None else seen
    if id(x) in seen or trace.is_from_outside(x):
        return
    seen.add(id(x))
    if isinstance(x, Variant):
        if any(a.holds_objects for a in x.alternatives):
            yield x.whole
    elif isinstance(x, CONTAINERS):
        yield x
        content = trace.log.get(("items", id(x)))
        content = plain_content(x) if content is MISSING else content
        if isinstance(content, CONTAINERS):
            for item in content.values() if is_dict(content) else content:
                yield from parts_of(trace, item, seen)
        if is_of_users_class(x):
            for item in trace.attributes_of(x).values():
                yield from parts_of(trace, item, seen)
    elif is_tuple(x):
        for item in x:
            yield from parts_of(trace, item, seen)
    elif is_plain_object(x):
        yield x
        for item in trace.attributes_of(x).values():
            yield from parts_of(trace, item, seen)
