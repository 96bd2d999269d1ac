"""`if` on a symbolic value: both branches are traced, each into a block of its own, and joined by a `cond`.

What a branch changes is seen in two ways: local variables through `get_state` and `set_state`, everything else
(attributes, items, elements, gradients, the draw number) in the side-effect log, of which each branch has a fork. Where
the branches left different things, the abstract value that fits both says what the `cond` gives back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from dy2st.autodiff.reverse import close_cond
from dy2st.errors import Dy2stError, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here, user_location
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.signal_delivery import Interrupted
from dy2st.runtime.tracer.control_flow.internal_errors import refuse_fault
from dy2st.runtime.tracer.control_flow.select_view import choose_view
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import (
    either,
    held_elsewhere,
    held_in,
    is_plain_object,
    made_aval,
    made_content,
    old_objects,
    was_there,
    with_same,
)
from dy2st.runtime.tracer.effects.nonlocal_rebinding import carrying_more
from dy2st.runtime.tracer.effects.reachable import parts_of
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.effects.union_cast import by_value
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Const,
    Items,
    ListOf,
    NewList,
    abstract_value_of,
    content_value,
)
from dy2st.runtime.tracer.values.flatten import alternative, flatten, unflatten
from dy2st.runtime.tracer.values.join import join_values
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import Variant

Thunk = Callable[[], Any]
Assigned = tuple[Thunk, Callable[[Any], None], Sequence[str]]


class Diverged(BaseException):
    """A branch that is being traced ends in `raise`: nothing after it runs."""


class Branch:
    """One traced branch: its builder, its writes, and the local variables that it left."""

    def __init__(self, trace: Trace, builder: Builder, old: set[int]):
        self.trace, self.builder, self.old = trace, builder, old
        self.writes: dict[Key, Any] = {}
        self.locals: Sequence[Any] = ()
        self.result: Any = None
        self.diverged = False
        self.borrows: Any = trace.borrows.state()
        self.held: dict[int, Any] = {}
        """The tensors that what it left leads to."""

    def run(self, body: Thunk, get_state: Thunk, set_state: Callable[[Any], None], before: Any) -> None:
        """Trace `body` from the local variables `before`."""
        set_state(before)
        with self.trace.inside(self.builder, self.writes), self.trace.carrying(get_state):
            try:
                self.result = body()
            except Diverged:
                self.diverged = True
            except (Dy2stError, RecursionError, KeyboardInterrupt, Interrupted):
                raise
            except BaseException as error:  # eager would raise it too, but only where this branch is taken
                refuse_fault(error)
                self.trace.raise_later(error)
                self.diverged = True
            self.locals = get_state()
            if not self.diverged:
                self.locals = [by_value(self.trace, x, self.old) for x in self.locals]
                self.result = by_value(self.trace, self.result, self.old)
                self.writes.update({k: by_value(self.trace, x, self.old) for k, x in self.writes.items()})

    @contextmanager
    def _inside(self) -> Generator[None]:
        """Stand where the branch ends for the length of a `with`."""
        with self.trace.inside(self.builder, self.writes), self.trace.borrows.at(self.borrows):
            yield

    def aval(self, key: Key | None, x: Any, old: set[int] | None = None) -> AbstractValue:
        """Return the abstract value of something that the branch left; what is not `old` is taken apart."""
        with self._inside():
            if old is None:
                return seen_aval(self.trace, key, x)
            if key is not None and key[0] in ("items", "tail"):
                return made_content(self.trace, x, old)
            return made_aval(self.trace, x, old)

    def taken_apart(self, x: Any, aval: AbstractValue, old: set[int]) -> AbstractValue:
        """Return the abstract value of a container that was there before by what it holds where the branch ends."""
        if not isinstance(aval, Const) or type(x) not in CONTAINERS or self.trace.is_from_outside(x):
            return aval
        with self._inside():
            return NewList(made_content(self.trace, self.trace.content(x), old))

    def hold(self, keys: Sequence[Key | None], left: Sequence[Any]) -> None:
        """Note which tensors are in what the branch left."""
        if not self.diverged:
            with self._inside():
                self.held = {i: held_in(self.trace, k, x) for i, (k, x) in enumerate(zip(keys, left, strict=True))}

    def give(self, x: Any, aval: AbstractValue) -> None:
        """Make `x` a result of the branch."""
        with self._inside():
            if self.diverged:
                values = [self.builder.emit("unreachable", [], {"type": t}) for t in aval.types()]
            else:
                values = flatten(self.trace, x, aval)
        self.builder.block.results.extend(values)


def seen_aval(trace: Trace, key: Key | None, x: Any) -> AbstractValue:
    """Return the abstract value of a local variable (no key) or of an entry of the side-effect log."""
    if key is not None and key[0] in ("items", "tail"):
        return content_value(trace, x)
    return abstract_value_of(trace, x)


def if_(trace: Trace, test: Any, then: Thunk, orelse: Thunk, get_state: Thunk, set_state: Callable[[Any], None],
        names: Sequence[str]) -> None:  # fmt: skip
    """Run an `if` statement whose test is symbolic."""
    joined, _ = join_branches(trace, predicate(trace, test), then, orelse, get_state, set_state, names)
    set_state(joined)


def if_exp(trace: Trace, test: Any, then: Thunk, orelse: Thunk, assigned: Assigned | None = None) -> Any:
    """Run a conditional expression whose test is symbolic; `assigned` are the variables that its parts assign."""
    get, set, names = assigned or (tuple, lambda _: None, ())
    joined, result = join_branches(trace, predicate(trace, test), then, orelse, get, set, names)
    set(joined)
    return result


def predicate(trace: Trace, test: Any) -> Value:
    """Return the bool that decides a branch or a loop."""
    b = trace.builder
    if isinstance(test, CONTAINERS):
        test = trace.truth(test)
    if isinstance(test, Tensor):
        value = b.use(trace.value_of(test))
        assert isinstance(value.type, TensorType)
        if value.type.dtype.is_bool and all(e == 1 for e in value.type.shape):
            return value
        test = trace.item(test)
    if isinstance(test, Variant):
        test = switch(trace, test, trace.truth)
        if isinstance(test, bool):
            return b.scalar(test)
    assert isinstance(test, Scalar)
    assert isinstance(test.value.type, ScalarType)
    return test.value if test.kind == "bool" else b.emit("scalar_bool", [test.value])


def join_branches(trace: Trace, pred: Value, then: Thunk, orelse: Thunk, get_state: Thunk, set_state: Callable[[Any],
        None],
                  names: Sequence[str]) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
    """Trace both branches and emit the `cond`; return the joined local variables and results."""
    return join_blocks(
        trace, functools.partial(emit_cond, trace, pred), then, orelse, get_state, set_state, names, pred
    )


def join_blocks(
    trace: Trace, emit: Callable[[Builder, Builder, Any], list[Value]], then: Thunk, orelse: Thunk, get_state: Thunk,
    set_state: Callable[[Any], None], names: Sequence[str], pred: Value | None = None,
) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
    """Trace two ways of which one is taken to its end; `emit` makes an operation of both blocks, at the given place.

    `pred` is the bool that decides, where there is one.
    """

    def run(get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str]) -> tuple[tuple[Any, ...], Any]:
        joined, result = _join_blocks(trace, emit, then, orelse, get_state, set_state, names, pred)
        set_state(joined)
        return joined, result

    joined, result = carrying_more(trace, run, get_state, set_state, names)
    return joined[: len(names)], result


def _join_blocks(
    trace: Trace, emit: Callable[[Builder, Builder, Any], list[Value]], then: Thunk, orelse: Thunk, get_state: Thunk,
    set_state: Callable[[Any], None], names: Sequence[str], pred: Value | None,
) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
    before, place = get_state(), user_location()
    outer: Builder = trace.builder
    old = old_objects(trace)
    branches = [Branch(trace, outer.child(), old), Branch(trace, outer.child(), old)]
    known = trace.borrows.state()
    for branch, body in zip(branches, (then, orelse), strict=True):
        trace.borrows.restore(known)
        branch.run(body, get_state, set_state, before)
        branch.borrows = trace.borrows.state()
    trace.borrows.restore(known, *(branch.borrows for branch in branches if not branch.diverged))
    set_state(before)
    one, two = branches
    if one.diverged and two.diverged:
        emit(one.builder, two.builder, place)
        raise Diverged
    keys = [k for k in dict.fromkeys([*one.writes, *two.writes]) if was_there(trace, k, old)]
    pairs: list[tuple[Key | None, str, Any, Any]] = [
        (None, name, x, y) for name, x, y in zip(names, one.locals, two.locals, strict=True)
    ]
    pairs.append((None, "the result", one.result, two.result))
    for key in keys:
        fallback = None
        if key not in one.writes or key not in two.writes:
            fallback = trace.current(key)
        pairs.append((key, _describe(trace, key), one.writes.get(key, fallback), two.writes.get(key, fallback)))
    avals = [_join(trace, one, two, pair, old) for pair in pairs]
    for (_, _, x, y), aval in zip(pairs, avals, strict=True):
        one.give(x, aval)
        two.give(y, aval)
    for branch, left in zip(branches, zip(*((x, y) for _, _, x, y in pairs), strict=True), strict=True):
        branch.hold([key for key, *_ in pairs], left)
    values = iter(emit(one.builder, two.builder, place))
    made = [unflatten(trace, values, t) for t in avals]
    _share(branches, pairs, avals, made)
    for key, value in zip(keys, made[len(names) + 1 :], strict=True):
        trace.commit_joined(key, value)
    if pred is not None and not (one.diverged or two.diverged):
        for (_, _, x, y), value in zip(pairs, made, strict=True):
            choose_view(trace, pred, value, x, y)
    if trace.borrows.parts:
        for (_, _, x, y), value in zip(pairs, made, strict=True):
            if value is not x and value is not y:
                trace.borrows.freeze(value, [*trace.borrows.owners_of(x), *trace.borrows.owners_of(y)], old)
    ways = [branch.held for branch in branches if not branch.diverged]
    held = {i: held_in(trace, pair[0], value) for i, (pair, value) in enumerate(zip(pairs, made, strict=True))}
    trace.aliases.joined(held, *ways)
    trace.aliases.keep_distinct(held, *ways)
    return tuple(made[: len(names)]), made[len(names)]


def _share(branches: Sequence[Branch], pairs: Sequence[Any], avals: Sequence[AbstractValue], made: list[Any]) -> None:
    """Let variables and attributes that are one object on both ways be one behind them."""
    first: dict[tuple[int, ...], int] = {}
    for i, (key, _, *ways) in enumerate(pairs):
        if (key is None or key[0] == "attr") and not any(made[i] is x for x in ways):
            taken = tuple(id(x) for x, branch in zip(ways, branches, strict=True) if not branch.diverged)
            known = first.setdefault(taken, i)
            made[i] = made[known] if avals[known] == avals[i] else made[i]


def _join(
    trace: Trace, one: Branch, two: Branch, pair: tuple[Key | None, str, Any, Any], before: set[int]
) -> AbstractValue:
    key, name, x, y = pair
    objects = key is None or key[0] not in ("data", "grad")
    if one.diverged or two.diverged:
        kept, value = (two, y) if one.diverged else (one, x)
        found = kept.aval(key, value, before if _has_parts(value) else None)
        return with_same(trace, found, value, value) if objects else found
    old = None if x is y or not (_has_parts(x) or _has_parts(y)) else before
    if (
        old is not None
        and (key is None or key[0] not in ("items", "tail"))
        and all(type(i) in CONTAINERS and id(i) in old for i in (x, y))
    ):
        return either(x, y)
    first, second = one.aval(key, x, old), two.aval(key, y, old)
    if old is not None and _grows(first, second):  # then all that is in it crosses by value, as each branch left it
        inner = old - ({id(part) for i in (x, y) for part in parts_of(trace, i)} - held_elsewhere(trace, key, (x, y)))
        first, second = one.aval(key, x, inner), two.aval(key, y, inner)
    if old is not None and (named := _named_by_one(trace, first, second)):
        first, second = one.aval(key, x, old - named), two.aval(key, y, old - named)
    if isinstance(first, NewList) != isinstance(second, NewList):
        first, second = one.taken_apart(x, first, before), two.taken_apart(y, second, before)
    try:
        met = join_values(first, second, trace)
        return with_same(trace, met, x, y) if objects else met
    except StructureError as error:
        raise error_here(StructureError, f"`{name}` cannot be joined after this `if`: {error.reason}") from None


def _grows(a: AbstractValue, b: AbstractValue) -> bool:
    """Return whether two abstract values of contents only meet as a list of unknown length."""
    kinds = [t.kind if isinstance(t, Items) else list for t in (a, b) if isinstance(t, (Items, ListOf))]
    same = isinstance(a, Items) and isinstance(b, Items) and len(a.items) == len(b.items)
    return kinds == [list, list] and not same


def _named_by_one(trace: Trace, a: AbstractValue, b: AbstractValue) -> set[int]:
    """Return the containers inside that one abstract value names, by id, where the other has one that is made anew."""
    if isinstance(a, Items) and isinstance(b, Items) and a.keys == b.keys and len(a.items) == len(b.items):
        found = set[int]().union(*(_named_by_one(trace, p, q) for p, q in zip(a.items, b.items, strict=True)))
        pairs = [pair for p, q in zip(a.items, b.items, strict=True) for pair in ((p, q), (q, p))]
        named = [p.object for p, q in pairs if isinstance(p, Const) and isinstance(q, NewList)]
        return found | {id(x) for x in named if not trace.is_from_outside(x)}
    if isinstance(a, NewList) and isinstance(b, NewList):
        return _named_by_one(trace, a.content, b.content)
    return set()


def _has_parts(x: Any) -> bool:
    return isinstance(x, (list, dict, tuple)) or is_plain_object(x)


def _describe(trace: Trace, key: Key) -> str:
    return f".{key[2]}" if key[0] == "attr" else {"items": "a container", "data": "a tensor"}.get(key[0], str(key[0]))


def emit_cond(trace: Trace, pred: Value, then: Builder, other: Builder, place: Any) -> list[Value]:
    """Emit the `cond` at the user's line."""
    b: Builder = trace.builder
    before, b.location = b.location, place
    results = close_cond(b, pred, then, other)
    b.location = before
    return results


def switch(trace: Trace, variant: Variant, use: Callable[[Any], Any]) -> Any:
    """Trace `use` once for each alternative that a variant may be, by its tag; return what the one that runs gave."""
    candidates = list(range(1, len(variant.alternatives)))
    return _switch(trace, variant, candidates, use)


def by_alternative(at: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a function of a trace and values run once for each thing that its value number `at` may be."""

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(trace: Trace, *values: Any, **keywords: Any) -> Any:
            x = values[at] if at < len(values) else None
            if isinstance(x, Variant):
                return switch(trace, x, lambda y: run(trace, *values[:at], y, *values[at + 1 :], **keywords))
            return function(trace, *values, **keywords)

        return run

    return of


def _switch(trace: Trace, variant: Variant, candidates: Sequence[int], use: Callable[[Any], Any]) -> Any:
    tag, rest = candidates[0], candidates[1:]
    if not rest:
        return use(alternative(trace, variant, tag))
    return if_exp(
        trace,
        _is_tag(trace, variant, tag),
        lambda: use(alternative(trace, variant, tag)),
        lambda: _switch(trace, variant, rest, use),
    )


def switch_statements(trace: Trace, variant: Variant, run: Callable[[Any], None], get_state: Thunk,
                      set_state: Callable[[Any], None], names: Sequence[str]) -> None:  # fmt: skip
    """Trace statements once for each alternative that a variant may be; `get_state` and `set_state` are of what they
    assign.
    """

    def one_of(tags: Sequence[int]) -> None:
        tag, rest = tags[0], tags[1:]
        if not rest:
            run(alternative(trace, variant, tag))
            return
        if_(trace, _is_tag(trace, variant, tag), lambda: run(alternative(trace, variant, tag)), lambda: one_of(rest),
            get_state, set_state, names)  # fmt: skip

    one_of(range(1, len(variant.alternatives)))


def _is_tag(trace: Trace, variant: Variant, tag: int) -> Scalar:
    return Scalar(trace.emit("scalar_eq", [trace.emit("variant_tag", [variant.value]), trace.scalar(tag)]))
