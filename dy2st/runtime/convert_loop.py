"""`while` and `for` on symbolic values: the body is traced once for all turns (traced_loop.py).

Loops over Python numbers are rolled likewise, and unrolled where the body needs their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dy2st.errors import NeedsPythonValue, StructureError
from dy2st.ir.location import error_here
from dy2st.runtime.checkpointing import Policy
from dy2st.runtime.convert_access import users_method
from dy2st.runtime.convert_if import if_, switch_statements
from dy2st.runtime.pushed import Pushed, loop_over
from dy2st.runtime.rebinding import carrying_more
from dy2st.runtime.symbolic_range import ChangedList, SymbolicIterable, iterable_of, live_items, sequence_of
from dy2st.runtime.traced_iterator import PulledIterator, TracedIterator, spoil
from dy2st.runtime.traced_loop import Loop, Thunk
from dy2st.runtime.variant import Variant

SHORT = 4
"""Loops over at most so many Python values are unrolled."""
MOST_TURNS = 10_000
"""A `while` whose test stays a Python value is given up after so many turns that all recorded something."""


def while_(trace: Any, test: Thunk, body: Thunk, get: Thunk, set: Callable[[Any], None], names: Sequence[str],
           checkpoint: Policy | None = None) -> None:  # fmt: skip
    """Run a `while` statement; Python turns are run as they come, from the first symbolic test on it is a loop op."""
    go, turns, before = test(), 0, len(trace.builder.block.operations)
    while not trace.is_symbolic(go):
        if not go:
            return
        body()
        go, turns = test(), turns + 1
        if turns % MOST_TURNS == 0 and len(trace.builder.block.operations) - before >= turns:
            raise error_here(
                StructureError,
                f"this `while` recorded operations for {turns:,} turns and its test is still a Python value",
                "a test on a tensor makes it one loop of the Program",
            )

    def turn() -> Any:
        body()
        return test()

    carrying_more(trace, lambda g, s, n: Loop(trace, g, s, n, checkpoint).run_while(go, turn), get, set, names)


def for_(trace: Any, iterable: Any, body: Callable[[Any], None], get: Thunk, set: Callable[[Any], None],
         names: Sequence[str], test: Thunk | None) -> None:  # fmt: skip
    """Run a `for` statement; `test` is False once it was left by `break`."""
    if isinstance(iterable, Variant):
        switch_statements(trace, iterable, lambda x: for_(trace, x, body, get, set, names, test), get, set, names)
        return
    symbolic = iterable_of(trace, iterable)
    if symbolic is None and (own := users_method(trace, iterable, "__iter__")) is not None:
        iterable = own()
        symbolic = iterable_of(trace, iterable)
    if isinstance(iterable, Pushed) and iterable.is_fresh:
        loop_over(trace, iterable, body, get, set, names, test)
        return
    before, mark = get(), trace.checkpoint()
    if isinstance(iterable, list) and symbolic is None:
        try:
            unrolled(trace, iterable, body, get, set, names, test)
        except ChangedList:
            trace.rollback(mark)
            set(before)
            _as_it_stands(trace, lambda: sequence_of(trace, iterable), body, get, set, names, test)
        return
    if symbolic is None or (isinstance(symbolic.length, int) and symbolic.length <= SHORT and not symbolic.must_roll):
        unrolled(trace, iterable, body, get, set, names, test)
        return
    if symbolic.must_roll:
        changes = symbolic.changes()
        _rolled(trace, symbolic, body, get, set, names, test)
        if symbolic.again is not None and symbolic.changes() != changes:
            trace.rollback(mark)
            set(before)
            _as_it_stands(trace, symbolic.again, body, get, set, names, test)
        return
    try:
        _rolled(trace, symbolic, body, get, set, names, test)
    except (NeedsPythonValue, StructureError):
        trace.rollback(mark)
        set(before)
        unrolled(trace, iterable, body, get, set, names, test)


def unrolled(trace: Any, iterable: Any, body: Callable[[Any], None], get: Thunk, set: Callable[[Any], None],
             names: Sequence[str], test: Thunk | None) -> None:  # fmt: skip
    """Run the turns of a Python iterable one after the other; after a symbolic `break` each stands under a `cond`."""
    turns: Iterator[Thunk]
    if isinstance(iterable, PulledIterator):
        turns = _pulls(iterable)
    elif isinstance(iterable, TracedIterator):
        items = iterable_of(trace, iterable)
        assert items is not None
        turns = (partial(items.get, i) for i in range(items.length))
    else:
        turns = (partial(_given, item) for item in live_items(trace, iterable))
    while True:
        go = True if test is None else test()
        if not trace.is_symbolic(go) and not go:
            return
        take = next(turns, None)
        if take is None:
            return
        if trace.is_symbolic(go):
            spoil(trace, iterable)
            if_(trace, go, lambda take=take: body(take()), lambda: None, get, set, names)
        else:
            body(take())


def _as_it_stands(trace: Any, sequence: Thunk, body: Callable[[Any], None], get: Thunk, set: Callable[[Any], None],
                  names: Sequence[str], test: Thunk | None) -> None:  # fmt: skip
    """Run through lists that the body changes as Python does: each turn asks how long they are, and for its item."""
    items = TracedIterator(trace, sequence)

    def go() -> Any:
        there = items.reaches(items.position + 1)
        return there if test is None else trace.both(there, test)

    def turn() -> None:
        position = items.position
        items.move(position + 1)
        body(items.item(position))

    while_(trace, go, turn, get, set, names)


def _given(item: Any) -> Any:
    return item


def _pulls(iterator: PulledIterator) -> Iterator[Thunk]:
    while iterator.reaches(iterator.position + 1):
        yield partial(next, iterator)


def fold(trace: Any, items: Any, start: Any, step: Callable[[Any, Any], Any]) -> Any:
    """Return `step(... step(step(start, x0), x1) ..., xn)` over items of which only the run will tell how many."""
    total = [start]

    def put(values: Any) -> None:
        total[:] = values

    for_(trace, items, lambda x: put([step(total[0], x)]), lambda: tuple(total), put, ("the total",), None)
    return total[0]


def _rolled(trace: Any, items: SymbolicIterable, body: Callable[[Any], None], get: Thunk, set: Callable[[Any], None],
            names: Sequence[str], test: Thunk | None) -> None:  # fmt: skip
    if isinstance(items.length, int) and items.length == 0:
        return
    carrying_more(trace, lambda g, s, n: Loop(trace, g, s, n).run_for(items, body, test), get, set, names)
