"""What leaves a Program as one of several things: lists and objects that the trace made leave by what they hold.

Inside of a trace such a list is known by its identity, so that a later `append` reaches it; outside there is no such
list. The alternatives of a variant that name one are made of its content here.
"""

from __future__ import annotations

from typing import Any

from dy2st.jit.tracing.external_reads import ExternalReads
from dy2st.jit.tracing.output_structure import output_aval
from dy2st.kinds import is_dict, is_tuple, type_of
from dy2st.runtime.tracer.control_flow.conditional import switch
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.union_cast import names, remade
from dy2st.runtime.tracer.values.abstract import Const
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def leaving(trace: ExternalReads, x: Any) -> Any:
    """Return an output with every variant in it made of values only."""
    if isinstance(x, Variant):
        if not any(names(a, lambda thing: _made(trace, thing)) for a in x.alternatives):
            return x
        if any(isinstance(a, Const) and isinstance(trace.content(a.object), Variant) for a in x.alternatives):
            return leaving(trace, switch(trace, x, trace.content))  # one of one of several things is one of them all
        return remade(trace, x, lambda y: output_aval(trace, leaving(trace, y)))
    if is_tuple(x):
        items, kind = [leaving(trace, i) for i in x], type_of(x)
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if type(x) in (list, dict) and id(x) not in trace.external:
        content = trace.content(x)
        if isinstance(content, SymbolicList):
            return x
        if isinstance(content, Variant):
            return leaving(trace, content)
        if is_dict(content):
            return {k: leaving(trace, i) for k, i in content.items()}
        return [leaving(trace, i) for i in content]
    return x


def _made(trace: ExternalReads, x: Any) -> bool:
    """Return whether the trace made a container or object."""
    return (type(x) in CONTAINERS and id(x) not in trace.external) or id(x) in trace.made.objects
