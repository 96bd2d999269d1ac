"""Methods of lists whose length only the run will tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.errors import StructureError
from dy2st.runtime.structure import ListOf, OneOf, general, meet, pack, template_of, types_of, unpack
from dy2st.runtime.variant import SymbolicList


def as_symbolic(trace: Any, items: list[Any], more: Any = None) -> SymbolicList:
    """Return the items of a Python list as a list value; all must fit one template."""
    if not items and more is None:
        raise IndexError("list index out of range")
    elements = [*items, *([] if more is None else [more])]
    element = template_of(trace, elements[0])
    for other in elements[1:]:
        element = meet(element, template_of(trace, other), trace)
    element = general(element)
    values = [pack(trace, x, element) for x in items]
    return SymbolicList(trace.emit("list_new", values, {"type": types_of(ListOf(element))[0]}), element)


def _fits(trace: Any, items: SymbolicList, x: Any) -> SymbolicList:
    """Return the list when `x` can be one of its elements; StructureError otherwise."""
    met = general(meet(items.element, template_of(trace, x), trace))
    if met != items.element and (types_of(met) != types_of(items.element) or isinstance(met, OneOf)):
        raise StructureError("an element of another type is put into a list whose length only the run will tell")
    return items


def _append(trace: Any, items: SymbolicList, x: Any) -> tuple[SymbolicList, Any]:
    _fits(trace, items, x)
    value = trace.emit("list_append", [items.value, pack(trace, x, items.element)])
    return SymbolicList(value, items.element), None


def _extend(trace: Any, items: SymbolicList, more: Any) -> tuple[SymbolicList, Any]:
    for x in trace.iterate(more):
        items, _ = _append(trace, items, x)
    return items, None


def _set(trace: Any, items: SymbolicList, i: Any, x: Any) -> tuple[SymbolicList, Any]:
    _fits(trace, items, x)
    operands = [items.value, trace.scalar(i), pack(trace, x, items.element)]
    return SymbolicList(trace.emit("list_set", operands), items.element), None


def _pop(trace: Any, items: SymbolicList, i: Any = -1) -> tuple[SymbolicList, Any]:
    rest, value = trace.emit("list_pop", [items.value, trace.scalar(i)])
    return SymbolicList(rest, items.element), unpack(trace, value, items.element)


LIST_METHODS: dict[str, Callable[..., tuple[SymbolicList, Any]]] = {
    "append": _append, "extend": _extend, "__setitem__": _set, "pop": _pop,
}  # fmt: skip
