"""Whether results need a gradient where branches and loops decide it: the call then gives each its `stop_gradient`.

    if x.sum() > 0:
        y = x * w               # needs one, as w does
    else:
        y = x * 2.0             # needs none

A trace takes what is left to need a gradient where it does on any way, which is right for derivatives. Python that
reads `y.stop_gradient` after the call sees the way that was taken: the Program tells that with a number more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.location import error_here
from dy2st.ir.program import Program, Value
from dy2st.ir.types import TensorType, VariantType, is_differentiable
from dy2st.jit.tracing.grad_leaves import GradLeaves
from dy2st.jit.tracing.output_views import ResultView
from dy2st.jit.tracing.told_values import ToldValues, insert_first
from dy2st.ops.core.constant import Renew
from dy2st.records import record
from dy2st.runtime.tracer.control_flow.assert_raise import RaisedException
from dy2st.runtime.tracer.values.abstract import AbstractValue, TensorLike


@record(frozen=True)
class OpenNeeds:
    """What of a Program's results a run decides."""

    told: tuple[tuple[int, int], ...] = ()
    """Tensors, by number, each with the result that tells whether it needs a gradient."""
    inside: bool = False
    """Whether it is open of tensors in lists, or in what is one of several things: all of these need one then."""

    def settle(self, results: Sequence[Any]) -> None:
        """Give the results of a run the `stop_gradient` that they have."""
        for i, told in self.told:
            if not results[told]:
                results[i].stop_gradient, results[i].tape_node = True, None


SETTLED = OpenNeeds()


def tell_needs(trace: GradLeaves, results: Sequence[Value], views: Iterable[Any], more: list[Value]) -> OpenNeeds:
    """Return what a run decides; what tells it is added to the results that are given `more`."""
    trace.refuse_leaving(results)
    if not trace.mixed:
        return SETTLED
    leaves = {t.payload for t in trace.made_leaves.values()}
    shown = {view.result for view in views if isinstance(view, ResultView)}
    found = NeededGradients(results, trace.needs, leaves)
    ones = [(i, v) for i, v in enumerate(results) if i not in shown and found.is_open(v)]
    tensors = {i: found.told(v) for i, v in ones if isinstance(v.type, TensorType) and v in trace.needs}
    numbers = {v: len(results) + len(more) + n for n, v in enumerate(dict.fromkeys(tensors.values()))}
    more += numbers
    inside = any(not isinstance(v.type, TensorType) for _, v in ones)
    return OpenNeeds(tuple((i, numbers[v]) for i, v in tensors.items()), inside)


def refusal_of_needed(raised: AbstractValue) -> StructureError | None:
    """Return why an exception with tensors that need gradients cannot leave a run: it would without their history."""
    waiting = [raised]
    while waiting:
        found = waiting.pop()
        waiting += found.children
        if isinstance(found, TensorLike) and not found.stop_gradient:
            return error_here(
                StructureError,
                "an exception that only the run will raise takes a tensor that needs a gradient out of the function",
                "raise it with `x.detach()`",
            )
    return None


def settle_raised(found: Iterable[RaisedException], program: Program, once: bool) -> None:
    """Let eager mode raise what takes tensors along, where it can run unseen; refuse what can be neither way.

    Say `once` of what can only run one time.
    """
    seen = once or any(o.op.effect and not o.op.is_hushed for o in program.walk())
    for raised in found:
        raised.is_replayed = raised.holds_tensors and not seen
        if raised.refusal is not None and not raised.is_replayed:
            raise raised.refusal


_Parts = tuple[Callable[[Iterable[bool]], bool], Sequence[Value]]


class NeededGradients(ToldValues):
    """Whether the `results` of a Program need a gradient: 1, or 0 where not.

    `needs` are the values that need one on some way, `leaves` those among them that were given `stop_gradient=False`.
    """

    def __init__(self, results: Sequence[Value], needs: Collection[Value], leaves: Collection[Value]) -> None:
        super().__init__()
        self._needs, self._leaves = needs, leaves
        self._parts: dict[Value, _Parts] = {}
        """What a value needs a gradient by, and whether all of that has to or one is enough."""
        waiting = [v for v in results if is_differentiable(v.type)]
        while waiting:
            if (value := waiting.pop()) not in self._parts:
                self._parts[value] = self._parts_of(value)
                waiting += self._parts[value][1]
        self._surely, self._perhaps = self._settled(start=True), self._settled(start=False)

    def _parts_of(self, value: Value) -> _Parts:
        ways, made = self.before(value), value.operation
        if ways is not None and value not in self._leaves:
            return all, ways
        if made is None or made.blocks or value in self._leaves or not made.op.differentiable:
            return all, ()
        if isinstance(made.op, Renew):
            return all, made.operands[1:]
        return any if isinstance(value.type, TensorType) else all, [
            v for v in made.operands if is_differentiable(v.type)
        ]

    def _settled(self, *, start: bool) -> Mapping[Value, bool]:
        """Return which values need a gradient, if those of which that depends on themselves do as `start` says.

        That is so on all ways where it says so, and on some way else.
        """
        found = dict.fromkeys(self._parts, start)
        order, changed = [*reversed(self._parts)], True
        while changed:
            changed = False
            for value in order:
                new = self._needs_now(value, found, start)
                changed |= new is not found[value]
                found[value] = new
        return found

    def _needs_now(self, value: Value, found: Mapping[Value, bool], start: bool) -> bool:
        combined, parts = self._parts[value]
        if parts:
            return (combined if start else any)(found[v] for v in parts)
        if isinstance(value.type, TensorType) or value.operation is None:
            return value in self._needs
        return start  # nothing is in it

    def is_open(self, value: Value) -> bool:
        """Return whether a run decides it."""
        return self._perhaps.get(value, False) and not self._surely[value]

    def known(self, value: Value) -> int | None:
        if self.is_open(value) and isinstance(value.type, (TensorType, VariantType)):
            return None
        return int(self._perhaps[value])

    def tell_here(self, value: Value) -> Value:
        """Return whether one of the operands of an operation needs a gradient."""
        first, *more = [self.told(v) for v in self._parts[value][1] if self._perhaps[v]]
        for other in more:
            first = insert_first(value.block, "scalar_max", first, other)
        return first
