"""Iterators in a trace: how far one has come is an entry of the side-effect log, so that branches and loops see it
move.

iter(x)                  a TracedIterator over x (a range, tensor, list, tuple, dict, set or text)
zip, enumerate, map ...  of what only the run will tell the length of: likewise, over what they make of its items
an iterator argument     a TracedIterator over what was pulled from it so far; the trace serves that one call
a generator, a zip ...   Python's own; where the trace made it, only the same block may move it
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.errors import StructureError, TraceError
from dy2st.ir.location import error_here
from dy2st.kinds import type_of
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.trace import ValueTrace

BUILT_IN = ("builtins", "itertools")
ENDLESS = sys.maxsize
"""The length of what never ends."""


class MovedInside(TraceError):
    """A loop runs through an iterator that its body asks for more."""

    iterator: Any = None


class TracedIterator:
    """An iterator over a sequence; `source()` is the sequence as it stands, with `length` and `get(i)`.

    `ended` is called where a loop comes to the end of it.
    """

    def __init__(self, trace: ValueTrace, source: Callable[[], Any], ended: Callable[[], None] | None = None):
        self.trace, self.source, self.ended, self.loops = trace, source, ended, 0
        trace.made.objects[id(self)] = self
        self.move(0)

    @property
    def key(self) -> tuple[str, int, str]:
        """The key of the position in the side-effect log."""
        return "attr", id(self), "position"

    @property
    def position(self) -> Any:
        """How many items were taken."""
        if self.loops:
            error = error_here(MovedInside, "a loop runs through an iterator that its body asks for more")
            error.iterator = self
            raise error
        found = self.trace.log.get(self.key)
        if found is MISSING:
            raise StructureError("an iterator that was made inside of a branch or loop is used after it")
        if not isinstance(found, (int, Scalar)):
            what = "an iterator is used again after zip(), enumerate(), map() or the like went through it"
            raise error_here(StructureError, what, "go through the list or tensor itself")
        return found

    def move(self, position: Any) -> None:
        """Set how many items were taken; None where something else takes them from now on."""
        self.trace.log.set(self.key, self, position)

    @contextmanager
    def in_loop(self) -> Generator[None]:
        """Refuse to say how far it has come, for the length of a `with`: a loop says so at its end."""
        self.loops += 1
        try:
            yield
        finally:
            self.loops -= 1

    def reaches(self, count: Any) -> Any:
        """Return whether it has so many items, symbolically where it is known only at run time."""
        length = self.source().length
        if length is ENDLESS:
            return True
        if isinstance(count, int) and isinstance(length, int):
            return count <= length
        return self.trace.as_scalar(count) <= length

    def item(self, position: Any) -> Any:
        """Return an item that it has."""
        return self.source().get(position)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        position = self.position
        reaches = self.reaches(position + 1)
        if self.trace.is_symbolic(reaches):
            raise needs_value("only the run will tell how far this iterator has come")
        if not reaches:
            raise StopIteration
        self.move(position + 1)
        return self.item(position)


def next_item(trace: ValueTrace, x: TracedIterator, *default: Any) -> Any:
    """Return `next(x, *default)`, also where it is known only at run time whether there is one more."""
    position = x.position
    reaches = x.reaches(position + 1)
    if not trace.is_symbolic(reaches):
        return next(x, *default)

    def take() -> Any:
        x.move(position + 1)
        return x.item(position)

    return trace.if_exp(reaches, take, lambda: default[0] if default else _stop())


def _stop() -> None:
    raise StopIteration


class PulledSource:
    """An iterator from outside, as eager code and traces of one call may both run through it: items are kept."""

    def __init__(self, real: Iterator[Any]):
        self.real = real
        self.items: list[Any] = []
        self.taken = 0

    def reaches(self, count: int) -> bool:
        """Return whether it has so many items; pulls those that were not asked for before."""
        while len(self.items) < count:
            try:
                self.items.append(next(self.real))
            except StopIteration:
                return False
        return True

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.reaches(self.taken + 1):
            raise StopIteration
        self.taken += 1
        return self.items[self.taken - 1]


class PulledIterator(TracedIterator):
    """An iterator from outside, in a trace: items are pulled as they are asked for."""

    def __init__(self, trace: ValueTrace, pulled: PulledSource):
        super().__init__(trace, list)
        self.pulled = pulled

    def reaches(self, count: Any) -> bool:
        if not isinstance(count, int):
            raise needs_value("only the run will tell how far this iterator has come")
        return self.pulled.reaches(count)

    def item(self, position: Any) -> Any:
        return self.pulled.items[position]


# ---- Python's own iterators ----------------------------------------------------------------------------------------
class CalledMap(map):  # type: ignore[type-arg]  # Python has no `map[Any]`
    """What `map` gives over Python's data, for `any` and `all`: these ask for calls as long as their answer is open."""

    def __new__(cls, call: Callable[..., Any], *iterables: Any) -> CalledMap:
        pulled = [iter(x) for x in iterables]
        made = super().__new__(cls, call, *pulled)
        made.call, made.pulled = call, pulled
        return made

    call: Callable[..., Any]
    pulled: list[Iterator[Any]]

    def calls_left(self) -> list[Callable[[], Any]]:
        """Return the calls of all items that are left, which are taken."""
        return [functools.partial(self.call, *row) for row in zip(*self.pulled, strict=False)]


def is_own(x: Any) -> bool:
    """Return whether `x` is an iterator of Python's, which keeps to itself how far it has come."""
    return isinstance(x, CalledMap) or (type_of(x).__module__ in BUILT_IN and isinstance(x, Iterator))


def made_here(trace: ValueTrace, x: Any) -> Any:
    """Note in which block an iterator was made; return what was given."""
    if is_own(x):
        trace.made.note_iterator(x, trace.builder.block)
    return x


def check_moved(trace: ValueTrace, x: Any) -> None:
    """Raise NeedsPythonValue where an iterator is moved in a block that may run more than once, or not at all."""
    if not is_own(x):
        return
    _, block = trace.made.iterators.get(id(x), (x, trace.root.block))
    if block is not trace.builder.block:
        raise needs_value("an iterator is moved in a branch or loop of which only the run will tell how often it runs")


def spoil(trace: ValueTrace, x: Any) -> None:
    """Note that it is known only at run time how far an iterator has come."""
    if is_own(x):
        trace.made.note_iterator(x, None)
