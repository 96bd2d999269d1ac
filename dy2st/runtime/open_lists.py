"""Changes of a list whose length only the run tells, with what is known of the places of its elements (loans)."""

from __future__ import annotations

from typing import Any

from dy2st.runtime.list_methods import LIST_METHODS
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.variant import SymbolicList


def change(trace: Any, obj: Any, content: SymbolicList, name: str, *args: Any) -> Any:
    """Do a method of a list (or `__setitem__`) whose content is `content`; return what it gives."""
    with trace.loans.storing():
        return _change(trace, obj, content, name, *args)


def _change(trace: Any, obj: Any, content: SymbolicList, name: str, *args: Any) -> Any:
    if name == "__setitem__" and not isinstance(args[0], slice):
        _set_element(trace, obj, content, *args)
        return None
    changed, result = LIST_METHODS[name](trace, content, *args)
    if name not in ("append", "extend"):
        trace.store(obj, changed)
        return result
    with trace.loans.keeping():
        trace.store(obj, changed)
    if not trace.loans.has_parts(args[0]):
        return result
    if name == "append":
        trace.loans.put(obj, Scalar(trace.emit("list_len", [content.value])), args[0])
    else:
        trace.loans.share(obj, args[0])
    return result


def _set_element(trace: Any, obj: Any, content: SymbolicList, key: Any, value: Any) -> None:
    loans = trace.loans
    changed, _ = LIST_METHODS["__setitem__"](trace, content, key, value)
    if loans.is_at(obj, key, value):  # `items[i] += more`: the list that stands there
        return
    lends = loans.has_parts(value) or loans.lends(obj)
    place = key if isinstance(key, int) and key >= 0 else None
    loans.moved(obj, place)
    with loans.keeping():
        trace.store(obj, changed)
    if lends:
        at = key if place is not None else Scalar(trace.emit("list_index", [content.value, trace.scalar(key)]))
        loans.put(obj, at, value)
