"""`while` and `for` on symbolic values: the body is traced once for all iterations (loop_carried_state.py).

Loops over Python numbers are rolled likewise, and unrolled where the body needs their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dy2st.errors import NeedsPythonValue, StructureError
from dy2st.ir.location import error_here
from dy2st.kinds import is_list, type_of
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.access.items import users_method
from dy2st.runtime.tracer.access.operators import users_dunder
from dy2st.runtime.tracer.control_flow.conditional import if_, switch_statements
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.nonlocal_rebinding import carrying_more
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import PushIterator, loop_over
from dy2st.runtime.tracer.loops.loop_carried_state import Thunk, TracedLoop
from dy2st.runtime.tracer.recording.loop_checkpointing import Policy
from dy2st.runtime.tracer.values.container_classes import own_method
from dy2st.runtime.tracer.values.symbolic_iterable import (
    ChangedList,
    SymbolicIterable,
    iterable_of,
    live_items,
    sequence_of,
)
from dy2st.runtime.tracer.values.symbolic_iterator import (
    ENDLESS,
    MovedInside,
    PulledIterator,
    TracedIterator,
    next_item,
    spoil,
)
from dy2st.runtime.tracer.values.union import Variant

SHORT = 4
"""Loops over at most so many Python values are unrolled."""
MOST_ITERATIONS = 10_000
"""A `while` whose test stays a Python value is given up after so many iterations that all recorded something."""


def while_(trace: Trace, test: Thunk, body: Thunk, get_state: Thunk, set_state: Callable[[Any], None],
        names: Sequence[str],
           checkpoint: Policy | None = None) -> None:  # fmt: skip
    """Run a `while` statement; Python turns are run as they come, from the first symbolic test on it is a loop op."""
    go, iterations, before = test(), 0, len(trace.builder.block.operations)
    while not trace.is_symbolic(go):
        if not go:
            return
        body()
        go, iterations = test(), iterations + 1
        if iterations % MOST_ITERATIONS == 0 and len(trace.builder.block.operations) - before >= iterations:
            raise error_here(
                StructureError,
                f"this `while` recorded operations for {iterations:,} turns and its test is still a Python value",
                "a test on a tensor makes it one loop of the Program",
            )

    def iteration() -> Any:
        body()
        return test()

    carrying_more(
        trace,
        lambda g, s, n: TracedLoop(trace, g, s, n, checkpoint).run_while(go, iteration),
        get_state,
        set_state,
        names,
    )


def for_(trace: Trace, iterable: Any, body: Callable[[Any], None], get_state: Thunk, set_state: Callable[[Any], None],
         names: Sequence[str], test: Thunk | None) -> None:  # fmt: skip
    """Run a `for` statement; `test` is False once it was left by `break`."""
    if isinstance(iterable, Variant):
        switch_statements(
            trace,
            iterable,
            lambda x: for_(trace, x, body, get_state, set_state, names, test),
            get_state,
            set_state,
            names,
        )
        return
    if isinstance(iterable, CONTAINERS) and (method := own_method(iterable, "__iter__")) is not None:
        iterable = trace.callable(method)(iterable)
    symbolic = iterable_of(trace, iterable)
    if symbolic is None and (own := users_method(trace, iterable, "__iter__")) is not None:
        iterable = own()
        symbolic = iterable_of(trace, iterable)
    if isinstance(iterable, PushIterator) and iterable.is_fresh:
        loop_over(trace, iterable, body, get_state, set_state, names, test)
    elif symbolic is not None and isinstance(iterable, TracedIterator):
        _over_iterator(trace, iterable, symbolic, body, get_state, set_state, names, test)
    else:
        before, mark = get_state(), trace.checkpoint()
        try:
            _over_items(trace, iterable, symbolic, body, get_state, set_state, names, test)
        except ChangedList:
            again = symbolic.again if symbolic is not None else None
            if again is None and not is_list(iterable):
                raise
            trace.rollback(mark)
            set_state(before)
            items = TracedIterator(trace, again or (lambda: sequence_of(trace, iterable)))
            _one_by_one(trace, items, body, get_state, set_state, names, test)


def _over_iterator(trace: Trace, iterator: TracedIterator, items: SymbolicIterable, body: Callable[[Any], None],
                   get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str],
                   test: Thunk | None) -> None:  # fmt: skip
    """Run a `for` statement over an iterator, which stands where the loop left it afterwards."""
    before, mark, first = get_state(), trace.checkpoint(), iterator.position
    if items.length is ENDLESS:
        _one_by_one(trace, iterator, body, get_state, set_state, names, test)
        return
    try:
        with iterator.in_loop():
            iterations = _over_items(trace, iterator, items, body, get_state, set_state, names, test)
        iterator.move(first + iterations)
    except (MovedInside, ChangedList) as error:
        if items.again is None if isinstance(error, ChangedList) else error.iterator is not iterator:
            raise
        trace.rollback(mark)
        set_state(before)
        _one_by_one(trace, iterator, body, get_state, set_state, names, test)
    if iterator.ended is not None:
        whole = True if test is None else test()
        if trace.is_symbolic(whole):
            trace.if_exp(whole, iterator.ended, lambda: None)
        elif whole:
            iterator.ended()


def _one_by_one(trace: Trace, items: TracedIterator, body: Callable[[Any], None], get_state: Thunk,
                set_state: Callable[[Any], None], names: Sequence[str], test: Thunk | None) -> None:  # fmt: skip
    """Run through an iterator as Python does: each iteration asks whether there is one more, and for it."""

    def go() -> Any:
        there = items.reaches(items.position + 1)
        return there if test is None else trace.both(there, test)

    while_(trace, go, lambda: body(next_item(trace, items)), get_state, set_state, names)


def _over_items(trace: Trace, iterable: Any, symbolic: SymbolicIterable | None, body: Callable[[Any], None],
                get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str],
                test: Thunk | None) -> Any:  # fmt: skip
    """Run the iterations of a `for` statement; return how many there were."""
    if symbolic is None or (isinstance(symbolic.length, int) and symbolic.length <= SHORT and not symbolic.must_roll):
        return unrolled(trace, iterable, symbolic, body, get_state, set_state, names, test)
    if symbolic.must_roll:
        changes = symbolic.changes()
        iterations = _rolled(trace, symbolic, body, get_state, set_state, names, test)
        if symbolic.again is not None and symbolic.changes() != changes:
            raise ChangedList("a list changes while a loop runs through it")
        return iterations
    before, mark = get_state(), trace.checkpoint()
    try:
        return _rolled(trace, symbolic, body, get_state, set_state, names, test)
    except (NeedsPythonValue, StructureError):
        trace.rollback(mark)
        set_state(before)
        return unrolled(trace, iterable, symbolic, body, get_state, set_state, names, test)


def unrolled(trace: Trace, iterable: Any, symbolic: SymbolicIterable | None, body: Callable[[Any], None],
        get_state: Thunk,
             set_state: Callable[[Any], None], names: Sequence[str], test: Thunk | None) -> Any:  # fmt: skip
    """Run the iterations of a Python iterable one after the other; after a symbolic `break` each stands under a `cond`.

    Return how many there were.
    """
    items: Iterator[Thunk]
    iterations: Any = 0
    recorded = 0
    if isinstance(iterable, PulledIterator):
        items = _pulls(iterable)
    elif isinstance(iterable, TracedIterator):
        assert symbolic is not None
        items = (partial(symbolic.get, i) for i in range(symbolic.length))
    else:
        items = (partial(_given, item) for item in live_items(trace, iterable))
    while True:
        go = True if test is None else test()
        if not trace.is_symbolic(go) and not go:
            return iterations
        take = next(items, None)
        if take is None:
            return iterations
        recorded += 1
        if trace.most_unrolled is not None and recorded > trace.most_unrolled:
            raise error_here(
                StructureError,
                f"the turns of this loop, which are more than {trace.most_unrolled}, have to be recorded one by one, "
                "because Python needs what changes in them",
                "use tensors in the place of what is indexed or named by the turn",
            )
        if trace.is_symbolic(go):
            spoil(trace, iterable)
            if users_dunder(type_of(iterable), "__next__") is not None:
                raise needs_value(f"only the run will tell how far a {type(iterable).__name__} has come")
            if_(trace, go, lambda take=take: body(take()), lambda: None, get_state, set_state, names)
            counted = isinstance(iterable, TracedIterator)
            iterations = trace.if_exp(go, lambda n=iterations: n + 1, lambda n=iterations: n) if counted else None
        else:
            body(take())
            iterations = iterations + 1


def _given(item: Any) -> Any:
    return item


def _pulls(iterator: PulledIterator) -> Iterator[Thunk]:
    while iterator.reaches(iterator.position + 1):
        yield partial(next, iterator)


def fold(trace: Trace, items: Any, start: Any, step: Callable[[Any, Any], Any]) -> Any:
    """Return `step(... step(step(start, x0), x1) ..., xn)` over items of which it is known only at run time how
    many.
    """
    total = [start]

    def put(values: Any) -> None:
        total[:] = values

    for_(trace, items, lambda x: put([step(total[0], x)]), lambda: tuple(total), put, ("the total",), None)
    return total[0]


def _rolled(trace: Trace, items: SymbolicIterable, body: Callable[[Any], None], get_state: Thunk,
        set_state: Callable[[Any], None],
            names: Sequence[str], test: Thunk | None) -> Any:  # fmt: skip
    if isinstance(items.length, int) and items.length == 0:
        return 0
    return carrying_more(
        trace, lambda g, s, n: TracedLoop(trace, g, s, n).run_for(items, body, test), get_state, set_state, names
    )
