"""What leaves a Program as one of several things: lists and objects that the trace made leave by what they hold.

Inside of a trace such a list is known by its identity, so that a later `append` reaches it; outside there is no such
list. The alternatives of a variant that name one are made of its content here.
"""

from __future__ import annotations

from typing import Any

from dy2st.jit.outputs import output_template
from dy2st.runtime.contents import CONTAINERS
from dy2st.runtime.convert_if import alternative
from dy2st.runtime.templates import Const, Items, NewList, NewObject, OneOf, Template, types_of
from dy2st.runtime.variant import SymbolicList, Variant


def leaving(trace: Any, x: Any) -> Any:
    """Return an output with every variant in it made of values only."""
    if isinstance(x, Variant):
        return _resolved(trace, x) if any(_names_made(trace, a) for a in x.alternatives) else x
    if isinstance(x, tuple):
        items = [leaving(trace, i) for i in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if type(x) in (list, dict) and id(x) not in trace.external:
        content = trace.content(x)
        if isinstance(content, SymbolicList):
            return x
        if isinstance(content, Variant):
            return leaving(trace, content)
        if isinstance(content, dict):
            return {k: leaving(trace, i) for k, i in content.items()}
        return [leaving(trace, i) for i in content]
    return x


def _names_made(trace: Any, t: Template) -> bool:
    """Say whether a template names a container or object that the trace made."""
    if isinstance(t, Const):
        made = type(t.object) in CONTAINERS and id(t.object) not in trace.external
        return made or id(t.object) in trace.made_objects
    if isinstance(t, (Items, NewObject)):
        return any(_names_made(trace, i) for i in t.items)
    if isinstance(t, NewList):
        return _names_made(trace, t.content)
    return isinstance(t, OneOf) and any(_names_made(trace, a) for a in t.alternatives)


def _resolved(trace: Any, x: Variant) -> Variant:
    """Return a variant whose alternatives are what `x` holds now."""
    found: list[Template] = [x.alternatives[0]]
    for tag in range(1, len(x.alternatives)):
        with trace.inside(trace.builder.child(), {}):  # only to see what it is made of
            found.append(output_template(trace, leaving(trace, alternative(trace, x, tag))))
    t = OneOf(tuple(found))
    kind = trace.builder.named(types_of(t)[0])
    value = trace.recast(x, t, kind, range(len(found)))
    return Variant(value, t.alternatives)
