"""Which results of a call are one object: what is returned at two places, kept outside as well, or was an argument.

While abstract values are made of what leaves a Program, each list, dict or object that the trace made gets a number
where it is met first; where it is met again, it is that number. What is one of several such objects (a variant) comes
after all of them, so they are made whether or not they are taken. `finished` puts the numbers into the variants, and
takes those away that are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.jit.tracing.external_reads import ExternalReads
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.alias_analysis import named_in
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    AfterObjects,
    Const,
    MadeObject,
    SameArgument,
    SameObject,
)


class OutputSharing:
    """The objects that were met among the results of one end of a trace."""

    def __init__(self, trace: ExternalReads):
        self.trace = trace
        self.numbers: dict[int, int] = {}
        self.count = 0
        self.used: set[int] = set()
        """The numbers of objects that were met again."""
        self.tensors: dict[int, int] | None = {}
        """The numbers of tensors; None once what is written comes: a tensor there is told by its value."""

    def is_made(self, x: Any) -> bool:
        """Return whether the trace made a container or object, or a tensor that may be met again."""
        trace = self.trace
        if isinstance(x, Tensor):
            return self.tensors is not None
        if id(x) in trace.external or id(x) in trace.arguments:
            return False
        return isinstance(x, CONTAINERS) or id(x) in trace.made.objects

    def known(self, x: Any) -> AbstractValue | None:
        """Return the abstract value of an object that was an argument, or was met before; None for any other."""
        slot = self.trace.arguments.get(id(x))
        if slot is not None and slot.kind == "container":
            return SameArgument(slot.index, type(x).__name__)
        number = self.numbers.get(id(x)) if self.tensors is None or id(x) not in self.tensors else self.tensors[id(x)]
        if number is None:
            return None
        self.used.add(number)
        return SameObject(number, type(x).__name__)

    def number(self, x: Any) -> int:
        """Return the number of an object that is met first."""
        self.trace.log.keep(x)
        self.count += 1
        numbers = self.tensors if isinstance(x, Tensor) and self.tensors is not None else self.numbers
        return numbers.setdefault(id(x), self.count)

    def after(self, t: AbstractValue, aval: Callable[[Any], AbstractValue]) -> AbstractValue:
        """Return the abstract value of something that may be objects which the trace made, after these."""
        objects: list[Any] = []
        items: list[AbstractValue] = []
        for x in {id(x): x for x in named_in(t)}.values():
            if isinstance(x, Tensor) or not self.is_made(x):
                continue
            if id(x) not in self.numbers:
                items.append(aval(x))
                objects.append(x)
            self.used.add(self.numbers[id(x)])
        return AfterObjects(tuple(objects), tuple(items), t) if objects else t

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
