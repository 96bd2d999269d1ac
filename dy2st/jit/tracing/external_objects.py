"""Python objects from outside that a trace meets: what must be marked, and guarded, because it can change.

Lists, dicts, sets and deques are guarded by their content where it is read; arrays are constants of a Program and are
guarded element by element; iterators cannot be guarded at all, so a trace refuses to move them.
"""

from __future__ import annotations

from collections import ChainMap, UserDict, UserList
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dy2st.ir.literals import is_array
from dy2st.ir.program import Value
from dy2st.jit.guards.guards import ArrayGuard, ContainerGuard, ItemSlot
from dy2st.kinds import is_tuple, type_of
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.values.container_classes import copied, like, plain_content

if TYPE_CHECKING:
    from dy2st.jit.tracing.external_reads import ExternalReads

LIBRARY_CONTAINERS = (ChainMap, UserDict, UserList)


def mark(trace: ExternalReads, x: Any) -> None:
    """Mark what was there before the trace."""
    trace.note_behaviour(x)
    if isinstance(x, CONTAINERS):
        trace.mark_external(x)
    elif is_tuple(x):
        for item in x:
            mark(trace, item)
    elif is_array(x):
        trace.mark_external(x)
        trace.guards.setdefault((id(x), "elements"), ArrayGuard(x, x.copy()))
    elif type(x) in LIBRARY_CONTAINERS:  # read by code that is not converted, so their content is guarded whole
        trace.mark_external(x)
        trace.guards.setdefault((id(x), "content"), ContainerGuard(x, (list if type_of(x) is UserList else dict)(x)))
    elif isinstance(x, Iterator) or is_plain_object(x):
        trace.mark_external(x)


def mark_items(trace: ExternalReads, x: Any) -> None:
    """Mark what a container from outside holds; a tensor in it is read anew at each call."""
    content = _outside_content(trace, x)
    for key, item in content.items() if isinstance(x, dict) else enumerate(content):
        if _is_state(item) and not isinstance(x, set):
            seen = trace.stand_in(item, ItemSlot(x, key))
            trace.note_source(seen, ItemSlot(x, key))
        else:
            mark(trace, item)


def with_stand_ins(trace: ExternalReads, x: Any) -> Any:
    """Return a container from outside with what the trace sees of the tensors in it."""
    content = _outside_content(trace, x)
    items = content.values() if isinstance(x, dict) else content
    if not trace.stand_ins or not any(id(item) in trace.stand_ins for item in items):
        return content
    made = copied(content)
    for key, item in content.items() if isinstance(x, dict) else enumerate(content):
        if id(item) in trace.stand_ins and not isinstance(x, set):
            made[key] = trace.stand_ins[id(item)]
    return made


def _outside_content(trace: ExternalReads, x: Any) -> Any:
    """Return what a container from outside holds, also while it shows what the trace wrote."""
    return like(x, trace.beneath[id(x)]) if id(x) in trace.beneath else plain_content(x)


def _is_state(x: Any) -> bool:
    """Return whether something is a tensor of a real object."""
    return type(x) is Tensor and not isinstance(x.payload, Value)
