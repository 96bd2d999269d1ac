"""One symbolic loop while it is traced: which variables and log entries it carries, and with which abstract values.

That is found by tracing the body until what leaves an iteration fits what enters it: what stays the same object is a
constant of the loop, everything else becomes as general as needed. What came of it is cached for later traces
(loop_state_cache.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dy2st.errors import Dy2stError, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_at, user_frame, user_location
from dy2st.ir.program import Value
from dy2st.ir.types import INT, ScalarType
from dy2st.kinds import is_list, is_tuple
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.select import expect_loops
from dy2st.runtime.signal_delivery import Interrupted
from dy2st.runtime.tracer.control_flow.conditional import if_, predicate, seen_aval
from dy2st.runtime.tracer.control_flow.internal_errors import refuse_fault
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import (
    either,
    held_in,
    made_aval,
    made_content,
    old_objects,
    was_there,
)
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.effects.union_cast import by_value
from dy2st.runtime.tracer.loops import loop_state_cache
from dy2st.runtime.tracer.loops.loop_state_cache import CachedLoopState, gradients_reach
from dy2st.runtime.tracer.recording.loop_checkpointing import Policy, loop_attributes
from dy2st.runtime.tracer.values.abstract import AbstractValue, Const, ListOf, NewList, Number, TensorLike
from dy2st.runtime.tracer.values.flatten import flatten, unflatten
from dy2st.runtime.tracer.values.join import join_values
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar

Thunk = Callable[[], Any]
MOST_ATTEMPTS = 16


class RaisesAlways(Exception):
    """An iteration that raises whenever it runs: the loop is no loop, but an `if` that raises."""


class TracedLoop:
    """One symbolic loop while it is traced."""

    def __init__(self, trace: Trace, get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str],
                 checkpoint: Policy | None = None):  # fmt: skip
        self.trace, self.get, self.set, self.names = trace, get_state, set_state, list(names)
        self.place = user_location()
        self.attributes = loop_attributes(checkpoint)
        self.before = tuple(get_state())
        self.keys: list[Key] = []
        self.known = trace.borrows.state()
        """What is known of borrows before the loop."""
        self.lent: dict[Any, list[Any]] = {}
        """Who holds by value what an iteration leaves in a slot."""
        self.entering: dict[Any, Any] = dict(enumerate(self.before))
        self.avals: dict[Any, AbstractValue] = {}
        self.old = old_objects(trace)
        self.seen: list[dict[Any, Any]] = []
        """The tensors that the slots held at the beginning and at the end of the last attempt."""
        self.arguments: dict[Any, list[Value]] = {}
        """What the slots are made of at the beginning of an iteration."""
        self.leaving: dict[Any, AbstractValue] = {}
        """What the last attempt left in the slots."""

    # ---- the two kinds ---------------------------------------------------------------------------------------------
    def run_while(self, go: Any, iteration: Thunk) -> None:
        """Emit a `while_loop`: `go` decides the first iteration, what `iteration` returns each further one."""
        try:
            child, after = self._converge(iteration)
        except RaisesAlways:
            if_(self.trace, go, lambda: self._raises(iteration), lambda: None, self.get, self.set, self.names)
            return
        pred = predicate(self.trace, go)
        with self.trace.inside(child, self.writes):
            last = child.scalar(after) if isinstance(after, bool) else child.use(predicate(self.trace, after))
            if type(last.type) is not type(pred.type):  # a tensor and a number: both are numbers then
                last = _as_number(child, last)
        if type(last.type) is not type(pred.type):
            pred = _as_number(self.trace.builder, pred)
        self._finish(child, "while_loop", pred, [last], {}, 0)

    def run_for(self, items: SymbolicIterable, body: Callable[[Any], None], test: Thunk | None) -> Any:
        """Emit a `counted_while`, or a `while_loop` that counts where the loop can be left early; return the
        iterations.
        """
        trace = self.trace
        if test is None:
            index: list[Scalar] = []

            def enter(child: Builder) -> None:
                index[:] = [Scalar(child.argument(INT, "i"))]
                trace.iterations[index[0].value] = items.length

            try:
                child, _ = self._converge(lambda: body(items.get(index[0])), enter)
            except RaisesAlways:
                go = trace.as_scalar(0) < items.length
                alone = partial(self._raises, lambda: body(items.get(0)))
                if_(trace, go, alone, lambda: None, self.get, self.set, self.names)
                return items.length
            self._finish(child, "counted_while", trace.scalar(items.length), [], {"reverse": False}, 1)
            return items.length
        counter = len(self.before)
        self.entering[counter], self.avals[counter] = 0, Number("int")
        self.names.append("the turn")
        outer_get, outer_set = self.get, self.set
        position: list[Any] = [0]
        self.get = lambda: (*outer_get(), position[0])

        def put(values: Any) -> None:
            position[0] = values[-1]
            outer_set(values[:-1])

        self.set = put
        self.before = (*self.before, 0)

        def iteration() -> Any:
            body(items.get(position[0]))
            position[0] = position[0] + 1
            return trace.both(trace.as_scalar(position[0]) < items.length, test)

        first = test()
        start = items.length > 0 if isinstance(items.length, int) else trace.as_scalar(0) < items.length
        go = trace.both(start, lambda: first)
        if not trace.is_symbolic(go):
            if not go:
                return 0
            go = Scalar(trace.builder.scalar(True))
        self.run_while(go, iteration)
        return position[0]

    def _raises(self, iteration: Thunk) -> None:
        """Trace an iteration that raises whenever it runs; refuse one that does not where it stands alone."""
        iteration()
        raise self._error("a turn of this loop raised when it was traced as one of many, and does not as the only one")

    # ---- finding what is carried -----------------------------------------------------------------------------------
    def _converge(self, iteration: Thunk, enter: Callable[[Builder], None] | None = None) -> tuple[Builder, Any]:
        """Trace the iteration until what leaves it fits what enters; return its builder and what it returned."""
        trace = self.trace
        expect_loops()
        for i, x in self.entering.items():
            if i not in self.avals:  # what changes at every iteration is known from the start
                self.avals[i] = seen_aval(trace, None, x)
        entering = dict(self.avals)
        key = loop_state_cache.key_of(self.place, self.names, entering)
        frame = user_frame()
        variables = {} if frame is None else frame.f_locals
        converged = None if key is None else trace.loop_notes.cached(key, variables, self._seen_aval)
        if key is not None and converged is not None and converged.avals:
            found = self._from(converged, iteration, enter)
            if found is not None:
                trace.loop_notes.used.append(key)
                return found
        names, written = trace.builder.names, trace.aliases.writes
        child, after, skipped = self._until_stable(iteration, enter, names.count)
        depends = trace.aliases.writes != written or any(o.op.is_raise for o in child.block.walk())
        if key is None or not trace.loop_notes.are_read or (converged is not None and not converged.avals):
            return child, after
        failures = 0 if converged is None else converged.failures + 1
        if not depends:  # on traces before it
            entering |= {k: self._seen_aval(k) for k in self.keys}
            loop_state_cache.keep(key, entering, self.avals, variables, skipped, failures)
        elif failures:
            loop_state_cache.forget(key)
        return child, after

    def _until_stable(
        self, iteration: Thunk, enter: Callable[[Builder], None] | None, begun: int
    ) -> tuple[Builder, Any, int]:
        """Trace the iteration again and again; return also how many symbols were taken before the last time."""
        trace = self.trace
        looked_again = False
        for _ in range(MOST_ATTEMPTS):
            skipped = trace.builder.names.count - begun
            child = trace.builder.child()
            if enter is not None:
                enter(child)
            mark, written = trace.checkpoint(), trace.aliases.writes
            try:
                stable, after = self._attempt(child, iteration)
            except RaisesAlways:
                trace.rollback(mark)
                self.set(self.before)
                raise
            if stable and (trace.aliases.writes == written or looked_again):
                return child, after, skipped
            looked_again = stable  # at writes in place, with what is known now of the tensors of later iterations
            trace.rollback(mark)
        raise self._error("the values that this loop carries do not settle")

    def _from(
        self, converged: CachedLoopState, iteration: Thunk, enter: Callable[[Builder], None] | None
    ) -> tuple[Builder, Any] | None:
        """Trace the iteration once, from what an earlier trace settled on; None where this one would not settle on
        that.
        """
        trace, entering = self.trace, dict(self.avals)
        mark = trace.checkpoint()
        keys = [slot for slot in converged.avals if slot not in entering]
        try:
            child, after, holds = self._attempt_from(converged, keys, iteration, enter)
            if holds:
                return child, after
        except Exception:  # what was cached is of another loop, or the next trace finds the same
            pass
        trace.rollback(mark)
        self.avals = entering
        self.entering = {slot: x for slot, x in self.entering.items() if slot not in keys}
        self.keys, self.lent, self.seen = [], {}, []
        return None

    def _attempt_from(
        self, converged: CachedLoopState, keys: list[Any], iteration: Thunk, enter: Callable[[Builder], None] | None
    ) -> tuple[Builder, Any, bool]:
        """Trace the iteration from what an earlier trace settled on; say too whether this one would settle on that.

        `keys` are the slots that nothing has told before.
        """
        trace, entering, written = self.trace, dict(self.avals), self.trace.aliases.writes
        self.keys += keys
        self.entering |= {k: trace.current(k) for k in keys}
        entering |= {k: self._seen_aval(k) for k in keys}
        self.avals |= converged.avals
        trace.builder.names.count += converged.skipped
        child = trace.builder.child()
        if enter is not None:
            enter(child)
        stable, after = self._attempt(child, iteration)
        if not stable or trace.aliases.writes != written:
            return child, after, False
        if not converged.is_confirmed(trace, entering, self.leaving, self.arguments):
            return child, after, False
        said = [i for i, t in self.avals.items() if _needs_gradient(t) and not _needs_gradient(entering[i])]
        left = {i: self._value_left(x) for i, x in self.left.items()}
        return child, after, gradients_reach(said, left, self.arguments, child, trace.needs)

    def _value_left(self, x: Any) -> Value | None:
        """Return the value of what an iteration left in a slot where that is a tensor, also one from outside of the
        trace.
        """
        return self.trace.value_of(x) if isinstance(x, Tensor) else None

    def _seen_aval(self, slot: Any, owner: Any = None) -> AbstractValue:
        """Return the abstract value of what a slot holds before the loop; `owner` is the list of which it is the
        content.
        """
        if isinstance(slot, int):
            return self.avals[slot]
        if owner is not None:
            self.trace.log.keep(owner)
        return seen_aval(self.trace, slot, self.entering.get(slot, self.trace.current(slot)))

    def _attempt(self, child: Builder, iteration: Thunk) -> tuple[bool, Any]:
        trace = self.trace
        self.writes: dict[Key, Any] = {}
        self._lend_entering()
        entries: list[Value] = []
        objects: dict[Any, Any] = {}
        with trace.inside(child, self.writes):
            for slot, aval in self.avals.items():
                values = [child.argument(t) for t in map(child.named, aval.types())]
                self.arguments[slot] = values
                entries += values
                objects[slot] = unflatten(trace, iter(values), aval)
            for key in self.keys:
                trace.commit_joined(key, objects[key])
            for slot, owners in self.lent.items():
                trace.borrows.freeze(objects.get(slot), owners, self.old)
            entered = {slot: held_in(trace, slot, x) for slot, x in objects.items()}
            self._are_one_of(entered)
            self.set(tuple(objects[i] for i in range(len(self.before))))
            try:
                with trace.carrying(self.get), trace.borrows.iteration(child.parent):
                    after = iteration()
            except (Dy2stError, KeyboardInterrupt, Interrupted):
                raise
            except BaseException as error:
                refuse_fault(error)
                raise RaisesAlways from None
            lent = self._owners([*enumerate(self.get()), *(x for x in self.writes.items() if self._is_carried(x[0]))])
            left = {i: by_value(trace, x, self.old) for i, x in enumerate(self.get())}
            self.writes.update({k: by_value(trace, x, self.old) for k, x in self.writes.items()})
            self.seen = [entered, {i: held_in(trace, i, x) for i, x in [*left.items(), *self.writes.items()]}]
        self.entries = entries
        found = [key for key in self.writes if key not in self.keys and self._is_carried(key)]
        for key in found:
            self.entering[key] = trace.current(key)
            self.avals[key] = seen_aval(trace, key, self.entering[key])
        self.keys += found
        left.update({key: self.writes.get(key, self.entering[key]) for key in self.keys})
        self.left = left
        stable = not found and lent.keys() <= self.lent.keys()
        self.lent |= lent
        for slot, x in left.items():
            met = self._meet(slot, child, x)
            if met != self.avals[slot]:
                self.avals[slot] = met
                stable = False
        return stable, after

    def _lend_entering(self) -> None:
        """Note what enters by value: the elements of a list whose length is known only at run time in the loop."""
        for slot, content in self.entering.items():
            if is_tuple(slot) and is_list(content) and isinstance(self.avals.get(slot), ListOf):
                self.trace.borrows.freeze(tuple(content), [self.trace.log.owner(slot)])

    def _owners(self, left: list[tuple[Any, Any]]) -> dict[Any, list[Any]]:
        """Return who holds what the slots were left with, where others do."""
        borrows = self.trace.borrows
        return {slot: owners for slot, x in left if (owners := borrows.owners_of(x))} if borrows.parts else {}

    def _are_one_of(self, made: dict[Any, Any]) -> None:
        """Note that the tensors that the slots hold now are those that entered, or were left by an iteration."""
        with self.trace.borrows.quiet():
            entering = {slot: held_in(self.trace, slot, x) for slot, x in self.entering.items()}  # before the loop
        self.trace.aliases.joined(made, entering, *self.seen)
        self.trace.aliases.keep_distinct(made, entering, *self.seen)

    def _is_carried(self, key: Key) -> bool:
        """Return whether an entry of the side-effect log is of something that was there before this iteration."""
        return was_there(self.trace, key, self.old)

    def _meet(self, slot: Any, child: Builder, x: Any) -> AbstractValue:
        trace = self.trace
        with trace.inside(child, self.writes):
            if is_tuple(slot) and slot[0] in ("items", "tail"):
                leaving = made_content(trace, x, self.old)
            else:
                leaving = made_aval(trace, x, self.old)
                if isinstance(leaving, Const) and isinstance(self.avals[slot], NewList) and type(x) in CONTAINERS:
                    leaving = NewList(made_content(trace, trace.content(x), self.old))
        self.leaving[slot] = leaving
        before, after = (getattr(t, "object", None) for t in (self.avals[slot], leaving))
        if before is not after and type(before) in CONTAINERS and type(after) in CONTAINERS:
            return either(before, after)
        try:
            return join_values(self.avals[slot], leaving, trace)
        except StructureError as error:
            name = self.names[slot] if isinstance(slot, int) else str(slot[0])
            raise self._error(f"`{name}` cannot be carried by this loop: {error.reason}") from None

    def _finish(self, child: Builder, op: str, head: Value, first: list[Value], attributes: Any, offset: int) -> None:
        """Close the block and emit the loop; the local variables and log entries are its results."""
        trace = self.trace
        results = list(first)
        with trace.inside(child, self.writes):
            for slot, aval in self.avals.items():
                results += flatten(trace, self.left[slot], aval)
        child.block.results = [child.use(v) for v in results]
        initial: list[Value] = []
        with trace.borrows.at(self.known):
            for slot, aval in self.avals.items():
                initial += flatten(trace, self.entering[slot], aval)
        b: Builder = trace.builder
        iteration = child.block.arguments[:offset]
        child.block.arguments[:] = [*iteration, *self.entries, *child.captures.values()]
        before, b.location = b.location, self.place
        operands = [head, *initial, *child.captures]
        made = b.operation(op, operands, {"carried": len(initial), **attributes, **self.attributes}, [child.block])
        b.location = before
        values = iter(made.results)
        joined = {slot: unflatten(trace, values, t) for slot, t in self.avals.items()}
        for key in self.keys:
            trace.commit_joined(key, joined[key])
        for slot, owners in self.lent.items():
            trace.borrows.freeze(joined.get(slot), owners, self.old)
        self._are_one_of({slot: held_in(trace, slot, x) for slot, x in joined.items()})
        self.set(tuple(joined[i] for i in range(len(self.before))))

    def _error(self, message: str) -> StructureError:
        return error_at(StructureError, self.place, message)


def _needs_gradient(t: AbstractValue) -> bool:
    return isinstance(t, TensorLike) and not t.stop_gradient


def _as_number(b: Builder, test: Value) -> Value:
    """Return a test as a Python bool."""
    return test if isinstance(test.type, ScalarType) else b.emit("item", [test])
