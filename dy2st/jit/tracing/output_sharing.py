"""Which results of a call are one object: what is returned at two places, kept outside as well, or was an argument.

While abstract values are made of what leaves a Program, each list, dict or object that the trace made gets a number
where it is met first; where it is met again, it is that number. What is one of several such objects (a variant) comes
after all of them, so they are made whether or not they are taken. `finished` puts the numbers into the variants, and
takes those away that are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.errors import StructureError
from dy2st.jit.tracing.external_reads import ExternalReads
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.alias_analysis import named_in
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.values.abstract import AbstractValue, Const
from dy2st.runtime.tracer.values.shared_objects import AfterObjects, MadeObject, SameArgument, SameObject


class OutputSharing:
    """The objects that were met among the results of one end of a trace."""

    def __init__(self, trace: ExternalReads):
        self.trace = trace
        self.numbers: dict[int, int] = {}
        self.count = 0
        self.used: set[int] = set()
        """The numbers of objects that were met again."""
        self.aside: set[int] = set()
        """What was numbered because something may be it, by id."""
        self.left: set[int] = set()
        """What leaves, or may, by id."""
        self.tensors: dict[int, int] = {}
        """The numbers of tensors."""
        self.writes = False
        """Whether what is written comes by now."""

    def is_made(self, x: Any) -> bool:
        """Return whether the trace made a container or object, or a tensor that may be met again."""
        trace = self.trace
        if isinstance(x, Tensor):
            return True
        if id(x) in trace.external or id(x) in trace.arguments:
            return False
        return isinstance(x, CONTAINERS) or id(x) in trace.made.objects

    def known(self, x: Any) -> AbstractValue | None:
        """Return the abstract value of an object that was an argument, or was met before; None for any other."""
        slot = self.trace.arguments.get(id(x))
        if slot is not None and slot.kind == "container":
            return SameArgument(slot.index, type(x).__name__)
        number = self.tensors.get(id(x), self.numbers.get(id(x)))
        if number is None:
            return None
        self.used.add(number)
        return SameObject(number, type(x).__name__)

    def again(self, x: Any) -> AbstractValue | None:
        """Return what `known` does of something that leaves at one more place."""
        found = self.known(x)
        if id(x) in self.numbers:
            self._leave([x])
        return found

    def number(self, x: Any) -> int:
        """Return the number of an object that is met first."""
        self.trace.log.keep(x)
        numbers = self.tensors if isinstance(x, Tensor) else self.numbers
        if numbers is self.numbers and id(x) not in self.aside:
            self._leave([x])
        self.count += 1
        return numbers.setdefault(id(x), self.count)

    def after(self, t: AbstractValue, aval: Callable[[Any], AbstractValue], x: Any = None) -> AbstractValue:
        """Return the abstract value of something that may be objects which the trace made, after these.

        `x` is what it is of where that is one of several things, which may be met again itself.
        """
        if self.trace.aliases.doubled and any(part.holds_objects for part in (t, *t.children)):
            raise _told_by_run()
        objects: list[Any] = []
        items: list[AbstractValue] = []
        for named in {id(x): x for x in named_in(t)}.values():
            if isinstance(named, Tensor) or not self.is_made(named):
                continue
            if id(named) not in self.numbers:
                self.aside.add(id(named))
                items.append(aval(named))
                objects.append(named)
            self.used.add(self.numbers[id(named)])
        then = t if x is None else self._one_of(x, t)
        return AfterObjects(tuple(objects), tuple(items), then) if objects else then

    def _one_of(self, x: Any, t: AbstractValue) -> AbstractValue:
        self._leave([*named_in(t), *([x] if any(part.holds_objects for part in t.children) else ())])
        if self.writes:
            return t
        self.aside.add(id(x))
        return self.known(x) or MadeObject(self.number(x), t)

    def _leave(self, things: list[Any]) -> None:
        """Note that something leaves which is one of these, unless it is perhaps what leaves elsewhere."""
        own = set(map(id, things))
        others = [x for t in things for x in self.trace.aliases.perhaps(t)]
        if any(id(x) in self.left and id(x) not in own for x in others):
            raise _told_by_run()
        self.left |= own

    def finished(self, t: AbstractValue) -> AbstractValue:
        """Return an abstract value, from which values were made, as calls make objects of it."""
        if isinstance(t, Const):
            return t if isinstance(t.object, Tensor) else self.known(t.object) or t
        if isinstance(t, MadeObject):
            content = self.finished(t.content)
            return MadeObject(t.number, content) if t.number in self.used else content
        if isinstance(t, AfterObjects):
            return AfterObjects((), tuple(map(self.finished, t.items)), self.finished(t.then))
        return t.mapped(self.finished)


def _told_by_run() -> StructureError:
    what = "only the run will tell whether two results are one container or object"
    return StructureError(what, hint="return it once, or a copy of it")
