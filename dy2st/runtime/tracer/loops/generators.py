"""Generators in a trace: a loop over one runs its body where the generator yields, so that both may be of the run.

    def above(xs, least):             for v in above(x, 1):
        for x in xs:                      total = total + v
            if x > least:
                yield x

The generator becomes `push(consumer, xs, least)`, with `if consumer(x): return` for the yield; the consumer is the body
of the loop, and says whether the loop was left. So this is one loop of the Program. What asks for items one by one
(`next`, and Python's own functions) takes them from a generator of Python's.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import GeneratorType
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.location import error_here
from dy2st.runtime.tracer.access.boolean_ops import not_, or_
from dy2st.runtime.tracer.control_flow.conditional import if_
from dy2st.runtime.tracer.control_flow.recursion import ActiveCall
from dy2st.runtime.tracer.effects.nonlocal_rebinding import check_carried
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_iterator import ENDLESS, check_moved

Consumer = Callable[[Any], Any]
ENDED = "ended"
DEEPEST = 30
"""Runs of one generator inside of each other, after which a trace gives up: each takes a dozen frames of Python's."""


class LoggedVariable:
    """A value that branches and loops of the trace hand over: an entry of the side-effect log."""

    def __init__(self, trace: Trace, value: Any):
        self.trace = trace
        trace.made.objects[id(self)] = self
        self.set(value)

    def get(self) -> Any:
        """Return the value as it is here."""
        found = self.trace.log.get(("attr", id(self), "value"))
        if found is MISSING:
            raise StructureError("a generator that was made inside of a branch or loop is used after it")
        return found

    def set(self, value: Any) -> None:
        """Give it another value."""
        self.trace.log.set(("attr", id(self), "value"), self, value)


class PushIterator(Iterator[Any]):
    """An iterator that can hand all its items to a consumer, or be pulled by Python."""

    def __init__(self, trace: Trace, run: Callable[[Consumer], Any], own: Callable[[], Iterator[Any]]):
        self.trace, self._run, self._make, self._block = trace, run, own, trace.builder.block
        self._own: Iterator[Any] | None = None
        self._began = LoggedVariable(trace, False)

    @property
    def is_fresh(self) -> bool:
        """Whether Python pulled nothing."""
        return self._own is None

    def pull(self) -> Iterator[Any]:
        """Return Python's own iterator."""
        if self._began.get() is ENDED:
            return iter(())
        if self._began.get() is not False:
            raise StructureError("a generator is asked for more after a loop that may have left it")
        if self._own is None:
            self._own = self._make()
            self.trace.made.note_iterator(self._own, self._block)
        check_moved(self.trace, self._own)
        return self._own

    def __next__(self) -> Any:
        return next(self.pull())

    def send(self, value: Any) -> Any:
        """Send a value into the generator."""
        return self.pull().send(value)  # type: ignore[attr-defined]

    def throw(self, *error: Any) -> Any:
        """Raise inside of the generator."""
        return self.pull().throw(*error)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close the generator."""
        self.pull().close()  # type: ignore[attr-defined]

    def push(self, consumer: Consumer) -> None:
        """Hand the items over, until the consumer says that it is enough."""
        if self._began.get() is ENDED:
            return
        if self._began.get() is not False:
            raise StructureError("only the run will tell how far a generator has come")
        self._began.set(True)
        left = False

        def taken(item: Any) -> Any:
            nonlocal left
            enough = consumer(item)
            left = left or enough is not False
            return enough

        self._run(taken)
        if not left:
            self._began.set(ENDED)

    def each(self, change: Callable[[Any, Consumer], Any], own: Callable[[], Iterator[Any]]) -> PushIterator:
        """Return an iterator over what `change` hands to a consumer for each item."""
        return PushIterator(self.trace, lambda consumer: self.push(lambda item: change(item, consumer)), own)


def cleans_up(generator: GeneratorType[Any, Any, Any]) -> bool:
    """Return whether a generator does anything where it is closed, or thrown into."""
    code: Any = dis.Bytecode(generator.gi_code)
    entries: list[Any] = code.exception_entries
    return len(entries) > (sys.version_info >= (3, 12))  # from 3.12 on there is one for StopIteration


def refuse_left_generators(trace: Trace) -> None:
    """Refuse a trace that holds a generator which the function has left in the middle: eager mode has closed it."""
    for generator in filter(None, (reference() for reference in trace.made.generators)):
        if generator.gi_frame is not None and cleans_up(generator):
            name = generator.gi_code.co_name
            raise StructureError(f"the generator `{name}` is left before its end, and has more to do when it is closed")


def forget_generators(trace: Trace) -> None:
    """Close the generators that are left of a trace so that what they do then is seen nowhere."""
    left = [reference() for reference in trace.made.generators]
    for generator in [*trace.made.dropped, *left]:
        if generator is not None and generator.gi_frame is not None:
            with suppress(Exception, GeneratorExit), trace.inside(trace.builder.child(), {}):
                generator.close()


def generated(trace: Trace, pull: Callable[..., Iterator[Any]], push: Any, arguments: tuple[Any, ...]) -> PushIterator:
    """Return what a call of a generator function gives, from the two forms that conversion makes of it."""

    def run(consumer: Consumer) -> None:
        check_carried(trace, push)
        if sum(active.function.__code__ is push.__code__ for active in trace.active) >= DEEPEST:
            raise error_here(StructureError, f"a generator goes through itself, {DEEPEST} deep")
        trace.active.append(ActiveCall(push, arguments, trace.builder))
        try:
            push(consumer, *arguments)
        finally:
            trace.active.pop()

    made = pull(*arguments)
    return PushIterator(trace, run, lambda: made)


def loop_over(trace: Trace, items: PushIterator, body: Callable[[Any], None], get_state: Callable[[], Any],
              set_state: Callable[[Any], None], names: Sequence[str], test: Callable[[],
              Any] | None) -> None:  # fmt: skip
    """Run a `for` statement over a generator; `test` is False once it was left by `break`."""
    owner = trace.builder

    def consumer(item: Any) -> Any:
        check_carried(trace, body, owner)
        body(item)
        return False if test is None else not_(trace, test())

    go = True if test is None else test()
    if trace.is_symbolic(go):
        if_(trace, go, lambda: items.push(consumer), lambda: None, get_state, set_state, names)
    elif go:
        items.push(consumer)


# ---- built-ins over generators -------------------------------------------------------------------------------------
def quantified(trace: Trace, items: PushIterator, truth: Callable[[Any, Any], Any], every: bool) -> Any:
    """Return `all(items)` or `any(items)`; items are asked for as long as the answer is open."""
    answer = LoggedVariable(trace, every)

    def consumer(item: Any) -> Any:
        answer.set(truth(trace, item))
        return not_(trace, answer.get()) if every else answer.get()

    items.push(consumer)
    return answer.get()


def numbered(trace: Trace, items: PushIterator, start: Any) -> PushIterator:
    """Return `enumerate(items, start)`."""
    count = LoggedVariable(trace, start)

    def change(item: Any, consumer: Consumer) -> Any:
        number = count.get()
        count.set(number + 1)
        return consumer((number, item))

    return items.each(change, lambda: enumerate(items, start))


def beside(
    trace: Trace,
    items: PushIterator,
    ahead: Any,
    length: Any,
    row: Callable[[Any, Any], Any],
    own: Callable[[], Iterator[Any]],
) -> PushIterator:
    """Return what `row(i, item)` makes of the first `length` items; of no more than `ahead` is asked for."""
    count = LoggedVariable(trace, 0)

    def change(item: Any, consumer: Consumer) -> Any:
        i = count.get()
        count.set(i + 1)
        left = _handed(trace, i < length, lambda: consumer(row(i, item)), True)
        return left if ahead is ENDLESS else or_(trace, left, [lambda: ahead <= i + 1])

    made = items.each(change, own)
    if ahead is ENDLESS:
        return made
    return PushIterator(trace, lambda consumer: _handed(trace, ahead > 0, lambda: made.push(consumer), None), own)


def chosen(
    trace: Trace, items: PushIterator, keep: Callable[[Any], Any], own: Callable[[], Iterator[Any]]
) -> PushIterator:
    """Return the items that `keep` wants."""
    return items.each(lambda item, consumer: _handed(trace, keep(item), lambda: consumer(item), False), own)


def _handed(trace: Trace, wanted: Any, hand: Callable[[], Any], otherwise: Any) -> Any:
    """Return what `hand` gives where it is wanted."""
    if not trace.is_symbolic(wanted):
        return hand() if trace.content(wanted) else otherwise
    given = LoggedVariable(trace, otherwise)
    if_(trace, trace.truth(wanted), lambda: given.set(hand()), lambda: None, tuple, lambda _: None, ())
    return given.get()
