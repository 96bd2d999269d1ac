"""What a loop was found to carry, cached on disk: a later process begins with it, and traces the body once.

A body is traced until what leaves an iteration fits what enters it (loop_carried_state.py), two or three times where
extents or numbers turn out to change. What they settled on is cached by the place of the loop and what entered it. That
is where the next trace begins, no more: it looks whether it would have come to the same from what enters, else it
begins anew.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from dy2st.dtypes import DType
from dy2st.ir.builder import Builder
from dy2st.ir.location import Location
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.type_text import DTYPES
from dy2st.ir.types import TensorType
from dy2st.kinds import LIST, is_tuple
from dy2st.ops.core.constant import Detach
from dy2st.records import field, record
from dy2st.runtime.aot_cache import disk_cache, program_artifacts
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import AbstractValue, Const, Items, ListOf, Number, TensorLike
from dy2st.runtime.tracer.values.join import join_values
from dy2st.shapes import Dim, Extent, substituted

Slot = Any
"""The number of a local variable, or the key of an entry of the side-effect log."""
_MOST_FAILURES = 2
_LOOPS: disk_cache.Kind[Any] = disk_cache.Kind("loop", marshal.dumps, marshal.loads, program_artifacts.maker)


@record
class CachedLoopState:
    """What a loop carries, as an earlier trace found it."""

    avals: dict[Slot, AbstractValue]
    """Of the slots that what entered did not tell."""
    skipped: int
    """How many symbols that trace had taken before its last iteration; with as many the Program is the same one."""
    failures: int = 0
    """How many traces have come to something else than what was cached for them."""

    def is_confirmed(
        self,
        trace: Trace,
        entering: Mapping[Slot, AbstractValue],
        left: Mapping[Slot, AbstractValue],
        arguments: Mapping[Slot, Sequence[Value]],
    ) -> bool:
        """Return whether a trace that began with `entering` would have come to these abstract values.

        `left` is what an iteration that began with these left, `arguments` are what it began with.
        """
        known: dict[str, Extent] = {}
        for slot in self.avals:
            t = entering[slot]
            if isinstance(t, TensorLike):
                pairs = zip(tensor_type(arguments[slot][0]).shape, t.type.shape, strict=True)
                known |= {str(symbol): e for symbol, e in pairs if isinstance(symbol, Dim) and symbol != e}
        return all(join_values(entering[slot], _with(left[slot], known), trace) == t for slot, t in self.avals.items())


@record
class LoopStateNotes:
    """What a trace has begun loops with that earlier ones had cached."""

    are_read: bool = True
    used: list[str] = field(default_factory=list[str])
    """The keys."""

    def cached(
        self, key: str, variables: Mapping[str, Any], seen: Callable[[Slot, Any], AbstractValue]
    ) -> CachedLoopState | None:
        """Return what is cached of a loop, as `cached` does; after an error nothing is."""
        return cached(key, variables, seen) if self.are_read else None

    def dropped(self) -> bool:
        """Forget what a trace that failed had begun with, so that one without that may follow; False for nothing."""
        for key in self.used:
            forget(key)
        was_used, self.are_read = bool(self.used), False
        self.used = []
        return was_used


def _with(t: AbstractValue, known: Mapping[str, Extent]) -> AbstractValue:
    """Return an abstract value with extents in place of symbols."""
    if isinstance(t, TensorLike):
        return TensorLike(_type(t.type.dtype, [substituted(e, known) for e in t.type.shape]), t.stop_gradient)
    return t.mapped(partial(_with, known=known)) if isinstance(t, (Items, ListOf)) else t


def gradients_reach(
    said: Sequence[Slot],
    left: Mapping[Slot, Value | None],
    arguments: Mapping[Slot, Sequence[Value]],
    child: Builder,
    needs: Set[Value],
) -> bool:
    """Return whether gradients flow into all slots that are said to need them, and not only because that is said.

    `left` are the tensors that the iteration of `child` left in the slots.
    """
    waiting = set(said)
    reached = {inner for outer, inner in child.captures.items() if outer in needs}
    reached |= {v for slot, values in arguments.items() if slot not in waiting for v in values if v in needs}
    while waiting:
        for operation in child.block.operations:
            if not isinstance(operation.op, Detach) and not reached.isdisjoint(operation.operands):
                reached.update(operation.results)
        found = {slot for slot in waiting if _is_reached(left[slot], reached, child, needs)}
        if not found:
            return False
        waiting -= found
        reached.update(v for slot in found for v in arguments[slot])
    return True


def _is_reached(value: Value | None, reached: Set[Value], child: Builder, needs: Set[Value]) -> bool:
    is_from_outside = value is not None and value.block is not child.block
    return value in reached or (is_from_outside and value in needs)


def key_of(place: Location | None, names: Sequence[str], entering: Mapping[Slot, AbstractValue]) -> str | None:
    """Return what stands for a loop in every process; None where nothing is cached."""
    if place is None or disk_cache.folder() is None:
        return None
    calls = [(code.co_qualname, code.co_firstlineno, at) for code, at in place.calls]  # others carry something else
    enters = [f"{type(t).__name__} {type(t.object).__name__ if isinstance(t, Const) else t}" for t in entering.values()]
    return _LOOPS.key(place.file, place.line, calls, list(names), enters)


def cached(
    key: str, variables: Mapping[str, Any], seen: Callable[[Slot, Any], AbstractValue]
) -> CachedLoopState | None:
    """Return what is cached of a loop among these variables; None where nothing is, empty where it does not fit.

    `seen` gives the abstract value of what a slot holds; it is told the list of which a slot is the content.
    """
    cached = _LOOPS.read(key)
    if cached is None:
        return None
    try:
        data, skipped, failures = cached
        found = [(*_slot(name, variables), how) for name, how in data]
        avals = {slot: _changed(seen(slot, owner), how) for slot, owner, how in found}
        return CachedLoopState(avals, int(skipped), int(failures))
    except Exception:  # of a loop in whose place there is another one now
        return CachedLoopState({}, 0)


def keep(
    key: str,
    entering: Mapping[Slot, AbstractValue],
    found: Mapping[Slot, AbstractValue],
    variables: Mapping[str, Any],
    skipped: int,
    failures: int = 0,
) -> None:
    """Keep what a loop settled on, where all of it can be said without objects of this process.

    Where traces come to something else again and again, nothing is cached for good.
    """
    if failures > _MOST_FAILURES:
        forget(key)
        return
    data: list[tuple[Any, Any]] = []
    for slot, t in found.items():
        if t != entering[slot] or not isinstance(slot, int):
            name, how = _name(slot, variables), _difference(entering[slot], t)
            if name is None or how is None:
                return
            data.append((name, how))
    if data:
        _LOOPS.write(key, (data, skipped, failures))


def forget(key: str) -> None:
    """Keep that there is nothing to begin with: what was cached of a loop does not hold any more."""
    _LOOPS.write(key, ([], 0, 0))


def _name(slot: Slot, variables: Mapping[str, Any]) -> int | str | None:
    """Return what names a slot in every process: its number, or the variable that holds the list of this content."""
    if isinstance(slot, int):
        return slot
    return next((name for name, x in variables.items() if slot[0] == "items" and id(x) == slot[1]), None)


def _slot(name: int | str, variables: Mapping[str, Any]) -> tuple[Slot, list[Any] | None]:
    """Return a slot by its name, and the list that holds it; KeyError or TypeError where there is none."""
    if isinstance(name, int):
        return name, None
    owner = variables[name]
    if type(owner) is not LIST:
        raise TypeError(f"{name} is no list")
    return ("items", id(owner)), owner


def _difference(entering: AbstractValue, t: AbstractValue) -> Any:
    """Return what became of an abstract value, as plain data; None where it cannot be said so."""
    if t == entering:
        return ("same",)
    if isinstance(entering, TensorLike) and isinstance(t, TensorLike):
        extents: tuple[Any, ...] = t.type.shape  # None where two that were joined differ
        return "open", [extent is None for extent in extents], t.stop_gradient
    if isinstance(t, Number) and entering.number_kind == t.kind:
        return "number", t.choices
    if isinstance(t, ListOf) and isinstance(t.element, Number):
        return "numbers", t.element.kind
    if isinstance(t, ListOf) and isinstance(t.element, TensorLike):
        kind = t.element.type
        shape = [e.terms if isinstance(e, Dim) else e for e in kind.shape]
        return "tensors", kind.dtype.name, shape, t.element.stop_gradient
    return None


def _changed(entering: AbstractValue, how: Any) -> AbstractValue:
    """Return what becomes of an abstract value; ValueError, TypeError or KeyError where the difference is of another
    one.
    """
    match how:
        case ("same",):
            return entering
        case "open", axes, stop if isinstance(entering, TensorLike):
            shape = [None if is_open else e for e, is_open in zip(entering.type.shape, axes, strict=True)]
            return TensorLike(_type(entering.type.dtype, shape), stop)
        case "number", choices if (kind := entering.number_kind) is not None:
            return Number(kind, choices)
        case "numbers", kind if isinstance(entering, (Items, ListOf)):
            return ListOf(Number(kind))
        case "tensors", dtype, shape, stop if isinstance(entering, (Items, ListOf)):
            extents = [Dim(e) if is_tuple(e) else e for e in shape]
            return ListOf(TensorLike(_type(DTYPES[dtype], extents), stop))
        case _:
            raise ValueError(f"{how!r:.60} is nothing that becomes of {entering}")


def _type(dtype: DType, shape: Sequence[Any]) -> TensorType:
    return TensorType(dtype, tuple(shape))
