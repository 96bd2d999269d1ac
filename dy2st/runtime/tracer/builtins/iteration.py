"""Built-ins that run through things: iterators, and lists made of what only the run will tell the length of."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.location import error_here
from dy2st.kinds import is_sequence
from dy2st.runtime.eager.side_effect_check import refuse_outside
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.items import item, users_method
from dy2st.runtime.tracer.builtins.container_methods import method
from dy2st.runtime.tracer.control_flow.conditional import if_, if_exp, switch
from dy2st.runtime.tracer.effects.container_state import Spliced, refuse_spliced
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import PushIterator, beside, chosen, numbered
from dy2st.runtime.tracer.loops.loop_statement import for_
from dy2st.runtime.tracer.values.abstract import AbstractValue, ListOf
from dy2st.runtime.tracer.values.symbolic_iterable import (
    SymbolicIterable,
    derived,
    handed_over,
    iterable_of,
    python_items,
    sequence_of,
    smallest,
    symbolic_enumerate,
    symbolic_zip,
)
from dy2st.runtime.tracer.values.symbolic_iterator import CalledMap, TracedIterator, check_moved, next_item
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

MOST_REBUILT = 4
"""So many lists inside of each other are made of other values at most."""
PYTHON_DATA: tuple[type, ...] = (list, tuple, dict, set, str, bytes)


def must_roll(trace: Trace, x: Any) -> bool:
    """Return whether it is known only at run time how many items there are."""
    found = iterable_of(trace, x)
    return found is not None and found.must_roll


# ---- iterators -----------------------------------------------------------------------------------------------------
def iter_(trace: Trace, x: Any, *sentinel: Any) -> Any:
    """Return `iter(x)`; how far it has come is known to the trace."""
    if sentinel or isinstance(x, (TracedIterator, PushIterator)):
        return iter(x, *sentinel)
    if isinstance(x, Variant):
        return switch(trace, x, lambda y: iter_(trace, y))
    if iterable_of(trace, x) is not None:
        return TracedIterator(trace, lambda: iterable_of(trace, x))
    if (own := users_method(trace, x, "__iter__")) is not None:
        return own()
    if isinstance(x, PYTHON_DATA):
        items = x if is_sequence(x) else tuple(trace.content(x))
        return TracedIterator(trace, lambda: python_items(trace, items))
    return iter(trace.iterate(x))


def next_(trace: Trace, x: Any, *default: Any) -> Any:
    """Return `next(...)` of an iterator."""
    if isinstance(x, Variant):
        return switch(trace, x, lambda y: next_(trace, y, *default))
    if isinstance(x, TracedIterator):
        return next_item(trace, x, *default)
    if (own := users_method(trace, x, "__next__")) is not None:
        return _next_of_users(own, default)
    if isinstance(x, PushIterator):
        return next(x, *default)
    refuse_outside(trace.external, x)
    check_moved(trace, x)
    return next(x, *default)


def _next_of_users(own: Callable[[], Any], default: tuple[Any, ...]) -> Any:
    try:
        return own()
    except StopIteration:
        if not default:
            raise
        return default[0]


# ---- lists and tuples ------------------------------------------------------------------------------------------------
def collected(
    trace: Trace, items: Any, keep: Callable[[Any], Any] | None = None, of: Callable[[Any], Any] | None = None
) -> list[Any]:
    """Return a list of what a loop runs through (or of what `of` makes of it), of those items that `keep` wants."""
    made: list[Any] = []
    trace.store(made, [])
    append = method(trace, made, "append")

    def add(x: Any) -> None:
        append(x if of is None else of(x))

    def body(x: Any) -> None:
        wanted = True if keep is None else keep(x)
        if trace.is_symbolic(wanted):
            if_(trace, trace.truth(wanted), lambda: add(x), lambda: None, tuple, lambda _: None, ())
        elif trace.content(wanted):
            add(x)

    for_(trace, items, body, tuple, lambda _: None, (), None)
    return made


def iterated(trace: Trace, x: Any) -> Any:
    """Return what to run through in the place of `x`: what a class of the user's gives for it."""
    if isinstance(x, (Tensor, SymbolicIterable, Iterator, *PYTHON_DATA)):
        return x
    own = users_method(trace, x, "__iter__")
    return x if own is None else own()


def list_(trace: Trace, *items: Any) -> Any:
    """Return `list(...)`; a list of unknown length is copied as such."""
    if not items:
        return []
    items = (iterated(trace, items[0]),)
    if isinstance(items[0], PushIterator):
        return collected(trace, items[0])
    if isinstance(items[0], Variant):
        return switch(trace, items[0], lambda x: list_(trace, x))
    content = trace.content(items[0])
    if not isinstance(content, SymbolicList):
        return collected(trace, items[0]) if must_roll(trace, items[0]) else list(trace.iterate(items[0]))
    made: list[Any] = []
    trace.store(made, content)
    if content.element.holds_objects:
        trace.borrows.share(items[0], made)
    return made


def rebuilt(trace: Trace, items: SymbolicList, element: AbstractValue) -> SymbolicList:
    """Return a list of unknown length with the same elements, each seen as another abstract value."""
    if trace.rebuilding >= MOST_REBUILT:  # each level is traced some times for every time of the one around it
        what = f"lists inside of each other, {MOST_REBUILT} deep, hold what differs between two paths"
        raise error_here(StructureError, what, "keep them apart, or let both paths hold the same")
    trace.rebuilding += 1
    try:
        return _rebuilt(trace, items, element)
    finally:
        trace.rebuilding -= 1


def _rebuilt(trace: Trace, items: SymbolicList, element: AbstractValue) -> SymbolicList:
    made: list[Any] = []
    trace.store(made, SymbolicList(trace.emit("list_new", [], {"type": ListOf(element).types()[0]}), element))
    append = method(trace, made, "append")
    for_(trace, iterable_of(trace, items), append, tuple, lambda _: None, (), None)
    return trace.content(made)


def tuple_(trace: Trace, *items: Any) -> Any:
    """Return `tuple(...)`."""
    if items and isinstance(items[0], Variant):
        return switch(trace, items[0], lambda x: tuple_(trace, x))
    return tuple(trace.iterate(items[0])) if items else ()


def enumerate_(trace: Trace, iterable: Any, start: Any = 0) -> Any:
    """Return `enumerate(...)`."""
    iterable = iterated(trace, iterable)
    if isinstance(iterable, PushIterator):
        return numbered(trace, iterable, start)
    return symbolic_enumerate(trace, iterable, start)


def zip_(trace: Trace, *iterables: Any, strict: bool = False) -> Any:
    """Return `zip(...)`; a generator goes ahead of what has a length."""
    if len(iterables) == 1 and type(iterables[0]) is Spliced:
        return _columns(trace, iterables[0].content)
    refuse_spliced(iterables)
    iterables = tuple(iterated(trace, x) for x in iterables)
    pushed = [i for i, x in enumerate(iterables) if isinstance(x, PushIterator)]
    if len(pushed) != 1 or strict or any(_is_pulled(trace, x) for x in iterables):
        return symbolic_zip(trace, *iterables, strict=strict)
    (at,) = pushed
    if len(iterables) == 1:
        return map_(trace, _alone, *iterables)
    others = [
        python_items(trace, x) if iterable_of(trace, x) is None else handed_over(trace, x)()
        for i, x in enumerate(iterables) if i != at
    ]  # fmt: skip
    ahead, length = (smallest(trace, [x.length for x in some]) for some in (others[:at], others))

    def row(i: Any, item: Any) -> tuple[Any, ...]:
        rest = [x.get(i) for x in others]
        return (*rest[:at], item, *rest[at:])

    def own() -> Iterator[Any]:
        return zip(*(x if isinstance(x, PushIterator) else trace.iterate(x) for x in iterables), strict=False)

    return beside(trace, iterables[at], ahead, length, row, own)


def _columns(trace: Trace, content: Any) -> tuple[list[Any], ...]:
    """Return `zip(*rows)` where only the run will tell how many rows there are; ValueError, in the run, for none."""
    element = getattr(content, "element", None)
    columns = getattr(getattr(element, "content", element), "items", ())
    if not columns:
        refuse_spliced([Spliced(content)])
    rows: list[Any] = []
    trace.store(rows, content)

    def none() -> None:
        raise ValueError("zip(*rows) of no rows, which a Program cannot tell from one of empty columns")

    if_exp(trace, sequence_of(trace, rows).length < 1, none, lambda: None)
    return tuple(collected(trace, rows, of=lambda row, i=i: item(trace, row, i)) for i in range(len(columns)))


def _is_pulled(trace: Trace, x: Any) -> bool:
    """Return whether only Python goes through an iterator."""
    return isinstance(x, Iterator) and not isinstance(x, PushIterator) and iterable_of(trace, x) is None


def _alone(item: Any) -> tuple[Any]:
    return (item,)


def map_(trace: Trace, f: Callable[..., Any], *iterables: Any) -> Any:
    """Return `map(...)` of a converted function."""
    call = trace.callable(f)
    iterables = tuple(iterated(trace, x) for x in iterables)
    if len(iterables) == 1 and isinstance(iterables[0], PushIterator):
        return iterables[0].each(lambda item, consumer: consumer(call(item)), lambda: map(call, iterables[0]))
    if not any(must_roll(trace, x) for x in iterables):
        kind: Any = CalledMap if all(isinstance(x, (range, *PYTHON_DATA)) for x in iterables) else map
        return kind(call, *(trace.iterate(x) for x in iterables))
    if len(iterables) == 1:
        parts = [handed_over(trace, iterables[0])]
        return derived(trace, parts, lambda found: (found[0].length, lambda i: call(found[0].get(i))))
    rows = symbolic_zip(trace, *iterables)
    if not isinstance(rows, TracedIterator):  # iterators, which Python pulls
        return itertools.starmap(call, rows)
    return derived(trace, [rows.source], lambda found: (found[0].length, lambda i: call(*found[0].get(i))))


def filter_(trace: Trace, f: Callable[..., Any] | None, items: Any) -> Any:
    """Return `filter(...)` of a converted function; the items are chosen at once where it is known only at run time
    which.
    """
    keep, items = trace.callable(f) if f is not None else None, iterated(trace, items)
    if isinstance(items, PushIterator):
        return chosen(trace, items, keep or (lambda x: x), lambda: filter(keep, items))
    if iterable_of(trace, items) is None and not isinstance(items, PYTHON_DATA):
        return filter(keep, trace.iterate(items))
    return iter_(trace, collected(trace, items, keep or (lambda x: x)))
