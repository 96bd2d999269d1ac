"""What a `for` loop can run over with a symbolic turn number: ranges, tensors, lists of unknown length, and
`enumerate`, `zip` and `reversed` of these.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Sequence, Set, ValuesView
from typing import Any

from dy2st.errors import StructureError
from dy2st.kinds import is_deque, is_list, is_sequence
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.values.dict_views import is_view
from dy2st.runtime.tracer.values.flatten import unpack
from dy2st.runtime.tracer.values.symbolic_iterator import ENDLESS, PulledIterator, TracedIterator
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.trace import ValueTrace
from dy2st.runtime.tracer.values.union import SymbolicList

_CHANGED: dict[type, str] = {
    dict: "dictionary changed size during iteration",
    set: "Set changed size during iteration",
    deque: "deque mutated during iteration",
}
_FIXED = tuple(_CHANGED)
"""What Python refuses to run through once it has another size."""


class ChangedList(StructureError):
    """A list that Python runs through became one of which it is known only at run time what it holds."""


@record(frozen=True)
class SymbolicIterable:
    """A sequence of `length` items of which `get(i)` is the i-th; `must_roll` where Python cannot run through it.

    Where lists are among what it comes from, `again()` gives it as they stand later, and `changes()` says how often
    they changed.
    """

    length: Any
    get: Callable[[Any], Any]
    must_roll: bool
    again: Callable[[], SymbolicIterable] | None = None
    changes: Callable[[], int] = int

    def __iter__(self) -> Iterator[Any]:
        raise needs_value("Python itself ran through something whose length only the run will tell", needed=[self])

    def __len__(self) -> int:
        raise needs_value("Python itself asked for a length that only the run will tell", needed=[self])


def iterable_of(trace: ValueTrace, x: Any) -> SymbolicIterable | None:
    """Return how to run over `x` with a symbolic turn number, None when only Python can."""
    if isinstance(x, SymbolicIterable):
        return x
    if isinstance(x, TracedIterator):
        return None if isinstance(x, PulledIterator) else _rest_of(x.source(), x.position)
    if isinstance(x, range):
        return SymbolicIterable(len(x), lambda i: _member(i, x.start, x.step), False)
    if isinstance(x, Tensor):
        if x.ndim == 0:
            raise TypeError("iteration over a 0-D tensor")
        length = x.shape[0]
        return SymbolicIterable(length, lambda i: x[i], not isinstance(length, int))
    content = trace.content(x) if is_list(x) else x
    if isinstance(content, SymbolicList):
        items = content
        length = Scalar(trace.emit("list_len", [items.value]))
        again = None if x is items else lambda: sequence_of(trace, x)
        get = functools.partial(_live_item, trace, x, items)
        return SymbolicIterable(length, get, True, again, lambda: trace.changes[id(x)])
    return None


def sequence_of(trace: ValueTrace, x: Any) -> SymbolicIterable:
    """Return the items of something that the trace, or Python, knows the length of."""
    found = iterable_of(trace, x)
    return python_items(trace, x) if found is None else found


def live_items(trace: ValueTrace, x: Any) -> Iterable[Any]:
    """Return what Python runs through in the place of `x`; of a list, items as they stand when they are asked for."""
    if is_list(x) and isinstance(trace.content(x), list):
        return _live_items(trace, x)
    owner = trace.mirrors.owner_of(x) if is_view(x) else x
    if not isinstance(owner, _FIXED) or not isinstance(trace.content(owner), _FIXED):
        return trace.iterate(x)
    return _unchanged_items(trace, x, owner)


def _unchanged_items(trace: ValueTrace, x: Any, owner: Any) -> Iterator[Any]:
    """Yield the items of what must not change while Python runs through it: a dict or its view, a set, a deque."""
    content = trace.content(owner)
    items, count = list(trace.iterate(x)), len(content)
    for i in range(count):
        yield items[i]
        now = trace.content(owner)
        if now is content:
            continue
        if not isinstance(now, _FIXED) or (is_deque(now) and len(now) == count and _differ(now, content)):
            kind = type(owner).__name__
            raise needs_value(f"only the run will tell whether a {kind} changes while a loop runs through it")
        if len(now) != count:
            raise RuntimeError(next(text for kind, text in _CHANGED.items() if isinstance(owner, kind)))
        content, items = now, list(trace.iterate(x))


def _differ(a: Iterable[Any], b: Iterable[Any]) -> bool:
    return any(x is not y for x, y in zip(a, b, strict=True))


def _live_items(trace: ValueTrace, x: list[Any]) -> Iterator[Any]:
    position = 0
    while True:
        content = trace.content(x)
        if not is_list(content):
            raise ChangedList("only the run will tell what a list holds that changes while a loop runs through it")
        if position >= len(content):
            return
        yield content[position]
        position += 1


def _rest_of(items: SymbolicIterable, first: Any) -> SymbolicIterable:
    """Return the items from place `first` on."""
    length = ENDLESS if items.length is ENDLESS else items.length - first
    rolls = items.must_roll or not isinstance(first, int)
    return SymbolicIterable(length, lambda i: items.get(first + i), rolls, items.again, items.changes)


def handed_over(trace: ValueTrace, x: Any) -> Callable[[], SymbolicIterable]:
    """Return what gives the items of `x` as they stand, for something that takes them from now on."""
    if not isinstance(x, TracedIterator):
        return lambda: sequence_of(trace, x)
    source, first = x.source, x.position
    x.move(None)
    return lambda: _rest_of(source(), first)


def derived(
    trace: ValueTrace, parts: Sequence[Callable[[], SymbolicIterable]],
    made: Callable[[Sequence[SymbolicIterable]], tuple[Any, Callable[[Any], Any]]],
    ended: Callable[[], None] | None = None,
) -> TracedIterator:  # fmt: skip
    """Return the iterator over what comes of iterables handed over; `made` gives its length and items from theirs."""

    def sequence() -> SymbolicIterable:
        found = [part() for part in parts]
        length, get = made(found)
        again = sequence if any(x.again for x in found) else None
        return SymbolicIterable(length, get, True, again, lambda: sum(x.changes() for x in found))

    return TracedIterator(trace, sequence, ended)


def _live_item(trace: ValueTrace, owner: Any, items: SymbolicList, i: Any) -> Any:
    """Return element i of a list that a loop runs through: what is inside of elements may have changed since."""
    if owner is items or not items.element.holds_objects:
        return list_item(trace, items, i)
    return list_item(trace, trace.content(owner), i, owner)


def list_item(trace: ValueTrace, items: SymbolicList, i: Any, owner: Any = None) -> Any:
    """Return element i of a list of unknown length; what it is made of stays a part of the owner."""
    if not items.element.holds_objects:
        found = unpack(trace, trace.emit("list_get", [items.value, trace.scalar(i)]), items.element)
        trace.aliases.hold(found)
        return found
    place = i if isinstance(i, int) and i >= 0 else Scalar(trace.emit("list_index", [items.value, trace.scalar(i)]))
    found = unpack(trace, trace.emit("list_get", [items.value, trace.scalar(place)]), items.element)
    trace.aliases.hold(found)
    if owner is None:
        trace.lend(found)
    else:
        trace.borrows.taken(owner, place, found, i)
    return found


def symbolic_range(trace: ValueTrace, *bounds: Any) -> SymbolicIterable:
    """Return `range(...)` of numbers of which at least one is symbolic."""
    numbers = [trace.item(b) if isinstance(b, Tensor) else b for b in bounds]
    for number in numbers:
        if isinstance(number, float) or (isinstance(number, Scalar) and number.kind == "float"):
            raise TypeError("'float' object cannot be interpreted as an integer")
    start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if isinstance(step, int) and step == 0:
        raise ValueError("range() arg 3 must not be zero")
    span = trace.as_scalar(stop) - start if not isinstance(start, int) or start else trace.as_scalar(stop)
    iterations = span if isinstance(step, int) and step == 1 else -((-span) // step)
    count = Scalar(trace.emit("scalar_max", [trace.scalar(iterations), trace.scalar(0)]))
    return SymbolicIterable(count, lambda i: _member(i, start, step), True)


def _member(i: Any, start: Any, step: Any) -> Any:
    """Return member i of a range."""
    scaled = i if isinstance(step, int) and step == 1 else i * step
    return scaled if isinstance(start, int) and start == 0 else scaled + start


def symbolic_enumerate(trace: ValueTrace, iterable: Any, start: Any = 0) -> Any:
    """Return `enumerate(...)`; Python's own where Python can run through it."""
    items = iterable_of(trace, iterable)
    if items is None or not items.must_roll:
        return enumerate(iterable if isinstance(iterable, TracedIterator) else live_items(trace, iterable), start)
    return derived(
        trace, [handed_over(trace, iterable)], lambda found: (found[0].length, lambda i: (i + start, found[0].get(i)))
    )


def symbolic_zip(trace: ValueTrace, *iterables: Any, strict: bool = False) -> Any:
    """Return `zip(...)`; Python's own where Python can run through all of them."""
    found = [iterable_of(trace, x) for x in iterables]
    if not any(f is not None and f.must_roll for f in found):
        return zip(*(x if isinstance(x, TracedIterator) else live_items(trace, x) for x in iterables), strict=strict)
    data = (python_data(trace, x) if f is None else x for f, x in zip(found, iterables, strict=True))
    parts = [handed_over(trace, x) for x in data]
    lengths: list[Any] = []

    def rows(found: Sequence[SymbolicIterable]) -> tuple[Any, Callable[[Any], Any]]:
        lengths[:] = [f.length for f in found]
        return smallest(trace, lengths), lambda i: tuple(f.get(i) for f in found)

    return derived(trace, parts, rows, (lambda: _refuse_other_lengths(trace, lengths)) if strict else None)


def _refuse_other_lengths(trace: ValueTrace, lengths: Sequence[Any]) -> None:
    """Raise ValueError in the run where lengths differ, as `zip(strict=True)` does at its end."""

    def refuse(i: int, how: str) -> None:
        raise ValueError(f"zip() argument {i + 1} is {how} than argument{' 1' if i == 1 else f's 1-{i}'}")

    numbers, least = [trace.as_scalar(n) for n in lengths], trace.as_scalar(smallest(trace, lengths))
    for i, n in enumerate(numbers[1:], 1):
        shorter = trace.both(n <= least, lambda: numbers[0] > least)
        trace.if_exp(shorter, lambda i=i: refuse(i, "shorter"), lambda: None)
    for i, n in enumerate(numbers[1:], 1):
        trace.if_exp(n > least, lambda i=i: refuse(i, "longer"), lambda: None)


def smallest(trace: ValueTrace, lengths: Sequence[Any]) -> Any:
    """Return the smallest of some numbers, of which the run may tell some."""
    lengths = [n for n in lengths if n is not ENDLESS] or [ENDLESS]
    if all(isinstance(n, int) for n in lengths):
        return min(lengths)
    least = trace.as_scalar(lengths[0])
    for n in lengths[1:]:
        least = Scalar(trace.emit("scalar_min", [least.value, trace.scalar(n)]))
    return least


def python_items(trace: ValueTrace, x: Any) -> SymbolicIterable:
    """Return the items of Python data, which Python can run through."""
    items = python_data(trace, x)
    return SymbolicIterable(len(trace.content(items)), lambda i: trace.item_of(items, i), False)


def python_data(trace: ValueTrace, x: Any) -> Any:
    """Return a list or tuple of what Python can run through."""
    if isinstance(x, (dict, str, Set, KeysView, ValuesView, ItemsView)):
        return tuple(trace.iterate(x))
    if not is_sequence(x):
        raise needs_value(f"zip() of a {type(x).__name__} with something whose length only the run will tell")
    return x


def symbolic_reversed(trace: ValueTrace, iterable: Any) -> Any:
    """Return `reversed(...)`; Python's own where Python can run through it."""
    items = iterable_of(trace, iterable)
    if items is None or not items.must_roll:
        content = trace.content(iterable)
        return reversed(list(trace.iterate(content))) if isinstance(content, Tensor) else reversed(content)
    return derived(trace, [lambda: items], lambda found: (found[0].length, _backwards(found[0])))


def _backwards(items: SymbolicIterable) -> Callable[[Any], Any]:
    return lambda i: items.get(items.length - 1 - i)
