"""Containers and objects that something else holds by value: a list whose length is known only at run time, or a
variant.

Python's containers hold references; a list value of a Program holds values. What was taken out of such a list, or put
into one, is borrowed: a change of it is written back to its place, and what others change at that place is read again.
Where the trace cannot tell the place any more, or several hold it, a change (or a read of what may have changed) is a
StructureError, so that the function runs eagerly.

    taken, put        a borrow begins: an element was read from its place, or stored there
    read, wrote       before a part of a borrow is read, after it was changed
    moved             the elements of a list are about to change their places
    freeze            a copy whose place is not known: it may be read until an owner changes
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.symbolic_list import LIST_METHODS, element_aval
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object, reached
from dy2st.runtime.tracer.effects.reachable import parts_of
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.flatten import unpack, with_alternative
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

ANYONE: Any = object()
"""Stands for an owner that the trace does not know."""


class Borrow:
    """One element: who holds it by value, at which place (None where that is not known), and the object it is here.

    A place is an index from the front, or the tag of a variant.
    """

    __slots__ = ("appended", "builder", "key", "owners", "place", "root")

    def __init__(self, owners: list[Any], place: Any, root: Any, builder: Builder):
        self.owners, self.place, self.root, self.builder = owners, place, root, builder
        self.key = place
        """What the element was asked for by."""
        self.appended = 0
        """How often the owner had got longer by then."""


State = tuple[frozenset[Borrow], frozenset[Borrow]]


class BorrowTracker:
    """The borrows of a trace."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.parts: dict[int, tuple[Any, Borrow]] = {}
        """Containers and objects of what is borrowed, by id."""
        self._of: dict[int, list[Borrow]] = {}
        """The borrows of each owner, by its id."""
        self._dirty: set[Borrow] = set()
        """Borrows at whose place something may have changed since they were read."""
        self._lost: set[Borrow] = set()
        """Borrows whose place has changed."""
        self._appended: dict[int, int] = {}
        """How often the trace has made an owner longer."""
        self._given_up = False
        self._shared: set[int] = set()
        """Owners that hold what another one holds as well, by id."""
        self.fresh: set[Borrow] = set()
        """Borrows of what the list operation that is being traced stores; their places become known when it is done."""
        self._silent = self._keeping = False
        self._used: list[Borrow] = []
        self._written: list[int] = []
        self._moved: list[int] = []

    # ---- beginning -------------------------------------------------------------------------------------------------
    def taken(self, owner: Any, place: Any, root: Any, key: Any = None) -> None:
        """Note that `root` was made of the element at a place of an owner, which was asked for by `key`."""
        borrow = Borrow([owner], place, root, self.trace.builder)
        borrow.key = place if key is None else key
        borrow.appended = self._appended.get(id(owner), 0)
        self._begin(borrow, list(parts_of(self.trace, root)))

    def put(self, owner: Any, place: Any, x: Any) -> None:
        """Note that `x` was stored by value at a place of an owner."""
        found = list(parts_of(self.trace, x))
        earlier = {self.parts[id(p)][1] for p in found if id(p) in self.parts}
        for borrow in earlier:
            if borrow not in self.fresh and not (borrow.owners[0] is owner and borrow.place is place):
                self._shared |= {id(owner), *map(id, borrow.owners)}
        self._begin(Borrow([owner], place, x, self.trace.builder), found)

    def freeze(self, x: Any, owners: list[Any], old: set[int] | None = None) -> None:
        """Note that `x` is a copy of what owners hold, at places that are not known."""
        if not owners:
            return
        found = [p for p in parts_of(self.trace, x) if id(p) not in self.parts and (old is None or id(p) not in old)]
        self._begin(Borrow(owners, None, x, self.trace.builder), found)

    def lend(self, x: Any) -> None:
        """Note that `x` is stored by value, somewhere."""
        borrow = Borrow([ANYONE], None, x, self.trace.builder)
        self._begin(borrow, [p for p in parts_of(self.trace, x) if id(p) not in self.parts])
        self.fresh.add(borrow)

    def share(self, *owners: Any) -> None:
        """Note that owners hold the same elements by value."""
        self._shared.update(map(id, owners))

    def give_up(self) -> None:
        """Note that lists hold the same elements by value, and that it is not known which lists."""
        self._given_up = True

    def lends(self, owner: Any) -> bool:
        """Return whether something is borrowed by an owner."""
        return id(owner) in self._of

    def is_at(self, owner: Any, key: Any, x: Any) -> bool:
        """Return whether `x` is the element that was taken from an owner by this key."""
        borrow = self.parts[id(x)][1] if id(x) in self.parts else None
        if borrow is None or borrow.root is not x or borrow.owners[0] is not owner or borrow.key is not key:
            return False
        from_front = isinstance(key, int) and key >= 0  # where other keys lead to changes with the length
        here = borrow.builder is self.trace.builder and borrow.appended == self._appended.get(id(owner), 0)
        return (from_front or here) and self._has_place(borrow)

    def appended(self, owner: Any) -> None:
        """Note that an owner has got longer."""
        self._appended[id(owner)] = self._appended.get(id(owner), 0) + 1

    def owners_of(self, x: Any) -> list[Any]:
        """Return who holds what is in `x` by value."""
        found = [borrow for p in parts_of(self.trace, x) if id(p) in self.parts for borrow in [self.parts[id(p)][1]]]
        return [owner for borrow in found for owner in borrow.owners]

    def _begin(self, borrow: Borrow, parts: list[Any]) -> None:
        made = self.trace.made
        itself = made.once(self.trace.root) if parts else ()  # such objects are held as they are, not by value
        parts = [p for p in parts if id(p) not in itself]
        if not parts:
            return
        self.parts.update((id(p), (p, borrow)) for p in parts)
        for owner in borrow.owners:
            self._of.setdefault(id(owner), []).append(borrow)

    def has_parts(self, x: Any) -> bool:
        """Return whether there are containers or objects in `x`."""
        return next((True for _ in parts_of(self.trace, x)), False)

    # ---- use -------------------------------------------------------------------------------------------------------
    def read(self, x: Any) -> None:
        """Bring a part up to date before it is read."""
        borrow = self.parts[id(x)][1]
        if self._silent:
            return
        self._used.append(borrow)
        if borrow not in self._dirty:
            return
        if not self._has_place(borrow):
            raise _refused("read after what may be the same one was changed")
        self._dirty.discard(borrow)
        self._take_over(borrow, self._fetched(borrow))

    def wrote(self, x: Any) -> None:
        """Write the element back that `x`, which was changed, is part of."""
        if self._silent or id(x) not in self.parts:
            return
        borrow = self.parts[id(x)][1]
        self._used.append(borrow)
        if not self._has_place(borrow):
            raise _refused("changed")
        for part in parts_of(self.trace, borrow.root):
            known = self.parts.setdefault(id(part), (part, borrow))[1]
            if known is not borrow and not _are_same(known.owners, borrow.owners) and borrow.root is not part:
                self._shared |= {id(owner) for one in (borrow, known) for owner in one.owners}
        self._write_back(borrow)
        for owner in borrow.owners:
            self._soil(owner, borrow)

    def _write_back(self, borrow: Borrow) -> None:
        trace, owner = self.trace, borrow.owners[0]
        if isinstance(owner, Variant):
            self._refuse_others(owner)
            made = with_alternative(trace, owner, borrow.place, borrow.root, element_aval(trace, borrow.root))
            trace.log.set(("data", id(owner)), owner, made)
            self.wrote(owner)
            return
        content = self._list_of(owner)
        with self.keeping():
            trace.store(owner, LIST_METHODS["__setitem__"](trace, content, borrow.place, borrow.root)[0])

    def _refuse_others(self, owner: Variant) -> None:
        """Raise where a variable may be the same container or object as a variant that is written."""
        others = {id(x) for x in self.trace.aliases.others(owner) if not isinstance(x, Tensor)}
        if others & (reached(self.trace) if others else set()):
            raise _refused("changed")

    def _soil(self, owner: Any, changed: Borrow | None) -> None:
        """Note that an element of an owner has changed: what else is borrowed of it may be the same one."""
        self._written.append(id(owner))
        for borrow in [*self._of.get(id(owner), ()), *self._of.get(id(ANYONE), ())]:
            if borrow is not changed and not (changed is not None and _differ(borrow.place, changed.place)):
                self._dirty.add(borrow)

    def _fetched(self, borrow: Borrow) -> Any:
        trace, owner = self.trace, borrow.owners[0]
        if isinstance(owner, Variant):
            value = trace.emit("variant_get", [owner.value], {"tag": borrow.place, "message": ""})
            return unpack(trace, value, owner.alternatives[borrow.place])
        content = self._list_of(owner)
        value = trace.emit("list_get", [content.value, trace.scalar(borrow.place)])
        return unpack(trace, value, content.element)

    def _take_over(self, borrow: Borrow, found: Any) -> None:
        """Let the object of a borrow hold what `found` holds; what was inside of it before is cut off."""
        trace, root = self.trace, borrow.root
        cut = Borrow(borrow.owners, None, root, borrow.builder)
        self._dirty.add(cut)
        for i, (part, known) in list(self.parts.items()):
            if known is borrow and part is not root:
                self.parts[i] = part, cut
        with self.quiet():
            if isinstance(root, Variant) and isinstance(found, Variant):
                trace.log.set(("data", id(root)), root, Variant(found.value, found.alternatives))
            elif isinstance(root, CONTAINERS) and isinstance(found, CONTAINERS):
                trace.store(root, trace.content(found))
            elif is_plain_object(root) and type(found) is type(root):
                now = trace.attributes_of(found)
                for name in {**trace.attributes_of(root), **now}:
                    trace.log_attribute(root, name, now.get(name, UnboundLocal(name)))
            else:
                raise _refused("read after what may be the same one was changed")
        self.parts.update((id(p), (p, borrow)) for p in parts_of(self.trace, root))

    def _list_of(self, owner: Any) -> SymbolicList:
        content = self.trace.content(owner)
        if not isinstance(content, SymbolicList):
            raise _refused("changed")
        return content

    def _has_place(self, borrow: Borrow) -> bool:
        if borrow.place is None or borrow in self._lost or self._given_up:
            return False
        if any(id(owner) in self._shared for owner in borrow.owners):
            return False
        return _is_around(borrow.builder, self.trace.builder)

    # ---- places ----------------------------------------------------------------------------------------------------
    def moved(self, owner: Any, place: Any = None) -> None:
        """Note that the elements of an owner (or only the one at a place) are about to be others."""
        if self._keeping or self._silent:
            return
        self._moved.append(id(owner))
        for borrow in self._of.get(id(owner), ()):
            if borrow in self._lost or (place is not None and _differ(borrow.place, place)):
                continue
            if borrow in self._dirty and self._has_place(borrow):
                self.read(borrow.root)
            self._lost.add(borrow)

    @contextmanager
    def storing(self) -> Generator[None]:
        """Store elements for the length of a `with`: what is borrowed there gets its place when it is `put`."""
        before, self.fresh = self.fresh, set()
        try:
            yield
        finally:
            self.fresh = before

    @contextmanager
    def keeping(self) -> Generator[None]:
        """Let lists be written for the length of a `with` such that their elements keep their places."""
        before, self._keeping = self._keeping, True
        try:
            yield
        finally:
            self._keeping = before

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Read and write for the length of a `with` what changes nothing that a run would see."""
        before, self._silent = self._silent, True
        try:
            yield
        finally:
            self._silent = before

    # ---- blocks ----------------------------------------------------------------------------------------------------
    def mark(self) -> Any:
        """Return all that is known, for `reset`."""
        of = {i: list(borrows) for i, borrows in self._of.items()}
        return dict(self.parts), of, set(self._shared), self.state(), self._given_up

    def reset(self, mark: Any) -> None:
        """Know what was known when `mark` was made."""
        self.parts, self._shared, self._given_up = dict(mark[0]), set(mark[2]), mark[4]
        self._of = {i: list(borrows) for i, borrows in mark[1].items()}
        self.restore(mark[3])

    @contextmanager
    def at(self, state: State) -> Generator[None]:
        """Know what a state says for the length of a `with`."""
        before = self.state()
        self.restore(state)
        try:
            yield
        finally:
            self.restore(before)

    def state(self) -> State:
        """Return what is known where the trace stands."""
        return frozenset(self._dirty), frozenset(self._lost)

    def restore(self, *states: State) -> None:
        """Know what holds after any of several ways."""
        self._dirty = set().union(*(dirty for dirty, _ in states))
        self._lost = set().union(*(lost for _, lost in states))

    @contextmanager
    def iteration(self, outer: Builder | None) -> Generator[None]:
        """Trace the iteration of a loop for the length of a `with`: earlier iterations may have done what it does."""
        before = self.state()
        marks = len(self._used), len(self._written), len(self._moved)
        outside = [borrow for _, borrow in self.parts.values() if self._has_place(borrow)]
        self._dirty.update(outside)
        yield
        written, moved = set(self._written[marks[1] :]), set(self._moved[marks[2] :])
        for borrow in self._used[marks[0] :]:
            owners = set(map(id, borrow.owners))
            old = written if _are_same(borrow.owners, [ANYONE]) else owners & written
            if _is_around(borrow.builder, outer) and (owners & moved or (borrow.place is None and old)):
                raise _refused("used in a loop that changes the list")
        after = {borrow for i in written for borrow in self._of.get(i, ())}
        self._dirty = set(before[0]) | after | (self._dirty - set(outside))


def _is_around(outer: Builder | None, inner: Builder | None) -> bool:
    """Return whether a block is another one or around it."""
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def _are_same(a: list[Any], b: list[Any]) -> bool:
    """Return whether two lists hold the same objects; `==` of a variant would be an operation."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _differ(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a >= 0 and b >= 0 and a != b


def _refused(what: str) -> StructureError:
    return error_here(
        StructureError,
        f"a container or object inside of a list whose items only the run tells, or of a variable that may be "
        f"something else, is {what}, and the trace does not know its place",
        "put a new one in its place",
    )
