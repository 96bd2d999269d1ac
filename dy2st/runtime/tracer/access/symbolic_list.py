"""Methods of lists whose length is known only at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.types import matches
from dy2st.kinds import is_slice
from dy2st.runtime.tracer.effects.container_state import Spliced
from dy2st.runtime.tracer.effects.escape_analysis import made_aval
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import AbstractValue, ListOf, OneOf
from dy2st.runtime.tracer.values.flatten import pack, unpack
from dy2st.runtime.tracer.values.join import join_values, place, same_form
from dy2st.runtime.tracer.values.union import SymbolicList


def as_symbolic(trace: Trace, items: list[Any], more: Any = None) -> SymbolicList:
    """Return the items of a Python list as a list value; all must fit one abstract value."""
    if not items and more is None:
        raise IndexError("list index out of range")
    elements = [*items, *([] if more is None else [more])]
    element = element_aval(trace, elements[0])
    for other in elements[1:]:
        element = join_values(element, element_aval(trace, other), trace)
    element = element.general()
    values = [pack(trace, x, element) for x in items]
    return SymbolicList(trace.emit("list_new", values, {"type": ListOf(element).types()[0]}), element)


def element_aval(trace: Trace, x: Any) -> AbstractValue:
    """Return the abstract value of an element: containers and objects are in such a list by value, from now on."""
    trace.lend(x)
    return made_aval(trace, x, trace.made.once(trace.root))


def widened(trace: Trace, items: SymbolicList, element: Any) -> SymbolicList:
    """Return the list with elements that also fit `element`: a tensor of another extent, or one of several things."""
    return fitted(trace, items, join_values(items.element, element, trace).general())


def fitted(trace: Trace, items: SymbolicList, met: AbstractValue) -> SymbolicList:
    """Return the list with elements as an abstract value says that fits them all."""
    if met == items.element:
        return items
    tags, wrap = _retagged(items.element, met)
    alternatives = items.element.alternatives if isinstance(items.element, OneOf) else (items.element,)
    others = met.alternatives if isinstance(met, OneOf) else ()
    pairs = [(a, others[k]) for a, k in zip(alternatives, tags, strict=True) if k] if tags else []
    if not all(same_form(a.packed(), b.packed()) for a, b in pairs):  # an alternative is made of other values now
        return trace.rebuilt(items, met)
    if len({t for t in tags if t}) < len([t for t in tags if t]):  # a derivative goes back to the one that it was
        return trace.rebuilt(items, met)
    if not tags:  # the ops that add an element forget extents that differ
        old, new = items.element.types(), met.types()
        if len(old) != len(new) or not all(map(matches, new, old)):
            return trace.rebuilt(items, met)
        return SymbolicList(items.value, met)
    made = trace.emit("list_widen", [items.value], {"type": ListOf(met).types()[0], "tags": tags, "wrap": wrap})
    return SymbolicList(made, met)


def _retagged(old: AbstractValue, new: AbstractValue) -> tuple[tuple[int, ...], bool]:
    if not isinstance(new, OneOf):
        return (), False
    if isinstance(old, OneOf):
        return tuple(place(a, new) for a in old.alternatives), False
    return (place(old, new),), True


def _append(trace: Trace, items: SymbolicList, x: Any) -> tuple[SymbolicList, Any]:
    items = widened(trace, items, element_aval(trace, x))
    value = trace.emit("list_append", [items.value, pack(trace, x, items.element)])
    return SymbolicList(value, items.element), None


def _extend(trace: Trace, items: SymbolicList, more: Any) -> tuple[SymbolicList, Any]:
    content = trace.content(more)
    if isinstance(content, SymbolicList):
        items = widened(trace, items, content.element)
        content = fitted(trace, content, items.element)  # alternatives in the same order
        return SymbolicList(trace.emit("list_extend", [items.value, content.value]), items.element), None
    for x in trace.iterate(more):
        items, _ = _append(trace, items, x)
    return items, None


def _insert(trace: Trace, items: SymbolicList, i: Any, x: Any) -> tuple[SymbolicList, Any]:
    items = widened(trace, items, element_aval(trace, x))
    at, _ = bounds(trace, items, i, None)
    value = trace.emit("list_insert", [items.value, at, pack(trace, x, items.element)])
    return SymbolicList(value, items.element), None


def _set(trace: Trace, items: SymbolicList, i: Any, x: Any) -> tuple[SymbolicList, Any]:
    if is_slice(i):
        return _set_slice(trace, items, i, x), None
    items = widened(trace, items, element_aval(trace, x))
    operands = [items.value, trace.scalar(i), pack(trace, x, items.element)]
    return SymbolicList(trace.emit("list_set", operands), items.element), None


def _set_slice(trace: Trace, items: SymbolicList, at: slice, more: Any) -> SymbolicList:
    if at.step is not None and at.step != 1:
        raise StructureError("every n-th element of a list whose length only the run will tell is assigned")
    start, stop = bounds(trace, items, at.start, at.stop)
    before = trace.emit("list_part", [items.value, trace.scalar(0), start])
    made, _ = _extend(trace, SymbolicList(before, items.element), more)
    rest = trace.emit("list_part", [items.value, stop, trace.emit("list_len", [items.value])])
    return _extend(trace, made, SymbolicList(rest, items.element))[0]


def _pop(trace: Trace, items: SymbolicList, i: Any = -1) -> tuple[SymbolicList, Any]:
    rest, value = trace.emit("list_pop", [items.value, trace.scalar(i)])
    return SymbolicList(rest, items.element), unpack(trace, value, items.element)


def _reverse(trace: Trace, items: SymbolicList) -> tuple[SymbolicList, Any]:
    return SymbolicList(trace.emit("list_reverse", [items.value]), items.element), None


def _clear(trace: Trace, items: SymbolicList) -> tuple[SymbolicList, Any]:
    return SymbolicList(trace.emit("list_new", [], {"type": items.value.type}), items.element), None


def bounds(trace: Trace, items: SymbolicList, start: Any, stop: Any) -> tuple[Any, Any]:
    """Return the start and stop of a slice, counted from the front."""
    first = trace.scalar(0 if start is None else start)
    last = trace.emit("list_len", [items.value]) if stop is None else trace.scalar(stop)
    return trace.emit("list_bounds", [items.value, first, last])


def list_slice(trace: Trace, items: SymbolicList, at: slice) -> SymbolicList:
    """Return `items[start:stop]` or `items[::-1]`."""
    if at.step == -1 and at.start is None and at.stop is None:
        return _reverse(trace, items)[0]
    if at.step is not None and at.step != 1:
        raise StructureError("a slice with a step of a list whose length only the run will tell is not converted")
    start, stop = bounds(trace, items, at.start, at.stop)
    return SymbolicList(trace.emit("list_part", [items.value, start, stop]), items.element)


def joined_items(trace: Trace, items: list[Any]) -> SymbolicList:
    """Return the content of a list of which some items stand for lists of unknown length."""
    made: SymbolicList | None = None
    plain: list[Any] = []
    for x in items:
        if not isinstance(x, Spliced):
            plain.append(x)
            continue
        if not isinstance(x.content, SymbolicList):
            raise StructureError("Python ran through the items of a container that is one of several")
        if made is None and not plain:
            made = x.content
        else:
            made = as_symbolic(trace, plain) if made is None else _extend(trace, made, plain)[0]
            made = _extend(trace, made, x.content)[0]
        plain = []
    assert made is not None
    return _extend(trace, made, plain)[0]


LIST_METHODS: dict[str, Callable[..., tuple[SymbolicList, Any]]] = {
    "append": _append, "extend": _extend, "__setitem__": _set, "pop": _pop, "insert": _insert, "reverse": _reverse,
    "clear": _clear,
}  # fmt: skip
