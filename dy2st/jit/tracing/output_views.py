"""Which results of a Program are one of its inputs, or a view of one or of another result: a call gives that tensor.

A Program gives arrays of its own. What the function returns in eager mode may show the memory of an argument, of a
tensor from outside or of another result instead (`x`, `x.reshape([-1])`, `self.weight[0]`): a write of one is seen in
the other. So the trace notes the operations between them, and the call repeats them on the real tensor. Where branches
decide which tensor a result is, the run tells (output_choices.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.errors import StructureError
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType, has_tensors
from dy2st.jit.tracing.external_reads import ExternalReads
from dy2st.jit.tracing.output_choices import (
    NO_OTHER,
    PossibleTensors,
    ResultChoice,
    StructureChoice,
    is_structured,
)
from dy2st.jit.tracing.told_values import is_decided
from dy2st.ops.core.base import Op
from dy2st.records import record
from dy2st.runtime.eager.dispatch import View, apply, note_view
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.alias_analysis import root


@record(frozen=True)
class RunResult:
    """An operand of a view that a run tells: which result it is."""

    result: int


@record(frozen=True)
class ResultView:
    """A result, by number, that shows another tensor, and the operations from there on: none where it is that one.

    The other one is an input, by number, or a result: these are counted after the inputs.
    """

    result: int
    source: int
    steps: tuple[tuple[Op, tuple[Any, ...], dict[str, Any]], ...] = ()

    def of(self, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Return the real tensor, or the view of it."""
        t = inputs[self.source] if self.source < len(inputs) else results[self.source - len(inputs)]
        for op, operands, attributes in self.steps:
            t = view_of(t, op, [results[x.result] if isinstance(x, RunResult) else x for x in operands], attributes)
        return t


def view_of(t: Tensor, op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Tensor:
    """Return a view of a real tensor, as `apply` does, in a third of the time where no gradient is needed."""
    array = t.payload
    if array.__class__ is not np.ndarray or not t.stop_gradient:
        return apply(op, t, *operands, **attributes)
    made = Tensor(op.eval(np, array, *operands, **attributes))
    note_view(op, (t, *operands), attributes, made)
    return made


def views_among(
    trace: ExternalReads, results: Sequence[Value], writes: Sequence[Any], values: Sequence[Value],
    order: Sequence[Value], views: Mapping[Value, Tensor],
) -> tuple[tuple[ResultView | ResultChoice | StructureChoice, ...], list[Value]]:  # fmt: skip
    """Return which results, of the output and of what is written, show what, and the results that this takes more.

    These are operands of views, and tensors of the function's own that several results show.

    `views` are the views that were looked at for the results.

    An argument that was written in place is still that tensor.
    """
    named = [_is_named(key) for key, _, t in writes for _ in t.types()]
    every = zip([True] * len(results) + named, [*results, *values], strict=True)
    numbered = [(i, v) for i, (is_named, v) in enumerate(every) if is_named]
    found = _Found(trace, order, numbered, len(results) + len(values))
    found.note_inputs(order)
    found.note(views)
    found.note_choices()
    return tuple(found.views), found.operands


def _is_named(key: Any) -> bool:
    """Return whether a write under this key gives a tensor another name, rather than elements to a tensor."""
    return key[0] not in ("data", "grad", "grad_sum")


def _that_meet(tensors: PossibleTensors, values: Sequence[Value]) -> list[Value]:
    """Return those values in which there may be a tensor that is in another one of them."""
    possible = {v: tensors.of(v) - {NO_OTHER} for v in values}
    times = Counter(n for numbers in possible.values() for n in numbers)
    return [v for v in values if any(times[n] > 1 for n in possible[v])]


def _chain(t: Any) -> Iterator[View]:
    """Give how a view was taken, from the last step on."""
    while isinstance(t, Tensor) and (view := t.view_of) is not None:
        yield view
        t = view.base


class _Found:
    """The views that were found in a trace, and the values of the run that make them."""

    def __init__(self, trace: ExternalReads, order: Sequence[Value], numbered: Sequence[tuple[int, Value]], count: int):
        self.trace, self.count, self.first = trace, count, len(order)
        places = {i: order.index(v) for i, (_, v, t) in trace.slots.items() if t is not None}
        self.places = places | {i: slot.index for i, slot in trace.arguments.items() if slot.kind == "leaf"}
        """The number of a tensor that stands for an input, by id."""
        self.numbers: dict[Value, list[int]] = {}
        for i, value in numbered:
            self.numbers.setdefault(value, []).append(i)
        self.results = {value: len(order) + numbers[0] for value, numbers in self.numbers.items()}
        """The number of a value as a source."""
        self.operands: list[Value] = []
        """The results that views take more."""
        self.views: list[ResultView | ResultChoice | StructureChoice] = []
        self.tensors = PossibleTensors(self.first)

    def note_inputs(self, order: Sequence[Value]) -> None:
        """Note the results that are inputs."""
        now = {v: i for i, v in enumerate(order) if isinstance(v.type, TensorType)}
        for key, new in self.trace.log.overlays[0].items():
            is_tensor = isinstance(new, Tensor) and isinstance(new.payload, Value)
            if key[0] == "data" and key[1] in self.places and is_tensor:
                now[new.payload] = self.places[key[1]]
        for value, place in now.items():
            self.tensors.number(value, place)
            self.views += [ResultView(i, place) for i in self.numbers.pop(value, ())]

    def note(self, views: Mapping[Value, Tensor]) -> None:
        """Note the results that are views of inputs, of other results, or several of them of one tensor."""
        left = {value: t for value, t in views.items() if value in self.numbers}
        for t in left.values():
            if any(view.was_written for view in _chain(t)) and self._source(root(t), 1) is not None:
                raise StructureError(
                    "a result is a view that was written, and only the run tells of which part of another tensor"
                )
        left = {value: t for value, t in left.items() if all(view.repeatable for view in _chain(t))}
        shown = Counter(id(root(t)) for value, t in left.items() for _ in self.numbers[value])
        for value, t in left.items():
            if (source := self._source(root(t), shown[id(root(t))])) is not None:
                steps = self._steps(t)
                self.views += [ResultView(i, source, steps) for i in self.numbers.pop(value)]

    def note_choices(self) -> None:
        """Note the results of which branches and loops decide whether they are inputs or other results."""
        tensors = self.tensors
        left = [v for v in self.numbers if isinstance(v.type, TensorType)]
        others = [v for v in self.numbers if not isinstance(v.type, TensorType) and has_tensors(v.type)]
        tellable = [v for v in others if tensors.is_tellable(v)]
        tensors.note_structures([*left, *tellable], _that_meet(tensors, tellable))
        lists = [v for v in others if tensors.is_structure(v) and tensors.is_tellable(v)]
        places = {i: i for i in range(self.first)}
        for value in left:
            if not tensors.is_open(value):
                places |= dict.fromkeys(tensors.of(value) - {NO_OTHER}, self.first + self.numbers[value][0])
        told: list[tuple[Value, int, int]] = []
        decided = [v for v in left if tensors.is_open(v)]
        decided += [v for v in others if not is_structured(v.type) and v not in lists and is_decided(v)]
        tensors.share([*decided, *lists])
        for value in [*decided, *lists]:
            possible, (result, *more) = tensors.of(value) - {NO_OTHER}, self.numbers[value]
            sources = {n: places[n] for n in sorted(possible) if n in places}
            alike = [v for v in (*decided, *lists) if v is not value and possible & tensors.of(v)]
            if not sources and not alike:
                continue
            others = tuple((which, r) for v, which, r in told if v in alike and v in left)
            before = next((r for v, _, r in reversed(told) if v in lists), None)
            told.append((value, self._more(tensors.told(value)), result))
            choice = ResultChoice(result, told[-1][1], sources, others)
            self.views.append(
                StructureChoice(result, told[-1][1], sources, others, before) if value in lists else choice
            )
            self.views += [ResultView(i, self.first + result) for i in more]

    def _source(self, t: Any, shown: int) -> int | None:
        """Return the number of a tensor that `shown` results show; None where nobody else sees what is written."""
        if id(t) in self.places:
            return self.places[id(t)]
        if not isinstance(t, Tensor):
            return None
        value = self.trace.value_of(t)
        if value not in self.results and shown > 1:
            self.results[value] = self.first + self._more(value)
        return self.results.get(value)

    def _more(self, value: Value) -> int:
        """Make a value a result more; return its number among the results."""
        self.operands.append(value)
        return self.count + len(self.operands) - 1

    def _steps(self, t: Tensor) -> tuple[Any, ...]:
        steps: list[Any] = []
        while (view := t.view_of) is not None:
            steps.append((view.op, tuple(map(self._operand, view.operands)), view.attributes))
            t = view.base
        return tuple(reversed(steps))

    def _operand(self, x: Any) -> Any:
        if isinstance(x, (bool, int, float)):
            return x
        return RunResult(self._more(self.trace.value_of(x) if isinstance(x, Tensor) else self.trace.scalar(x)))
