"""Changes of a list whose length is known only at run time, with what is known of the places of its elements
(borrows).
"""

from __future__ import annotations

from typing import Any

from dy2st.runtime.tracer.access.symbolic_list import LIST_METHODS
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList


def change(trace: Trace, obj: Any, content: SymbolicList, name: str, *args: Any) -> Any:
    """Do a method of a list (or `__setitem__`) whose content is `content`; return what it gives."""
    if name != "__setitem__" or not content.element.holds_objects:  # loops read what is inside of elements as it is
        trace.changes[id(obj)] += 1
    with trace.borrows.storing():
        return _change(trace, obj, content, name, *args)


def _change(trace: Trace, obj: Any, content: SymbolicList, name: str, *args: Any) -> Any:
    if name == "__setitem__" and not isinstance(args[0], slice):
        _set_element(trace, obj, content, *args)
        return None
    if name in ("append", "extend"):
        _add(trace, obj, content, name, args[0])
        return None
    changed, result = LIST_METHODS[name](trace, content, *args)
    trace.store(obj, changed)
    return result


def _add(trace: Trace, obj: Any, content: SymbolicList, name: str, more: Any) -> None:
    """Do `append` or `extend`: the elements that are there keep their places."""
    borrows, added = trace.borrows, trace.content(more)
    if name == "extend" and not isinstance(added, SymbolicList):
        more = added = list(trace.iterate(more))
    changed, _ = LIST_METHODS[name](trace, content, more)
    with borrows.keeping():
        trace.store(obj, changed)
    borrows.appended(obj)
    if name == "extend" and isinstance(added, SymbolicList):
        if added.element.holds_objects:
            borrows.share(obj, more)
        return
    for i, x in enumerate(added if name == "extend" else [more]):
        if borrows.has_parts(x):
            borrows.put(obj, Scalar(trace.emit("list_len", [content.value])) + i, x)


def _set_element(trace: Trace, obj: Any, content: SymbolicList, key: Any, value: Any) -> None:
    borrows = trace.borrows
    changed, _ = LIST_METHODS["__setitem__"](trace, content, key, value)
    if borrows.is_at(obj, key, value):  # `items[i] += more`: the list that stands there
        return
    lends = borrows.has_parts(value) or borrows.lends(obj)
    place = key if isinstance(key, int) and key >= 0 else None
    borrows.moved(obj, place)
    with borrows.keeping():
        trace.store(obj, changed)
    if lends:
        at = key if place is not None else Scalar(trace.emit("list_index", [content.value, trace.scalar(key)]))
        borrows.put(obj, at, value)
