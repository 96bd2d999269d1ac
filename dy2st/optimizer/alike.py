"""Updates of parameters that are alike but for their shape: a rule is recorded once, then its operations are repeated.

A step of Adam is 35 operations a parameter, each of which a trace dispatches, asks for its type and notes. Of the
rules of this package it is known that they do the same for parameters of the same kinds of elements, so the operations
of the first one are appended again for the others: the Program is the same to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.location import user_location
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.reapply import Segment, again, repeatable
from dy2st.naming import is_plain_module
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.trace import Recording
from dy2st.shapes import Shape

Updated = tuple[Tensor, dict[str, Tensor]]


@record(frozen=True)
class _Recorded:
    """What a rule appended for one parameter; inputs and results by their names."""

    segment: Segment
    inputs: list[str]
    needed: list[bool]
    """Whether a gradient flowed through each input."""
    results: dict[str, Value]


class Alike:
    """The updates that one step has recorded in a trace, by what decides of their operations."""

    def __init__(self, trace: Recording):
        self._trace = trace
        self._recorded: dict[Hashable, _Recorded | None] = {}

    def update(self, key: Hashable, given: Mapping[str, Tensor], rule: Callable[[], Updated]) -> Updated:
        """Return what the rule gives, recorded or repeated; `given` are the parameter, as "p", and what else it reads.

        Tensors of equal names are alike where the keys are equal.
        """
        trace, b = self._trace, self._trace.builder
        shape = _shape(given["p"])
        key = (key, id(b), bool(shape), *(self._kind(name, t, shape) for name, t in given.items()))
        known = self._recorded.get(key)
        if known is not None:
            inputs = [trace.value_of(given[name]) for name in known.inputs]
            if [v in trace.needs for v in inputs] == known.needed:
                values = again(b, known.segment, inputs, shape)
                made = {name: trace.wrap(values[v]) for name, v in known.results.items()}
                return made.pop("p"), made
        before = len(b.block.operations)
        new, changed = rule()
        if key not in self._recorded:
            self._recorded[key] = self._note(b.block.operations[before:], given, {"p": new, **changed})
        return new, changed

    def _kind(self, name: str, t: Tensor, shape: Shape) -> Hashable:
        own = _shape(t)
        return name, t.dtype, own if own != shape else "as p", self._trace.stops(t)

    def _note(
        self, operations: Sequence[Any], given: Mapping[str, Tensor], made: Mapping[str, Any]
    ) -> _Recorded | None:
        """Return what was recorded; None where it is not to be repeated, because it used or gave something else."""
        trace, b = self._trace, self._trace.builder
        segment = repeatable(operations, _shape(given["p"]))
        if segment is None or b.guard is not None:
            return None
        seen = {name: trace.value_so_far(t) for name, t in given.items()}
        names = {b.use(v): name for name, v in seen.items() if v is not None and b.holds(v)}
        own = {v for operation in segment.operations for v in operation.results}
        results = {name: t.payload for name, t in made.items() if isinstance(t, Tensor) and t.payload in own}
        known = [v for v in seen.values() if v is not None]
        if len(set(known)) < len(known) or len(results) < len(made) or not all(v in names for v in segment.inputs):
            return None
        inputs = [names[v] for v in segment.inputs]
        return _Recorded(segment, inputs, [seen[name] in trace.needs for name in inputs], results)


@contextmanager
def at_one_line(b: Builder, optimizer: type) -> Iterator[None]:
    """Look for the user's line once where that is the line of `step()`: where the rule is not the user's."""
    before = b.location
    if before is None and is_plain_module(optimizer.__module__):
        b.location = user_location()
    try:
        yield
    finally:
        b.location = before


def _shape(t: Tensor) -> Shape:
    """Return the extents of a tensor without asking the trace for its value."""
    payload = t.payload
    return tensor_type(payload).shape if isinstance(payload, Value) else tuple(payload.shape)
