"""Which tensors and containers of a trace may be one object in a run: changes in place of those are refused.

They cross the ends of branches and loops as values. What one name held before may then be held by another one as well,
or by a list: in eager mode both see a change in place, in the Program only one would. A trace therefore notes which
objects a joined one may be; a change of one while another that it may be can still be reached is a StructureError, so
that the function runs eagerly (`Tracer.before_write`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dy2st.kinds import is_container, is_dict
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import AbstractValue, Const
from dy2st.runtime.tracer.values.shared_objects import AfterObjects, MadeObject
from dy2st.runtime.tracer.values.union import Variant


@record(frozen=True)
class HeldContent:
    """A container, or an object that the trace made, and what it holds at some point of the trace."""

    container: Any
    items: dict[Any, Any]


class AliasAnalysis:
    """What a trace knows about tensors that may be the same one."""

    def __init__(self) -> None:
        self.groups: dict[int, list[Any]] = {}
        """For a tensor or variant, by id: all those that may be the same."""
        self.held: dict[int, Any] = {}
        """Tensors that a list or a variant holds by value."""
        self.doubled = False
        """Whether a branch or loop left an object that it made at two places inside of one variable."""
        self.writes = 0
        """How often elements were written in place."""

        self.distinct: list[frozenset[int]] = []
        """Sets of tensors of which no two are the same one."""

    def same(self, things: Iterable[Any]) -> None:
        """Note that tensors or variants may be one thing."""
        groups = {id(group): group for group in (self.groups.get(id(x), [x]) for x in map(root, things))}
        alone = {id(group[0]): group[0] for group in groups.values() if len(group) == 1}
        joined = [group for group in groups.values() if len(group) > 1]
        if len(joined) + len(alone) < 2:
            return
        largest = max(joined, key=len, default=list[Any]())  # the others go over to it, so that no object does so often
        for x in [*(x for group in joined if group is not largest for x in group), *alone.values()]:
            largest.append(x)
            self.groups[id(x)] = largest

    def joined(self, made: Any, *sources: Any) -> None:
        """Note that `made` is one of `sources` in a run; in tuples, lists and dicts, item by item."""
        if isinstance(made, (Tensor, Variant)):
            named = {id(x) for t in getattr(made, "alternatives", ()) for x in named_in(t)}
            parts = [x for x in sources if not (isinstance(x, HeldContent) and id(x.container) in named)]
            self.same([made, *(x for x in tensors_in(parts) if id(x) not in named)])
            return
        if isinstance(made, HeldContent):
            self.same([made.container, *(x.container for x in sources if isinstance(x, HeldContent))])
            made = made.items
        if is_dict(made):
            parts = [x.items if isinstance(x, HeldContent) else x for x in sources]
            for key, item in made.items():
                self.joined(item, *(x[key] for x in parts if is_dict(x) and key in x))

    def hold(self, x: Any) -> None:
        """Note that a list or variant holds the tensors in `x` by value."""
        if isinstance(x, Variant) or (isinstance(x, Tensor) and not isinstance(root(x), Variant)):
            self.held[id(root(x))] = root(x)
        elif is_container(x):
            for item in x.values() if is_dict(x) else x:
                self.hold(item)

    def others(self, t: Any) -> list[Any]:
        """Return what else may be a tensor that is written."""
        self.writes += 1
        return self.perhaps(t)

    def perhaps(self, t: Any) -> list[Any]:
        """Return what else may be this tensor, container or variant."""
        return [x for x in self.groups.get(id(t), ()) if x is not t and not self._are_distinct(x, t)]

    def _are_distinct(self, a: Any, b: Any) -> bool:
        return any(id(a) in ids and id(b) in ids for ids in self.distinct)

    def keep_distinct(self, made: Iterable[Any], *sources: Iterable[Any]) -> None:
        """Note that the tensors in `made` differ from each other, if those in each of `sources` do."""
        if all(_differ(list(map(root, tensors_in(s)))) for s in sources):
            self.distinct.append(frozenset(id(root(t)) for t in tensors_in(made)))

    def is_held(self, t: Any) -> bool:
        """Return whether a list or a variant holds a tensor by value."""
        return any(id(x) in self.held for x in self.groups.get(id(t), [t]))


def tensors_in(x: Any) -> Iterator[Any]:
    """Give the tensors, variants and containers in tuples, lists and dicts."""
    if isinstance(x, (Tensor, Variant)):
        yield x
    elif isinstance(x, HeldContent):
        yield x.container
        yield from tensors_in(x.items)
    elif is_container(x):
        for item in x.values() if is_dict(x) else x:
            yield from tensors_in(item)


def named_in(t: AbstractValue) -> Iterator[Any]:
    """Give the objects that an abstract value names: what changes them is seen through it too."""
    if isinstance(t, Const):
        yield t.object
    for child in () if isinstance(t, (MadeObject, AfterObjects)) else t.children:
        yield from named_in(child)


def _differ(things: list[Any]) -> bool:
    return len({id(x) for x in things}) == len(things)


def root(x: Any) -> Any:
    """Return the tensor (or variant) whose elements `x` shows."""
    while isinstance(x, Tensor) and x.view_of is not None:
        x = x.view_of.base
    return x.whole if isinstance(x, Variant) else x
