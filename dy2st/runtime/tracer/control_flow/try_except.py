"""`try` around what only the run raises: a `try` operation for each `raise` that the handlers may see.

The body is run first as it is. What Python raises while it is traced goes to the handlers at once, and nothing more
is needed. Where a branch in the body raises, or an operation may, only the run will tell: the body is traced again, and
each such *site* hands over what stands at that point (local variables, writes) to a handler of its own. There the
user's handlers run as Python runs them, with the exception that the site raises.

    try(body, handler 2) { try(body, handler 1) { body with raise 1 and raise 2 } { handler 1 } } { handler 2 }
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from dy2st.errors import Dy2stError, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import Type
from dy2st.kinds import is_tuple
from dy2st.ops.control.control_flow import outward, visible_symbols
from dy2st.records import record
from dy2st.runtime.signal_delivery import Interrupted
from dy2st.runtime.tracer.control_flow.assert_raise import RaisedException
from dy2st.runtime.tracer.control_flow.catchable_errors import RunError, guarded, kinds_raised
from dy2st.runtime.tracer.control_flow.conditional import Diverged, if_, join_blocks, seen_aval
from dy2st.runtime.tracer.control_flow.internal_errors import refuse_fault
from dy2st.runtime.tracer.effects.escape_analysis import (
    is_plain_object,
    made_aval,
    made_content,
    old_objects,
    was_there,
)
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import AbstractValue
from dy2st.runtime.tracer.values.flatten import flatten, unflatten
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.shapes import symbol

Thunk = Callable[[], Any]
Handler = Callable[[BaseException], None]


@record
class RaiseSite:
    """A `raise` in the body of a `try`: the exception, and what it hands over."""

    raised: RaisedException
    locals: list[AbstractValue]
    keys: list[Key]
    writes: list[AbstractValue]
    types: list[Type]


class TracedTry:
    """One `try` statement whose body is being traced."""

    def __init__(self, trace: Trace, get_state: Thunk, kinds: Thunk):
        self.trace, self.get, self.kinds = trace, get_state, kinds
        self.inside = functions_inside(trace)
        self.depth = len(trace.log.overlays)
        self.old = old_objects(trace)
        self.around: list[TracedTry] = list(trace.attempts)
        self.sites: dict[int, RaiseSite] = {}
        self.known: list[Any] | None = None

    @contextmanager
    def active(self) -> Generator[None]:
        """Take note of what the code in a `with` raises."""
        self.trace.attempts.append(self)
        try:
            yield
        finally:
            self.trace.attempts.pop()

    def hand_over(self, label: int, raised: RaisedException) -> list[Value]:
        """Note a site; return what its `raise` hands over beside the values in the exception."""
        trace = self.trace
        if functions_inside(trace) != self.inside:
            raise error_here(
                StructureError, "a function that calls itself raises what a `try` outside of it would have to catch"
            )
        trace.leaving()
        variables = list(self.get())
        keys = [k for k in dict.fromkeys(k for o in trace.log.overlays[self.depth :] for k in o) if self.lasts(k)]
        found = [trace.current(k) for k in keys]
        shapes = [self.aval(None, x) for x in variables]
        written = [self.aval(k, x) for k, x in zip(keys, found, strict=True)]
        pairs = zip([*variables, *found], [*shapes, *written], strict=True)
        values = [v for x, t in pairs for v in flatten(trace, x, t)]
        self.sites[label] = RaiseSite(raised, shapes, keys, written, [v.type for v in [*raised.operands, *values]])
        return values

    def guard(self, b: Builder, op: OpDef, operands: list[Value], attributes: dict[str, Any]) -> Operation | None:
        """Put an operation that may raise what a handler is for into a `try`; None where it needs none."""
        kinds = kinds_raised(op, operands, attributes, self.caught())
        if not kinds or b is not self.trace.builder:
            return None

        def again(handler: Builder, kind: type[Any]) -> None:
            with self.trace.inside(handler, {}):
                self.trace.raise_later(kind(RunError()))

        before, b.guard = b.guard, None
        try:
            return guarded(b, op, operands, attributes, kinds, again)
        finally:
            b.guard = before

    def caught(self) -> list[Any]:
        """Return what the handlers of this `try`, and of those around it, catch."""
        if self.known is None:
            kinds = [kind for attempt in (*self.around, self) for kind in attempt.kinds()]
            self.known = [k for kind in kinds for k in (kind if is_tuple(kind) else (kind,))]
        return self.known

    def lasts(self, key: Key) -> bool:
        """Return whether what stands under a key can be seen outside of the body."""
        return key[0] not in ("items", "attr") or was_there(self.trace, key, self.old)

    def aval(self, key: Key | None, x: Any) -> AbstractValue:
        if key is not None and key[0] in ("items", "tail"):
            return made_content(self.trace, x, self.old)
        if isinstance(x, (list, dict, tuple)) or is_plain_object(x):
            return made_aval(self.trace, x, self.old)
        return seen_aval(self.trace, key, x)

    def count(self, operations: Sequence[Operation], guards: bool) -> list[int]:
        """Return the labels of the sites among operations and the blocks in them, in order.

        Without `guards`, what operations may raise themselves has no label yet, and counts as -1.
        """
        found: list[int] = []
        for o in operations:
            if o.op.is_raise and o.attributes["label"] in self.sites:
                found.append(o.attributes["label"])
            elif not guards:
                found += [-1 for _ in kinds_raised(o.op, o.operands, o.attributes, self.caught())]
            held = o.op.is_try and bool(o.attributes["kinds"])  # what its body raises is a site of its handler
            for i, block in enumerate(o.blocks):
                found += self.count(block.operations, guards or (held and i == 0))
        return found


def plain(body: Thunk, handler: Handler | None, orelse: Thunk | None, final: Thunk | None) -> None:
    """Run a `try` statement as Python does."""
    try:
        try:
            body()
        except BaseException as error:
            if handler is None or isinstance(error, Interrupted):
                raise
            handler(error)
        else:
            if orelse is not None:
                orelse()
    finally:
        if final is not None:
            final()


def try_(trace: Trace, body: Thunk, handler: Handler | None, orelse: Thunk | None, final: Thunk | None, kinds: Thunk,
         get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str]) -> None:  # fmt: skip
    """Run a `try` statement; `handler` runs the handlers that fit an exception, and raises it again where none does."""
    if final is None:
        assert handler is not None
        with_handlers(trace, body, handler, orelse, kinds, get_state, set_state, names)
        return

    def whole() -> None:
        if handler is None:
            body()
        else:
            with_handlers(trace, body, handler, orelse, kinds, get_state, set_state, names)

    def at_last(error: BaseException) -> None:
        final()
        raise error

    with_handlers(trace, whole, at_last, None, lambda: (BaseException,), get_state, set_state, names, final)
    final()


def with_handlers(trace: Trace, body: Thunk, handler: Handler, orelse: Thunk | None,
                  kinds: Thunk, get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str],
                  told_by: Thunk | None = None) -> None:  # fmt: skip
    """Run the body of a `try` with its handlers; `kinds` gives what they catch of what operations raise.

    `told_by` is a part of the statement by whose code it is known again, the body where it is None. A `try` around
    traces this one more often: how many sites there were before is tried at once, else each level would double that.
    """
    before, mark, statement = get_state(), trace.checkpoint(), getattr(told_by or body, "__code__", None)
    again = _Again(trace, body, handler, kinds, get_state, set_state, names)
    if statement in trace.sites_before:
        try:
            finished = again.run(trace.sites_before[statement])
        except OtherSites:
            trace.rollback(mark)
            set_state(before)
        else:
            _ended(trace, finished, orelse, get_state, set_state, names)
            return
    error, diverged, attempt = None, False, TracedTry(trace, get_state, kinds)
    with attempt.active():
        try:
            body()
        except Diverged:
            diverged = True
        except (Dy2stError, RecursionError, Interrupted):
            raise
        except BaseException as found:
            refuse_fault(found)
            error = found
    count = len(attempt.count(trace.builder.since(mark[0]), False))
    if not count:
        if diverged:
            raise Diverged
        if error is not None:
            handler(error)
        elif orelse is not None:
            orelse()
        return
    trace.rollback(mark)
    set_state(before)
    finished = _traced_again(trace, mark, again, count + (error is not None))
    if statement is not None and again.sites:
        trace.sites_before[statement] = again.sites
    _ended(trace, finished, orelse, get_state, set_state, names)


def _ended(trace: Trace, finished: Any, orelse: Thunk | None, get_state: Thunk, set_state: Callable[[Any], None],
           names: Sequence[str]) -> None:  # fmt: skip
    """Run the `else` of a `try` where its body came to its end."""
    if orelse is None:
        return
    if trace.is_symbolic(finished):
        if_(trace, finished, orelse, lambda: None, get_state, set_state, names)
    elif finished:
        orelse()


class OtherSites(Dy2stError):
    """The body raises at another number of places than was looked for: `count`."""

    def __init__(self, count: int):
        super().__init__(count)
        self.count = count


def _traced_again(trace: Trace, mark: Any, again: _Again, sites: int) -> Any:
    """Trace a `try` with so many sites, or as many as are found then: guards leave some out and bring others."""
    before = again.get()
    for _ in range(4):
        try:
            return again.run(sites)
        except OtherSites as found:
            trace.rollback(mark)
            again.set(before)
            sites = found.count
    raise error_here(StructureError, "the body of this `try` raises at other places whenever it is traced")


class _Again:
    """The second trace of a `try` statement, with a `try` operation for each site."""

    def __init__(self, trace: Trace, body: Thunk, handler: Handler, kinds: Thunk, get_state: Thunk,
                 set_state: Callable[[Any], None], names: Sequence[str]):  # fmt: skip
        self.trace, self.body, self.handler = trace, body, handler
        self.get, self.set, self.names = get_state, set_state, names
        self.kinds = kinds
        self.attempt = TracedTry(trace, get_state, kinds)
        self.labels: list[int] = []
        self.sites = 0

    def run(self, sites: int) -> Any:
        """Trace all; return whether the body came to its end."""
        self.sites, self.attempt = sites, TracedTry(self.trace, self.get, self.kinds)
        return self.level(sites)

    def level(self, n: int) -> Any:
        """Trace the body with the handlers of the first `n` sites."""
        if not n:
            return self.innermost()
        given: list[Value] = []

        def handle() -> bool:
            site = self.attempt.sites[self.labels[n - 1]]
            values, error = self.enter(site)
            given.extend(values)
            self.handler(error)
            return False

        def emit(then: Builder, other: Builder, place: Any) -> list[Value]:
            return emit_try(self.trace.builder, self.labels[n - 1], then, other, given, place)

        joined, finished = join_blocks(
            self.trace, emit, lambda: self.level(n - 1), handle, self.get, self.set, self.names
        )
        self.set(joined)
        return finished

    def innermost(self) -> bool:
        trace, diverged = self.trace, False
        trace.builder.guard = self.attempt.guard
        with self.attempt.active():
            try:
                self.body()
            except Diverged:
                diverged = True
            except (Dy2stError, RecursionError):
                raise
            except Exception as error:
                refuse_fault(error)
                trace.raise_later(error)
                diverged = True
        trace.builder.guard = None
        self.labels = self.attempt.count(trace.builder.block.operations, True)
        if len(self.labels) != self.sites:
            raise OtherSites(len(self.labels))
        if diverged:
            raise Diverged
        return True

    def enter(self, site: RaiseSite) -> tuple[list[Value], BaseException]:
        """Stand where a site has raised; return the arguments of the handler that this takes, and the exception."""
        trace = self.trace
        b: Builder = trace.builder
        seen = {s for s in visible_symbols(site.types) if b.knows(symbol(s))}
        given = [b.argument(b.named(outward(t, seen))) for t in site.types]
        values = iter(given)
        error = site.raised.seen(trace, values)
        trace.raised_at[id(error)] = error, trace.raised_at[id(site.raised.error)][1]
        self.set([unflatten(trace, values, t) for t in site.locals])
        for key, aval in zip(site.keys, site.writes, strict=True):
            trace.commit_joined(key, unflatten(trace, values, aval))
        return given, error


def emit_try(b: Builder, label: int, then: Builder, other: Builder, given: Sequence[Value], place: Any) -> list[Value]:
    """Emit a `try` over two child builders; `given` are the arguments of the second that a `raise` hands over."""
    outer = list(dict.fromkeys([*then.captures, *other.captures]))
    for child, first in ((then, ()), (other, given)):
        for value in outer:
            child.use(value)
        child.block.arguments[:] = [*first, *(child.captures[v] for v in outer)]
    blocks = [then.block, other.block]
    return b.operation("try", outer, {"label": label, "kinds": ()}, blocks, place).results


def functions_inside(trace: Trace) -> list[str]:
    """Return the functions of the Program in which the trace stands."""
    return [found.name for found in trace.recursions if found.inside is not None]
