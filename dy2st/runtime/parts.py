"""What an object of a trace is made of, as far as a change of it would be seen by others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dy2st.runtime.contents import CONTAINERS
from dy2st.runtime.log import MISSING
from dy2st.runtime.made_in_branch import is_plain_object
from dy2st.runtime.templates import holds_objects
from dy2st.runtime.variant import Variant

DEEPEST = 50
"""Containers inside of each other that are looked through."""


def parts_of(trace: Any, x: Any, depth: int = 0) -> Iterator[Any]:
    """Give the containers and objects made in the trace, and the variants of such, that `x` is or holds."""
    if depth > DEEPEST or id(x) in trace.external:
        return
    if isinstance(x, Variant):
        if any(map(holds_objects, x.alternatives)):
            yield x.whole
    elif isinstance(x, CONTAINERS):
        yield x
        content = trace.log.get(("items", id(x)))
        content = x if content is MISSING else content
        if isinstance(content, CONTAINERS):
            for item in content.values() if isinstance(content, dict) else content:
                yield from parts_of(trace, item, depth + 1)
    elif isinstance(x, tuple):
        for item in x:
            yield from parts_of(trace, item, depth + 1)
    elif is_plain_object(x):
        yield x
        for item in trace.attributes_of(x).values():
            yield from parts_of(trace, item, depth + 1)
